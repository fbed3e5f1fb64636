"""A patched bitstream is, to the byte, the one that the whole build gives for the new tables."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hwflow.toolchain import build, nextpnr, yosys
from hwflow.toolchain.packing.files import pack_file
from hwflow.toolchain.patching.bitstream import patch_bitstream
from hwflow.toolchain.patching.block_files import FILES
from hwflow.toolchain.patching.rom_tables import constant_bits, lost_bits, tables_of, with_changing_bits
from hwflow.toolchain.tool import run

ROM = Path("hdl_lib/verilog/hwflow_rom.v").read_text()
# Two instances of a deep table, one of a table that is too small for block RAM, one that is made for other words, and
# what a board says of itself.
DESIGN = """
module hwflow_top(addr, a, b, c, e, clk);
  parameter WEIGHTS_DIR = "weights";
  input clk;
  input [9:0] addr;
  output [7:0] a, b, c, e;
  hwflow_rom #(
    .ADDRESS_WIDTH(32'd3),
    .DEPTH(32'd8),
    .FILE({WEIGHTS_DIR, "/held.mem"}),
    .HELD(32'd1),
    .WIDTH(32'd8)
  ) held (
    .clk(clk), .addr(addr[2:0]), .data(e)
  );
  core #(.WEIGHTS_DIR(WEIGHTS_DIR)) one (
    .clk(clk), .addr(addr), .data(a)
  );
  core #(.WEIGHTS_DIR(WEIGHTS_DIR)) other (
    .clk(clk), .addr(~addr), .data(b)
  );
  hwflow_rom #(
    .ADDRESS_WIDTH(32'd3),
    .DEPTH(32'd8),
    .FILE({WEIGHTS_DIR, "/small.mem"}),
    .WIDTH(32'd8)
  ) small (
    .clk(clk), .addr(addr[2:0]), .data(c)
  );
endmodule

module core(addr, data, clk);
  parameter WEIGHTS_DIR = "weights";
  input clk;
  input [9:0] addr;
  output [7:0] data;
  hwflow_rom #(
    .ADDRESS_WIDTH(32'd10),
    .DEPTH(32'd1000),
    .FILE({WEIGHTS_DIR, "/deep.mem"}),
    .WIDTH(32'd8)
  ) table_ (
    .clk(clk), .addr(addr), .data(data)
  );
endmodule
"""
TOP = """
module sender(input clk, input [5:0] addr, output reg [7:0] data);
  (* rom_style = "block" *) reg [7:0] identity [0:63];
  initial $readmemh("identity.mem", identity);
  always @(posedge clk) data <= identity[addr];
endmodule
module link_(input clk, input [5:0] addr, output [7:0] data);
  sender sender (.clk(clk), .addr(addr), .data(data));
endmodule
module shell_(input clk, input [5:0] addr, output [7:0] data);
  link_ link (.clk(clk), .addr(addr), .data(data));
endmodule
module top(input clk, input next, output reg [7:0] q);
  reg [9:0] addr;
  wire [7:0] a, b, c, d, e;
  hwflow_top hwflow_top (.clk(clk), .addr(addr), .a(a), .b(b), .c(c), .e(e));
  shell_ shell (.clk(clk), .addr(addr[5:0]), .data(d));
  always @(posedge clk) begin addr <= addr + next; q <= a ^ b ^ c ^ d ^ e; end
endmodule
"""
PARTS = {
    "ecp5": (
        {"family": "ecp5", "device": "LFE5U-12F", "package": "CABGA381", "speed_grade": "6"},
        "--lpf-allow-unconstrained",
    ),
    "ice40": ({"family": "ice40", "device": "iCE40LP1K", "package": "cm81"}, "--pcf-allow-unconstrained"),
}


SCRIPTS = ("build.sh", "synthesis.ys", "synthesis_renamed.ys")  # the first one calls yosys with the others


def folder(
    path: Path, family: str, deep: list[int], small: list[int], identity: bytes, held: int = 0
) -> Path:
    """A folder with all that synthesis reads; the words of the held table: a number and 0."""
    for below in ("weights", "board"):
        (path / below).mkdir(parents=True)
    (path / "design.v").write_text(f"{DESIGN}\n{ROM}")
    (path / "top.v").write_text(TOP)
    for name, words in (("weights/deep", deep), ("weights/small", small), ("weights/held", [held] + [0] * 7),
                        ("identity", identity)):  # fmt: skip
        (path / f"{name}.mem").write_text("".join(f"{word:02x}\n" for word in words))
    known = {"link": {"identity": identity.hex()}, "sources": ["design.v"], "design_top": "hwflow_top"}
    board = {"part": PARTS[family][0], **known}
    (path / "board" / "board.json").write_text(json.dumps(board))
    return path


def built(path: Path, family: str) -> bytes:
    """Build it wholly; return the bitstream."""
    (part, unconstrained), flow = PARTS[family], build.FLOWS[family]
    command = yosys.synthesis_command(family, part["device"])
    mapping = "; ".join(yosys.mapping(command, "top", path))
    script = f"read_verilog design.v top.v; {mapping}; write_json {build.NETLIST}"
    (path / "none").write_text("")
    arguments = nextpnr.arguments(
        part, netlist=build.PACKED, constraints="none", placed=flow.placed, report=build.REPORT, mhz=50,
        strategy=("--seed", "1", unconstrained),
    )
    log = path / "log"
    run(yosys.YOSYS.find(), ["-q", "-p", script], path, log, step="yosys", remedy="", outputs=[build.NETLIST])
    pack_file(family, path / build.NETLIST, path / build.PACKED)
    run(flow.place_route.find(), arguments, path, log, step="nextpnr", remedy="", outputs=[flow.placed])
    pack = flow.pack_arguments(part, placed=flow.placed, bitstream=flow.bitstream)
    run(flow.packer.find(), pack, path, log, step="pack", remedy="", outputs=[flow.bitstream])
    return (path / flow.bitstream).read_bytes()


def words(seed: int, count: int, mask: int = 0xFF) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(256) & mask for _ in range(count)]


@pytest.mark.parametrize("family", PARTS)
def test_patched_is_built(family, tmp_path) -> None:
    """Bit 7 of the old words never changes; bits 0 and 1 of the new ones do not, those of the next ones do."""
    old = folder(tmp_path / "old", family, words(1, 1000, 0x7F), words(2, 8), bytes(words(3, 64)))
    new = [word | 2 for word in words(4, 1000, 0x7C)]
    built(old, family)
    for name in SCRIPTS:
        (old / "board" / name).write_text(name)
    patched = folder(tmp_path / "patched", family, new, words(2, 8), bytes(words(5, 64)), 255)
    assert patch_bitstream(old, patched) == []
    assert all((patched / "board" / name).read_text() == name for name in SCRIPTS)
    # a netlist has bits 0 and 1 only where they change: with other words patched twice, it is the one that is built
    kept = list(new)
    kept[0] ^= 3
    whole = folder(tmp_path / "whole", family, kept, words(2, 8), bytes(words(5, 64)), 3)
    flow = build.FLOWS[family]
    whole_bits = built(whole, family)
    again = folder(tmp_path / "again", family, kept, words(2, 8), bytes(words(5, 64)), 3)
    assert patch_bitstream(patched, again) == []
    assert (again / flow.bitstream).read_bytes() == whole_bits
    assert (again / flow.placed).read_text() == (whole / flow.placed).read_text()
    assert (patched / flow.bitstream).read_bytes() != whole_bits

    refused = folder(tmp_path / "refused", family, words(1, 1000), words(6, 8), bytes(words(5, 64)), 7)
    said = [f"{finding.where}: {finding.message}" for finding in patch_bitstream(patched, refused)]
    table = "its table 'weights/deep.mem'"
    assert said == [
        "layer 'small': its table 'weights/small.mem' must lie in block RAM to be changed, not in look-up tables",
        f"layer 'one': bits 7 of {table} must be the constants that synthesis left out, not others",
        f"layer 'other': bits 7 of {table} must be the constants that synthesis left out, not others",
    ]
    assert not (refused / flow.bitstream).exists()


def test_equal_blocks_are_told_apart_by_nothing(tmp_path) -> None:
    """Two tables with the same words in block RAM that are to have different ones."""
    from hwflow.toolchain.patching.bitstream import _new_bodies

    cells = {"a": {"INIT_0": "01"}, "b": {"INIT_0": "01"}, "c": {"INIT_0": "11"}}
    files = FILES["ice40"]
    placed = "".join(f".ram_data {n} 0\n{files.body(cell)}\n" for n, cell in enumerate(cells.values()))
    assert files.bodies(placed) == {f".ram_data {n} 0": files.body(cell) for n, cell in enumerate(cells.values())}
    refusal = _new_bodies(files, cells, {"a": {"INIT_0": "10"}}, placed)
    assert "must have other contents than every other one" in refusal.message
    both = {"a": {"INIT_0": "10"}, "b": {"INIT_0": "10"}}
    assert _new_bodies(files, cells, both, placed) == {files.body(cells["a"]): files.body(both["a"])}
    swapped = {"b": {"INIT_0": "11"}, "a": {"INIT_0": "11"}, "c": {"INIT_0": "01"}}
    text = files.replaced(placed, _new_bodies(files, cells, swapped, placed))
    assert files.bodies(text) == {f".ram_data {n} 0": files.body(swapped[name]) for n, name in enumerate(cells)}


def test_bits() -> None:
    """0b1010, 0b1000: bits 0 and 2 are 0, bit 3 is 1."""
    assert constant_bits([0b1010, 0b1000], 4) == (0b0101, 0b1000)
    left_out = constant_bits([0b1010, 0b1000], 4)
    assert lost_bits(left_out, [0b0010, 0b0111], 4) == 0b1101
    assert lost_bits(left_out, [0b1010, 0b1010], 4) == 0
    old, new = [0, 1, 3, 0], [1, 1, 3, 1]  # bit 0 is constant in the new words only
    copies = with_changing_bits(constant_bits(old, 2), new, 2)
    assert [constant_bits(copy, 2) for copy in copies] == [(0, 0)] * 3
    assert [[max("01", key=f"{a:02b}{b:02b}{c:02b}"[bit::2].count) for bit in range(2)] for a, b, c in zip(
        *copies, strict=True
    )] == [list(f"{word:02b}") for word in new]
    assert with_changing_bits(constant_bits(old, 2), old, 2) == [old]


def test_tables() -> None:
    tables = tables_of(f"{DESIGN}\n{ROM}", "hwflow_top", "hwflow_top")
    found = [(table.path, table.file, table.width, table.depth) for table in tables]
    assert [table.held for table in tables] == [True, False, False, False]
    assert found == [
        ("hwflow_top.held.memory", "weights/held.mem", 8, 8),
        ("hwflow_top.small.memory", "weights/small.mem", 8, 8),
        ("hwflow_top.one.table_.memory", "weights/deep.mem", 8, 1000),
        ("hwflow_top.other.table_.memory", "weights/deep.mem", 8, 1000),
    ]
