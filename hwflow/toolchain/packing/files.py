"""Pack and place netlists from file to file."""

from __future__ import annotations

import json
from pathlib import Path

from hwflow.toolchain.packing import Packing, pack
from hwflow.toolchain.packing.block_places import place_blocks
from hwflow.toolchain.packing.carries import CARRY
from hwflow.toolchain.packing.netlist import Netlist


def pack_file(family: str, source: str | Path, target: str | Path) -> Packing:
    """Pack the netlist in ``source`` (yosys' JSON) for ``family`` and write it to ``target``, which may be the same."""
    design = json.loads(Path(source).read_text())
    packing = pack(design, family)
    for name in (netlist := Netlist(design)).cells(CARRY):
        if not netlist.bits(name, "COUT"):  # nextpnr asks for the port, and takes one at "x" for open
            netlist.connect(name, "COUT", ["x"], "output")
    Path(target).write_text(json.dumps(design, indent=1) + "\n")
    return packing


def place_file(device: str, source: str | Path, target: str | Path) -> int:
    """Write the netlist in ``source`` to ``target`` with its blocks placed on ``device``; return the number placed."""
    design = json.loads(Path(source).read_text())
    placed = place_blocks(Netlist(design), device)
    Path(target).write_text(json.dumps(design) + "\n")
    return placed
