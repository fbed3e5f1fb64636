"""The board's top: clock, reset, serial shell, and around them the emitted design as it is (``design.v``).

The design comes in as an instance of the Verilog module ``hwflow_top``, so a bitstream is made of the very file that is
simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, ResetSignal, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from hdl_lib.pll_ice40 import Ice40Pll
from hdl_lib.uart import divisor_for
from hdl_lib.uart_shell import UartShell
from hwflow.codegen.clock_plan import FAMILIES, ClockPlan
from hwflow.errors import Finding, UsageError
from hwflow.ops.costs import block_rams

if TYPE_CHECKING:
    from hwflow.boards.board import Board, Part

# Seconds from the PLL's lock to the end of reset. iCE40 block RAMs read as zero for about 3 us after configuration.
RESET_SECONDS = Fraction(16, 1_000_000)
# An interrupted frame is given up after this time; longer than any pause a USB host makes between packets (16 ms).
IDLE_SECONDS = Fraction(1, 10)


@dataclass(frozen=True)
class FramePort:
    """One stream of the design: bytes a beat and beats a frame."""

    bytes_per_beat: int
    beats: int

    @property
    def bytes(self) -> int:
        """Bytes a frame."""
        return self.bytes_per_beat * self.beats


def receive_bytes(part: Part, frame_bytes: int) -> int:
    """Bytes of the buffer for what comes in: two frames, at most 4096 bytes.

    At most half of the block RAMs serve for it; larger frames are paced by the design's own speed.
    """
    return int(min(max(2 * frame_bytes, 16), 4096, part.bram * part.bram_bits // 8 // 2))


def shell_allowance(part: Part, frame_bytes: int) -> dict[str, int]:
    """What to leave of ``part`` for all that is around the design, in ``lut``, ``ff``, ``dsp`` and ``bram``.

    ``frame_bytes``: of an input frame. Measured for streams of one to eight bytes a beat: 170 to 480 look-up tables or
    logic cells and 140 to 350 flip-flops (serial port, adapters between bytes and beats, reset), no multipliers, and
    the block RAMs of the receive buffer; the figures are the upper ends and some more.
    """
    return {"lut": 500, "ff": 360, "dsp": 0, "bram": block_rams(part.family, receive_bytes(part, frame_bytes), 8)}


# A DMA engine with 64-bit data and its interconnect, by the orders of magnitude in AMD PG021 (AXI DMA); not measured.
_DMA = {"lut": 5000, "ff": 7000, "dsp": 0, "bram": 8}


def surroundings(board: Board, frame_bytes: int) -> dict[str, int]:
    """The same for what a board's design has around it: a shell, or a Zynq's DMA engine and its interconnect."""
    return dict(_DMA) if board.zynq else shell_allowance(board.part, frame_bytes)


class BoardTop(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """Clock input, PLL, reset, :class:`UartShell` and ``hwflow_top``.

    ``shell`` (with ``divisor``, ``frames_in_flight``, ``idle_timeout``) and ``clock`` tell what a host must know.
    Reset is released :data:`RESET_SECONDS` after the PLL locks. The design's own follows the shell's ``core_reset`` a
    cycle later, long before another byte can have come.
    """

    def __init__(self, board: Board, source: FramePort, sink: FramePort, clock: ClockPlan):
        if board.uart is None:
            raise ValueError(f"board must have a serial port, not {board.name}")
        self.board = board
        self.uart = board.uart
        self.clock = clock
        try:
            divisor = divisor_for(clock.frequency_hz, self.uart.baud)
        except ValueError as error:
            raise UsageError(
                Finding("baud-reachable", f"board '{board.name}'", str(error), "choose another clock for the design")
            ) from error
        self.shell = UartShell(
            divisor, source.bytes_per_beat, source.beats, sink.bytes_per_beat,
            idle_timeout=int(clock.frequency_hz * IDLE_SECONDS),
            receive_bytes=receive_bytes(board.part, source.bytes),
        )

    @property
    def reset_cycles(self) -> int:
        """Cycles of the design's clock from the PLL's lock to the end of reset."""
        return int(self.clock.frequency_hz * RESET_SECONDS)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        clock_input = self.board.clock
        pin = platform.request(clock_input.resource, clock_input.number, dir="-")
        clk, lock = Signal(), Signal(init=1)
        settings = self.clock.settings
        if settings is not None and clock_input.route == "pad":
            m.submodules.pll = pll = Ice40Pll(settings, pad=pin.io)
            m.d.comb += [clk.eq(pll.clk_out), lock.eq(pll.lock)]
        else:
            m.submodules.clock_buffer = buffer = io.Buffer("i", pin)
            if settings is None:
                m.d.comb += clk.eq(buffer.i)
            else:
                m.submodules.pll = pll = FAMILIES[self.board.part.family].pll(settings)
                m.d.comb += [pll.clk_in.eq(buffer.i), clk.eq(pll.clk_out), lock.eq(pll.lock)]

        m.domains.startup = ClockDomain(reset_less=True, local=True)
        m.domains.sync = ClockDomain()
        m.d.comb += [ClockSignal("startup").eq(clk), ClockSignal("sync").eq(clk)]
        locked, ready = Signal(), Signal()
        m.submodules.lock_synchronizer = FFSynchronizer(lock, locked, o_domain="startup")
        wait = self.reset_cycles
        waited = Signal(range(wait + 1))
        with m.If(~locked):
            m.d.startup += [waited.eq(0), ready.eq(0)]
        with m.Elif(waited != wait):
            m.d.startup += waited.eq(waited + 1)
        with m.Else():
            m.d.startup += ready.eq(1)
        m.submodules.shell = shell = self.shell
        # Resets leave registers: they go everywhere, which takes most of a cycle. What the design says in the cycle in
        # which its reset comes is not from after it.
        reset, core_reset = Signal(init=1), Signal(init=1)
        valid, error = Signal(), Signal()
        m.d.startup += [reset.eq(~ready), core_reset.eq(~ready | shell.core_reset)]
        m.d.comb += [
            ResetSignal("sync").eq(reset),
            shell.m_axis_tvalid.eq(valid & ~core_reset),
            shell.core_error.eq(error & ~core_reset),
        ]

        uart = self.uart
        lines = {line.name: "-" for line in platform.lookup(uart.resource, uart.number).ios}
        pins = platform.request(uart.resource, uart.number, dir=lines)
        m.submodules.rx_buffer = rx = io.Buffer("i", pins.rx)
        m.submodules.tx_buffer = tx = io.Buffer("o", pins.tx)
        m.d.comb += [shell.rx.eq(rx.i), tx.o.eq(shell.tx)]
        m.submodules.hwflow_top = Instance(
            "hwflow_top",
            i_clk=ClockSignal("sync"),
            i_rst=core_reset,
            i_s_axis_tdata=shell.s_axis_tdata,
            i_s_axis_tvalid=shell.s_axis_tvalid,
            o_s_axis_tready=shell.s_axis_tready,
            i_s_axis_tlast=shell.s_axis_tlast,
            o_m_axis_tdata=shell.m_axis_tdata,
            o_m_axis_tvalid=valid,
            i_m_axis_tready=shell.m_axis_tready,
            o_m_axis_tlast=shell.m_axis_tlast,
            o_error=error,
        )
        return m
