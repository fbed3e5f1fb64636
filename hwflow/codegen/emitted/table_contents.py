"""Where the emitted Verilog finds the contents of its tables: in files, or in itself.

What yosys writes instantiates the module of :data:`hwflow.codegen.emitted.packaging.ROM` with the path of a file. With
files, every module between the top and a table gets a parameter ``WEIGHTS_DIR``, the folder of the files, which a
parent hands on. Without files, each table is a module of its own, named after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hdl_lib.memories.rom import VERILOG, WRITABLE_VERILOG
from hwflow.codegen.emitted.packaging import RAM, ROM, Packaging
from hwflow.cores.operator import MemoryFile

PARAMETER = "WEIGHTS_DIR"
FOLDER = "weights"

_MODULE = re.compile(r"(?m)^module (\S+?)\(")
_INSTANCE = re.compile(r"(?m)^  (\w+) (\w+) \($")
_PATH = re.compile(rf'\.FILE\("{FOLDER}/(\w+)\.mem"\)')

_INLINE = """\
// The table {table}: {depth} words of {width} bits, and a synchronous read port.
// data shows the word that addr selected a cycle before.
module {module} (
    input  wire clk,
    input  wire [{address}:0] addr,
    output reg  [{high}:0] data
);
    {block}reg [{high}:0] memory [0:{last}];

    initial begin
{words}
    end

    always @(posedge clk)
        data <= memory[addr];
endmodule
"""


_BLOCK = '(* ram_style = "block", rom_style = "block" *)\n    '  # as the module of files has it, where a table is held


def with_weights(verilog: str, files: Sequence[MemoryFile], texts: Mapping[str, str], packaging: Packaging) -> str:
    """Return the design with its tables: ``verilog`` as yosys writes it, with the names of ``packaging``. ``texts``:
    the contents of each file of ``files``, by name, as ``$readmemh`` reads them."""
    rom, ram = packaging.module(ROM), packaging.module(RAM)
    found = {
        name: text.read_text().replace(own, name)
        for own, name, text in ((ROM, rom, VERILOG), (RAM, ram, WRITABLE_VERILOG)) if f"  {name} #(\n" in verilog
    }
    if not found:
        return verilog
    if packaging.inline_weights:
        return _inline(verilog, rom, {file.name for file in files}, texts)
    return "\n".join((_by_parameter(verilog, tuple(found), packaging), *found.values()))


def _by_parameter(verilog: str, tables: Sequence[str], packaging: Packaging) -> str:
    """Put the folder of the files into a parameter of the top and of every module that has a table below it."""
    pieces = re.split(r"(?m)^(?=module )", verilog)
    modules = {found[1]: piece for piece in pieces if (found := _MODULE.match(piece))}
    parents: dict[str, list[str]] = {}
    for name, text in modules.items():
        for below, _ in _INSTANCE.findall(text):
            parents.setdefault(below, []).append(name)
    waiting = [name for name, text in modules.items() if any(f"  {table} #(\n" in text for table in tables)]
    having = set(waiting)
    while waiting:
        new = set(parents.get(waiting.pop(), ())) - having
        having |= new
        waiting += new

    def parameterized(piece: str) -> str:
        found = _MODULE.match(piece)
        if found is None or found[1] not in having:
            return piece
        head, ports, body = piece.partition(");\n")
        body = _PATH.sub(lambda path: f'.FILE({{{PARAMETER}, "/{packaging.file(path[1])}.mem"}})', body)
        return f'{head}{ports}  parameter {PARAMETER} = "{FOLDER}";\n{_INSTANCE.sub(_handed_on, body)}'

    def _handed_on(instance: re.Match[str]) -> str:
        if instance[1] not in having:
            return instance[0]
        return f"  {instance[1]} #(.{PARAMETER}({PARAMETER})) {instance[2]} ("

    return "".join(parameterized(piece) for piece in pieces)


def _inline(verilog: str, rom: str, tables: set[str], texts: Mapping[str, str]) -> str:
    """Make a module of each table, once."""
    made: dict[str, str] = {}

    def table(instance: re.Match[str]) -> str:
        values = dict(re.findall(r"\.(\w+)\((?:32'd)?(.*?)\)", instance[1]))
        name = values["FILE"].strip('"').removeprefix(f"{FOLDER}/").removesuffix(".mem")
        assert name in tables, "every file has a table"
        module = f"{rom}__{name}"
        if module not in made:
            width, depth = int(values["WIDTH"]), int(values["DEPTH"])
            lines = texts[name].split()
            words = "\n".join(f"        memory[{row}] = {width}'h{word};" for row, word in enumerate(lines))
            made[module] = _INLINE.format(
                table=name, depth=depth, width=width, module=module, address=int(values["ADDRESS_WIDTH"]) - 1,
                high=width - 1, last=depth - 1, words=words, block=_BLOCK if values.get("HELD") == "1" else "",
            )
        return f"  {module} {instance[2]} ("

    text = re.sub(rf"(?ms)^  {rom} #\(\n(.*?)^  \) (\w+) \($", table, verilog)
    return "\n".join((text, *made.values()))
