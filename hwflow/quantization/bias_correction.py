"""Correct biases: what rounded weights add to the mean of each channel is taken off its bias.

The mean is that over frames, and over all positions of a channel. What a layer's weights are off by, times its inputs,
is what one more such layer gives: all of these run beside the float model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.quantization.calibration import observed
from hwflow.quantization.node_weights import weights_of
from hwflow.quantization.qdq_writer import written_weights
from hwflow.quantization.sessions import Arrays

MOST_FRAMES = 256

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ChannelBias:
    """Operand ``index`` of ``node`` is the bias of ``linear``, whose results' channels lie along ``axis``."""

    linear: onnx.NodeProto
    node: onnx.NodeProto
    index: int
    axis: int


def corrected_biases(
    model: onnx.ModelProto, quantized: onnx.ModelProto, weights: Iterable[str], frames: Sequence[Arrays]
) -> onnx.ModelProto:
    """Return a copy of the float ``model`` whose biases make up for the errors of the ``weights`` that ``quantized``,
    made of it, has. A layer without a constant bias for each channel stays as it is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    errors = written_weights(quantized, weights)
    constants = {i.name: i for i in copy.graph.initializer}
    for name, values in errors.items():
        errors[name] = values - numpy_helper.to_array(constants[name]).astype(np.float64)
    biases = [bias for bias in biases_of(copy.graph, constants) if _weights_name(bias.linear, constants) in errors]
    means = _means(copy, biases, errors, frames[:MOST_FRAMES])
    for bias, mean in zip(biases, means, strict=True):
        before = bias.node.input[bias.index]
        values = numpy_helper.to_array(constants[before])
        name = f"{before}_of_{bias.linear.name}_corrected"
        moved = (values - mean.reshape(values.shape)).astype(values.dtype)
        copy.graph.initializer.append(numpy_helper.from_array(moved, name))
        bias.node.input[bias.index] = name
    return copy


def biases_of(graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]) -> list[ChannelBias]:
    """Return the constant biases with an element a channel: third operands, and what is added to a matrix product."""
    count = Counter(name for node in graph.node for name in node.input)
    readers = {name: node for node in graph.node for name in node.input if count[name] == 1}
    outputs = {o.name for o in graph.output}
    found = []
    for node in graph.node:
        weights = weights_of(node, constants)
        if weights is None or weights.axis is None:
            continue
        channels = constants[node.input[weights.index]].dims[weights.axis]
        if len(node.input) > 2:
            if node.input[2] in constants and [*constants[node.input[2]].dims] == [channels]:
                found.append(ChannelBias(node, node, 2, 1))
            continue
        reader = readers.get(node.output[0])
        if reader is None or node.output[0] in outputs or weights.index != 1:
            continue
        if not facts_of(STANDARD_DOMAIN, reader.op_type).adds:
            continue
        index = 1 - [*reader.input].index(node.output[0])
        added = constants.get(reader.input[index])
        if added is not None and added.dims and added.dims[-1] == channels == int(np.prod(added.dims)):
            found.append(ChannelBias(node, reader, index, -1))
    return found


def _weights_name(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> str:
    weights = weights_of(node, constants)
    return "" if weights is None else node.input[weights.index]


def _means(
    model: onnx.ModelProto, biases: Sequence[ChannelBias], errors: dict[str, Floats], frames: Sequence[Arrays]
) -> list[Floats]:
    """Return the mean of each channel of what the errors of weights add to the results of layers."""
    beside = onnx.ModelProto()
    beside.CopyFrom(model)
    constants = {i.name: i for i in model.graph.initializer}
    names = []
    for bias in biases:
        weights = _weights_name(bias.linear, constants)
        extra = beside.graph.node.add()
        extra.CopyFrom(bias.linear)
        extra.name = f"{bias.linear.name}_error"
        del extra.input[2:]
        for index, name in enumerate(extra.input):
            if name == weights:
                extra.input[index] = f"{bias.linear.name}_weights_error"
        beside.graph.initializer.append(
            numpy_helper.from_array(errors[weights].astype(np.float32), f"{bias.linear.name}_weights_error")
        )
        extra.output[0] = f"{bias.linear.output[0]}_error"
        names.append(extra.output[0])
    sums, count = dict[str, Floats](), Counter[str]()
    axes = {name: bias.axis for name, bias in zip(names, biases, strict=True)}
    for name, array in observed(beside, frames, names):
        channels = np.moveaxis(array.astype(np.float64), axes[name], 0)
        channels = channels.reshape(len(channels), -1)
        sums[name] = sums.get(name, 0.0) + channels.sum(axis=1)
        count[name] += channels.shape[1]
    return [sums[name] / count[name] for name in names]
