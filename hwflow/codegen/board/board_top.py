"""The board's top level: clock, reset, serial shell, and the emitted design unchanged (``design.v``).

The design is an instance of the Verilog module ``hwflow_top``, so that a bitstream contains the very file that is
simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from amaranth import Cat, ClockDomain, ClockSignal, Elaboratable, Instance, Module, ResetInserter, ResetSignal, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from hdl_lib.clocks.pll_ice40 import Ice40Pll
from hdl_lib.links.stream_turns import BytesToStreams, StreamsToBytes
from hdl_lib.links.uart import divisor_for
from hdl_lib.links.uart_shell import UartShell
from hwflow.codegen.board.clock_plan import FAMILIES, ClockPlan
from hwflow.cores.costs.memory import block_rams
from hwflow.display import show
from hwflow.errors import Finding, UsageError

if TYPE_CHECKING:
    from hwflow.boards.board import Board, Part

# Seconds from the PLL's lock to the end of reset. iCE40 block RAMs read as zero for about 3 us after configuration.
RESET_SECONDS = Fraction(16, 1_000_000)
# Registers on the way of the design's reset. The last one is copied for the cores, the one before for these copies
# (hwflow.toolchain.packing.copies), so that none crosses the device and fans out in the same cycle.
RESET_STAGES = 3
# An interrupted frame is given up after this time; longer than any pause a USB host makes between packets (16 ms).
IDLE_SECONDS = Fraction(1, 10)


@dataclass(frozen=True)
class FramePort:
    """A stream of the design: bytes per beat and beats per frame."""

    bytes_per_beat: int
    beats: int

    @property
    def bytes(self) -> int:
        """Return the bytes per frame."""
        return self.bytes_per_beat * self.beats


def receive_bytes(part: Part, frame_bytes: int) -> int:
    """Return the bytes of the receive buffer: two frames, at most 4096 bytes.

    It takes at most half of the block RAMs; larger frames are paced by the design's own speed.
    """
    return int(min(max(2 * frame_bytes, 16), 4096, part.bram * part.bram_bits // 8 // 2))


def shell_allowance(part: Part, frame_bytes: int) -> dict[str, int]:
    """Return the share of ``part`` to leave for the shell, in ``lut``, ``ff``, ``dsp`` and ``bram``.

    ``frame_bytes``: of an input frame. Measured for streams of one to eight bytes per beat: 170 to 480 look-up tables
    or logic cells and 140 to 350 flip-flops (serial port, adapters between bytes and beats, reset), no multipliers, and
    the block RAMs of the receive buffer; the figures are the upper ends with a margin.
    """
    return {"lut": 500, "ff": 360, "dsp": 0, "bram": block_rams(part.family, receive_bytes(part, frame_bytes), 8)}


# A DMA engine with 64-bit data and its interconnect, by the orders of magnitude in AMD PG021 (AXI DMA); not measured.
_DMA = {"lut": 5000, "ff": 7000, "dsp": 0, "bram": 8}


# A stream more on the line, with the control of its queue (:mod:`hdl_lib.links.stream_turns`). Measured by yosys for
# beats of one byte: 90 to 140 look-up tables, 45 to 70 flip-flops; wider beats have a register more for each bit.
_TURN = {"lut": 240, "ff": 160}


def surroundings(board: Board, frame_bytes: int, queued: Sequence[int] = ()) -> dict[str, int]:
    """Return the resources of everything around the design: a shell, or a Zynq's DMA engine and interconnect.

    ``queued``: bytes of a frame of each stream with a queue, if several share the line.
    """
    if board.zynq:
        return dict(_DMA)
    result = shell_allowance(board.part, frame_bytes)
    for size in queued:
        result["bram"] += block_rams(board.part.family, size, 9)
        for name, count in _TURN.items():
            result[name] += count
    return result


class BoardTop(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """Clock input, PLL, reset, :class:`UartShell` and ``hwflow_top``. Several inputs or outputs take turns on the line,
    frame by frame (:mod:`hdl_lib.links.stream_turns`).

    ``shell`` (with ``divisor``, ``frames_in_flight``, ``idle_timeout``) and ``clock`` are the parameters for a host.
    Reset is released :data:`RESET_SECONDS` after the PLL locks. The design's reset follows the shell's ``core_reset``
    :data:`RESET_STAGES` cycles later, long before another byte can arrive.
    """

    def __init__(self, board: Board, sources: Sequence[FramePort], sinks: Sequence[FramePort], clock: ClockPlan):
        if board.uart is None:
            raise ValueError(f"board must have a serial port, not {board.name}")
        self.board = board
        self.uart = board.uart
        self.clock = clock
        try:
            divisor = divisor_for(clock.frequency_hz, self.uart.baud)
        except ValueError as error:
            raise UsageError(
                Finding("baud-reachable", f"board {show(board.name)}", str(error),
                        "choose another clock for the design")
            ) from error
        self.sources, self.sinks = tuple(sources), tuple(sinks)
        whole = sum(source.bytes for source in sources)
        source = sources[0] if len(sources) == 1 else FramePort(1, whole)
        sink_bytes = sinks[0].bytes_per_beat if len(sinks) == 1 else 1
        self.shell = UartShell(
            divisor, source.bytes_per_beat, source.beats, sink_bytes,
            idle_timeout=int(clock.frequency_hz * IDLE_SECONDS),
            receive_bytes=receive_bytes(board.part, whole),
        )

    @property
    def reset_cycles(self) -> int:
        """Return the cycles of the design's clock from PLL lock to the end of reset."""
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
        # Resets leave registers: they go everywhere, which takes most of a cycle. What the design says in a cycle in
        # which its reset is on its way is not from after it.
        reset = Signal(init=1)
        stages = [Signal(name=f"core_reset_{k}", init=1) for k in range(RESET_STAGES)]
        core_reset, resetting = stages[-1], Signal()
        error = Signal()
        m.d.startup += [reset.eq(~ready), stages[0].eq(~ready | shell.core_reset)]
        m.d.startup += [later.eq(earlier) for earlier, later in pairwise(stages)]
        m.d.comb += [
            ResetSignal("sync").eq(reset),
            resetting.eq(Cat(stages).any()),
            shell.core_error.eq(error & ~resetting),
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
            **self._inputs(m, core_reset),
            **self._outputs(m, core_reset, resetting),
            o_error=error,
        )
        return m

    def _inputs(self, m: Module, core_reset: Signal) -> dict[str, Any]:
        """Connect the design's inputs."""
        shell = self.shell
        if len(self.sources) == 1:
            return _connections(
                "i", "s_axis", shell.s_axis_tdata, shell.s_axis_tvalid, shell.s_axis_tready, shell.s_axis_tlast
            )
        turns = BytesToStreams([(port.bytes_per_beat, port.beats) for port in self.sources])
        m.submodules.turns_in = ResetInserter(core_reset)(turns)
        m.d.comb += [
            turns.i.payload.eq(shell.s_axis_tdata),
            turns.i.valid.eq(shell.s_axis_tvalid),
            shell.s_axis_tready.eq(turns.i.ready),
        ]
        result: dict[str, Any] = {}
        for k in range(len(self.sources)):
            o = getattr(turns, f"o{k}")
            result |= _connections("i", f"s{k}_axis", o.payload.data, o.valid, o.ready, o.payload.last)
        return result

    def _outputs(self, m: Module, core_reset: Signal, resetting: Signal) -> dict[str, Any]:
        """Connect the design's outputs, which are ignored during its reset and just before."""
        shell = self.shell
        if len(self.sinks) == 1:
            valid = Signal()
            m.d.comb += shell.m_axis_tvalid.eq(valid & ~resetting)
            return _connections("o", "m_axis", shell.m_axis_tdata, valid, shell.m_axis_tready, shell.m_axis_tlast)
        turns = StreamsToBytes([(port.bytes_per_beat, port.beats) for port in self.sinks])
        m.submodules.turns_out = ResetInserter(core_reset)(turns)
        m.d.comb += [
            shell.m_axis_tdata.eq(turns.o.payload),
            shell.m_axis_tvalid.eq(turns.o.valid & ~resetting),
            turns.o.ready.eq(shell.m_axis_tready),
        ]
        result: dict[str, Any] = {}
        for k in range(len(self.sinks)):
            i = getattr(turns, f"i{k}")
            valid = Signal(name=f"valid{k}")
            m.d.comb += i.valid.eq(valid & ~resetting)
            result |= _connections("o", f"m{k}_axis", i.payload.data, valid, i.ready, i.payload.last)
        return result


def _connections(way: str, prefix: str, data: Any, valid: Any, ready: Any, last: Any) -> dict[str, Any]:
    """Return the ports of an AXI4-Stream of the design; ``way``: "i" for an input, "o" for an output."""
    back = "o" if way == "i" else "i"
    return {
        f"{way}_{prefix}_tdata": data, f"{way}_{prefix}_tvalid": valid, f"{back}_{prefix}_tready": ready,
        f"{way}_{prefix}_tlast": last,
    }
