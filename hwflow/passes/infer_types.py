"""Types and exact intervals of every value. Requires: known operators. Ensures: typed-values."""

from __future__ import annotations

from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Node
from hwflow.numerics.staircase import LIMIT
from hwflow.ops.registry import OPERATORS


def infer_types(graph: Graph) -> Graph:
    """Fill in ``type`` of every node output, in order; attributes an operator derives from types are added to its node.

    Raises :class:`ModelRefused` at the first sum that leaves the range of exact arithmetic.
    """
    for node in graph.nodes:
        operator = OPERATORS[node.op]
        inputs = [value.typed for value in node.inputs]
        node.attributes.update(operator.derive(node.attributes, inputs))
        for value, type_ in zip(node.outputs, operator.infer(node.attributes, inputs), strict=True):
            if max(-type_.interval.lo, type_.interval.hi) > LIMIT:
                raise ModelRefused(_too_wide(node, str(type_.interval)))
            value.type = type_
    return graph


def _too_wide(node: Node, interval: str) -> Finding:
    names = ", ".join(f"'{s}'" for s in node.sources) or f"'{node.name}'"
    return Finding(
        "accumulator-range", f"node {names} ({node.op})", f"its sums must lie within 62 bits, not in {interval}",
        "quantize the operands to fewer bits",
    )
