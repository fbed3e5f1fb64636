"""Write a board's design for :mod:`hwflow.toolchain`: ``OUT/board/``, described by ``board.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.back import rtlil

from hwflow.codegen.board.axi_top import AxiTop
from hwflow.codegen.board.board_top import BoardTop, expected_link, surroundings
from hwflow.codegen.board.carriers import OWN, LinkOptions, Pin, carrier_for
from hwflow.codegen.board.clock_plan import plan_clock
from hwflow.codegen.board.identity import Buffers, FramePort, identity
from hwflow.codegen.board.memory_pins import memory_beside
from hwflow.codegen.converted.initial_contents import without_initial_contents
from hwflow.codegen.converted.rtlil_text import readable

if TYPE_CHECKING:
    from hwflow.boards.board import Board

TOP = "top"  # module name of the board's top
BLOCK = "hwflow_axis"  # of a block in a system that others make: a name that nothing else has
SIMULATION_TOP = "board_simulation"
CRC_BYTES = 4  # behind the image of a memory
_CROWDED = 0.6  # of a part's look-up tables: so many look-up tables and flip-flops of a design, beside its link
_QUIET_CYCLES = 20_000  # at the least: of what a core does behind its last frame


def frame_ports(manifest: Mapping[str, Any]) -> tuple[list[FramePort], list[FramePort]]:
    """Return the inputs' and the outputs' :class:`FramePort` from ``manifest.json``, in the order of the ports."""

    def ports(streams: Sequence[Mapping[str, Any]]) -> list[FramePort]:
        return [FramePort(s["lanes"] * s["element_bytes"], s["beats"]) for s in streams]

    return ports(manifest["inputs"]), ports(manifest["outputs"])


def write_board(
    out: Path, board: Board, clock_mhz: float | Fraction | None = None, link: LinkOptions = OWN
) -> dict[str, Any]:
    """Elaborate the board's top for the design in ``out`` and write ``out/board/``; return the contents of
    ``board.json``. ``link``: see :func:`hwflow.codegen.board.carriers.carrier_for`.

    Files: ``top.il`` (RTLIL), pins and clocks (``top.lpf``, ``top.pcf``, ``top.cst``, ``top.xdc``, ``top.qsf`` and
    ``top.sdc``), ``simulation.v`` (:data:`SIMULATION_TOP`: the top with ports ``clk`` and those of the carrier, by the
    same names on every board), ``simulation/settings.h``, ``board.json``. A Zynq's top has no pins:
    only :class:`hwflow.codegen.board.axi_top.AxiTop` and ``board.json`` are written.
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
        "truth_tables": manifest.get("truth_tables", False),
        "crowded": manifest.get("cells", 0) > _CROWDED * part.lut,
        "rtlil": f"board/{TOP}.il",
        "clock": {"input_mhz": board.clock.hz / 1e6, "design_mhz": float(clock.frequency_hz / 1_000_000)},
    }
    if board.zynq is not None:
        block = AxiTop(sources, sinks, manifest["top"])
        into, outof = (sum(port.beats for port in ports) for ports in (sources, sinks))
        with without_initial_contents():
            text = rtlil.convert(block, name=BLOCK, ports=block.ports, emit_src=False)
        (folder / f"{BLOCK}.il").write_text(readable(text))
        description |= {
            "top": BLOCK,
            "rtlil": f"board/{BLOCK}.il",
            "zynq": {"board_part": board.zynq.board_part, "crystal_mhz": board.zynq.crystal_mhz},
            "host": {
                "input_beats": into, "input_beat": block.input_bytes,
                "output_beats": outof, "output_beat": block.output_bytes,
            },
            "link": {
                "carrier": "dma",
                **_link(
                    board, into * block.input_bytes, outof * block.output_bytes,
                    # a Zynq's memory port: 8 bytes a cycle each way
                    clock.frequency_hz * min(
                        Fraction(min(8, block.input_bytes), into * block.input_bytes),
                        Fraction(min(8, block.output_bytes), outof * block.output_bytes),
                    ),
                ),
                "baud": None,
            },
        }
    else:
        buffers = Buffers.of(part)
        carrier = carrier_for(board, clock.link_hz, link, manifest["model"])
        known = identity(manifest, clock.frequency_hz, buffers, sources, sinks)
        load = manifest.get("load", {}).get("bytes")
        memory = manifest.get("memory", {})
        flash = memory.get("flash")
        top = BoardTop(
            board, sources, sinks, clock, carrier, known, manifest["top"], _image(manifest), load, flash=bool(flash),
            memory_words=memory.get("model", {}).get("WORDS"), waiting=_waiting(board, manifest, sources),
        )
        if flash:
            description |= _with_flash(board, flash, clock.frequency_hz)
        description |= _top_files(folder, board, top, manifest.get("memory"))
        description["clock"]["link_mhz"] = float(clock.link_hz / 1_000_000)
        if carrier.core is not None:
            description["ethernet_core"] = carrier.core
            description["sources"].append(carrier.core["file"])
        input_bytes, output_bytes = (sum(port.bytes for port in ports) for ports in (sources, sinks))
        beat_in, beat_out = (sum(port.bytes_per_beat for port in ports) for ports in (sources, sinks))
        description["link"] = {
            "carrier": carrier.name,
            **_link(
                board, input_bytes, output_bytes,
                manifest.get("interleave", 1)
                * carrier.frames_per_second(input_bytes, output_bytes, buffers.payload),
            ),
            **carrier.table(),
            **({"stateful": True} if manifest.get("states") else {}),
            "most_payload": buffers.payload,
            "receive_bytes": buffers.receive,
            "transmit_bytes": buffers.transmit,
            "identity": known.hex(),
            "resources": expected_link(
                part,
                surroundings(board, [port.bytes for port in (*sources[:-1], *sinks[1:])], carrier.name),
                beat_in,
                beat_out,
                crossing=len(sources) + len(sinks) + (2 if load else 0) if clock.ratio > 1 else 0,
            ),
        }
        checks = flash["check_cycles"] if flash else 0
        write_settings(folder / "simulation", description, carrier.simulated(), manifest["timing"], checks)
    (folder / "board.json").write_text(json.dumps(description, indent=1) + "\n")
    return description


