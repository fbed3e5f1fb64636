"""Amaranth to readable Verilog-2005, by way of RTLIL and yosys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from amaranth.back import rtlil

from hdl_lib.rom import VERILOG as ROM_VERILOG
from hwflow.codegen.top import TOP, Top

# Processes become expressions, private names short numbers; attributes say where in our sources a line comes from,
# which is of no use to a user.
SCRIPT = """\
read_rtlil design.il
proc
opt_expr
opt_clean -purge
write_verilog -noattr design.v
"""

HEADER = """\
// Made by hwflow from the ONNX model '{model}'. Verilog-2005. Top module: {top}.
// Weights are read by $readmemh from weights/: run tools where that path resolves.
"""


def emit(top: Top, model: str, folder: Path, run_yosys: Callable[[str, Path], None]) -> None:
    """Write ``folder``/design.v. ``run_yosys(script, cwd)`` runs a yosys script of that name in that folder."""
    text = rtlil.convert(top, name=TOP, ports=top.ports, emit_src=False)
    (folder / "design.il").write_text(readable(text))
    (folder / "design.ys").write_text(SCRIPT)
    run_yosys("design.ys", folder)
    verilog = (folder / "design.v").read_text()
    header = HEADER.format(model=model.replace("\n", " "), top=TOP)
    needs_rom = any("hwflow_rom" in line for line in text.splitlines() if "cell" in line)
    parts = [header, verilog, ROM_VERILOG.read_text() if needs_rom else ""]
    (folder / "design.v").write_text("\n".join(p for p in parts if p))
    (folder / "design.il").unlink()
    (folder / "design.ys").unlink()


def readable(text: str) -> str:
    """RTLIL with public names that are legal Verilog identifiers: hierarchy dots become double underscores."""

    def legal(match: re.Match[str]) -> str:
        name = match.group(1).replace(".", "__").replace("$", "_S_")
        return "\\" + re.sub(r"[^A-Za-z0-9_]", "_", name)

    return re.sub(r"\\([A-Za-z_$][A-Za-z0-9_.$\[\]]*)", lambda m: legal(m) if re.search(r"[.$\[\]]", m.group(1)) else m.group(0), text)
