"""Designs with names of their own in one simulation, and weights where a parameter or nothing says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import hwflow
from hwflow.sim.manifest import load_design
from hwflow.sim.testbench import VECTORS
from hwflow.sim.vectors import load_vectors, pack
from hwflow.toolchain import vendor
from hwflow.toolchain.icarus import ICARUS
from tests.flow.networks import dense_network
from tests.rewritten import accept_changes

SIZES = {"first": (4, 3, 2, 2), "second": (5, 2, 3, 3)}


@pytest.fixture(scope="module")
def outs(tmp_path_factory) -> dict[str, Path]:
    """Two designs: one reads its weights from files, the other has them inside."""
    folder = tmp_path_factory.mktemp("two")
    found = {}
    for name, sizes in SIZES.items():
        model = dense_network(folder / f"{name}.onnx", sizes)
        design = hwflow.compile(model, "ulx3s_85f", fps=1000, name=name, inline_weights=name == "second")
        design.write(folder / name)
        found[name] = folder / name
    return found


def bench(outs: dict[str, Path], weights: str) -> str:
    """A test bench that runs a frame of each design's vectors and says PASS or what differs."""
    parts, done = [], []
    for name, out in outs.items():
        design = load_design(out)
        vectors = load_vectors(out / VECTORS)
        (source,), (sink,) = design.inputs, design.outputs
        beats, expected = (
            [int.from_bytes(bytes(beat), "little") for beat in pack(stream, vectors[stream.port])[0]]
            for stream in (source, sink)
        )
        where = "" if name == "second" else f'#(.WEIGHTS_DIR("{weights}")) '
        wide, bits = 8 * source.tdata_bytes, 8 * sink.tdata_bytes
        parts.append(f"""
  reg [31:0] {name}_in = 0, {name}_out = 0;
  reg [{wide - 1}:0] {name}_beats [0:{len(beats) - 1}];
  reg [{bits - 1}:0] {name}_expected [0:{len(expected) - 1}];
  wire {name}_ready, {name}_valid;
  wire [{bits - 1}:0] {name}_data;
  initial begin
    {" ".join(f"{name}_beats[{k}] = {wide}'d{beat};" for k, beat in enumerate(beats))}
    {" ".join(f"{name}_expected[{k}] = {bits}'d{beat};" for k, beat in enumerate(expected))}
  end
  {name}_top {where}{name} (
    .clk(clk), .rst(rst), .error(),
    .s_axis_tdata({name}_beats[{name}_in]), .s_axis_tvalid(!rst && {name}_in < {len(beats)}),
    .s_axis_tready({name}_ready), .s_axis_tlast({name}_in == {len(beats) - 1}),
    .m_axis_tdata({name}_data), .m_axis_tvalid({name}_valid), .m_axis_tready(1'b1), .m_axis_tlast()
  );
  always @(posedge clk) if (!rst) begin
    if ({name}_in < {len(beats)} && {name}_ready) {name}_in <= {name}_in + 1;
    if ({name}_valid) begin
      if ({name}_data !== {name}_expected[{name}_out]) $display("{name} %0d: %h", {name}_out, {name}_data);
      {name}_out <= {name}_out + 1;
    end
  end""")
        done.append(f"{name}_out == {len(expected)}")
    return f"""module bench;
  reg clk = 0, rst = 1;
  always #5 clk = !clk;
  initial #22 rst = 0;
  initial #100000 $display("too late");
  initial #100001 $finish;
{"".join(parts)}
  always @(posedge clk) if ({" && ".join(done)}) begin $display("PASS"); $finish; end
endmodule
"""


def run_icarus(folder: Path, sources: list[Path], standard: str = "2005") -> subprocess.CompletedProcess[str]:
    icarus = ICARUS.find()
    program = folder / "bench.vvp"
    compiled = subprocess.run(
        [*icarus.command, f"-g{standard}", "-s", "bench", "-o", program, *sources], capture_output=True, text=True,
        check=False,
    )
    assert compiled.returncode == 0 and compiled.stderr == "", compiled.stderr
    vvp = Path(icarus.command[0]).with_name("vvp")
    return subprocess.run([vvp, "-n", program], capture_output=True, text=True, cwd=folder, check=False)


def sources_of(outs: dict[str, Path], folder: Path, weights: str) -> list[Path]:
    (folder / "bench.v").write_text(bench(outs, weights))
    return [folder / "bench.v", *(out / f"{name}_design.v" for name, out in outs.items())]


