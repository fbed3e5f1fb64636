"""A design as an IP block of a Zynq system: AXI4-Streams to a DMA engine, in transfers of whole frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amaranth import Cat, ClockDomain, ClockSignal, Elaboratable, Module, ResetSignal, Signal
from amaranth.lib.fifo import SyncFIFOBuffered

from hwflow.codegen.board.core_turns import CoreTurns
from hwflow.codegen.emitted.packaging import TOP
from hwflow.errors import Finding, UsageError

if TYPE_CHECKING:
    from hwflow.codegen.board.identity import FramePort

WIDEST = 128  # bytes per beat of an AXI DMA's stream: AMD PG021, data width 8 to 1024 bits
TRANSFERS = 4  # that may be under way
_INDEX = 32  # bits of a frame's number; they wrap


class AxiTop(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """The design's top module ``core`` between streams whose beats have a power of two of bytes, with ``tlast`` at the
    end of transfers.

    A frame is the beats of a frame of each of the design's streams in turn
    (:class:`hwflow.codegen.board.core_turns.CoreTurns`). A beat of the design is in the low bytes of a beat of the
    stream (``input_bytes``, ``output_bytes`` wide); the other bytes are ignored on input and anything on output. A
    transfer, ended by ``s_axis_tlast``, is any number of whole frames, and so is the transfer of their results. A
    transfer that ends within a frame raises ``error``: the design drops the frame, and the result has no end; one with
    several inputs must be reset.

    Ports: ``aclk``, ``aresetn``, ``s_axis_*``, ``m_axis_*`` (with ``tkeep``, all ones) and ``error``, as AMD's IP
    packager recognises them by name.

    Timing: no cycle is added to the input; the output passes a queue of three entries, where the last beat of a frame
    waits until the whole frame has been received.
    """

    def __init__(self, sources: Sequence[FramePort], sinks: Sequence[FramePort], core: str = TOP):
        for name, port in (*(("input", port) for port in sources), *(("output", port) for port in sinks)):
            if port.bytes_per_beat > WIDEST:
                raise UsageError(
                    Finding(
                        "dma-width", f"the design's {name}",
                        f"a beat must have at most {WIDEST} bytes for an AXI DMA, not {port.bytes_per_beat}",
                        "ask for fewer frames per second (--fps), or stop at --until verilog on another board",
                    )
                )
        self.core = core
        self.sources, self.sinks = list(sources), list(sinks)
        self.input_bytes, self.output_bytes = (
            1 << (max(port.bytes_per_beat for port in ports) - 1).bit_length() for ports in (sources, sinks)
        )
        self.aclk, self.aresetn, self.error = (Signal(name=name) for name in ("aclk", "aresetn", "error"))
        self.s_tdata = Signal(8 * self.input_bytes, name="s_axis_tdata")
        self.m_tdata = Signal(8 * self.output_bytes, name="m_axis_tdata")
        self.m_tkeep = Signal(self.output_bytes, name="m_axis_tkeep")
        self.s_tvalid, self.s_tready, self.s_tlast = (Signal(name=f"s_axis_t{n}") for n in ("valid", "ready", "last"))
        self.m_tvalid, self.m_tready, self.m_tlast = (Signal(name=f"m_axis_t{n}") for n in ("valid", "ready", "last"))

    @property
    def ports(self) -> list[Any]:
        """Return every signal of the interface."""
        return [
            self.aclk, self.aresetn, self.s_tdata, self.s_tvalid, self.s_tready, self.s_tlast,
            self.m_tdata, self.m_tkeep, self.m_tvalid, self.m_tready, self.m_tlast, self.error,
        ]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        reset = Signal(init=1)
        m.domains.reset = ClockDomain(reset_less=True, local=True)
        m.d.comb += [ClockSignal("sync").eq(self.aclk), ClockSignal("reset").eq(self.aclk)]
        m.d.reset += reset.eq(~self.aresetn)
        m.d.comb += ResetSignal("sync").eq(reset)

        m.submodules.core = core = CoreTurns(self.sources, self.sinks, self.core)
        # Which frame is the last of its transfer, by its number.
        m.submodules.ends = ends = SyncFIFOBuffered(width=_INDEX, depth=TRANSFERS)
        beats = sum(port.beats for port in self.sources)
        beat = Signal(range(beats))
        received, sent = Signal(_INDEX), Signal(_INDEX)
        end_of_frame = beat == beats - 1
        open_ = ~(self.s_tlast & ~ends.w_rdy)
        taken = Signal()
        m.d.comb += [
            core.i_data.eq(self.s_tdata),
            core.i_valid.eq(self.s_tvalid & open_),
            self.s_tready.eq(core.i_ready & open_),
            core.i_last.eq(self.s_tlast | end_of_frame),
            taken.eq(self.s_tvalid & self.s_tready),
            ends.w_data.eq(received),
            ends.w_en.eq(taken & self.s_tlast & end_of_frame),
        ]
        with m.If(taken):
            m.d.sync += beat.eq(beat + 1)
            with m.If(core.i_last):
                m.d.sync += beat.eq(0)
            with m.If(end_of_frame):
                m.d.sync += received.eq(received + 1)
        with m.If(core.error | (taken & self.s_tlast & ~end_of_frame)):
            m.d.sync += self.error.eq(1)

        m.submodules.queue = queue = SyncFIFOBuffered(width=len(core.o_data) + 1, depth=3)
        last = queue.r_data[-1]
        known, counted = Signal(), Signal.like(received)  # that the frame was taken in; later than `ends` knows it
        m.d.sync += [counted.eq(received), known.eq(counted != sent)]
        leaving = Signal()
        m.d.comb += [
            queue.w_data.eq(Cat(core.o_data, core.o_last)),
            queue.w_en.eq(core.o_valid),
            core.o_ready.eq(queue.w_rdy),
            self.m_tdata.eq(queue.r_data[:-1]),
            self.m_tkeep.eq(~0),
            self.m_tlast.eq(last & ends.r_rdy & (ends.r_data == sent)),
            self.m_tvalid.eq(queue.r_rdy & (~last | known)),
            leaving.eq(self.m_tvalid & self.m_tready),
            queue.r_en.eq(leaving),
            ends.r_en.eq(leaving & self.m_tlast),
        ]
        with m.If(leaving & last):
            m.d.sync += [sent.eq(sent + 1), known.eq(0)]
        return m
