"""A delay by frames whose queue lies in the board's memory: the state of many channels.

What it holds at first is sent by its core, before the memory's first words: it has the timing of a queue in the memory
(:mod:`hwflow.cores.external.memory_queue`) in which so many frames are, no later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.lib.data import ArrayLayout

from hdl_lib.external.queue_ends import QueueEnds
from hdl_lib.memories.first_beats import FirstBeats
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.external.memory_queue import MemoryQueueAttributes, WaitsOutside, queue_timing, words_of_beat
from hwflow.cores.operator import Built, Decision, Device, MemoryFile, Resources, beats
from hwflow.cores.streams.delay import StreamDelay, StreamDelayAttributes, first_words
from hwflow.cores.timing import Timing
from hwflow.ir.graph import Delaying, IntArray, Node
from hwflow.types import TensorType


@dataclass(frozen=True, eq=False)
class MemoryDelayAttributes(MemoryQueueAttributes, Delaying):
    """``delayed``: of the delay, by whole frames."""

    op = "memory_delay"
    delayed: StreamDelayAttributes

    @property
    def first_frames(self) -> IntArray:
        return self.delayed.first_frames


class MemoryDelay(WaitsOutside[MemoryDelayAttributes]):
    """Folding: as of a queue in the memory."""

    attributes = MemoryDelayAttributes

    def infer(self, attributes: MemoryDelayAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.delayed.type,)

    def evaluate(self, attributes: MemoryDelayAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return StreamDelay().evaluate(attributes.delayed, inputs)

    def timing(self, node: Node[MemoryDelayAttributes], decision: Decision) -> Timing:
        return queue_timing(node.attributes, node.outputs[0].typed, node.attributes.delayed.delay)

    def resources(self, node: Node[MemoryDelayAttributes], decision: Decision, device: Device) -> Resources:
        lanes, typed = decision.folding.output_lanes, node.outputs[0].typed
        width = lanes * typed.element.bits
        held = node.attributes.delayed.delay * beats(typed.shape, lanes)
        total = super().resources(node, decision, device) + costs.loop(held)
        words = first_words(node.attributes.delayed, lanes)
        if isinstance(words, int):
            return total + Resources(lut=width)
        table = costs.filled_rom(device.family, words, width) + costs.count_up(len(words))
        return total + table + costs.queue(device.family, width, FirstBeats.TABLE_LATENCY + 1) + Resources(lut=width)

    def build(self, node: Node[MemoryDelayAttributes], decision: Decision, name: str) -> Built:
        lanes, given = decision.folding.output_lanes, node.attributes
        typed, element = node.outputs[0].typed, node.outputs[0].typed.element
        words = first_words(given.delayed, lanes)
        files = [] if isinstance(words, int) else [MemoryFile(f"{name}_first", words, lanes * element.bits)]
        core = QueueEnds(
            ArrayLayout(shape_of(element), lanes), words_of_beat(typed, given.width),
            given.delayed.delay * beats(typed.shape, lanes),
            words if isinstance(words, int) else files[0].table,
        )
        return Built(core, [core.i], [core.o], files)
