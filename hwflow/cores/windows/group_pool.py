"""Pools over groups of consecutive pixels of a stream, by channel: the base of maximum and sum.

Lanes up to a pixel take one pixel after the other. More input lanes are several pixels of a group (which they divide),
with all channels per output beat, or several whole groups.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from hdl_lib.windows.pool import MaxPool as Core
from hdl_lib.windows.pool_tree import MaxPoolTree as TreeCore
from hwflow.cores import costs
from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.logical.images import image_order, image_stream
from hwflow.cores.operator import Decision, Device, Folding, HardwareOperator, LoweringContext, beats
from hwflow.cores.timing import Process, Timing, every
from hwflow.cores.windows.sliding_window import SlidingWindowAttributes
from hwflow.ir.graph import Attributes, IntArray, Node, Stage, Value
from hwflow.ir.node_attributes import Window
from hwflow.types import TensorType


@dataclass(frozen=True, eq=False)
class PoolAttributes(Attributes):
    """``window``: pixels per group."""

    window: int


P = TypeVar("P", bound=PoolAttributes)


class GroupPool(HardwareOperator[P]):
    """A core behind :mod:`hdl_lib.windows.pool`."""

    stages: ClassVar[frozenset[Stage]] = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    @abstractmethod
    def reduce(self, groups: IntArray, attributes: P) -> IntArray:
        """Reduce [frames, groups, window, channels] along the third axis."""

    def evaluate(self, attributes: P, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        window = attributes.window
        groups = inputs[0].reshape(frames, pixels // window, window, channels)
        return (self.reduce(groups, attributes),)

    def foldings(self, node: Node[P], device: Device) -> Sequence[Folding]:
        return group_foldings(node.inputs[0].typed.shape, node.attributes.window)

    def cycles(self, node: Node[P], folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node[P], decision: Decision) -> Timing:
        return group_timing(
            node.inputs[0].typed.shape, node.attributes.window, decision.folding.input_lanes, Core, TreeCore
        )


def group_foldings(shape: tuple[int, ...], window: int, k: int = 1) -> list[Folding]:
    """Return the lanes of a core with ``k`` results per group and channel of a stream (pixels, channels): a part of a
    pixel; for one result several pixels of a group, and several groups."""
    pixels, channels = shape
    parts = [Folding(lanes, lanes * k) for lanes in costs.useful_lanes(channels)]
    if k > 1:
        return parts
    several = [Folding(n * channels, channels) for n in range(2, window) if window % n == 0]
    groups = [Folding(n * window * channels, n * channels) for n in divisors(pixels // window)]
    return list(dict.fromkeys(parts + several + groups))


class _Latency(Protocol):
    """A core whose latency follows from two numbers."""

    @staticmethod
    def latency_of(first: int, second: int, /) -> int: ...


def group_timing(shape: tuple[int, ...], window: int, lanes: int, core: _Latency, tree: _Latency) -> Timing:
    """Return the timing of a core over groups of a stream (pixels, channels): ``core`` for parts of a pixel, ``tree``
    for several pixels at once."""
    pixels, channels = shape
    together = lanes // channels
    if together > 1:
        beat = np.arange(1, pixels // together + 1)
        produces = beat[beat * together % window == 0] - 1
        process = Process(beat.size, {0: every(beat.size)}, {0: produces})
        return Timing((process,), (tree.latency_of(together, window),))
    return Timing((group_process(shape, window, lanes),), (core.latency_of(channels, lanes),))


def group_process(shape: tuple[int, ...], window: int, lanes: int) -> Process:
    """Return the steps of a core that takes parts of a pixel and has results with the last pixel of each group."""
    pixels, channels = shape
    steps = every(pixels * -(-channels // lanes)).reshape(pixels // window, window, -1)
    return Process(steps.size, {0: steps.reshape(-1)}, {0: steps[:, -1, :].reshape(-1)})


def divisors(count: int) -> list[int]:
    """Return the divisors of a number of at least 1, ascending."""
    return [n for n in range(1, count + 1) if count % n == 0]


def pools_images(image: TensorType, window: Window) -> bool:
    """Tell whether a pool needs the pixels of an image side by side: a window over all of a single row does not, since
    rows of a matrix are images, too (:func:`lower_pool`)."""
    _, height, width = image.shape
    return height > 1 or not WindowGeometry.of(window, height, width).whole


def lower_pool(
    node: Node, context: LoweringContext, window: WindowGeometry, pad_value: int, suffix: str, pool: PoolAttributes
) -> None:
    """Lower a pool over images to a sliding window and ``pool``, of each window's pixels; without the sliding window if
    a single window covers the image. Then the channels may also come one after the other, as rows of a matrix do."""
    channels = node.inputs[0].typed.shape[0]
    if window.whole and (rows := _in_rows(context, node.inputs[0], channels, window.taps)) is not None:
        stream, order = rows
        context.bind(node.outputs[0], context.add(suffix, [stream], pool), order)
        return
    stream = image_stream(node, context)
    if not window.whole:
        stream = context.add("window", [stream], SlidingWindowAttributes(window, pad_value))
    result = context.add(suffix, [stream], pool)
    context.bind(node.outputs[0], result, image_order(channels, window.output[0] * window.output[1]))


def _in_rows(context: LoweringContext, value: Value, channels: int, pixels: int) -> tuple[Value, IntArray] | None:
    """Return the stream of images, as a single channel, and the order of their channels in it, if each channel comes
    as a whole; None if they come side by side, or mixed."""
    stream, order = context.stream(value)
    at = order.reshape(channels, pixels) // pixels
    if pixels == 1 or channels == 1 or (at != at[:, :1]).any():
        return None
    return context.arranged(stream, order, order, 1), at[:, 0]
