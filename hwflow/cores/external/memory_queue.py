"""A queue that lies in the board's memory: values pass unchanged, in the order in which they came.

Its core only leads to the memory's (:mod:`hdl_lib.external.weight_memory`), which writes bursts of its words and reads
them again. Its timing is that of the worst case, as of :mod:`hwflow.cores.external.weight_memory`: a burst is written
at most two rounds after its last word has come, and read at most two rounds after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from amaranth.lib.data import ArrayLayout

from hdl_lib.external.fetch_plan import QueueRegion
from hdl_lib.external.queue_ends import QueueEnds
from hdl_lib.external.weight_memory import WeightMemory as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.external.weight_memory import AHEAD_DEPTH, SharingAttributes, controller_and_region, lanes_for
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources, beats
from hwflow.cores.timing import Process, Timing, Wait, every, spaced
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import TensorType

_INTAKE = 4
"""Bursts in front of the memory that schedules count with: fewer would wait for each other."""

_MOST_AHEAD = 64
"""Elements of a pixel that are ahead besides: what joins streams may take a pixel of each."""

_LATE = 2  # rounds from a burst that may be moved until it is, at the most


@dataclass(frozen=True, eq=False)
class MemoryQueueAttributes(SharingAttributes):
    """It is queue ``index`` of the memory; ``value``: the name of what waits."""

    op = "memory_queue"
    index: int
    value: str

    @property
    def region(self) -> QueueRegion:
        return self.planned.queues[self.index]

    @property
    def width(self) -> int:
        """Return the bits of the memory's words."""
        return self.planned.timing.chip.width


Q = TypeVar("Q", bound=MemoryQueueAttributes)


class WaitsOutside(HardwareOperator[Q]):
    """What waits in the memory. Folding: as many elements as a word of the memory has room for."""

    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: Q, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (inputs[0],)

    def evaluate(self, attributes: Q, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (inputs[0],)

    def foldings(self, node: Node[Q], device: Device) -> Sequence[Folding]:
        lanes = queue_lanes(node.outputs[0].typed, node.attributes.width)
        return [Folding(lanes, lanes)]

    def cycles(self, node: Node[Q], folding: Folding) -> int:
        given = node.attributes
        return max(given.region.words, given.planned.cycles_of_queue(given.region), _circuit(given))

    def fixed_depth(self, node: Node[Q], index: int) -> int:
        """Return the beats behind the queue."""
        given = node.attributes
        return max(1, words_behind(given.region) // words_of_beat(node.outputs[index].typed, given.width))

    def outside(self, node: Node[Q]) -> Mapping[str, Any]:
        given = node.attributes
        places = {name: getattr(given.region, name) for name in ("words", "slots", "burst", "page")}
        return {"queues": {"value": given.value} | places}

    def timing(self, node: Node[Q], decision: Decision) -> Timing:
        return queue_timing(node.attributes, node.outputs[0].typed, 0)

    def resources(self, node: Node[Q], decision: Decision, device: Device) -> Resources:
        region, typed = node.attributes.region, node.outputs[0].typed
        bits, words = decision.folding.output_lanes * typed.element.bits, words_of_beat(typed, node.attributes.width)
        width = word_bits(typed, node.attributes.width)
        depths = Core.intake_of(region), Core.depth_of(region, words_behind(region))
        _, each = controller_and_region(node.attributes.planned.timing)  # it is one that writes, and one that reads
        total = sum([costs.block_queue(device.family, width, depth) for depth in depths], each + each)
        if words > 1:  # a beat's words on either side, and counters
            total += Resources(lut=2 * bits, ff=5 * bits)
        return total

    def build(self, node: Node[Q], decision: Decision, name: str) -> Built:
        typed = node.outputs[0].typed
        layout = ArrayLayout(shape_of(typed.element), decision.folding.output_lanes)
        core = QueueEnds(layout, words_of_beat(typed, node.attributes.width))
        return Built(core, [core.i], [core.o])


class MemoryQueue(WaitsOutside[MemoryQueueAttributes]):
    """A queue there."""

    attributes = MemoryQueueAttributes

    def depth_behind(self, node: Node[MemoryQueueAttributes]) -> int:
        return AHEAD_DEPTH + min(node.outputs[0].typed.shape[1], _MOST_AHEAD)


def queue_timing(given: MemoryQueueAttributes, typed: TensorType, held: int) -> Timing:
    """Return the timing of a queue of frames of a type, of which so many are in it at first."""
    region, turn = given.region, given.planned.round
    each = words_of_beat(typed, given.width)  # moved one by one at each end, a cycle later
    burst = every(region.bursts)
    moves = region.bursts * turn  # steps of a frame of what moves bursts: each takes a round
    ends = np.minimum((burst + 1) * region.burst, region.words) - 1

    def moved(before: int, frames: int = 0) -> IntArray:
        """Return the last step of the burst so many before each, and so many frames behind."""
        frame, place = np.divmod(burst - before, region.bursts)
        result: IntArray = (frame + frames) * moves + place * turn + turn - 1
        return result

    beats_in = spaced(region.words // each, each)
    intake = Process(region.words, {0: beats_in}, {}, (Wait(1, moved(_INTAKE), steps=region.burst),))
    late = (_LATE - 1) * turn + (each > 1)
    writer = Process(moves, {}, {}, (Wait(0, ends, late, turn), Wait(2, moved(region.slots, held), 1, turn)))
    last = every(region.words // each) * each + each - 1  # word of each beat
    beats_out = last // region.burst * turn + last % region.burst
    reader = Process(moves, {}, {0: beats_out}, (Wait(1, moved(0, -held), _LATE * turn, turn),))
    return Timing((intake, writer, reader), (1 + (each > 1),), _circuit(given))


def queue_lanes(typed: TensorType, width: int) -> int:
    """Return the elements of a beat of a stream that waits in a memory with words of ``width`` bits; one where an
    element takes several words."""
    most = lanes_for(width, [typed.element.bits])
    return max(lanes for lanes in costs.stream_lanes(typed.shape) if lanes <= most)


def words_of_beat(typed: TensorType, width: int) -> int:
    """Return the words of a beat: several of an element with more bits."""
    return -(-typed.element.bits // width)


def word_bits(typed: TensorType, width: int) -> int:
    """Return the bits of a word that such a stream uses."""
    return -(-queue_lanes(typed, width) * typed.element.bits // words_of_beat(typed, width))


def queue_words(typed: TensorType, width: int) -> int:
    """Return the words of a frame of such a stream."""
    return beats(typed.shape, queue_lanes(typed, width)) * words_of_beat(typed, width)


def words_behind(region: QueueRegion) -> int:
    """Return the words behind the queue that schedules count with, as of weights
    (:meth:`hwflow.cores.external.weight_memory.WeightMemory.fixed_depth`)."""
    return 2 * region.burst - region.last


def _circuit(given: MemoryQueueAttributes) -> int:
    """Return the cycles per frame of the words that are taken while as many are written."""
    region = given.region
    once = region.burst + _LATE * given.planned.round + 1
    return -(-region.bursts * once // _INTAKE)
