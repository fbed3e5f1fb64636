"""Equalize channels across two layers: what a channel loses between them in range, the next layer's weights gain.

An activation has one scale for all channels, so small channels have few levels. Between two linear operators with
nothing but Relus and pools, a channel may be divided by any positive number, in the first layer's weights and bias, if
the second layer's weights for it are multiplied by that: the results stay the same. The number is the root of the
channel's range over that of these weights, so that both share the loss (SmoothQuant's with a strength of a half).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.quantization.bias_correction import ChannelBias, biases_of
from hwflow.quantization.calibration import observed
from hwflow.quantization.node_weights import weights_of
from hwflow.quantization.sessions import Arrays

Floats = npt.NDArray[np.float64]

_MOST = 2.0**10  # times that a channel is scaled, up or down


@dataclass(frozen=True)
class _Pair:
    """Two linear operators; ``between`` is the value that the second one reads, with channels along ``axis``. The
    outputs of ``first_weights`` are their ``first_axis``, the inputs of ``second_weights`` their ``second_axis``."""

    first_weights: str
    first_axis: int
    bias: ChannelBias | None
    second_weights: str
    second_axis: int
    between: str
    axis: int


def equalized(model: onnx.ModelProto, frames: Sequence[Arrays]) -> onnx.ModelProto:
    """Return a float model with the same results, whose channels between layers have ranges nearer to each other."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    pairs = [*_pairs(copy.graph)]
    greatest: dict[str, Floats] = {}
    for name, array in observed(model, frames, [pair.between for pair in pairs]):
        axis = next(pair.axis for pair in pairs if pair.between == name)
        greatest[name] = np.maximum(greatest.get(name, 0.0), _greatest(array.astype(np.float64), axis))
    values = {i.name: i for i in copy.graph.initializer}
    for pair in pairs:
        weights = numpy_helper.to_array(values[pair.second_weights]).astype(np.float64)
        theirs = _greatest(weights, pair.second_axis)
        mine = greatest[pair.between]
        alive = (mine > 0) & (theirs > 0)
        factors = np.sqrt(np.where(alive, mine, 1.0) / np.where(alive, theirs, 1.0))
        factors[alive] /= np.exp(np.log(factors[alive]).mean()) if alive.any() else 1.0
        factors = np.where(alive, np.clip(factors, 1 / _MOST, _MOST), 1.0)
        _scale(values[pair.first_weights], 1 / factors, pair.first_axis)
        _scale(values[pair.second_weights], factors, pair.second_axis)
        if pair.bias is not None:
            _scale(values[pair.bias.node.input[pair.bias.index]], 1 / factors, -1)
    return copy


def _greatest(values: Floats, axis: int) -> Floats:
    """Return the greatest magnitude of each index of an axis."""
    moved = np.moveaxis(np.abs(values), axis, 0)
    return np.asarray(moved.reshape(len(moved), -1).max(axis=1))


def _scale(tensor: onnx.TensorProto, factors: Floats, axis: int) -> None:
    values = numpy_helper.to_array(tensor)
    shape = [1] * values.ndim
    shape[axis] = len(factors)
    tensor.CopyFrom(numpy_helper.from_array((values * factors.reshape(shape)).astype(values.dtype), tensor.name))


def _pairs(graph: onnx.GraphProto) -> Iterator[_Pair]:
    constants = {i.name: i for i in graph.initializer}
    count = Counter(name for node in graph.node for name in node.input)
    count.update(o.name for o in graph.output)
    readers = {name: node for node in graph.node for name in node.input if count[name] == 1}
    biases = {bias.linear.name: bias for bias in biases_of(graph, constants)}
    for node in graph.node:
        first = _plain_axes(node, constants)
        if first is None or count[node.input[1]] > 1:
            continue
        bias = biases.get(node.name)
        if bias is None and len(node.input) > 2:
            continue
        if bias is not None and count[bias.node.input[bias.index]] > 1:
            continue
        value = node.output[0]
        while (reader := readers.get(value)) is not None:
            facts = facts_of(STANDARD_DOMAIN, reader.op_type)
            adds = bias is not None and reader is bias.node
            if not (facts.homogeneous or adds) or len(reader.output) > 1:
                break
            value = reader.output[0]
        second = None if reader is None else _plain_axes(reader, constants)
        if reader is None or second is None or reader.input[0] != value or count[reader.input[1]] > 1:
            continue
        image = len(constants[node.input[1]].dims) > 2
        if image != (len(constants[reader.input[1]].dims) > 2):
            continue
        yield _Pair(
            node.input[1], first[1], bias, reader.input[1], second[0], value, 1 if image else -1,
        )


def _plain_axes(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> tuple[int, int] | None:
    """Return the axes of inputs and of outputs of the weights that a linear operator has as its second operand; None
    of another node, one with groups, or one whose channels are not the last axis of a matrix."""
    weights = weights_of(node, constants)
    if weights is None or weights.index != 1 or weights.axis not in (0, 1):
        return None
    attributes = {a.name: a.i for a in node.attribute}
    if attributes.get("group", 1) != 1 or attributes.get("transA", 0):
        return None
    return 1 - weights.axis, weights.axis
