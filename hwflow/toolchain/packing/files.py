"""Pack and place netlists from file to file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hwflow.toolchain.packing import Packing, merged_kinds, pack
from hwflow.toolchain.packing.block_places import place_blocks
from hwflow.toolchain.packing.carries import CARRY
from hwflow.toolchain.packing.cells import cells_by_path, with_kinds_of
from hwflow.toolchain.packing.netlist import Netlist


def pack_file(family: str, source: str | Path, target: str | Path) -> Packing:
    """Pack the netlist in ``source`` (yosys' JSON) for ``family`` and write it to ``target``, which may be the same.
    The result has the cells of the source, but for blocks that are merged: of these, those of the target."""
    design = json.loads(Path(source).read_text())
    cells = cells_by_path(design)
    packing = pack(design, family)
    if any(packing.pairs.values()):  # of blocks that are merged, those that are left
        cells = with_kinds_of(cells_by_path(design), cells, merged_kinds(family))
    for name in (netlist := Netlist(design)).cells(CARRY):
        if not netlist.bits(name, "COUT"):  # nextpnr asks for the port, and takes one at "x" for open
            netlist.connect(name, "COUT", ["x"], "output")
    Path(target).write_text(json.dumps(design, indent=1) + "\n")
    return replace(packing, cells=cells)


def place_file(device: str, source: str | Path, target: str | Path) -> int:
    """Write the netlist in ``source`` to ``target`` with its blocks placed on ``device``; return the number placed."""
    design = json.loads(Path(source).read_text())
    placed = place_blocks(Netlist(design), device)
    Path(target).write_text(json.dumps(design) + "\n")
    return placed
