"""Cumulative sum of the elements of a frame along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.cores.logical.images import axis_order
from hwflow.cores.logical.top_k import interleaved_groups
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.windows.running_sum import RunningSumAttributes, running_sums, sums_interval
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import CumulativeSumAttributes
from hwflow.types import IntType, TensorType


class CumulativeSum(LogicalOperator[CumulativeSumAttributes]):
    attributes = CumulativeSumAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: CumulativeSumAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        (source,) = inputs
        window = source.shape[attributes.axis]
        channel = source.channel_axis % len(source.shape)
        if source.channels and channel != attributes.axis:
            ranges = tuple(sums_interval(attributes, window, interval) for interval in source.channels)
            return (TensorType.of(source.shape, ranges, channel),)
        interval = sums_interval(attributes, window, source.interval)
        return (TensorType(source.shape, IntType.holding(interval), interval),)

    def evaluate(self, attributes: CumulativeSumAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        axis = attributes.axis + 1
        values = np.flip(inputs[0], axis) if attributes.reverse else inputs[0]
        sums = running_sums(attributes, values, axis)
        return (np.flip(sums, axis) if attributes.reverse else sums,)

    def lower(self, node: Node[CumulativeSumAttributes], context: LoweringContext) -> None:
        axis, shape = node.attributes.axis, node.inputs[0].typed.shape
        stream, order = context.stream(node.inputs[0])
        inner = interleaved_groups(order, shape, axis)
        wanted = order
        if inner is None:
            wanted, inner = axis_order(shape, axis), 1
        if node.attributes.reverse:
            wanted = wanted.reshape(-1, shape[axis], inner)[:, ::-1].reshape(-1)
        stream = context.arranged(stream, order, wanted, stream.typed.shape[1])
        attributes = RunningSumAttributes(node.attributes.exclusive, node.attributes.wrap, shape[axis], inner)
        result = context.add("", [stream], attributes)
        context.bind(node.outputs[0], result, wanted)
