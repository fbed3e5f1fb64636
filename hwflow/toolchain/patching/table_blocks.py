"""What synthesis makes of tables: block RAMs and their contents.

The tables are synthesized by themselves, as far as memories are mapped, with the old contents and the new. That the
design's netlist holds just what became of the old ones proves that synthesis did the same to the tables in it, and that
its blocks have the new ones' contents then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwflow.toolchain.patching.block_files import BlockFiles
from hwflow.toolchain.patching.rom_tables import RomTable
from hwflow.toolchain.tool import Found, run
from hwflow.toolchain.yosys import mapping

_TOP = "tables"

# A memory of the board's top that asks for block RAM.
_BLOCK = "block_rom"
_BLOCK_ROM = f"""
module {_BLOCK} #(parameter WIDTH = 8, parameter DEPTH = 2, parameter ADDRESS_WIDTH = 1, parameter FILE = "") (
    input wire clk, input wire [ADDRESS_WIDTH-1:0] addr, output reg [WIDTH-1:0] data
);
    (* rom_style = "block" *) reg [WIDTH-1:0] memory [0:DEPTH-1];
    generate if (FILE != "") begin : load initial $readmemh(FILE, memory); end endgenerate
    always @(posedge clk) data <= memory[addr];
endmodule
"""

Cells = dict[str, dict[str, str]]


def block_cells(netlist: Mapping[str, Any], files: BlockFiles) -> Cells:
    """Return the parameters of a netlist's block RAMs by their names. ``netlist``: yosys' JSON of one top module."""
    modules = netlist["modules"].values()
    cells = next(m for m in modules if int(str(m.get("attributes", {}).get("top", "0")), 2))["cells"]
    return {name: cell["parameters"] for name, cell in cells.items() if cell["type"].startswith(files.cells)}


def blocks_of(cells: Cells, path: str) -> Cells:
    """Return the blocks of the table at ``path``, by what follows in their names."""
    begin = f"{path}."
    return {name.removeprefix(begin): parameters for name, parameters in cells.items() if name.startswith(begin)}


def synthesized_blocks(
    folder: Path, yosys: Found, command: str, files: BlockFiles, rom: tuple[str, str] | None,
    tables: Sequence[tuple[str, RomTable]],
) -> list[Cells]:
    """Map the name suffixes of each of ``tables`` to its synthesized blocks; empty if it does not lie in block RAM.

    ``tables``: the name in ``folder``, where yosys works, of the file with the contents of each. ``rom``: the name
    and the Verilog of the module that reads tables from files, None in a design without. ``command``: yosys' synthesis
    command for the part.
    """
    name, plain = rom or ("", "")
    ports, instances = [], []
    for index, (file, table) in enumerate(tables):
        bits = max(1, (table.depth - 1).bit_length())
        ports.append(f"input [{bits - 1}:0] a{index}, output [{table.width - 1}:0] d{index}")
        parameters = f'.WIDTH({table.width}), .DEPTH({table.depth}), .ADDRESS_WIDTH({bits}), .FILE("{file}")'
        parameters += ", .HELD(1)" if table.held else ""
        kind = _BLOCK if table.block else name
        instances.append(f"  {kind} #({parameters}) t{index} (.clk(clk), .addr(a{index}), .data(d{index}));\n")
    top = f"module {_TOP} (input clk, {', '.join(ports)});\n{''.join(instances)}endmodule\n"
    (folder / f"{_TOP}.v").write_text(f"{plain}\n{_BLOCK_ROM}\n{top}")
    steps = "; ".join(mapping(command, _TOP, folder, memories=True))
    script = (
        f"read_verilog {_TOP}.v; hierarchy -top {_TOP}; {steps}; select {_TOP}; write_json -selected {_TOP}.json"
    )
    run(
        yosys, ["-q", "-p", script], folder, folder / f"{_TOP}.log", step="tables (yosys)", remedy="read the log",
        outputs=[f"{_TOP}.json"],
    )
    cells = block_cells(json.loads((folder / f"{_TOP}.json").read_text()), files)
    return [blocks_of(cells, f"t{index}.memory") for index in range(len(tables))]
