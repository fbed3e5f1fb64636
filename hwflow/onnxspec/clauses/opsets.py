"""Clauses about operator sets: what a model imports, and in which version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import onnx

from hwflow.onnxspec.dialects import DIALECT_DOMAINS
from hwflow.onnxspec.graph import MODEL, NODES, opset_map
from hwflow.onnxspec.rules import Context, Hit, Rule

# onnx keeps versions in 32 bits; what other domains' versions mean is theirs to say.
_HIGHEST = 2**31 - 1


def highest_version(domain: str) -> int:
    """The highest version of an operator set that can be dealt with ("" is ai.onnx)."""
    return int(onnx.defs.onnx_opset_version()) if domain == "" else _HIGHEST


@cache
def implicit_version(ir_version: int) -> int:
    """The version of ai.onnx that a model means which does not import it: the newest set of the onnx releases with the
    model's IR version (onnx.helper.VERSION_TABLE); 1 before IR version 3, when there were no imports."""
    if ir_version < 3:
        return 1
    versions = [row[2] for row in onnx.helper.VERSION_TABLE if row[1] <= ir_version]
    return max(versions, default=1)


def _opset_import(context: Context) -> Iterator[Hit]:
    if not context.model.opset_import:
        yield Hit((MODEL,), "model", "opset_import must have at least one entry, but it is empty")


def _opset_version(context: Context) -> Iterator[Hit]:
    for domain, version in opset_map(context.model.opset_import).items():
        highest = highest_version(domain)
        if not 1 <= version <= highest:
            yield Hit(
                (MODEL,),
                "model",
                f"the version of operator set '{domain or 'ai.onnx'}' must be from 1 to {highest}, not {version}",
                f"export the model with opset {highest} or lower" if domain == "" else None,
            )


def _imported(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if {node.domain for node in scope.nodes} <= scope.opsets.keys():
            continue
        reported: set[str] = set()
        for index, node in enumerate(scope.nodes):
            domain = node.domain
            if domain in scope.opsets or domain in reported or (domain == "" and not scope.opsets):
                continue
            reported.add(domain)
            shown = domain or "ai.onnx"
            yield Hit(
                scope.at(NODES, index),
                scope.where(index),
                f"the operator's domain must be imported, but '{shown}' is not in opset_import",
                f"add domain '{shown}' to opset_import",
                # Exporters of the quantized dialects leave their domain out; its operators have one version.
                "warning" if domain in DIALECT_DOMAINS else "error",
            )


RULES = (
    Rule("PRO-02", "MUST", _opset_import, "export the model again", since_ir=3, structural=True),
    Rule("MOD-04", "MUST", _opset_version, "export the model again", structural=True),
    Rule("OPS-01", "MUST", _imported, "add the domain to opset_import", since_ir=3, structural=True),
)
