"""Clauses about the model as a whole: versions and operator sets."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from hwflow.onnxspec.graph import MODEL, opset_map
from hwflow.onnxspec.rules import Context, Hit, Rule

# onnx keeps versions in 32 bits; what other domains' versions mean is theirs to say.
_HIGHEST = 2**31 - 1
_EXPORT = "export the model again with a current exporter"


def highest_version(domain: str) -> int:
    """The highest version of an operator set that can be dealt with ("" is ai.onnx)."""
    return int(onnx.defs.onnx_opset_version()) if domain == "" else _HIGHEST


def _ir_version(context: Context) -> Iterator[Hit]:
    version = context.model.ir_version
    if not context.model.HasField("ir_version"):
        yield Hit((MODEL,), "model", "ir_version must be there, but the model has none", _EXPORT)
    elif not 1 <= version <= onnx.IR_VERSION:
        yield Hit(
            (MODEL,),
            "model",
            f"ir_version must be from 1 to {onnx.IR_VERSION}, not {version}",
            f"export the model with IR version {onnx.IR_VERSION} or lower" if version > 0 else _EXPORT,
        )


def _opset_import(context: Context) -> Iterator[Hit]:
    model = context.model
    if model.ir_version >= 3 and not model.opset_import:
        yield Hit(
            (MODEL,), "model", "opset_import must have at least one entry, but it is empty", "export the model again"
        )


def _opset_version(context: Context) -> Iterator[Hit]:
    for domain, version in opset_map(context.model.opset_import).items():
        highest = highest_version(domain)
        if not 1 <= version <= highest:
            yield Hit(
                (MODEL,),
                "model",
                f"the version of operator set '{domain or 'ai.onnx'}' must be from 1 to {highest}, not {version}",
                f"export the model with opset {highest} or lower" if domain == "" else "export the model again",
            )


RULES = (
    Rule("PRO-01", _ir_version, structural=True),
    Rule("PRO-02", _opset_import, structural=True),
    Rule("MOD-04", _opset_version, structural=True),
)
