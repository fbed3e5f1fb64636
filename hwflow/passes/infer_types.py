"""Types and exact intervals of every value. Requires: operators known to the registry. Ensures: typed-values."""

from __future__ import annotations

from hwflow.ir.graph import Graph
from hwflow.ops.registry import OPERATORS


def infer_types(graph: Graph) -> Graph:
    """Fill in ``type`` of every node output, in order; attributes an operator derives from types are added to its node."""
    for node in graph.nodes:
        operator = OPERATORS[node.op]
        inputs = [value.typed for value in node.inputs]
        node.attributes.update(operator.derive(node.attributes, inputs))
        for value, type_ in zip(node.outputs, operator.infer(node.attributes, inputs), strict=True):
            value.type = type_
    return graph
