"""Write a board's design for :mod:`hwflow.toolchain`: ``OUT/board/``, described by ``board.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.back import rtlil

from hwflow.codegen.board.axi_top import AxiTop
from hwflow.codegen.board.board_top import IDLE_SECONDS, BoardTop, FramePort
from hwflow.codegen.board.clock_plan import plan_clock
from hwflow.codegen.rtlil_text import readable

if TYPE_CHECKING:
    from hwflow.boards.board import Board

TOP = "top"  # module name of the board's top
BLOCK = "hwflow_axis"  # of a block in a system that others make: a name that nothing else has
SIMULATION_TOP = "board_simulation"
_QUIET_CYCLES = 20_000  # at the least: of what a core does behind its last frame


def frame_ports(manifest: Mapping[str, Any]) -> tuple[list[FramePort], list[FramePort]]:
    """Return the inputs' and the outputs' :class:`FramePort` from ``manifest.json``, in the order of the ports."""

    def ports(streams: Sequence[Mapping[str, Any]]) -> list[FramePort]:
        return [FramePort(s["lanes"] * s["element_bytes"], s["beats"]) for s in streams]

    return ports(manifest["inputs"]), ports(manifest["outputs"])


def write_board(out: Path, board: Board, clock_mhz: float | Fraction | None = None) -> dict[str, Any]:
    """Elaborate the board's top for the design in ``out`` and write ``out/board/``; return the contents of
    ``board.json``.

    Files: ``top.il`` (RTLIL), pins and clocks (``top.lpf``, ``top.pcf``, ``top.cst``, ``top.xdc``, ``top.qsf`` and
    ``top.sdc``), ``simulation.v`` (:data:`SIMULATION_TOP`: the top with ports ``clk``, ``uart_rx``, ``uart_tx`` on
    every board), ``simulation/settings.h``, ``board.json``. A Zynq's top has no pins: only
    :class:`hwflow.codegen.board.axi_top.AxiTop` and ``board.json`` are written.
    """
    manifest = json.loads((out / "manifest.json").read_text())
    sources, sinks = frame_ports(manifest)
    clock = plan_clock(board, clock_mhz)
    folder = out / "board"
    folder.mkdir(exist_ok=True)
    part = board.part
    description: dict[str, Any] = {
        "format": 1,
        "board": board.name,
        "title": board.title,
        "toolchain": board.toolchain,
        "vendor": board.tools.vendor,
        "program": board.program,
        "other_programs": list(board.other_programs),
        "part": {
            "family": part.family, "device": part.device, "package": part.package, "speed_grade": part.speed_grade,
            "database": part.database,
        },
        "top": TOP,
        "design_top": manifest["top"],
        "sources": list(manifest["sources"]),
        "weights": list(manifest["weights"]),
        "rtlil": f"board/{TOP}.il",
        "clock": {"input_mhz": board.clock.hz / 1e6, "design_mhz": float(clock.frequency_hz / 1_000_000)},
    }
    if board.zynq is not None:
        top = AxiTop(sources, sinks)
        into, outof = (sum(port.beats for port in ports) for ports in (sources, sinks))
        text = rtlil.convert(top, name=BLOCK, ports=top.ports, emit_src=False)
        (folder / f"{BLOCK}.il").write_text(readable(text))
        description |= {
            "top": BLOCK,
            "rtlil": f"board/{BLOCK}.il",
            "zynq": {"board_part": board.zynq.board_part, "crystal_mhz": board.zynq.crystal_mhz},
            "host": {
                "input_beats": into, "input_beat": top.input_bytes,
                "output_beats": outof, "output_beat": top.output_bytes,
            },
            "link": _link(
                board, None, into * top.input_bytes, outof * top.output_bytes,
                clock.frequency_hz * min(8, top.input_bytes), clock.frequency_hz * min(8, top.output_bytes),
            ),
        }
    else:
        description |= _serial_files(folder, board, BoardTop(board, sources, sinks, clock), sources, sinks)
        write_settings(folder / "simulation", description, manifest["timing"])
    (folder / "board.json").write_text(json.dumps(description, indent=1) + "\n")
    return description


def write_settings(folder: Path, description: Mapping[str, Any], timing: Mapping[str, int]) -> None:
    """Write ``settings.h``: what the simulated board (:mod:`hwflow.sim.simulated_board`) must know of a board.

    While the core works on a frame nothing need move on the line. ``QUIET_CYCLES``, after which a simulated board
    sleeps, are longer."""
    settings = {
        "CLOCK_HZ": description["clock"]["design_mhz"] * 1e6,
        "BAUD": float(description["uart"]["baud"]),
        "STARTUP_CYCLES": description["simulation"]["startup_cycles"],
        "QUIET_CYCLES": max(_QUIET_CYCLES, 4 * (timing["latency"] + timing["initiation_interval"])),
    }
    folder.mkdir(exist_ok=True)
    (folder / "settings.h").write_text("".join(f"#define {name} {value}\n" for name, value in settings.items()))


def _serial_files(
    folder: Path, board: Board, top: BoardTop, sources: Sequence[FramePort], sinks: Sequence[FramePort]
) -> dict[str, Any]:
    """Write the top behind a serial port and its pins. Return its part of ``board.json``, where bytes are those of a
    frame of all streams, in the order of the manifest's ports."""
    plan = board.platform().prepare(top, name=TOP, emit_src=False)
    constraints = [f"{TOP}.{ending}" for ending in board.tools.constraints]
    for name in (f"{TOP}.il", *constraints):
        text = plan.files[name]
        text = text if isinstance(text, str) else text.decode()
        (folder / name).write_text(readable(text) if board.tools.vendor and name.endswith(".il") else text)
    uart = top.uart
    line = top.clock.frequency_hz / (10 * top.shell.divisor)  # bytes per second: start bit, eight bits, stop bit
    input_bytes, output_bytes = (sum(port.bytes for port in ports) for ports in (sources, sinks))
    pins = {
        "clk": f"{board.clock.resource}_{board.clock.number}__io",
        "uart_rx": f"{uart.resource}_{uart.number}__rx__io",
        "uart_tx": f"{uart.resource}_{uart.number}__tx__io",
    }
    (folder / "simulation.v").write_text(_simulation_top(pins))
    return {
        "constraints": f"board/{constraints[0]}",
        # the models' PLL locks at once; in simulation the line may be used after this many cycles
        "simulation": {
            "top": SIMULATION_TOP, "source": "board/simulation.v", "startup_cycles": top.reset_cycles + 16,
        },
        "pins": pins,
        "uart": {"baud": uart.baud, "divisor": top.shell.divisor, "adapter": uart.adapter},
        "host": {
            "input_bytes": input_bytes,
            "output_bytes": output_bytes,
            "frames_in_flight": max(1, top.shell.frames_in_flight),
            "receive_bytes": top.shell.receive_bytes,
            "idle_seconds": float(IDLE_SECONDS),
        },
        "link": _link(board, uart.baud, input_bytes, output_bytes, line, line),
    }


def _link(
    board: Board, baud: int | None, input_bytes: int, output_bytes: int, rate_in: Fraction, rate_out: Fraction
) -> dict[str, Any]:
    """Return the link to the host, with a bound of its throughput: ``rate_in`` bytes per second in and, simultaneously,
    ``rate_out`` out; a frame has so many bytes, padding included. A Zynq's memory port: 8 bytes per cycle each way."""
    most = min(rate_in / input_bytes, rate_out / output_bytes)
    return {
        "transport": board.transport, "baud": baud, "input_bytes": input_bytes, "output_bytes": output_bytes,
        "frames_per_second": float(most),
    }


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
