"""A core's streams as two reliable pipes of packets: the shell between a carrier and the AXI4-Streams of a core."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.links.byte_adapter import BytesToBeats, beat_layout
from hdl_lib.links.packet_kinds import PACKET_BYTE, RECEIVED_BYTE
from hdl_lib.links.reliable_link import ReliableLink
from hdl_lib.links.stream_turns import BytesToStreams, StreamsToBytes
from hdl_lib.loading.table_loader import Command
from hdl_lib.streams.skid_buffer import SkidBuffer

CROSSING_CYCLES = 8
"""Cycles of the link for which a core with a clock of its own is reset, and again until it has come out of it."""

RESET_STAGES = 4
"""Registers on the way of the core's reset. The last one can be copied for parts of the core, those before for these
copies, so that none crosses the device and fans out in the same cycle. (With three the reset was the critical path of a
DS-CNN of 45,000 look-up tables, 9.3 ns.)"""


class _Phase(IntEnum):
    """Of a session that begins with a packet to the loader."""

    COMMAND = 0
    TABLES = 1
    ANSWER = 2
    FRAMES = 3


class LinkShell(wiring.Component):
    """:class:`hdl_lib.links.reliable_link.ReliableLink` and the adapters between its pipes and a core's streams.

    Parameters
    ----------
    inputs, outputs : sequence of (int, int)
        Bytes a beat and beats a frame of each of the core's streams.
    receive_bytes, transmit_bytes, most_payload : int
        As of :class:`hdl_lib.links.reliable_link.ReliableLink`.
    identity : bytes
        Likewise.
    ratio : int
        Cycles of the core in one of the link's. Of more than one, the streams cross between the clocks outside
        (:class:`hdl_lib.clocks.stream_crossing.StreamCrossing`).

    image : (int, int), optional
        Bytes a beat and beats of what each session begins with, before the first frame.
    load : int, optional
        Bytes of a packet that loads the core's tables (:class:`hdl_lib.loading.table_loader.TableLoader`). Each session
        begins with such a packet, or one of a single byte, and its answer; then come the frames.

    Members
    -------
    i : In(stream.Signature(RECEIVED_BYTE)), o : Out(stream.Signature(PACKET_BYTE))
        Packets from and to the carrier.
    input0, input1, ... : Out(stream.Signature(beat_layout(bytes)))
        To the core's inputs.
    image : Out(stream.Signature(beat_layout(bytes)))
        What a session begins with, if it does.
    load : Out(stream.Signature(beat_layout(1))), load_answer : In(stream.Signature(beat_layout(1)))
        To the core's loader, and from it, if it has one.
    output0, output1, ... : In(stream.Signature(beat_layout(bytes)))
        From the core's outputs. ``last`` of the last one's beats ends a frame for the counters; else it is ignored.
    core_reset : Out(1)
        The core must be reset while it is high. A register; also high after reset, for :data:`RESET_STAGES` cycles.
    core_error : In(1)
        The core's sticky error.

    Timing
    ------
    As the parts; packets show a cycle later. ``core_reset`` follows a session's begin by :data:`RESET_STAGES` cycles;
    from the begin until it is low again nothing is offered to the core and nothing that it says is looked at. With a
    ``ratio`` of more than one it is high for :data:`CROSSING_CYCLES`, and as many more pass.
    """

    def __init__(
        self, inputs: Sequence[tuple[int, int]], outputs: Sequence[tuple[int, int]], receive_bytes: int,
        transmit_bytes: int, most_payload: int, identity: bytes, ratio: int = 1,
        image: tuple[int, int] | None = None, load: int | None = None,
    ):
        if image is not None and load is not None:
            raise ValueError("a session must begin with an image or a load, not both")
        self.link = ReliableLink(receive_bytes, transmit_bytes, most_payload, identity, ratio)
        self._crossing_cycles = CROSSING_CYCLES if ratio > 1 else 0
        self._image, self._load = image, load
        self._deal, self._collect = BytesToStreams(list(inputs)), StreamsToBytes(list(outputs))
        self.inputs, self.outputs = len(inputs), len(outputs)
        super().__init__(
            {
                "i": In(stream.Signature(RECEIVED_BYTE)),
                "o": Out(stream.Signature(PACKET_BYTE)),
                **{f"input{k}": Out(stream.Signature(beat_layout(size))) for k, (size, _) in enumerate(inputs)},
                **{f"output{k}": In(stream.Signature(beat_layout(size))) for k, (size, _) in enumerate(outputs)},
                "core_reset": Out(1, init=1),
                "core_error": In(1),
                **({} if image is None else {"image": Out(stream.Signature(beat_layout(image[0])))}),
                **({} if load is None else {name: way(stream.Signature(beat_layout(1)))
                                            for name, way in (("load", Out), ("load_answer", In))}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.link = link = self.link
        wiring.connect(m, wiring.flipped(self.i), link.i)
        # Whether a byte moves decides about a whole header: registers part that from the carrier's state.
        m.submodules.out = out = SkidBuffer(PACKET_BYTE)
        wiring.connect(m, link.o, out.i)
        wiring.connect(m, out.o, wiring.flipped(self.o))

        before, crossing = RESET_STAGES - 2, self._crossing_cycles  # registers before the pulse and of it
        stages = Signal(RESET_STAGES - 1 + max(0, 2 * crossing - 1), init=-1)
        resetting, begun = Signal(), Signal(init=1)
        pulse = stages[before : before + max(1, crossing)].any()
        m.d.sync += [
            stages.eq(Cat(link.core_reset, stages)),
            self.core_reset.eq(pulse),
            # Whether one of these is high: a register of its own, as those stand where the core's parts are.
            begun.eq(link.core_reset | stages[:-1].any() | pulse),
        ]
        m.d.comb += resetting.eq(link.core_reset | begun)
        deal, collect = self._deal, self._collect
        m.submodules.deal = ResetInserter(resetting)(deal)
        m.submodules.collect = ResetInserter(resetting)(collect)
        m.d.comb += [
            deal.i.payload.eq(link.to_core.payload),
            deal.i.valid.eq(link.to_core.valid & ~resetting),
            link.to_core.ready.eq(deal.i.ready & ~resetting),
        ]
        if self._image is not None:
            self._split_image(m, resetting)
        if self._load is None:
            wiring.connect(m, collect.o, link.from_core)
        else:
            self._split_load(m, resetting)
        for k in range(self.inputs):
            source, sink = getattr(deal, f"o{k}"), getattr(self, f"input{k}")
            m.d.comb += [
                sink.payload.eq(source.payload),
                sink.valid.eq(source.valid & ~resetting),
                source.ready.eq(sink.ready),
            ]
            last_in = sink
        for k in range(self.outputs):
            source, sink = getattr(self, f"output{k}"), getattr(collect, f"i{k}")
            m.d.comb += [
                sink.payload.eq(source.payload),
                sink.valid.eq(source.valid & ~resetting),
                source.ready.eq(sink.ready & ~resetting),
            ]
            last_out = source
        # a cycle late: what is ready may have come a long way
        for strobe, port in ((link.frame_in, last_in), (link.frame_out, last_out)):
            m.d.sync += strobe.eq(port.valid & port.ready & port.payload.last & ~resetting)
        m.d.comb += link.core_error.eq(self.core_error & ~resetting)
        return m

    def _split_image(self, m, resetting):
        """Lead the first bytes of a session to ``image``, and none of them to the inputs."""
        assert self._image is not None, "asked for"
        size, beats = self._image
        link, deal = self.link, self._deal
        to_beats = BytesToBeats(size, beats)
        m.submodules.image = ResetInserter(resetting)(to_beats)
        left, loading = Signal(range(size * beats), init=size * beats - 1), Signal(init=1)
        m.d.comb += [
            to_beats.i.payload.eq(link.to_core.payload),
            to_beats.i.valid.eq(link.to_core.valid & loading & ~resetting),
            self.image.payload.eq(to_beats.o.payload),
            self.image.valid.eq(to_beats.o.valid & ~resetting),
            to_beats.o.ready.eq(self.image.ready),
        ]
        with m.If(loading):
            m.d.comb += [deal.i.valid.eq(0), link.to_core.ready.eq(to_beats.i.ready & ~resetting)]
        with m.If(to_beats.i.valid & to_beats.i.ready):
            m.d.sync += [left.eq(left - 1), loading.eq(left != 0)]
        with m.If(resetting):
            m.d.sync += [left.eq(size * beats - 1), loading.eq(1)]

    def _split_load(self, m, resetting):
        """Lead the first packet of a session to ``load``, its answer to the host, and then frames to the inputs."""
        assert self._load is not None, "asked for"
        link, deal, collect = self.link, self._deal, self._collect
        left = Signal(range(self._load))
        source, back = self.load, self.load_answer

        phase = Signal(_Phase)
        loads = link.to_core.payload == Command.LOAD
        with m.If(source.valid & source.ready):
            m.d.sync += left.eq(left - 1)
        with m.Switch(phase):
            with m.Case(_Phase.COMMAND):  # alone in its packet, unless it is the one that loads
                m.d.comb += source.payload.last.eq(~loads)
                with m.If(source.valid & source.ready):
                    m.d.sync += [left.eq(self._load - 2), phase.eq(Mux(loads, _Phase.TABLES, _Phase.ANSWER))]
            with m.Case(_Phase.TABLES):
                m.d.comb += source.payload.last.eq(left == 0)
                with m.If(source.valid & source.ready & (left == 0)):
                    m.d.sync += phase.eq(_Phase.ANSWER)
            with m.Case(_Phase.ANSWER), m.If(back.valid & back.ready & back.payload.last):
                m.d.sync += phase.eq(_Phase.FRAMES)
        with m.If(resetting):
            m.d.sync += phase.eq(_Phase.COMMAND)
        passing, answering, frames = Signal(), phase == _Phase.ANSWER, phase == _Phase.FRAMES
        m.d.comb += [
            passing.eq((phase == _Phase.COMMAND) | (phase == _Phase.TABLES)),
            source.payload.data.eq(link.to_core.payload),
            source.valid.eq(link.to_core.valid & passing & ~resetting),
            link.from_core.payload.eq(Mux(frames, collect.o.payload, back.payload.data)),
            link.from_core.valid.eq(Mux(frames, collect.o.valid, back.valid & answering & ~resetting)),
            collect.o.ready.eq(link.from_core.ready & frames),
            back.ready.eq(link.from_core.ready & answering & ~resetting),
        ]
        with m.If(~frames):
            m.d.comb += [deal.i.valid.eq(0), link.to_core.ready.eq(source.ready & passing & ~resetting)]
