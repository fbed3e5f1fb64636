"""Weights in the board's memory: a node without inputs whose outputs bring each layer's weights, over and over.

Its timing is that of the worst case: each output has a burst a round, however many refreshes and other bursts come
before it (:mod:`hdl_lib.external.fetch_plan`). Hardware is never later, so a run that counts with it is a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from amaranth.utils import bits_for

from hdl_lib.engine.engine_program import Program
from hdl_lib.engine.pace import Pace, pace_beside
from hdl_lib.external import memory_timing
from hdl_lib.external.fetch_plan import FetchPlan, Parts, Region, longest_bursts
from hdl_lib.external.spi_flash import SpiFlashTiming
from hdl_lib.external.spram import SpramTiming
from hdl_lib.external.weight_memory import WeightMemory as Core
from hdl_lib.external.weight_memory import image_words, table_of_parts
from hwflow.cores import costs
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources
from hwflow.cores.timing import Cyclic, Process, Steps, Timing, every
from hwflow.display import show
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType

MemoryTiming = memory_timing.MemoryTiming
"""What is known of a memory at the design's clock."""

MemoryPlan = FetchPlan
"""Where what lies in a memory has its place, and when its bursts come."""

# Of the controller with its loader, and of each region besides its queue; yosys' figures for an ECP5, and for an UP5K.
AHEAD_DEPTH = 2
"""Of queues behind a memory, in front of what waits for another input: the memory's own are ahead."""

_SDRAM = Resources(lut=620, ff=320), Resources(lut=180, ff=45)
_SPRAM = Resources(lut=405, ff=230, bram=1), Resources(lut=75, ff=35)
_FLASH = Resources(lut=415, ff=240), Resources(lut=75, ff=35)


@dataclass(frozen=True, eq=False)
class Fetched:
    """The weights [outputs, inputs] of a layer, which are fetched ``times`` in a frame; as ``element``, whatever they
    are. ``program``: of the engine whose pace they have (None: they come evenly). ``parts``, of a single row: as
    :class:`hdl_lib.external.fetch_plan.Parts`, of weights: the row is fetched part by part, some more than once.
    ``wanted``: words that could be taken in a frame, where these are more. ``taken``: as
    :class:`hdl_lib.external.fetch_plan.FetchPlan` has it; 0: they may be taken at any time."""

    weights: IntArray
    times: int
    element: IntType | None = None
    program: Program | None = None
    parts: Parts | None = None
    wanted: int = 0
    taken: int = 0

    @property
    def read(self) -> IntArray:
        """Return the weights in the order in which they are fetched."""
        if self.parts is None:
            return self.weights
        ends = np.cumsum(self.parts.words)
        pieces = [self.weights[:, end - size : end] for end, size in zip(ends, self.parts.words, strict=True)]
        return np.concatenate([pieces[part] for part in self.parts.order], axis=1)


@dataclass(frozen=True)
class Waiting:
    """A queue in the memory: ``words`` of a frame, of which ``held`` must have room, with ``bits`` each. ``unit``, of
    an engine's maps: what all of these are multiples of; they come and go at the engine's pace."""

    words: int
    held: int
    bits: int
    unit: int = 0


@dataclass(frozen=True, eq=False)
class WeightMemoryAttributes(Attributes):
    """``timing`` of the memory (None: the node is only evaluated); ``layers``, one for each output; ``longest``: words
    of the longest burst (0: of the fastest plan). ``queues`` that lie in it as well, :class:`Waiting`."""

    op = "weight_memory"
    timing: MemoryTiming | None
    layers: tuple[Fetched, ...]
    longest: int = 0
    queues: tuple[Waiting, ...] = ()


@dataclass(frozen=True, eq=False)
class SharingAttributes(Attributes):
    """Of what shares a memory, whose ``plan`` it is (None: the node is only evaluated)."""

    plan: MemoryPlan | None

    @property
    def planned(self) -> MemoryPlan:
        """Return the plan."""
        assert self.plan is not None, "of a node that becomes hardware"
        return self.plan


