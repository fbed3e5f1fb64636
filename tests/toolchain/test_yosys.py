"""Counting a netlist's cells."""

from __future__ import annotations

import json

from hwflow.toolchain.yosys import read_statistics, synthesis_command, synthesis_script, top_verilog_script


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


def test_scripts():
    assert top_verilog_script("a.il", "b.v").splitlines() == [
        "read_rtlil a.il", "proc -norom", "pmuxtree", "memory_collect", "write_verilog -noattr -norename b.v",
    ]
    command = synthesis_command("ice40", "iCE40UP5K")
    assert synthesis_script(command, ["d.v"], "t.il", "top", "core", statistics="s", netlist="n").splitlines() == [
        "read_verilog d.v",
        "read_rtlil t.il",
        "setattr -mod -set keep_hierarchy 1 core",
        "synth_ice40 -dsp -device u -top top",
        "tee -q -o s stat -json",
        "setattr -mod -unset keep_hierarchy core",
        "flatten",
        "opt_clean",
        "write_json n",
    ]
    relaxed = synthesis_script(command, ["d.v"], "t.il", "top", "core", statistics="s", netlist="n", logic_ns=4.0)
    assert relaxed.splitlines()[0] == "scratchpad -set abc9.D 4000"
