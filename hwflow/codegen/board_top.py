"""The board's top: clock, reset, serial shell, and around them the emitted design as it is (``design.v``).

The design comes in as an instance of the Verilog module ``hwflow_top``, so a bitstream is made of the very file that is
simulated. :func:`write_board` leaves in ``OUT/board/`` everything a toolchain needs; ``board.json`` says what is what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, ResetSignal, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from hdl_lib.pll_ecp5 import Ecp5Pll, Ecp5PllSettings, find_ecp5_pll
from hdl_lib.pll_ice40 import Ice40Pll, Ice40PllSettings, find_ice40_pll
from hdl_lib.uart import divisor_for
from hdl_lib.uart_shell import UartShell
from hwflow.errors import Finding, UsageError

if TYPE_CHECKING:
    from hwflow.boards.board import Board, Part

TOP = "top"  # module name of the board's top
SIMULATION_TOP = "board_simulation"
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


@dataclass(frozen=True)
class ClockPlan:
    """The design's clock: its exact frequency, and the PLL that makes it (None: the oscillator itself)."""

    frequency_hz: Fraction
    pll: Ecp5PllSettings | Ice40PllSettings | None


def plan_clock(board: Board, target_mhz: float | Fraction | None = None) -> ClockPlan:
    """The highest clock not above ``target_mhz`` (default: the board's) that the board can make, exactly.

    Raises :class:`UsageError` when the board's PLL cannot come near.
    """
    target = Fraction(board.clock_mhz if target_mhz is None else target_mhz) * 1_000_000
    if target == board.clock.hz:
        return ClockPlan(target, None)
    settings: Ecp5PllSettings | Ice40PllSettings
    try:
        if board.part.family == "ecp5":
            settings = find_ecp5_pll(board.clock.hz, target)
        else:
            settings = find_ice40_pll(board.clock.hz, target)
    except ValueError as error:
        raise UsageError(
            Finding(
                "clock-reachable", f"board '{board.name}'", str(error),
                f"choose another clock, such as {board.clock_mhz:g} MHz",
            )
        ) from error
    return ClockPlan(settings.output_hz, settings)


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
    bytes_a_block = part.bram_bits // (9 if part.family == "ecp5" else 8)  # a block of ECP5 has a ninth bit a byte
    return {"lut": 500, "ff": 360, "dsp": 0, "bram": -(-receive_bytes(part, frame_bytes) // bytes_a_block)}


class BoardTop(Elaboratable):  # type: ignore[misc]  # Amaranth carries no annotations
    """Clock input, PLL, reset, :class:`UartShell` and ``hwflow_top``.

    ``shell`` (with ``divisor``, ``frames_in_flight``, ``idle_timeout``) and ``clock`` tell what a host must know.
    Reset is released :data:`RESET_SECONDS` after the PLL locks. The design's own follows the shell's ``core_reset`` a
    cycle later, long before another byte can have come.
    """

    def __init__(self, board: Board, source: FramePort, sink: FramePort, clock: ClockPlan):
        self.board = board
        self.clock = clock
        try:
            divisor = divisor_for(clock.frequency_hz, board.uart.baud)
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
        settings = self.clock.pll
        if isinstance(settings, Ice40PllSettings) and clock_input.route == "pad":
            m.submodules.pll = pll = Ice40Pll(settings, pad=pin.io)
            m.d.comb += [clk.eq(pll.clk_out), lock.eq(pll.lock)]
        else:
            m.submodules.clock_buffer = buffer = io.Buffer("i", pin)
            if settings is None:
                m.d.comb += clk.eq(buffer.i)
            else:
                pll = Ice40Pll(settings) if isinstance(settings, Ice40PllSettings) else Ecp5Pll(settings)
                m.submodules.pll = pll
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

        uart = self.board.uart
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


def frame_ports(manifest: Mapping[str, Any]) -> tuple[FramePort, FramePort]:
    """The input's and the output's :class:`FramePort` from ``manifest.json``.

    Raises :class:`UsageError` for a design with several inputs or outputs: a serial line carries one stream each way.
    """
    ports = []
    for kind in ("inputs", "outputs"):
        streams = manifest[kind]
        if len(streams) != 1:
            names = ", ".join(s["name"] for s in streams)
            raise UsageError(
                Finding(
                    "one-stream", f"model '{manifest['model']}'",
                    f"a design on a board must have one input and one output, not {len(streams)} {kind} ({names})",
                    "use '--until verilog' and connect the design's streams yourself",
                )
            )
        ports.append(FramePort(streams[0]["lanes"] * streams[0]["element_bytes"], streams[0]["beats"]))
    return ports[0], ports[1]


def write_board(out: Path, board: Board, clock_mhz: float | Fraction | None = None) -> dict[str, Any]:
    """Elaborate the board's top for the design in ``out`` and write ``out/board/``; return what ``board.json`` holds.

    Files: ``top.il`` (RTLIL), the pins (``top.lpf`` or ``top.pcf``), ``simulation.v`` (:data:`SIMULATION_TOP`: the top
    with ports ``clk``, ``uart_rx``, ``uart_tx`` whatever the board calls its pins), ``board.json``.
    """
    manifest = json.loads((out / "manifest.json").read_text())
    source, sink = frame_ports(manifest)
    clock = plan_clock(board, clock_mhz)
    top = BoardTop(board, source, sink, clock)
    platform = board.platform()
    plan = platform.prepare(top, name=TOP, emit_src=False)
    suffix = {"ecp5": "lpf", "ice40": "pcf"}[board.part.family]
    folder = out / "board"
    folder.mkdir(exist_ok=True)
    for name in (f"{TOP}.il", f"{TOP}.{suffix}"):
        text = plan.files[name]
        (folder / name).write_text(text if isinstance(text, str) else text.decode())
    pins = {
        "clk": f"{board.clock.resource}_{board.clock.number}__io",
        "uart_rx": f"{board.uart.resource}_{board.uart.number}__rx__io",
        "uart_tx": f"{board.uart.resource}_{board.uart.number}__tx__io",
    }
    (folder / "simulation.v").write_text(_simulation_top(pins))
    description = {
        "format": 1,
        "board": board.name,
        "title": board.title,
        "toolchain": board.toolchain,
        "program": board.program,
        "part": {
            "family": board.part.family, "device": board.part.device, "package": board.part.package,
            "speed_grade": board.part.speed_grade,
        },
        "top": TOP,
        "design_top": manifest["top"],
        "sources": list(manifest["sources"]),
        "weights": list(manifest["weights"]),
        "rtlil": f"board/{TOP}.il",
        "constraints": f"board/{TOP}.{suffix}",
        # the models' PLL locks at once; in simulation the line may be used after this many cycles
        "simulation": {
            "top": SIMULATION_TOP, "source": "board/simulation.v", "startup_cycles": top.reset_cycles + 16,
        },
        "pins": pins,
        "clock": {"input_mhz": board.clock.hz / 1e6, "design_mhz": float(clock.frequency_hz / 1_000_000)},
        "uart": {"baud": board.uart.baud, "divisor": top.shell.divisor},
        "host": {
            "input_bytes": source.bytes,
            "output_bytes": sink.bytes,
            "frames_in_flight": max(1, top.shell.frames_in_flight),
            "receive_bytes": top.shell.receive_bytes,
            "idle_seconds": float(IDLE_SECONDS),
        },
    }
    (folder / "board.json").write_text(json.dumps(description, indent=1) + "\n")
    return description


def _simulation_top(pins: Mapping[str, str]) -> str:
    return (
        "// The board's top with the same port names for every board.\n"
        f"module {SIMULATION_TOP} (input wire clk, input wire uart_rx, output wire uart_tx);\n"
        "  wire clk_pin, rx_pin, tx_pin;\n"
        "  assign clk_pin = clk;\n"
        "  assign rx_pin = uart_rx;\n"
        "  assign uart_tx = tx_pin;\n"
        f"  {TOP} board (.{pins['clk']}(clk_pin), .{pins['uart_rx']}(rx_pin), .{pins['uart_tx']}(tx_pin));\n"
        "endmodule\n"
    )
