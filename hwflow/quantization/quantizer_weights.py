"""Tell onnxruntime's quantizer how to treat linear operators: which operand is weights, with a scale per output.

Its own operator quantizers (onnxruntime 1.32) take axis 1 of any constant for the outputs of MatMul, give a bias of a
grouped ConvTranspose only as many scales as a group has outputs, and quantize products of two streams, which hardware
cannot be made of.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import onnx

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, all_facts, facts_of
from hwflow.onnxspec.graphs.weight_axes import Weights


def is_linear(node: onnx.NodeProto) -> bool:
    """Whether hardware is made of the node's operator where one operand is constant: the weights."""
    return facts_of(STANDARD_DOMAIN, node.op_type).weights is not None


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


@dataclass
class LinearQuantizer:
    """Called by onnxruntime for each node of a linear operator: tells ``quantizer`` (its QDQQuantizer) what to
    quantize, and how."""

    quantizer: Any
    node: onnx.NodeProto

    def quantize(self) -> None:
        """Quantize weights with a scale per output, the bias as int32 if it has one value per output, and streams."""
        node, constants = self.node, self.quantizer.initializers
        weights = weights_of(node, constants)
        if weights is None:
            return
        name, stream = node.input[weights.index], node.input[1 - weights.index]
        self.quantizer.quantize_activation_tensor(stream)
        self.quantizer.quantize_activation_tensor(node.output[0])
        if weights.axis is None:
            self.quantizer.quantize_weight_tensor(name)
        else:
            self.quantizer.quantize_weight_tensor_per_channel(name, weights.axis)
        bias = constants.get(node.input[2]) if len(node.input) > 2 else None
        if bias is not None and weights.axis is not None and [*bias.dims] == [constants[name].dims[weights.axis]]:
            self.quantizer.quantize_bias_tensor(node.name, bias.name, stream, name)


@contextlib.contextmanager
def linear_quantizers(registry: MutableMapping[str, Any]) -> Iterator[None]:
    """Put :class:`LinearQuantizer` into onnxruntime's ``registry`` of QDQ operator quantizers during the body."""
    before = dict(registry)
    linear = (name for (domain, name), operator in all_facts() if not domain and operator.weights is not None)
    registry.update(dict.fromkeys(linear, LinearQuantizer))
    try:
        yield
    finally:
        registry.clear()
        registry.update(before)