def _image(manifest: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return bytes a beat, and beats, of what the design's memory outside is loaded with: its image and a CRC; of a
    flash the CRC alone."""
    memory = manifest.get("memory")
    if memory is None:
        return None
    size = memory["word_bits"] // 8
    return size, ("flash" not in memory) * memory["words"] + CRC_BYTES // size


def _with_flash(board: Board, flash: Mapping[str, Any], clock_hz: Fraction) -> dict[str, Any]:
    """Return what board.json says where the flash has weights: they are written before the bitstream; the commands for
    them alone, and the seconds after which a session knows whether they are there."""
    assert board.flash is not None, "the design has one"
    programs = (board.program, *board.other_programs)
    writing = [each.format(image=flash["file"], offset=flash["offset"]) for each in board.flash.programs]
    first, *others = [f"{image} && {program}" for image, program in zip(writing, programs, strict=True)]
    return {
        "program": first, "other_programs": others,
        "flash": {"programs": writing, "seconds": float(flash["check_cycles"] / clock_hz)},
    }


def _waiting(board: Board, manifest: Mapping[str, Any], sources: Sequence[FramePort]) -> int:
    """Return the beats of the image that have room in the part's own RAM, beside the maps of an engine whose weights
    come from a flash: half of it, if there is one stream, and a beat with its end is no wider."""
    memory, spram = manifest.get("memory", {}), board.part.spram
    maps = sum(engine["lanes"] * engine["words"] for engine in memory.get("engines", []) if engine["serial"])
    if spram is None or "flash" not in memory or not 0 < maps <= spram.half.bytes or len(sources) > 1:
        return 0
    width = 2 * spram.width
    return 0 if 8 * sources[0].bytes_per_beat + 1 > width else spram.half.bytes * 8 // width


def write_settings(
    folder: Path, description: Mapping[str, Any], carrier: Mapping[str, float], timing: Mapping[str, int],
    check_cycles: int = 0,
) -> None:
    """Write ``settings.h``: what the simulated board (:mod:`hwflow.sim.simulated_board`) must know of a board, and of
    its ``carrier``.

    While the core works on a frame nothing need move on the line, nor in the ``check_cycles`` of a flash.
    ``QUIET_CYCLES``, after which a simulated board sleeps, are longer."""
    settings = {
        "CLOCK_HZ": description["clock"]["design_mhz"] * 1e6,
        **carrier,
        "STARTUP_CYCLES": description["simulation"]["startup_cycles"],
        "QUIET_CYCLES": check_cycles + max(_QUIET_CYCLES, 4 * (timing["latency"] + timing["initiation_interval"])),
    }
    folder.mkdir(exist_ok=True)
    (folder / "settings.h").write_text("".join(f"#define {name} {value}\n" for name, value in settings.items()))


def _top_files(
    folder: Path, board: Board, top: BoardTop, memory: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write the top with a carrier, its constraints, and what its simulation begins with: the chip beside it, if the
    manifest says that the design has a ``memory``. Return what ``board.json`` says of them."""
    with without_initial_contents():
        plan = board.platform().prepare(top, name=TOP, emit_src=False)
    constraints = [f"{TOP}.{ending}" for ending in board.tools.constraints]
    for name in (f"{TOP}.il", *constraints):
        text = plan.files[name]
        text = text if isinstance(text, str) else text.decode()
        if name.endswith(".il") and board.tools.vendor:
            text = readable(text)
        (folder / name).write_text(text)
    pins = [Pin("clk", f"{board.clock.resource}_{board.clock.number}__io", output=False), *top.carrier.pins]
    beside = "" if memory is None else memory_beside(board, memory, top.clock.frequency_hz)
    (folder / "simulation.v").write_text(_simulation_top(pins, beside))
    return {
        "constraints": f"board/{constraints[0]}",
        # the models' PLL locks at once; in simulation the carrier may be used after this many cycles
        "simulation": {
            "top": SIMULATION_TOP, "source": "board/simulation.v",
            "startup_cycles": (top.reset_cycles + 16) * top.clock.ratio,
            "memory": memory["kind"] if memory is not None and beside else None,
        },
        "pins": {pin.name: pin.port for pin in pins},
    }


def _link(board: Board, input_bytes: int, output_bytes: int, most: Fraction) -> dict[str, Any]:
    """Return what is said of every link; a frame of all streams has so many bytes, padding included; ``most``: frames a
    second."""
    return {
        "transport": board.transport, "input_bytes": input_bytes, "output_bytes": output_bytes,
        "frames_per_second": float(most),
    }


def _simulation_top(pins: Sequence[Pin], memory: str) -> str:
    def wires(pin: Pin) -> str:
        return f"wire [{pin.width - 1}:0] {pin.name}" if pin.width > 1 else f"wire {pin.name}"

    def ports_of(pin: Pin) -> str:
        host = f", input wire {pin.name}_host, input wire {pin.name}_driven" if pin.pull else ""
        return f"{'output' if pin.output else 'input'} {wires(pin)}{host}"

    def net(pin: Pin) -> str:
        """Declare a wire between, for the top's port may be inout; where both ends drive it, the host does while it
        says so."""
        made = f"  {wires(pin)}_pin;\n"
        if pin.pull:
            made += f"  pull{pin.pull} ({pin.name}_pin);\n"
            made += f"  assign {pin.name}_pin = {pin.name}_driven ? {pin.name}_host : 1'bz;\n"
        there, here = (pin.name, f"{pin.name}_pin") if pin.output else (f"{pin.name}_pin", pin.name)
        return f"{made}  assign {there} = {here};\n"

    ports, nets = ", ".join(map(ports_of, pins)), map(net, pins)
    connections = ", ".join(f".{pin.port}({pin.name}_pin)" for pin in pins)
    if memory:
        names = dict.fromkeys(re.findall(r"\b(?:sdram|spi_flash)_\w+__io\b", memory))
        connections += "".join(f", .{name}({name})" for name in names)
    return (
        "// The board's top with the same port names for every board.\n"
        f"module {SIMULATION_TOP} ({ports});\n{''.join(nets)}{memory}  {TOP} board ({connections});\nendmodule\n"
    )
