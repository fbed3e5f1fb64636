"""Concatenation of tensors along one axis of a frame.

:class:`Concat` is the operator of the quantized stage; attribute ``axis``. The streams of its inputs follow each other
in turn (:class:`StreamConcat`): channels of each pixel, or pixels, in as many rounds as the axes before ``axis`` have
positions; or whole pixels come in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from hdl_lib.streams.concat import Concat as Core
from hdl_lib.streams.interleave import Interleave
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.images import image_order
from hwflow.cores.operator import (
    Built,
    Decision,
    Device,
    Folding,
    HardwareOperator,
    LogicalOperator,
    LoweringContext,
    Resources,
    beats,
    grouped,
)
from hwflow.cores.streams.joined import joined_timing
from hwflow.cores.timing import Process, Timing, every
from hwflow.ir.graph import Attributes, IntArray, Node, Stage, Value
from hwflow.ir.node_attributes import ConcatAttributes
from hwflow.types import Interval, TensorType


class Concat(LogicalOperator[ConcatAttributes]):
    attributes = ConcatAttributes
    stages = frozenset({Stage.QUANTIZED})
    keeps_order = joins = True

    def infer(self, attributes: ConcatAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        axis = attributes.axis % len(inputs[0].shape)
        shape = list(inputs[0].shape)
        shape[axis] = sum(t.shape[axis] for t in inputs)
        return (_joined_type(tuple(shape), axis, inputs),)

    def evaluate(self, attributes: ConcatAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (np.concatenate(inputs, axis=attributes.axis % (inputs[0].ndim - 1) + 1),)

    def lower(self, node: Node[ConcatAttributes], context: LoweringContext) -> None:
        axis = node.attributes.axis % len(node.outputs[0].typed.shape)
        found = [context.stream(value) for value in node.inputs]
        ways = [(way, _order(node, found, axis, way)) for way in _ways(node, axis, [stream for stream, _ in found])]
        if not ways:  # row by row: what follows the axis's positions in front
            found = [_by_rows(context, value, axis, *each) for value, each in zip(node.inputs, found, strict=True)]
            by_channels = StreamConcatAttributes(1)
            ways = [(by_channels, _order(node, found, axis, by_channels))]
        streams = [stream for stream, _ in found]
        shape = node.outputs[0].typed.shape
        attributes, order = next((way for way in ways if _is_plain(way[1], shape)), ways[0])
        context.bind(node.outputs[0], context.add("", streams, attributes), order)


@dataclass(frozen=True, eq=False)
class StreamConcatAttributes(Attributes):
    """``axis`` 1: channels, of inputs with equally many pixels; 0: pixels, of inputs with equally many channels;
    ``rounds``, along pixels: equal parts of each input's frame that are taken in turn."""

    op = "stream_concat"
    axis: int
    rounds: int = 1


