"""Clauses about operators: which there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache

import onnx

from hwflow.onnxspec.clauses.opsets import highest_version
from hwflow.onnxspec.dialects import DIALECT_DOMAINS
from hwflow.onnxspec.graph import NODES
from hwflow.onnxspec.rules import Context, Hit, Rule


def find_schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """The operator's schema in version ``version`` of the operator set, None if there is none."""
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def _since(domain: str) -> dict[str, int]:
    """First version of each operator of a domain that onnx knows."""
    first: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            first[schema.name] = min(first.get(schema.name, schema.since_version), schema.since_version)
    return first


def _known_operators(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        for index, node in enumerate(scope.nodes):
            domain = node.domain
            version = scope.opsets.get(domain)
            if (
                domain in DIALECT_DOMAINS
                or version is None  # OPS-01 says it
                or not 1 <= version <= highest_version(domain)  # MOD-04 says it
                or (domain, node.op_type, node.proto.overload) in context.functions
            ):
                continue
            schema = find_schema(node.op_type, version, domain)
            if schema is not None and not schema.deprecated:
                continue
            since = _since(domain)
            remedy: str | None
            shown = f"version {version} of operator set '{domain or 'ai.onnx'}'"
            if schema is not None:
                message = f"the operator must not be deprecated, but {node.op_type} is in {shown}"
                remedy = "export the model with the operator that replaces it"
            elif node.op_type in since:
                message = f"the operator must be in {shown}, but {node.op_type} came with version {since[node.op_type]}"
                remedy = f"export the model with opset {since[node.op_type]} or higher"
            else:
                message = f"the operator must be in {shown}, but {node.op_type} is not"
                near = difflib.get_close_matches(node.op_type, since, n=1)
                remedy = f"did you mean {near[0]}?" if near else None
            yield Hit(scope.at(NODES, index), scope.where(index), message, remedy)


RULES = (
    Rule("OPR-01", "MUST", _known_operators, "replace the node by operators of a known set", structural=True),
)
