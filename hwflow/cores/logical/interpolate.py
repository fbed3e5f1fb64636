"""Linear interpolation: weighted sums of neighbours along one axis, with weights by position.

Lowers to a rearranger, which sends each window's elements one after the other, and a sum with weights by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hwflow.cores.logical.images import axis_order
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.windows.position_sum import PositionSumAttributes, sum_interval
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import InterpolateAttributes
from hwflow.types import TensorType


class Interpolate(LogicalOperator[InterpolateAttributes]):
    attributes = InterpolateAttributes
    stages = frozenset({Stage.QUANTIZED})

    def channel_axis(self, node: Node[InterpolateAttributes]) -> int | None:
        return 0 if node.attributes.axis else None

    def infer(self, attributes: InterpolateAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source, axis, weights = inputs[0], attributes.axis, attributes.weights
        shape = (*source.shape[:axis], len(weights), *source.shape[axis + 1 :])
        channel = source.channel_axis % len(shape) if source.channels else axis
        if channel == axis:
            return (TensorType.of(shape, (sum_interval(weights, source.interval),) * shape[axis], axis),)
        return (TensorType.of(shape, tuple(sum_interval(weights, r) for r in source.channels), channel),)

    def evaluate(self, attributes: InterpolateAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        weights = attributes.weights
        last = np.moveaxis(inputs[0], attributes.axis + 1, -1)
        windows = last[..., attributes.starts[:, None] + np.arange(weights.shape[1])]
        return (np.moveaxis((windows * weights).sum(axis=-1), -1, attributes.axis + 1),)

    def macs(self, node: Node[InterpolateAttributes]) -> int:
        return int(prod(node.outputs[0].typed.shape) * node.attributes.weights.shape[1])

    def lower(self, node: Node[InterpolateAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        axis, weights = node.attributes.axis, node.attributes.weights
        shape, result = (value.typed.shape for value in (node.inputs[0], node.outputs[0]))
        window = weights.shape[1]
        channel = _channel_axis(len(shape), axis, context.preferred_channels(node.outputs[0]))
        channels = 1 if channel is None else shape[channel]
        wanted = np.arange(prod(result)) if channel is None else axis_order(result, channel)
        # Of each element of the result, pixel by pixel, the elements of its window.
        place = np.array(np.unravel_index(wanted, result)).reshape(len(shape), -1, 1, channels)
        taps = np.broadcast_to(place, (len(shape), place.shape[1], window, channels)).copy()
        taps[axis] = node.attributes.starts[taps[axis]] + np.arange(window)[:, None]
        elements = np.ravel_multi_index(tuple(taps), shape).reshape(-1)
        stream = context.arranged(stream, order, elements, channels)
        behind = [size for place, size in enumerate(result) if place > axis and place != channel]
        attributes = PositionSumAttributes(weights, prod(behind))
        context.bind(node.outputs[0], context.add("sums", [stream], attributes), wanted)


def _channel_axis(rank: int, axis: int, preferred: int | None) -> int | None:
    """Return the axis that the stream takes as channels: not the one along which sums are made; None if there is no
    other."""
    if preferred is not None and preferred != axis:
        return preferred
    return next((other for other in range(rank) if other != axis), None)
