"""Amaranth to readable Verilog-2005, by way of RTLIL and yosys."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from amaranth.back import rtlil

from hdl_lib.rom import VERILOG as ROM_VERILOG
from hwflow.codegen.modules import core_rtlil
from hwflow.codegen.names import KEYWORDS
from hwflow.codegen.taps import LAYERS_FILE, LAYERS_TOP, with_layers
from hwflow.codegen.top import TOP, Top

# Processes become conditional expressions (pmuxtree: no case statement whose branches overlap, which linters dislike
# and simulators evaluate late), private names short numbers. Of the attributes `keep` must stay (a core that sets it
# has a reason, see hdl_lib/mvu.py); the others say where in our sources a line comes from, which is of no use to users.
_REMOVED = (
    "src",
    "generator",
    "top",
    "hdlname",
    "full_case",
    "parallel_case",
    "amaranth.hierarchy",
    "amaranth.decoding",
)

SCRIPT = """\
read_rtlil design.il
proc -norom
pmuxtree
opt_expr
opt_clean -purge
attrmap {remove}
attrmap -modattr {remove}
select {layers}
write_verilog -selected layers.v
select -clear
delete {layers}
write_verilog design.v
""".format(remove=" ".join(f"-remove {name}" for name in _REMOVED), layers=LAYERS_TOP)

HEADER = """\
// Made by hwflow from the ONNX model '{model}'. Verilog-2005. Top module: {top}.
// Weights are read by $readmemh from weights/: run tools where that path resolves.
"""

LAYERS_HEADER = """\
// {top} of design.v once more, for simulation, with what every core puts out at its ports ('hwflow sim --layers').
"""


def emit(top: Top, model: str, folder: Path, run_yosys: Callable[[str, Path], None]) -> None:
    """Write ``folder``/design.v and testbench/layers.v (see :mod:`hwflow.codegen.taps`). ``run_yosys(script, cwd)``
    runs a yosys script of that name in that folder."""
    with _uncollected():
        text = rtlil.convert(top, name=TOP, ports=[*top.ports, *top.tap_ports], emit_src=False)
        text += ''.join(core_rtlil(*c) for c in top.cores)
    (folder / "design.il").write_text(with_layers(readable(text), TOP, top.taps))
    (folder / "design.ys").write_text(SCRIPT)
    run_yosys("design.ys", folder)
    verilog = (folder / "design.v").read_text()
    printable = re.sub(r"[^ -\[\]-~]+", " ", model)  # a comment of one line, ASCII, without backslashes
    header = HEADER.format(model=printable, top=TOP)
    needs_rom = any("hwflow_rom" in line for line in text.splitlines() if "cell" in line)
    parts = [header, verilog, ROM_VERILOG.read_text() if needs_rom else ""]
    (folder / "design.v").write_text("\n".join(p for p in parts if p))
    layers = folder / LAYERS_FILE
    layers.parent.mkdir(exist_ok=True)
    layers.write_text(LAYERS_HEADER.format(top=TOP) + "\n" + (folder / "layers.v").read_text())
    for name in ("layers.v", "design.il"):
        (folder / name).unlink()
    (folder / "design.ys").unlink()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's cyclic garbage collector: a netlist is millions of objects that stay, and looking through them
    again and again takes as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def readable(text: str) -> str:
    """RTLIL whose public names are legal Verilog identifiers and no keywords: hierarchy dots become double underscores.

    Contents of memories that are written go: they only pad the file, nothing reads a word before it was written.
    """
    text = _NAME.sub(lambda match: "\\" + _legal(match.group(1)), text)
    return "".join(
        _without_initial_contents(module) for module in re.split(r"(?m)^(?=attribute .*\nmodule |module )", text)
    )


_NAME = re.compile(r"\\([A-Za-z_$][A-Za-z0-9_.$]*(?:\[\d+\])*)")  # Amaranth numbers the lanes of a port: payload[0]
_MEMORY_CELL = re.compile(r"(?ms)^  cell (\$mem\w+) \S+\n(.*?)^  end\n")
_MEMORY_NAME = re.compile(r"parameter \\MEMID \"(.*?)\"")


def _legal(name: str) -> str:
    # Two underscores, which no name from a model has: a.b, a[1] and a$1 (the second signal a) become a__b, a__1, a__v1.
    plain = re.sub(r"[.\[]", "__", name.replace("]", "").replace("$", "__v"))
    return f"{plain}_" if plain in KEYWORDS else plain


def _without_initial_contents(module: str) -> str:
    written = {
        _MEMORY_NAME.search(cell.group(2)).group(1)  # type: ignore[union-attr]  # every memory cell has the parameter
        for cell in _MEMORY_CELL.finditer(module)
        if cell.group(1).startswith("$memwr")
    }

    def keep(cell: re.Match[str]) -> str:
        name = _MEMORY_NAME.search(cell.group(2))
        initial = cell.group(1).startswith("$meminit") and name is not None and name.group(1) in written
        return "" if initial else cell.group(0)

    return _MEMORY_CELL.sub(keep, module) if written else module