def test_two_designs_run_in_one_simulation(outs, tmp_path):
    """Run elsewhere, so that only the parameter leads to the weights."""
    done = run_icarus(tmp_path, sources_of(outs, tmp_path, str(outs["first"] / "weights")))
    assert (done.stdout, done.returncode) == ("PASS\n", 0), done.stdout + done.stderr


def test_every_module_and_file_has_the_name(outs):
    for name, out in outs.items():
        text = (out / f"{name}_design.v").read_text()
        modules = [line.split()[1].split("(")[0] for line in text.splitlines() if line.startswith("module ")]
        assert len(modules) > 5 and all(module.startswith(f"{name}_") for module in modules), modules
        assert "hwflow_" not in text
        assert all(file.name.startswith(f"{name}_") for file in (out / "weights").iterdir())
    first, second = (json.loads((out / "manifest.json").read_text()) for out in outs.values())
    assert (first["top"], first["sources"], first["layers"]["top"]) == (
        "first_top", ["first_design.v"], "first_layers"
    )
    assert first["weights"] and second["weights"] == []


@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
def test_they_simulate_alone(outs, simulator):
    for out in outs.values():
        assert hwflow.simulate(out, frames=2, simulator=simulator).ok


def test_vendors_scripts_find_the_weights_elsewhere(outs, tmp_path):
    """The copy of the Verilog that they read has the weights' own place in it."""
    script = Path(vendor.__file__).with_name("settings_use.tcl")
    (tmp_path / "board").mkdir()
    shutil.copy(script, tmp_path / "board")
    (tmp_path / "board" / "settings.tcl").write_text("set design_sources {first_design.v}\n")
    shutil.copy(outs["first"] / "first_design.v", tmp_path)
    (tmp_path / "copy").mkdir()
    commands = f"source board/settings_use.tcl; copy_sources copy {outs['first']}/weights/"
    subprocess.run(["tclsh"], input=commands, text=True, cwd=tmp_path, check=True)
    sources = sources_of(outs, tmp_path, "nowhere")
    done = run_icarus(tmp_path, [sources[0], tmp_path / "copy" / "first_design.v", sources[2]])
    assert (done.stdout, done.returncode) == ("PASS\n", 0), done.stdout + done.stderr


@pytest.mark.parametrize(("damage", "said"), [("missing", "must exist"), ("short", "words, not")])
def test_a_damaged_file_of_weights_ends_a_simulation(outs, tmp_path, damage, said):
    """In Icarus, of either standard, which alone would go on with unknown words."""
    weights = tmp_path / "weights"
    shutil.copytree(outs["first"] / "weights", weights)
    victim = sorted(weights.iterdir())[0]
    if damage == "missing":
        victim.unlink()
    else:
        victim.write_text("".join(victim.read_text().splitlines(keepends=True)[:-1]))
    for standard in ("2005", "2012"):
        done = run_icarus(tmp_path, sources_of(outs, tmp_path, "weights"), standard)
        assert done.returncode == 1 and said in done.stdout and "PASS" not in done.stdout, done.stdout
        assert victim.name in done.stdout


def test_a_short_file_ends_a_simulation_in_verilator(outs, tmp_path):
    """Which has no unknown words: the rest of a table would be zeros."""
    out = tmp_path / "out"
    shutil.copytree(outs["first"], out)
    victim = sorted((out / "weights").iterdir())[0]
    victim.write_text("".join(victim.read_text().splitlines(keepends=True)[:-1]))
    accept_changes(out)
    with pytest.raises(hwflow.HwflowError, match="words, not"):
        hwflow.simulate(out, frames=2)


@pytest.mark.parametrize("name", ["1st", "a b", "module", "a__b", "", "x" * 61, "é"])
def test_a_name_that_is_no_identifier_is_refused(name, tmp_path):
    model = dense_network(tmp_path / "model.onnx", SIZES["first"])
    with pytest.raises(hwflow.HwflowError, match="must be a Verilog identifier of at most 60"):
        hwflow.compile(model, "ulx3s_85f", name=name)


def test_words_are_the_files(outs):
    """Inline words, read back from the Verilog, are those of the same design's files."""
    model = outs["second"].with_suffix(".onnx")
    other = outs["second"].parent / "files"
    hwflow.compile(model, "ulx3s_85f", fps=1000, name="second").write(other)
    text = (outs["second"] / "second_design.v").read_text()
    files = list((other / "weights").iterdir())
    assert files
    for file in files:
        module = text.split(f"module second_rom__{file.stem.removeprefix('second_')} ")[1].split("endmodule")[0]
        words = [int(line.split("'h")[1].rstrip(";"), 16) for line in module.splitlines() if "'h" in line]
        assert np.array_equal(words, [int(word, 16) for word in file.read_text().split()])
