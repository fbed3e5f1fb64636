"""Plain Verilog, in the test bench that comes with it."""

from __future__ import annotations

import json
import re
import shutil

import pytest

import hwflow
from hwflow.sim.manifest import load_design
from tests.exports.cores import FPS, run_icarus


@pytest.fixture(scope="module")
def exported(outs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("verilog")
    return {name: hwflow.export(out, "verilog", folder / name) for name, out in outs.items()}


def sources(done) -> list[str]:
    return [*(done.folder / f"{done.top}.f").read_text().split(), f"sim/{done.top}_tb.v"]


@pytest.mark.parametrize("name", FPS)
def test_golden_frames_pass_with_the_stated_latency(name, outs, exported):
    done = exported[name]
    ran = run_icarus(done.folder, f"{name}_tb", sources(done))
    latency = json.loads((outs[name] / "manifest.json").read_text())["timing"]["latency"] + 2
    assert (ran.returncode, ran.stdout) == (0, f"PASS: 4 frames, latency {latency} cycles\n"), ran.stdout
    assert f"| latency | {latency} cycles" in (done.folder / "README.md").read_text()


@pytest.mark.parametrize("name", FPS)
def test_golden_frames_pass_with_pauses(name, exported):
    ran = run_icarus(exported[name].folder, f"{name}_tb", sources(exported[name]), "+stall=40")
    assert ran.returncode == 0 and ran.stdout.startswith("PASS"), ran.stdout


def test_surplus_lanes_are_null_bytes(outs, exported):
    """As the manifest has it: 7 elements in beats of 4, 5 in beats of 2. Bits above tdata and tlast are tkeep."""
    for name, stream, keeps in (("narrow", "s_axis", [0b1111, 0b0111]), ("wide", "m_axis", [0b11, 0b11, 0b01])):
        design = load_design(outs[name])
        (port,) = (s for s in design.streams if s.port == stream)
        rows = (exported[name].folder / f"vectors/{name}_{stream}.mem").read_text().split()
        found = [int(row, 16) >> 8 * port.tdata_bytes + 1 for row in rows]
        assert found == keeps * 4


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("vectors/wide_m_axis.mem", lambda row: row ^ 1),  # an element
        ("vectors/wide_m_axis.mem", lambda row: row ^ 1 << 16),  # tlast
        ("vectors/wide_m_axis.mem", lambda row: row ^ 1 << 18),  # tkeep
        ("vectors/wide_s_axis.mem", lambda row: row ^ 1 << 56),  # an input frame without tlast
        ("vectors/wide_s_axis.mem", lambda row: row ^ 1 << 58),  # a beat that lacks a byte
    ],
)
def test_the_bench_finds_what_differs(exported, tmp_path, file, change):
    done = exported["wide"]
    shutil.copytree(done.folder, tmp_path / "copy")
    rows = (tmp_path / "copy" / file).read_text().split()
    rows[0] = f"{change(int(rows[0], 16)):x}"
    (tmp_path / "copy" / file).write_text("\n".join(rows) + "\n")
    ran = run_icarus(tmp_path / "copy", "wide_tb", sources(done))
    assert ran.returncode == 1 and "FAIL" in ran.stdout, ran.stdout


def test_both_are_in_one_project(exported, tmp_path):
    """All files in one place: no module and no file is there twice, and each bench passes."""
    names = [file for done in exported.values() for file in done.files if "/" in file]
    assert len(names) == len(set(names)) > 10
    for done in exported.values():
        shutil.copytree(done.folder, tmp_path, dirs_exist_ok=True)
    every = sorted({file for done in exported.values() for file in sources(done)})
    for name in FPS:
        ran = run_icarus(tmp_path, f"{name}_tb", every)
        assert ran.returncode == 0 and ran.stdout.startswith("PASS"), ran.stdout


def test_the_template_is_an_instance(exported, tmp_path):
    """It connects every port, in a module that has clock and reset."""
    done = exported["narrow"]
    template = (done.folder / "narrow_instance.v").read_text()
    top = (done.folder / "rtl" / "narrow.v").read_text().split("module narrow_axis_register")[0]
    declared = re.findall(r"^ +(?:input |output) wire (?:\[.*?\] )?(\w+)", top, re.MULTILINE)
    assert re.findall(r"^ +\.(\w+)\(", template, re.MULTILINE)[1:] == declared and len(declared) == 13
    inputs = [name for name in declared if name.startswith("s_axis") and name != "s_axis_tready"]
    driven = "".join(f"  assign narrow_{name} = 0;\n" for name in [*inputs, "m_axis_tready"])
    (tmp_path / "around.v").write_text(f"module around(input wire clk, rst);\n{template}{driven}endmodule\n")
    shutil.copytree(done.folder / "weights", tmp_path / "weights")
    files = [done.folder / file for file in (done.folder / "narrow.f").read_text().split()]
    ran = run_icarus(tmp_path, "around", [tmp_path / "around.v", *files])
    assert ran.returncode == 0, ran.stdout


def test_constraints_have_the_clock(exported):
    """125 MHz, the clock that the design was made for: 8 ns."""
    folder = exported["narrow"].folder / "constraints"
    clock = "create_clock -name clk -period 8.000 [get_ports clk]"
    assert clock in (folder / "narrow.sdc").read_text() and clock in (folder / "narrow.xdc").read_text()
    assert 'FREQUENCY PORT "clk" 125.000 MHZ;' in (folder / "narrow.lpf").read_text()


def test_aresetn(outs, tmp_path):
    done = hwflow.export(outs["wide"], "verilog", tmp_path / "wide", reset="aresetn")
    ran = run_icarus(done.folder, "wide_tb", sources(done), "+stall=20")
    assert ran.returncode == 0 and ran.stdout.startswith("PASS"), ran.stdout
    top = (done.folder / "rtl" / "wide.v").read_text()
    assert "input  wire aclk," in top and "input  wire aresetn," in top