class WeightMemory(HardwareOperator[WeightMemoryAttributes]):
    """Folding: all outputs have as many lanes as words have elements of the widest weights; it says the ``longest``
    burst: short ones need small queues, but take more of the memory's time."""

    attributes = WeightMemoryAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: WeightMemoryAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        found = []
        for layer in attributes.layers:
            outputs, length = layer.weights.shape if layer.parts is None else (1, layer.parts.read)
            interval = Interval(int(layer.weights.min()), int(layer.weights.max()))
            element = layer.element or IntType.holding(interval)
            found.append(TensorType((layer.times * outputs, length), element, interval))
        return tuple(found)

    def evaluate(self, attributes: WeightMemoryAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return tuple(np.tile(layer.read, (layer.times, 1))[np.newaxis] for layer in attributes.layers)

    def foldings(self, node: Node[WeightMemoryAttributes], device: Device) -> Sequence[Folding]:
        lanes, given = lanes_of_words(node), node.attributes
        if given.queues or any(layer.program for layer in given.layers):  # whose nodes know the plan
            return [Folding(lanes, lanes)]
        sizes, timing = _sizes(node), timing_of(node)
        return [
            Folding(lanes, lanes, longest=longest)
            for longest in longest_bursts(timing) if FetchPlan.of(timing, sizes, longest).fits
        ]

    def as_chosen(
        self, node: Node[WeightMemoryAttributes], folding: Folding
    ) -> tuple[Node[WeightMemoryAttributes], Folding]:
        if not folding.longest:
            return node, folding
        attributes = replace(node.attributes, longest=folding.longest)
        return Node(node.name, node.inputs, node.outputs, attributes, node.sources), replace(folding, longest=0)

    def cycles(self, node: Node[WeightMemoryAttributes], folding: Folding) -> int:
        plan, given = plan_of(node), node.attributes
        regions = [
            pace_beside(layer.program, plan).cycles if layer.program else plan.cycles_of(region)
            for layer, region in zip(given.layers, plan.regions, strict=True)
        ]
        queues = [
            plan.cycles_of_queue(region)
            for queue, region in zip(given.queues, plan.queues, strict=True) if not queue.unit
        ]
        return max([*regions, *queues])

    def fixed_depth(self, node: Node[WeightMemoryAttributes], index: int) -> int:
        """Return the beats of a burst, and what a shorter last one lacks, since a reader with an even pace falls behind
        the longer ones by as many. Nothing but that keeps weights from being any number of frames ahead."""
        region = plan_of(node).regions[index]
        return 2 * region.burst - region.last

    def depth_behind(self, node: Node[WeightMemoryAttributes]) -> int:
        return AHEAD_DEPTH

    def timing(self, node: Node[WeightMemoryAttributes], decision: Decision) -> Timing:
        plan = plan_of(node)
        processes = []
        for index, (region, layer) in enumerate(zip(plan.regions, node.attributes.layers, strict=True)):
            if layer.program is not None:
                pace = pace_beside(layer.program, plan)
                processes.append(Process(pace.cycles, {}, {index: paced_steps(pace, region.words)}))
                continue
            burst, place = np.divmod(every(region.words), region.burst)
            place *= plan.timing.word_cycles
            once = burst * plan.round + place
            words = Cyclic(once, region.bursts * plan.round, region.times)
            processes.append(Process(plan.cycles_of(region), {}, {index: words}))
        return Timing(tuple(processes), (1,) * len(processes))

    def resources(self, node: Node[WeightMemoryAttributes], decision: Decision, device: Device) -> Resources:
        total = controller_and_region(timing_of(node))[0]
        for index, (region, value) in enumerate(zip(plan_of(node).regions, node.outputs, strict=True)):
            width = lanes_of_words(node) * value.typed.element.bits
            depth = Core.depth_of(region, self.fixed_depth(node, index))
            total += controller_and_region(timing_of(node))[1] + costs.block_queue(device.family, width, depth)
            if region.parts is not None:
                total += _table_of_parts(device.family, region, timing_of(node).chip.pages)
        return total

    def build(self, node: Node[WeightMemoryAttributes], decision: Decision, name: str) -> Built:
        plan, lanes = plan_of(node), lanes_of_words(node)
        widths = [lanes * value.typed.element.bits for value in node.outputs]
        core = Core(
            plan, widths, [self.fixed_depth(node, index) for index in range(len(widths))],
            [queue.bits for queue in node.attributes.queues], [2 * each.burst - each.last for each in plan.queues],
        )
        return Built(core, [], core.streams)


def paced_steps(pace: Pace, beats: int) -> Steps:
    """Return the cycle of a frame in which each beat of weights comes."""
    begins = np.asarray(pace.begins, dtype=np.int64)
    burst = np.repeat(every(len(begins)), np.diff(begins, append=beats))
    result: Steps = np.asarray(pace.starts, dtype=np.int64)[burst] + pace.beat * (every(beats) - begins[burst])
    return result


def _table_of_parts(family: str, region: Region, pages: int) -> Resources:
    """Return what says which part comes next, and where it lies."""
    table, _ = table_of_parts(region, pages)
    assert table.words is not None, "of numbers"
    counted = costs.count_up(table.depth) + Resources(ff=bits_for(region.burst))
    return costs.filled_rom(family, table.words, table.width) + counted


def half_of(timing: MemoryTiming) -> MemoryTiming | None:
    """Return the timing of half of a part's own RAM, beside which something else has the other half; None: the memory
    is no such RAM."""
    return replace(timing, chip=timing.chip.half) if isinstance(timing, SpramTiming) else None


def controller_and_region(timing: MemoryTiming) -> tuple[Resources, Resources]:
    """Return what a memory's controller takes, and what each region does besides its queue."""
    if isinstance(timing, SpiFlashTiming):
        return _FLASH
    return _SPRAM if isinstance(timing, SpramTiming) else _SDRAM


def lanes_of_words(node: Node[WeightMemoryAttributes]) -> int:
    """Return the weights of a word."""
    return lanes_for(timing_of(node).chip.width, [value.typed.element.bits for value in node.outputs])


def lanes_for(width: int, bits: Sequence[int]) -> int:
    """Return how many weights a word of ``width`` bits has, if weights have these ``bits``."""
    return max(1, width // max(bits, default=width))


def timing_of(node: Node[WeightMemoryAttributes]) -> MemoryTiming:
    """Return the timing of the memory."""
    timing = node.attributes.timing
    assert timing is not None, "of a node that becomes hardware"
    return timing


def words_of(shape: tuple[int, int], lanes: int) -> int:
    """Return the words of weights [outputs, inputs]: rows begin with a word of their own."""
    return shape[0] * ceil(shape[1] / lanes)


def plan_of(node: Node[WeightMemoryAttributes]) -> FetchPlan:
    """Return where weights lie, and in which bursts they are fetched."""
    return node.once(_plan)


def _plan(node: Node[WeightMemoryAttributes]) -> FetchPlan:
    queues = [
        (queue.words, queue.held, queue.unit) if queue.unit else (queue.words, queue.held)
        for queue in node.attributes.queues
    ]
    wanted, taken = ([getattr(layer, name) for layer in node.attributes.layers] for name in ("wanted", "taken"))
    follow = taken[1:] if all(taken[1:]) else []
    return FetchPlan.of(timing_of(node), _sizes(node), node.attributes.longest, queues, wanted, follow)


def _sizes(node: Node[WeightMemoryAttributes]) -> list[tuple[int | Parts, int]]:
    lanes = lanes_of_words(node)

    def size(layer: Fetched) -> int | Parts:
        if layer.parts is None:
            return words_of(layer.weights.shape, lanes)
        return replace(layer.parts, words=tuple(ceil(words / lanes) for words in layer.parts.words))

    return [(size(layer), layer.times) for layer in node.attributes.layers]


def require_room(plan: FetchPlan, model: str) -> None:
    """Raise :class:`ModelRefused` where the memory is too small for a plan of a ``model``."""
    if not plan.fits:
        chip = plan.timing.chip
        page = chip.columns * chip.width // 8
        raise ModelRefused.of(
            "device-budget", f"model {show(model)}",
            f"what lies in the {chip.name} must take at most {chip.pages * page:,} bytes, not {plan.pages * page:,}",
            "use a board with more memory or more block RAM, or a smaller model",
        )


def image_of(node: Node[WeightMemoryAttributes]) -> IntArray:
    """Return the memory's words, from address 0 on."""
    plan, lanes = plan_of(node), lanes_of_words(node)
    image = np.zeros(image_words(plan), dtype=np.int64)
    for region, layer, value in zip(plan.regions, node.attributes.layers, node.outputs, strict=True):
        bits, end = value.typed.element.bits, 0
        sizes = (layer.parts.words if layer.parts else (layer.weights.shape[1],))
        for size, words, first in zip(sizes, region.whole.words, region.firsts, strict=True):
            there = _addresses(region, words, first, plan.timing.chip.columns)
            image[there] = _words(layer.weights[:, end : end + size], lanes, bits)
            end += size
    return image


def _addresses(region: Region, words: int, first: int, columns: int) -> IntArray:
    burst, rest = np.divmod(every(words), region.burst)
    page, place = np.divmod(burst, region.per_page)
    result: IntArray = (first + page) * columns + place * region.burst + rest
    return result


def _words(weights: IntArray, lanes: int, bits: int) -> IntArray:
    padded = np.pad(weights, ((0, 0), (0, -weights.shape[1] % lanes))).reshape(-1, lanes)
    shifts = bits * every(lanes)
    result: IntArray = ((padded & ((1 << bits) - 1)) << shifts).sum(axis=1)
    return result
