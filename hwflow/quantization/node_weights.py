"""Which operands of nodes are weights, with scales along which axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import onnx

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.onnxspec.graphs.weight_axes import Weights


def weights_of(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> Weights | None:
    """Return the weights of a linear operator's node; None for another, and where no operand, or every one, is
    constant."""
    rule = facts_of(STANDARD_DOMAIN, node.op_type).weights
    if rule is None:
        return None
    index = 1 if node.input[1] in constants else 0
    if node.input[index] not in constants or node.input[1 - index] in constants:
        return None
    return rule(index, tuple(constants[node.input[index]].dims), {a.name: a.i for a in node.attribute})


def part_weights(model: onnx.ModelProto) -> None:
    """Copy weights that have another reader with scales along another axis, or with none."""
    graph = model.graph
    constants = {i.name: i for i in graph.initializer}
    readers: dict[str, dict[int | str | None, list[tuple[onnx.NodeProto, int]]]] = defaultdict(dict)
    for node in graph.node:
        weights = weights_of(node, constants)
        for index, name in enumerate(node.input):
            if name in constants:
                kind = weights.axis if weights is not None and weights.index == index else "other"
                readers[name].setdefault(kind, []).append((node, index))
    for name, kinds in readers.items():
        kept = "other" if "other" in kinds else next(iter(kinds))
        for kind, places in kinds.items():
            if kind == kept:
                continue
            copy = onnx.TensorProto()
            copy.CopyFrom(constants[name])
            copy.name = f"{name}_of_{places[0][0].name}"
            graph.initializer.append(copy)
            for node, index in places:
                node.input[index] = copy.name
