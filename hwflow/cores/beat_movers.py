"""Operators that move beats without changing values: fork, width converter, queue, relay, frame synchroniser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from amaranth.lib.data import ArrayLayout

from hdl_lib.memories.storage import REGISTER_DEPTH, StorageStyle
from hdl_lib.streams.fifo import Fifo as FifoCore
from hdl_lib.streams.fork import Fork as ForkCore
from hdl_lib.streams.frame_sync import FrameSync as FrameSyncCore
from hdl_lib.streams.width_converter import WidthConverter as WidthConverterCore
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import (
    Built,
    Decision,
    Device,
    Folding,
    HardwareOperator,
    Neighbour,
    Resources,
    beats,
    beats_of_view,
    grouped,
)
from hwflow.cores.timing import Cyclic, Process, Timing, beat_by_beat, every
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import TensorType

SYNC_DEPTH = 2  # of a frame synchroniser


@dataclass(frozen=True, eq=False)
class ForkAttributes(Attributes):
    """``outputs``: the number of copies; ``rounds``: equal parts of a frame, of which no beat holds two: in a circuit
    one may depend on the one before."""

    op = "fork"
    outputs: int
    rounds: int = 1


class Fork(HardwareOperator[ForkAttributes]):
    """Copies one stream to several."""

    attributes = ForkAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: ForkAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (inputs[0],) * int(attributes.outputs)

    def evaluate(self, attributes: ForkAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (inputs[0],) * int(attributes.outputs)

    def foldings(self, node: Node[ForkAttributes], device: Device) -> Sequence[Folding]:
        pixels, channels = node.inputs[0].typed.shape
        row = pixels // node.attributes.rounds, channels
        return [Folding(lanes, lanes) for lanes in costs.stream_lanes(row)]

    def cycles(self, node: Node[ForkAttributes], folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, min(folding.input_lanes, folding.output_lanes))

    def timing(self, node: Node[ForkAttributes], decision: Decision) -> Timing:
        count = beats(node.inputs[0].typed.shape, decision.folding.input_lanes)
        outputs = range(node.attributes.outputs)
        process = Process(count, {0: every(count)}, {o: every(count) for o in outputs})
        return Timing((process,), tuple(ForkCore.latency_of(style) for style in queue_styles(node, decision)))

    def resources(self, node: Node[ForkAttributes], decision: Decision, device: Device) -> Resources:
        in_block = [style == StorageStyle.BLOCK for style in queue_styles(node, decision)]
        return costs.fork(device.family, _beat_bits(node, decision), decision.depths, in_block)

    def build(self, node: Node[ForkAttributes], decision: Decision, name: str) -> Built:
        layout = ArrayLayout(shape_of(node.inputs[0].typed.element), decision.folding.input_lanes)
        core = ForkCore(layout, node.attributes.outputs, decision.depths, queue_styles(node, decision))
        return Built(core, [core.i], [core.o[index] for index in range(node.attributes.outputs)])


def queue_styles(node: Node[ForkAttributes], decision: Decision) -> tuple[StorageStyle, ...]:
    """Return the storage of the queue of each branch of a fork."""
    return decision.styles or (StorageStyle.AUTO,) * int(node.attributes.outputs)


@dataclass(frozen=True, eq=False)
class ViewAttributes(Attributes):
    """``view``: (pixels, channels) as which a core takes its stream; None: determined by the lanes."""

    view: tuple[int, int] | None = None


V = TypeVar("V", bound=ViewAttributes)


class _PassThrough(HardwareOperator[V]):
    """Passes values on unchanged; the schedule that inserts it decides its folding."""

    stages = frozenset({Stage.SCHEDULED})

    def infer(self, attributes: V, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (inputs[0],)

    def evaluate(self, attributes: V, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (inputs[0],)

    def foldings(self, node: Node[V], device: Device) -> Sequence[Folding]:
        return []

    def input_view(
        self, node: Node[V], shape: tuple[int, ...], lanes: int, *, whole_vector: bool = False,
        index: int = 0,
    ) -> tuple[int, int]:
        return view_of(node, lanes)

    def output_view(self, node: Node[V], shape: tuple[int, ...], lanes: int) -> tuple[int, int]:
        return view_of(node, lanes)

    def cycles(self, node: Node[V], folding: Folding) -> int:
        lanes = min(folding.input_lanes, folding.output_lanes)
        return beats_of_view(view_of(node, lanes), lanes)


def _beat_bits(node: Node, decision: Decision) -> int:
    """Return the bits of an input beat."""
    return decision.folding.input_lanes * node.inputs[0].typed.element.bits


def view_of(node: Node[ViewAttributes], lanes: int) -> tuple[int, int]:
    """Return (pixels, channels) as which a core takes its stream and passes it on."""
    pixels, channels = node.attributes.view or grouped(node.inputs[0].typed.shape, lanes)
    return pixels, channels


@dataclass(frozen=True, eq=False)
class WidthConverterAttributes(ViewAttributes):
    """Of :class:`WidthConverter`."""

    op = "width_converter"


class WidthConverter(_PassThrough[WidthConverterAttributes]):
    """Changes the lanes of a stream: of lanes in and out, one divides the other or is a whole pixel of the view."""

    attributes = WidthConverterAttributes

    def timing(self, node: Node[WidthConverterAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        narrow, wide = sorted((folding.input_lanes, folding.output_lanes))
        pixels, channels = view_of(node, wide)
        few, many = -(-channels // wide), -(-channels // narrow)
        ratio = -(-wide // narrow)
        narrow_beats = Cyclic(every(many), many, pixels)
        if folding.input_lanes < folding.output_lanes:  # up: the last narrow beat of each group produces
            last = np.minimum((np.arange(few) + 1) * ratio, many) - 1
            process = Process(len(narrow_beats), {0: narrow_beats}, {0: Cyclic(last, many, pixels)})
        else:  # down: the first narrow beat of each group consumes
            process = Process(len(narrow_beats), {0: Cyclic(every(many)[::ratio], many, pixels)}, {0: narrow_beats})
        return Timing((process,), (1,))

    def resources(self, node: Node[WidthConverterAttributes], decision: Decision, device: Device) -> Resources:
        folding, bits = decision.folding, node.inputs[0].typed.element.bits
        channels = view_of(node, max(folding.input_lanes, folding.output_lanes))[1]
        return costs.width_converter(device.family, bits, folding, decision.depth, channels)

    def build(self, node: Node[WidthConverterAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        core = WidthConverterCore(
            shape_of(node.inputs[0].typed.element), view_of(node, max(folding.input_lanes, folding.output_lanes))[1],
            folding.input_lanes, folding.output_lanes, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o])


@dataclass(frozen=True, eq=False)
class FifoAttributes(ViewAttributes):
    """Of :class:`Fifo`."""

    op = "fifo"


class Fifo(_PassThrough[FifoAttributes]):
    """A queue in block RAM behind a core whose own queue would be too large for look-up tables."""

    attributes = FifoAttributes
    follows = Neighbour.PRODUCER

    def timing(self, node: Node[FifoAttributes], decision: Decision) -> Timing:
        count = self.cycles(node, decision.folding)
        return beat_by_beat(count, FifoCore.latency_of(1, 1, StorageStyle.BLOCK))

    def resources(self, node: Node[FifoAttributes], decision: Decision, device: Device) -> Resources:
        return costs.block_queue(device.family, _beat_bits(node, decision), decision.depth)

    def build(self, node: Node[FifoAttributes], decision: Decision, name: str) -> Built:
        layout = ArrayLayout(shape_of(node.inputs[0].typed.element), decision.folding.input_lanes)
        core = FifoCore(layout, decision.depth, style=StorageStyle.BLOCK)
        return Built(core, [core.i], [core.o])


@dataclass(frozen=True, eq=False)
class RelayAttributes(ViewAttributes):
    """Of :class:`Relay`."""

    op = "relay"


class Relay(_PassThrough[RelayAttributes]):
    """A register in both directions of a handshake, between cores that may be far apart: neither ``valid`` nor
    ``ready`` passes through in the same cycle (a relay station: Carloni, McMillan, Sangiovanni-Vincentelli, "Theory of
    latency-insensitive design", IEEE TCAD 2001)."""

    attributes = RelayAttributes
    follows = Neighbour.EITHER

    def timing(self, node: Node[RelayAttributes], decision: Decision) -> Timing:
        return beat_by_beat(self.cycles(node, decision.folding), 1)

    def resources(self, node: Node[RelayAttributes], decision: Decision, device: Device) -> Resources:
        return costs.relay(device.family, _beat_bits(node, decision), decision.depth)

    def build(self, node: Node[RelayAttributes], decision: Decision, name: str) -> Built:
        layout = ArrayLayout(shape_of(node.inputs[0].typed.element), decision.folding.input_lanes)
        style = StorageStyle.REGISTER if decision.depth <= REGISTER_DEPTH else StorageStyle.LUTRAM
        core = FifoCore(layout, decision.depth, style=style)
        return Built(core, [core.i], [core.o])


@dataclass(frozen=True, eq=False)
class FrameSyncAttributes(ViewAttributes):
    """Of :class:`FrameSync`."""

    op = "frame_sync"


class FrameSync(_PassThrough[FrameSyncAttributes]):
    """Counts the beats of each input frame against ``tlast``; its queue depth is fixed to 2, but for none in front of a
    chain (:mod:`hwflow.cores.chain`)."""

    attributes = FrameSyncAttributes
    follows = Neighbour.CONSUMER

    def fixed_depth(self, node: Node[FrameSyncAttributes], index: int) -> int:
        return SYNC_DEPTH

    def is_steady(self, node: Node[FrameSyncAttributes], folding: Folding) -> bool:
        return self.cycles(node, folding) == 1

    def timing(self, node: Node[FrameSyncAttributes], decision: Decision) -> Timing:
        return beat_by_beat(self.cycles(node, decision.folding), int(decision.depths != (0,)))

    def resources(self, node: Node[FrameSyncAttributes], decision: Decision, device: Device) -> Resources:
        if decision.depths == (0,):
            return Resources(lut=4, ff=2)
        return costs.frame_sync(device.family, _beat_bits(node, decision), self.cycles(node, decision.folding))

    def build(self, node: Node[FrameSyncAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        layout = ArrayLayout(shape_of(node.inputs[0].typed.element), folding.input_lanes)
        core = FrameSyncCore(layout, self.cycles(node, folding), depth=0 if decision.depths == (0,) else SYNC_DEPTH)
        return Built(core, [core.i], [core.o])


PLUMBING = (ForkAttributes, WidthConverterAttributes, FifoAttributes, RelayAttributes, FrameSyncAttributes)
"""Operators whose outputs are their input's elements in the same order."""
