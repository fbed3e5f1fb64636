"""The ``k`` greatest elements along an axis of a frame: their positions, their values, or both."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hwflow.cores.logical.images import axis_order
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.streams.stream_top_k import StreamTopKAttributes, greatest, result_interval
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import TopKAttributes
from hwflow.types import IntType, TensorType


class TopK(LogicalOperator[TopKAttributes]):
    attributes = TopKAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: TopKAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        axis, shape = attributes.axis, list(inputs[0].shape)
        interval = result_interval(attributes.take, shape[axis], inputs[0].interval)
        shape[axis] = attributes.k
        return (TensorType(tuple(shape), IntType.holding(interval), interval),)

    def evaluate(self, attributes: TopKAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        axis = attributes.axis + 1
        best = greatest(np.moveaxis(inputs[0], axis, -1), attributes)
        return (np.moveaxis(best, -1, axis),)

    def lower(self, node: Node[TopKAttributes], context: LoweringContext) -> None:
        axis, shape, k = node.attributes.axis, node.inputs[0].typed.shape, node.attributes.k
        stream, order = context.stream(node.inputs[0])
        inner = interleaved_groups(order, shape, axis)
        if inner is None:
            order, inner = axis_order(shape, axis), 1
            stream = context.arranged(stream, context.stream(node.inputs[0])[1], order, shape[axis])
        asked = node.attributes
        attributes = StreamTopKAttributes(asked.k, asked.least, asked.last, asked.take, shape[axis], inner)
        result = context.add("", [stream], attributes)
        firsts = order.reshape(-1, shape[axis], inner)[:, 0].reshape(-1)  # of each group its element at place 0
        rest = _without(firsts, shape, axis)
        output = node.outputs[0].typed.shape
        places = np.moveaxis(np.arange(prod(output)).reshape(output), axis, -1).reshape(-1, k)
        context.bind(node.outputs[0], result, places[rest].reshape(-1))


def interleaved_groups(order: IntArray, shape: tuple[int, ...], axis: int) -> int | None:
    """Return the number of groups interleaved in a stream of this order: elements at one place along ``axis``, one of
    each group, are followed by those at the next place. None if the order is different."""
    size = shape[axis]
    places = order // prod(shape[axis + 1 :]) % size
    if size == 1:
        return 1
    inner = int(np.argmax(places != 0))
    if inner == 0 or order.size % (inner * size) or places[0] != 0:
        return None
    expected = np.arange(order.size) // inner % size
    rest = _without(order, shape, axis).reshape(-1, size, inner)
    return inner if np.array_equal(places, expected) and (rest == rest[:, :1]).all() else None


def _without(flat: IntArray, shape: tuple[int, ...], axis: int) -> IntArray:
    """Convert flat indices into ``shape`` to those into the shape without the axis."""
    behind = prod(shape[axis + 1 :])
    result: IntArray = flat // (behind * shape[axis]) * behind + flat % behind
    return result
