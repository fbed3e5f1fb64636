"""Counting a netlist's cells."""

from __future__ import annotations

import json

from hwflow.toolchain.tool import run
from hwflow.toolchain.yosys import (
    RAM_MAP,
    YOSYS,
    mapping,
    read_statistics,
    synthesis_command,
    synthesis_script,
    top_verilog_script,
)


def test_cells_are_counted_with_multiplicity(tmp_path):
    # a leaf: 2 LUTs, a carry cell (2), a distributed RAM (4)
    modules = {
        "\\top": {"num_cells_by_type": {"LUT4": 3, "TRELLIS_FF": 1, "leaf": 2, "$scopeinfo": 9, "PFUMX": 4}},
        "\\leaf": {
            "num_cells_by_type": {
                "LUT4": 2, "CCU2C": 1, "TRELLIS_DPR16X4": 1, "TRELLIS_FF": 5, "MULT18X18D": 1, "DP16KD": 3,
            }
        },
    }
    path = tmp_path / "stat.json"
    path.write_text("\n" + json.dumps({"modules": modules}))
    assert read_statistics(path, "ecp5", "leaf") == {"lut": 8, "ff": 5, "dsp": 1, "bram": 3}
    assert read_statistics(path, "ecp5", "top") == {"lut": 19, "ff": 11, "dsp": 2, "bram": 6}


def test_every_flip_flop_of_an_ice40_counts(tmp_path):
    cells = {"SB_DFF": 1, "SB_DFFE": 1, "SB_DFFSR": 1, "SB_DFFESR": 1, "SB_DFFSS": 1, "SB_DFFESS": 1, "SB_DFFNER": 1}
    path = tmp_path / "stat.json"
    path.write_text(json.dumps({"modules": {"\\top": {"num_cells_by_type": {**cells, "SB_LUT4": 2, "SB_CARRY": 7}}}}))
    assert read_statistics(path, "ice40", "top") == {"lut": 2, "ff": 7, "dsp": 0, "bram": 0}


def test_cells_of_gowin(tmp_path):
    """By hand: 3 tables, 2 adder cells, a memory of 4; 7 registers; one and a half multipliers, so 2."""
    cells = {
        "LUT1": 1, "LUT4": 2, "ALU": 2, "RAM16SDP4": 1, "MUX2_LUT5": 9, "DFF": 1, "DFFRE": 2, "DFFNSE": 4,
        "MULT18X18": 1, "MULT9X9": 1, "SDPX9B": 1, "pROM": 2, "IBUF": 5,
    }
    path = tmp_path / "stat.json"
    path.write_text(json.dumps({"modules": {"\\top": {"num_cells_by_type": cells}}}))
    assert read_statistics(path, "gowin", "top") == {"lut": 9, "ff": 7, "dsp": 2, "bram": 3}


def test_a_part_has_its_command():
    assert synthesis_command("ecp5", "LFE5U-85F") == "synth_ecp5"
    assert synthesis_command("ice40", "iCE40LP8K") == "synth_ice40 -device lp"  # it has no multipliers
    assert synthesis_command("gowin", "GW1NR-LV9QN88PC6/I5") == "synth_gowin -noiopads -family gw1n"
    assert synthesis_command("gowin", "GW2A-LV18PG256C8/I7") == "synth_gowin -noiopads -family gw2a"


def test_scripts(tmp_path):
    (tmp_path / "board").mkdir()
    assert top_verilog_script("a.il", "b.v").splitlines() == [
        "read_rtlil a.il", "proc -norom", "pmuxtree", "memory_collect", "write_verilog -noattr -norename b.v",
    ]
    mapped = mapping(synthesis_command("ice40", "iCE40UP5K"), "top", tmp_path, "board")
    assert (tmp_path / "board" / "ice40_ram.v").read_text() == RAM_MAP.read_text()
    assert synthesis_script(mapped, ["d.v"], "t.il", "top", "core", statistics="s", netlist="n").splitlines() == [
        "read_verilog d.v",
        "read_rtlil t.il",
        "setattr -mod -set keep_hierarchy 1 core",
        "synth_ice40 -dsp -device u -top top -run :map_ram",
        "memory_libmap -lib +/ice40/brams.txt",
        "techmap -map board/ice40_ram.v",
        "synth_ice40 -dsp -device u -top top -run map_ffram:",
        "tee -q -o s stat -json",
        "setattr -mod -unset keep_hierarchy core",
        "flatten",
        "opt_clean",
        "write_json n",
    ]
    assert mapping("synth_ice40", "top", tmp_path, "board", memories=True)[-1] == "techmap -map board/ice40_ram.v"
    assert mapping("synth_ecp5", "top", tmp_path) == ("synth_ecp5 -top top",)
    assert mapping("synth_ecp5", "top", tmp_path, memories=True) == ("synth_ecp5 -top top -run :map_ffram",)
    relaxed = synthesis_script(mapped, ["d.v"], "t.il", "top", "core", statistics="s", netlist="n", logic_ns=4.0)
    assert relaxed.splitlines()[0] == "scratchpad -set abc9.D 4000"


RAMS = """
module rams(input clk, input we, input [10:0] wa, ra, input [15:0] d, output reg [15:0] a, output reg [7:0] b,
  output reg [3:0] c, output reg [1:0] e, output reg [15:0] f);
  (* ram_style = "block" *) reg [15:0] m16 [0:255]; (* ram_style = "block" *) reg [7:0] m8 [0:511];
  (* ram_style = "block" *) reg [3:0] m4 [0:1023]; (* ram_style = "block" *) reg [1:0] m2 [0:2047];
  (* ram_style = "block" *) reg [15:0] half [0:255];
  integer i;
  initial for (i = 0; i < 2048; i = i + 1) begin
    m2[i] = (i * 40503) >> 7; m4[i % 1024] = (i * 40503) >> 5; m8[i % 512] = (i * 40503) >> 3;
    m16[i % 256] = i * 40503; half[i % 256] = i * 30011;
  end
  always @(posedge clk) begin
    if (we) begin m16[wa] <= d; m8[wa] <= d; m4[wa] <= d; m2[wa] <= d; half[wa][7:0] <= d; end
    a <= m16[ra]; b <= m8[ra]; c <= m4[ra]; e <= m2[ra]; f <= half[ra];
  end
endmodule
"""


def test_block_rams_of_an_ice40_are_those_of_yosys_own_map(tmp_path):
    """All widths, a byte's enable, first values: the same cells, parameters and connections."""
    (tmp_path / "rams.v").write_text(RAMS)
    steps = "; ".join(mapping("synth_ice40", "rams", tmp_path, memories=True))
    found = []
    for each in (steps, steps.replace(RAM_MAP.name, "+/ice40/brams_map.v")):
        script = f"read_verilog rams.v; {each}; select rams; write_json -selected rams.json"
        run(YOSYS.find(), ["-q", "-p", script], tmp_path, tmp_path / "log", step="yosys", remedy="")
        cells = json.loads((tmp_path / "rams.json").read_text())["modules"]["rams"]["cells"]
        rams = {name: cell for name, cell in cells.items() if cell["type"].startswith("SB_RAM40_4K")}
        bits = {}  # by when they are first seen
        found.append([
            (name, cell["type"], cell["parameters"], {
                port: [bits.setdefault(bit, len(bits)) for bit in cell["connections"][port]]
                for port in sorted(cell["connections"])
            })
            for name, cell in sorted(rams.items())
        ])
    assert [name for name, *_ in found[0]] == ["half.0.0", "m16.0.0", "m2.0.0", "m4.0.0", "m8.0.0"]
    assert found[0] == found[1]
