"""Tell onnxruntime's quantizer what to quantize of each node: the values chosen, and weights with a scale per output.

Its own operator quantizers (onnxruntime 1.32) take axis 1 of any constant for the outputs of MatMul, give a bias of a
grouped ConvTranspose only as many scales as a group has outputs, and quantize moved integers again.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.onnxspec.graphs.weight_axes import Weights
from hwflow.quantization.placement import Placement
from hwflow.quantization.sessions import imported


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
class NodeQuantizer:
    """Called by onnxruntime for each node: tells ``quantizer`` (its QDQQuantizer) what to quantize, and how.

    ``placement`` names the activations; ``weights``: whether constants of linear operators are quantized, too.
    """

    quantizer: Any
    node: onnx.NodeProto
    placement: Placement
    weights: bool

    def quantize(self) -> None:
        """Quantize activations, weights with a scale per output, and a bias with one value per output as int32."""
        for name in (*self.node.input, *self.node.output):
            if name in self.placement.quantized:
                self.quantizer.quantize_activation_tensor(name)
        if self.weights:
            self._quantize_weights()

    def _quantize_weights(self) -> None:
        node, constants = self.node, self.quantizer.initializers
        weights = weights_of(node, constants)
        if weights is None:
            return
        name, stream = node.input[weights.index], node.input[1 - weights.index]
        if weights.axis is None:
            self.quantizer.quantize_weight_tensor(name)
        else:
            self.quantizer.quantize_weight_tensor_per_channel(name, weights.axis)
        bias = constants.get(node.input[2]) if len(node.input) > 2 else None
        source = self.placement.sources.get(stream)
        if bias is None or source is None or weights.axis is None:
            return
        if [*bias.dims] == [constants[name].dims[weights.axis]]:
            self.quantizer.quantize_bias_tensor(node.name, bias.name, source, name)


@contextlib.contextmanager
def node_quantizers(operators: Sequence[str], placement: Placement, *, weights: bool) -> Iterator[None]:
    """Let :class:`NodeQuantizer` quantize the nodes of ``operators`` during the body, instead of onnxruntime's own."""
    registry = imported("onnxruntime.quantization.registry").QDQRegistry
    before = dict(registry)
    registry.update(dict.fromkeys(operators, partial(NodeQuantizer, placement=placement, weights=weights)))
    try:
        yield
    finally:
        registry.clear()
        registry.update(before)
