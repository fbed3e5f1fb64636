"""A delay by whole frames, or by whole rows of a frame: what makes circuits of streams possible.

In synchronous dataflow, delays are the tokens that are on an edge at first (Lee, Messerschmitt, "Synchronous data
flow", Proceedings of the IEEE 75, 1987). The queue of this core holds them: as many rows as it delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from amaranth.lib.data import ArrayLayout

from hdl_lib.memories.delay import Delay as Core
from hdl_lib.memories.rom import Table
from hdl_lib.memories.storage import REGISTER_DEPTH
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import (
    Built,
    Decision,
    Device,
    Folding,
    HardwareOperator,
    LogicalOperator,
    LoweringContext,
    MemoryFile,
    Resources,
    beats,
    grouped,
)
from hwflow.cores.timing import Process, Timing, Wait, every
from hwflow.ir.graph import Delaying, IntArray, Node, Stage
from hwflow.ir.node_attributes import DelayAttributes
from hwflow.types import TensorType


class Delay(LogicalOperator[DelayAttributes]):
    """State: what a frame leaves to a later one."""

    attributes = DelayAttributes
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: DelayAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.type,)

    def evaluate(self, attributes: DelayAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        (source,) = inputs
        return (np.concatenate([attributes.first_frames, source])[: len(source)],)

    def lower(self, node: Node[DelayAttributes], context: LoweringContext) -> None:
        given = node.attributes
        channels, order = context.preferred_order(node.outputs[0])
        type_ = TensorType((len(order) // channels, channels), given.type.element, given.type.interval)
        initial = given.initial.reshape(-1)[order].reshape(type_.shape)
        stream = context.add("", [], StreamDelayAttributes(type_, initial, given.frames))
        context.bind(node.outputs[0], stream, order)
        context.close(stream, node.inputs[0], order)


@dataclass(frozen=True, eq=False)
class StreamDelayAttributes(Delaying):
    """Of a stream of this ``type``, a frame of which has ``rows`` rows: row n of the result is row n - ``delay`` of the
    operand. ``initial`` [pixels and channels of a row]: what the first ``delay`` rows are; with ``anew`` those of every
    frame."""

    op = "stream_delay"
    type: TensorType
    initial: IntArray
    delay: int = 1
    rows: int = 1
    anew: bool = False

    @property
    def first_frames(self) -> IntArray:
        assert self.rows == 1, "delays by rows of a frame are within it"
        return np.broadcast_to(self.initial, (self.delay, *self.type.shape))


class StreamDelay(HardwareOperator[StreamDelayAttributes]):
    attributes = StreamDelayAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: StreamDelayAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.type,)

    def evaluate(self, attributes: StreamDelayAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        (source,) = inputs
        count = len(source) if attributes.anew else 1
        rows = source.reshape(count, -1, attributes.initial.size)
        first = np.broadcast_to(attributes.initial.reshape(-1), (count, attributes.delay, attributes.initial.size))
        return (np.concatenate([first, rows], axis=1)[:, : rows.shape[1]].reshape(source.shape),)

    def foldings(self, node: Node[StreamDelayAttributes], device: Device) -> Sequence[Folding]:
        return [Folding(lanes, lanes) for lanes in costs.stream_lanes(_row(node.attributes))]

    def cycles(self, node: Node[StreamDelayAttributes], folding: Folding) -> int:
        return node.attributes.rows * beats(_row(node.attributes), folding.input_lanes)

    def timing(self, node: Node[StreamDelayAttributes], decision: Decision) -> Timing:
        steps = every(self.cycles(node, decision.folding))
        held = node.attributes.delay * beats(_row(node.attributes), decision.folding.input_lanes)
        writes = Process(len(steps), {0: steps}, {}, (Wait(1, steps, Core.LAG),))
        reads = Process(len(steps), {}, {0: steps}, (Wait(0, steps - held, Core.LAG),))
        return Timing((writes, reads), (Core.LATENCY,))

    def resources(self, node: Node[StreamDelayAttributes], decision: Decision, device: Device) -> Resources:
        lanes = decision.folding.input_lanes
        row = beats(_row(node.attributes), lanes)
        width, held = lanes * node.outputs[0].typed.element.bits, node.attributes.delay * row
        total = costs.delay(device.family, width, held, decision.depth)
        if node.attributes.anew:
            total += costs.count_up(node.attributes.rows // node.attributes.delay)
        if isinstance(words := first_words(node.attributes, lanes), int):
            return total
        total += costs.filled_rom(device.family, words, width) + costs.count_up(len(words))
        return total + Resources(lut=width if decision.depth <= REGISTER_DEPTH else 0)

    def build(self, node: Node[StreamDelayAttributes], decision: Decision, name: str) -> Built:
        lanes, given = decision.folding.input_lanes, node.attributes
        element = node.outputs[0].typed.element
        files: list[MemoryFile] = []
        first: Table | int
        words = first_words(node.attributes, lanes)
        if isinstance(words, int):
            first = words
        else:
            files.append(MemoryFile(f"{name}_first", words, lanes * element.bits))
            first = files[0].table
        row = beats(_row(node.attributes), lanes)
        core = Core(
            ArrayLayout(shape_of(element), lanes), given.delay * row, first=first,
            again=given.rows * row if given.anew else None, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o], files)


def _row(delayed: StreamDelayAttributes) -> tuple[int, int]:
    """Return (pixels, channels) of a row."""
    pixels, channels = delayed.type.shape
    return pixels // delayed.rows, channels


def first_words(delayed: StreamDelayAttributes, lanes: int) -> Sequence[int] | int:
    """Return the words of the first row's beats; one for all if they are equal."""
    pixels, channels = grouped(_row(delayed), lanes)
    row = delayed.initial.reshape(pixels, channels)
    padded = np.pad(row, ((0, 0), (0, -channels % lanes)), mode="edge").reshape(-1, lanes)
    words = pack_words(padded, delayed.type.element.bits)
    return words[0] if len(set(words)) == 1 else words
