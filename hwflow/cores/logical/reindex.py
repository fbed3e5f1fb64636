"""Reorder the elements of a frame: each element of the result is one of the input's, or a constant.

Lowers to a rearranger, or to nothing where the stream's order stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hdl_lib.memories.rearrange import RearrangePlan
from hwflow.cores.logical.images import axis_order
from hwflow.cores.logical.index_map import FILL, IndexMap
from hwflow.cores.operator import Axes, LogicalOperator, LoweringContext
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import ReindexAttributes
from hwflow.types import Interval, IntType, TensorType


class Reindex(LogicalOperator[ReindexAttributes]):
    attributes = ReindexAttributes
    stages = frozenset({Stage.QUANTIZED})

    def axes_of_result(self, node: Node[ReindexAttributes], axes: Axes) -> Axes | None:
        return axes if node.attributes.index.ndim == len(axes) else None

    def infer(self, attributes: ReindexAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source, index = inputs[0], attributes.index
        fill = Interval(attributes.fill, attributes.fill)
        filled = bool((index == FILL).any())
        if source.channels:
            axis = source.channel_axis % len(source.shape)
            behind = prod(source.shape[axis + 1 :])
            # Which channel each element comes from; one number more for the fill value.
            channel = np.where(index == FILL, len(source.channels), index // behind % source.shape[axis])
            ranges = (*source.channels, fill)
            for own in range(index.ndim):
                columns = np.moveaxis(channel, own, 0).reshape(index.shape[own], -1)
                if (columns.min(axis=1) == columns.max(axis=1)).all():
                    return (TensorType.of(index.shape, tuple(ranges[c] for c in columns[:, 0]), own),)
        interval = source.interval.hull(fill) if filled else source.interval
        return (TensorType(index.shape, IntType.holding(interval), interval),)

    def evaluate(self, attributes: ReindexAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames = inputs[0].reshape(len(inputs[0]), prod(inputs[0].shape[1:]))
        padded = np.concatenate([frames, np.full((len(frames), 1), attributes.fill, dtype=np.int64)], axis=1)
        return (padded[:, attributes.index],)  # index -1 is the last element, the fill value

    def lower(self, node: Node[ReindexAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        index = node.attributes.index
        if np.array_equal(index.reshape(-1), np.arange(order.size)):  # another shape of the same elements
            context.bind(node.outputs[0], stream, order)
            return
        position = np.full(order.size + 1, FILL, dtype=np.int64)  # the last one for FILL itself
        position[order] = np.arange(order.size)
        best = None
        preferred = context.preferred_channels(node.outputs[0])
        # Row by row, or pixel by pixel of an image.
        for axis in dict.fromkeys((index.ndim - 1, 0)) if preferred is None else (preferred,):
            wanted = axis_order(index.shape, axis)
            moved = IndexMap(position[index.reshape(-1)[wanted]], order.size)
            cost = _buffered(moved, index.shape[axis])
            if best is None or cost < best[0] or (cost == best[0] and not np.array_equal(order, np.arange(order.size))):
                best = cost, moved, wanted, index.shape[axis]
        assert best is not None, "there is at least one axis"
        _, moved, wanted, channels = best
        if moved.is_identity:
            context.bind(node.outputs[0], stream, wanted)
            return
        attributes = RearrangeAttributes(moved, channels, node.attributes.fill)
        context.bind(node.outputs[0], context.add("", [stream], attributes), wanted)


def _buffered(moved: IndexMap, channels: int) -> int:
    """Return the elements that hardware must buffer for this order, with beats as wide as possible."""
    if moved.is_identity:
        return 0
    lanes = max(n for n in range(1, channels + 1) if channels % n == 0 and moved.words(n) is not None)
    if moved.frame(lanes) is not None:
        return lanes
    return lanes * RearrangePlan(moved.walk(lanes), moved.elements // lanes).least_rows
