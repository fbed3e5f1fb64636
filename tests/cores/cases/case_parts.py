"""What cases are made of: element types, streams, the frames of extreme results."""

from __future__ import annotations

import itertools

import numpy as np

from hwflow.boards import find_board
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType

PART = find_board("ulx3s_85f").part


def stream(pixels: int, channels: int, element: IntType, intervals: tuple[Interval, ...] = ()) -> TensorType:
    """A stream; ``intervals`` one per channel, else the element's whole range."""
    if intervals:
        hull = intervals[0]
        for interval in intervals:
            hull = hull.hull(interval)
        return TensorType((pixels, channels), element, hull, intervals, 1)
    return TensorType((pixels, channels), element, element.interval)


def intervals_within(element: IntType, count: int, rng: np.random.Generator) -> tuple[Interval, ...]:
    ends = np.sort(rng.integers(element.min, element.max + 1, (count, 2)), axis=1)
    return tuple(Interval(int(lo), int(hi)) for lo, hi in ends)


U1, U4, U8, I4, I8, I12, I16 = (
    IntType(1, False),
    IntType(4, False),
    IntType(8, False),
    IntType(4, True),
    IntType(8, True),
    IntType(12, True),
    IntType(16, True),
)


I2, U2 = IntType(2, True), IntType(2, False)


def constant_corners(node: Node) -> IntArray:
    """Each channel all least, then all greatest: enough where the result is monotone in every input."""
    source = node.inputs[0].typed
    ranges = source.channel_intervals(1)
    low, high = ([r.lo for r in ranges], [r.hi for r in ranges])
    return np.stack([np.broadcast_to(np.array(end, dtype=np.int64), source.shape) for end in (low, high)])


def paired_corners(node: Node) -> list[IntArray]:
    """Every combination of all least and all greatest of each input: enough where the result is monotone in each."""
    ends = []
    for value in node.inputs:
        ranges = value.typed.channel_intervals(1)
        ends.append([np.broadcast_to([getattr(r, e) for r in ranges], value.typed.shape) for e in ("lo", "hi")])
    return [np.stack(arrays) for arrays in zip(*itertools.product(*ends), strict=True)]
