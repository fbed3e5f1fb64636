"""Clauses about the model as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from hwflow.onnxspec.graph import MODEL
from hwflow.onnxspec.rules import Context, Hit, Rule

_EXPORT = "export the model again with a current exporter"


def _ir_version_present(context: Context) -> Iterator[Hit]:
    if not context.model.HasField("ir_version"):
        yield Hit((MODEL,), "model", "ir_version must be there, but the model has none")


def _ir_version(context: Context) -> Iterator[Hit]:
    version = context.ir_version
    if context.model.HasField("ir_version") and not 1 <= version <= onnx.IR_VERSION:
        yield Hit(
            (MODEL,),
            "model",
            f"ir_version must be from 1 to {onnx.IR_VERSION}, not {version}",
            f"export the model with IR version {onnx.IR_VERSION} or lower" if version > 0 else None,
        )


RULES = (
    Rule("PRO-01", "MUST", _ir_version_present, _EXPORT, structural=True),
    Rule("VER-04", "definition", _ir_version, _EXPORT, structural=True),
)