class StreamConcat(HardwareOperator[StreamConcatAttributes]):
    """Concatenates streams in turn, or in parallel."""

    attributes = StreamConcatAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: StreamConcatAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        pixels, channels = inputs[0].shape
        if attributes.axis == 1:
            return (_joined_type((pixels, sum(t.shape[1] for t in inputs)), 1, inputs),)
        shape = (sum(t.shape[0] for t in inputs), channels)
        columns = zip(*(t.channel_intervals(1) for t in inputs), strict=True)
        return (TensorType.of(shape, tuple(map(Interval.hull_of, columns)), 1),)

    def evaluate(self, attributes: StreamConcatAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        if attributes.axis == 1:
            return (np.concatenate(inputs, axis=2),)
        frames, _, channels = inputs[0].shape
        parts = [x.reshape(frames, attributes.rounds, -1, channels) for x in inputs]
        return (np.concatenate(parts, axis=2).reshape(frames, -1, channels),)

    def foldings(self, node: Node[StreamConcatAttributes], device: Device) -> Sequence[Folding]:
        """Return the foldings. Channels in turn: lanes that divide the channels of all inputs but the last, so that
        only a pixel's last beat has surplus lanes. Whole pixels of all inputs in parallel (``whole_vector``; lanes are
        the output's). Pixels in turn: any lanes, or whole pixels that fill every beat of every turn."""
        if node.attributes.axis == 0:
            turns = gcd(*(value.typed.shape[0] for value in node.inputs)) // node.attributes.rounds
            return [Folding(count, count) for count in costs.stream_lanes((turns, node.outputs[0].typed.shape[1]))]
        most = gcd(*(value.typed.shape[1] for value in node.inputs[:-1]))
        shape = node.outputs[0].typed.shape
        whole = [lanes for lanes in costs.stream_lanes(shape) if lanes >= shape[1]]
        return [
            *(Folding(lanes, lanes) for lanes in range(1, most + 1) if most % lanes == 0),
            *(Folding(lanes, lanes, whole_vector=True) for lanes in whole),
        ]

    def input_view(
        self, node: Node[StreamConcatAttributes], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        """Return (pixels, channels). Channels in turn: an input of fewer channels than lanes has surplus lanes in every
        beat."""
        pixels, channels = shape
        return (pixels, channels) if node.attributes.axis == 1 and not whole_vector else grouped(shape, lanes)

    def lanes_of(self, node: Node[StreamConcatAttributes], index: int, folding: Folding) -> int:
        """Return the lanes of input ``index``. Whole pixels in parallel: equally many pixels of each input."""
        if not folding.whole_vector:
            return folding.input_lanes
        return folding.input_lanes // int(node.outputs[0].typed.shape[1]) * int(node.inputs[index].typed.shape[1])

    def cycles(self, node: Node[StreamConcatAttributes], folding: Folding) -> int:
        if folding.whole_vector:
            return beats(node.outputs[0].typed.shape, folding.output_lanes)
        return sum(_turns(node, folding)) * _rounds(node)

    def timing(self, node: Node[StreamConcatAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        if folding.whole_vector:
            return joined_timing(self.cycles(node, folding), Interleave.latency, len(node.inputs))
        counts, rounds = _turns(node, folding), _rounds(node)
        steps = every(rounds * sum(counts)).reshape(rounds, sum(counts))
        ends = np.cumsum(counts)
        consumes = {
            index: steps[:, end - count : end].reshape(-1)
            for index, (count, end) in enumerate(zip(counts, ends, strict=True))
        }
        return Timing((Process(steps.size, consumes, {0: every(steps.size)}),), (Core.latency,))

    def resources(self, node: Node[StreamConcatAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        width = folding.output_lanes * node.outputs[0].typed.element.bits
        if folding.whole_vector:
            lanes = [self.lanes_of(node, k, folding) for k in range(len(node.inputs))]
            widths = [
                count * value.typed.element.bits for count, value in zip(lanes, node.inputs, strict=True)
            ]
            return costs.interleave(device.family, widths, width, decision.depth)
        counts = _turns(node, folding)
        return costs.concat(device.family, width, len(counts), max(counts), decision.depth)

    def build(self, node: Node[StreamConcatAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        shapes = [shape_of(value.typed.element) for value in node.inputs]
        shape = shape_of(node.outputs[0].typed.element)
        if folding.whole_vector:
            channels = [value.typed.shape[1] for value in node.inputs]
            pixels = folding.output_lanes // sum(channels)
            wiring = Interleave(shapes, shape, channels=channels, pixels=pixels, depth=decision.depth)
            return Built(wiring, wiring.i, [wiring.o])
        core = Core(shapes, shape, lanes=folding.output_lanes, beats=_turns(node, folding), depth=decision.depth)
        return Built(core, core.i, [core.o])


def _turns(node: Node[StreamConcatAttributes], folding: Folding) -> list[int]:
    """Return the beats of each input in a round."""
    lanes, shapes = folding.input_lanes, [value.typed.shape for value in node.inputs]
    if node.attributes.axis == 1:
        return [-(-channels // lanes) for _, channels in shapes]
    return [beats(shape, lanes) // _rounds(node) for shape in shapes]


def _rounds(node: Node[StreamConcatAttributes]) -> int:
    return node.inputs[0].typed.shape[0] if node.attributes.axis == 1 else node.attributes.rounds


def _ways(node: Node[ConcatAttributes], axis: int, streams: Sequence[Value]) -> list[StreamConcatAttributes]:
    """Return the concatenations that the streams' shapes allow: channels in turn, pixels in as many rounds as the axes
    before ``axis`` have positions, or in one round."""
    pixels = {stream.typed.shape[0] for stream in streams}
    channels = {stream.typed.shape[1] for stream in streams}
    found = []
    if len(pixels) == 1:
        found.append(StreamConcatAttributes(1))
    if len(channels) == 1:
        shape = node.outputs[0].typed.shape
        for rounds in dict.fromkeys((1, prod(shape[:axis]), prod(shape[1:axis]))):
            if all(count % rounds == 0 for count in pixels):
                found.append(StreamConcatAttributes(0, rounds))
    return found


def _by_rows(
    context: LoweringContext, value: Value, axis: int, stream: Value, order: IntArray
) -> tuple[Value, IntArray]:
    """Return the stream in row-major order, a pixel for each position of the axes before ``axis``."""
    rows = np.arange(order.size)
    return context.arranged(stream, order, rows, prod(value.typed.shape[axis:])), rows


def _order(
    node: Node[ConcatAttributes], streams: Sequence[tuple[Value, IntArray]], axis: int, way: StreamConcatAttributes
) -> IntArray:
    """Return the order of the output's stream: the inputs' orders, in flat indices of the output, passed through the
    core."""
    shape = node.outputs[0].typed.shape
    ends = np.cumsum([value.typed.shape[axis] for value in node.inputs])
    parts = np.split(np.arange(prod(shape)).reshape(shape), ends[:-1], axis=axis)
    flat = []
    for part, (stream, order) in zip(parts, streams, strict=True):
        flat.append(part.reshape(-1)[order].reshape(1, *stream.typed.shape))
    return StreamConcat().evaluate(way, flat)[0].reshape(-1)


def _is_plain(order: IntArray, shape: tuple[int, ...]) -> bool:
    """Tell whether other operators expect this order: that of an image, or row-major; any order if at most one axis is
    longer than 1."""
    if sum(size > 1 for size in shape) <= 1 or np.array_equal(order, np.arange(order.size)):
        return True
    return np.array_equal(order, image_order(shape[0], prod(shape[1:])))


def _joined_type(shape: tuple[int, ...], axis: int, inputs: Sequence[TensorType]) -> TensorType:
    """Return the type of a concatenation along ``axis``, where each index keeps its interval; along another axis each
    has the hull."""
    known = [t for t in inputs if t.channels]
    if known and known[0].channel_axis % len(shape) != axis:
        other = known[0].channel_axis % len(shape)
        columns = zip(*(t.channel_intervals(other) for t in inputs), strict=True)
        return TensorType.of(shape, tuple(map(Interval.hull_of, columns)), other)
    channels = tuple(interval for t in inputs for interval in t.channel_intervals(axis))
    return TensorType.of(shape, channels, axis)
