"""Reorder the elements of a frame; elements may be repeated or dropped, and constants inserted.

Four forms: wiring, if each result beat is made of one source beat (of several pixels, or a whole frame); runs of beats
that follow each other, one in each period, beside which the others are dropped (a Split's part of each pixel, every
fourth element); parts of a frame in order, with padding between them (:mod:`hdl_lib.memories.pad_crop`); and a buffer
from which whole beats are read in any order (:mod:`hdl_lib.memories.rearrange`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.memories.beat_run import BeatRun
from hdl_lib.memories.pad_crop import Frame, PadCrop, Sent
from hdl_lib.memories.rearrange import Rearrange as Core
from hdl_lib.memories.rearrange import RearrangePlan
from hdl_lib.streams.lane_map import LaneMap
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.index_map import FILL, IndexMap
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats
from hwflow.cores.timing import Cyclic, Process, Timing, Wait, beat_by_beat, every, spaced
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class RearrangeAttributes(Attributes):
    """``channels``: of the result; ``fill``: the value of elements that ``map`` does not take from the input."""

    op = "rearrange"
    map: IndexMap
    channels: int
    fill: int


class Rearrange(HardwareOperator[RearrangeAttributes]):
    attributes = RearrangeAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: RearrangeAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source, moved = inputs[0], attributes.map
        channels = attributes.channels
        known = source.channel_intervals(1)
        fill = Interval(attributes.fill, attributes.fill)
        # For each channel of the result the channels of the source that it repeats, the fill value as one more.
        from_channel = np.where(moved.index == FILL, len(known), moved.index % len(known)).reshape(-1, channels)
        ranges = [*known, fill]
        found = []
        for column in from_channel.T:
            found.append(Interval.hull_of(ranges[k] for k in np.unique(column)))
        result = TensorType.of((moved.index.size // channels, channels), tuple(found), 1)
        element = source.element  # beats from a buffer keep their lanes' width
        if not (element.interval.includes(result.interval.lo) and element.interval.includes(result.interval.hi)):
            element = IntType.holding(source.interval.hull(result.interval))
        return (TensorType(result.shape, element, result.interval, result.channels, 1),)

    def evaluate(self, attributes: RearrangeAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        index = attributes.map.index
        frames = inputs[0].reshape(len(inputs[0]), attributes.map.elements)
        # The fill value stands behind a frame's last element, where index -1 finds it.
        padded = np.concatenate([frames, np.full((len(frames), 1), attributes.fill, dtype=np.int64)], axis=1)
        return (padded[:, index].reshape(len(frames), index.size // attributes.channels, attributes.channels),)

    def in_turns(self, each: Sequence[RearrangeAttributes]) -> RearrangeAttributes | None:
        """Return the first one's where all are the same."""
        first, *others = each
        same = all(
            (own.channels, own.fill, own.map.elements) == (first.channels, first.fill, first.map.elements)
            and np.array_equal(own.map.index, first.map.index) for own in others
        )
        return first if same else None

    def foldings(self, node: Node[RearrangeAttributes], device: Device) -> Sequence[Folding]:
        moved: IndexMap = node.attributes.map
        shapes = node.inputs[0].typed.shape, node.outputs[0].typed.shape
        found = [
            Folding(lanes, lanes)
            for lanes in costs.stream_lanes(shapes[0])
            if all(_fits(shape, lanes) for shape in shapes) and moved.words(lanes) is not None
        ]
        beat, sources = moved.least_wiring
        for count in range(1, moved.elements // beat + 1):
            folding = Folding(count * beat, count * len(sources))
            if max(folding.input_lanes, folding.output_lanes) > costs.MOST_LANES:
                break
            whole = moved.elements % folding.input_lanes == 0
            if whole and _fits(shapes[0], folding.input_lanes) and _fits(shapes[1], folding.output_lanes):
                found.append(folding)
        return list(dict.fromkeys(found))

    def cycles(self, node: Node[RearrangeAttributes], folding: Folding) -> int:
        frame = frame_of(node, folding)
        if frame is not None:
            return sum(run.steps for run in frame.runs)
        sides = zip((node.inputs[0], node.outputs[0]), (folding.input_lanes, folding.output_lanes), strict=True)
        return max(beats(value.typed.shape, lanes) for value, lanes in sides)

    def timing(self, node: Node[RearrangeAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        if wiring_of(node, folding) is not None:
            return beat_by_beat(self.cycles(node, folding), LaneMap.latency)
        run = run_of(node, folding)
        if run is not None:
            steps = run.periods * run.beats
            taken = Cyclic(run.first + every(run.count), run.beats, run.periods)
            process = Process(steps, {0: spaced(steps)}, {0: taken})
            return Timing((process,), (BeatRun.latency,))
        in_order = frame_of(node, folding)
        if in_order is not None:
            return _in_order(in_order)
        plan = plan_of(node, decision)
        steps = plan.walk.steps
        need_write = np.repeat(np.array(plan.needed) - 1, plan.steps)
        # The round that released so many beats, in the frame that this is relative to.
        released = np.array(plan.released)
        wanted = np.arange(plan.beats) - plan.rows + 1
        frame = -((plan.skipped - wanted) // plan.beats) - 1
        in_round = np.searchsorted(released, wanted - frame * plan.beats)
        need_read = frame * steps + (in_round + 1) * plan.steps - 1
        writer = Process(plan.beats, {0: every(plan.beats)}, {}, (Wait(1, need_read, plan.writer_lag),))
        reader = Process(steps, {}, {0: every(steps)}, (Wait(0, need_write),))
        return Timing((writer, reader), (Core.latency_of(plan),))

    def resources(self, node: Node[RearrangeAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        elements = node.inputs[0].typed.element, node.outputs[0].typed.element
        wiring = wiring_of(node, folding)
        if wiring is not None:
            return costs.lane_map(device.family, wiring, *elements, node.attributes.fill, decision.depth)
        run = run_of(node, folding)
        if run is not None:
            return costs.beat_run(device.family, folding.input_lanes * elements[0].bits, run.beats, decision.depth)
        frame = frame_of(node, folding)
        if frame is not None:
            return costs.pad_crop(device.family, frame, folding.input_lanes, *elements, decision.depth)
        return costs.rearrange(device.family, plan_of(node, decision), folding.input_lanes, *elements, decision.depth)

    def build(self, node: Node[RearrangeAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        source, result = (shape_of(value.typed.element) for value in (node.inputs[0], node.outputs[0]))
        fill = node.attributes.fill if node.attributes.map.has_fill else 0
        wiring = wiring_of(node, folding)
        core: Core | LaneMap | BeatRun | PadCrop
        if wiring is not None:
            core = LaneMap(source, folding.input_lanes, wiring, result, fill=fill, depth=decision.depth)
        elif (run := run_of(node, folding)) is not None:
            core = BeatRun(source, folding.input_lanes, run.beats, run.first, run.count, depth=decision.depth)
        elif (frame := frame_of(node, folding)) is not None:
            core = PadCrop(source, folding.input_lanes, frame, result, fill=fill, depth=decision.depth)
        else:
            core = Core(source, folding.input_lanes, plan_of(node, decision), result, fill=fill, depth=decision.depth)
        return Built(core, [core.i], [core.o])


def plan_of(node: Node[RearrangeAttributes], decision: Decision) -> RearrangePlan:
    """Return the read order and the waits of the core with a buffer."""
    moved: IndexMap = node.attributes.map
    lanes = decision.folding.input_lanes
    return RearrangePlan(moved.walk(lanes), moved.elements // lanes, decision.interval)


def wiring_of(node: Node[RearrangeAttributes], folding: Folding) -> tuple[int | None, ...] | None:
    """Return the source of each lane of a beat if wiring suffices, else None."""
    moved: IndexMap = node.attributes.map
    beat, sources = moved.least_wiring
    count = folding.input_lanes // beat
    if (count * beat, count * len(sources)) != (folding.input_lanes, folding.output_lanes):
        return None
    return tuple(None if at is None else group * beat + at for group in range(count) for at in sources)


@dataclass(frozen=True)
class Run:
    """``count`` beats from ``first`` on of each ``beats``, ``periods`` times in a frame."""

    beats: int
    first: int
    count: int
    periods: int


def run_of(node: Node[RearrangeAttributes], folding: Folding) -> Run | None:
    """Return the runs of beats that the result is; None if it is none, or all of them."""
    moved: IndexMap = node.attributes.map
    lanes = folding.input_lanes
    words = moved.words(lanes) if folding.output_lanes == lanes else None
    if words is None or words[0] == FILL:
        return None
    beats, periods = moved.elements // lanes, 1 + int((np.diff(words) != 1).sum())
    if beats % periods or len(words) % periods:
        return None
    run = Run(beats // periods, int(words[0]), len(words) // periods, periods)
    starts = run.beats * np.arange(periods) + run.first
    is_periodic = np.array_equal((starts[:, np.newaxis] + np.arange(run.count)).reshape(-1), words)
    return run if is_periodic and run.count < run.beats and run.first + run.count <= run.beats else None


def frame_of(node: Node[RearrangeAttributes], folding: Folding) -> Frame | None:
    """Return the parts of a frame that the result is in order; None if it is none, or wiring or a run."""
    if folding.input_lanes != folding.output_lanes:
        return None
    frame = node.attributes.map.frame(folding.input_lanes)  # which is computed once
    if frame is None or wiring_of(node, folding) is not None or run_of(node, folding) is not None:
        return None
    return frame


def _in_order(frame: Frame) -> Timing:
    """Return the timing of :mod:`hdl_lib.memories.pad_crop`."""
    counts = [run.steps for run in frame.runs]
    takes = np.repeat([run.takes for run in frame.runs], counts)
    sends = np.repeat([run.sends != Sent.NOTHING for run in frame.runs], counts)
    process = Process(sum(counts), {0: np.flatnonzero(takes)}, {0: np.flatnonzero(sends)})
    return Timing((process,), (PadCrop.latency,))


def _fits(shape: tuple[int, ...], lanes: int) -> bool:
    """Tell whether beats of ``lanes`` have no surplus lanes."""
    pixels, channels = shape
    if lanes <= channels:
        return channels % lanes == 0
    return lanes % channels == 0 and (pixels * channels) % lanes == 0
