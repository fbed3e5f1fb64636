"""Vivado's script with stand-ins for Vivado's commands: what it packages, and that this is whole."""

from __future__ import annotations

import re
import shutil
import subprocess

import hwflow
from tests.exports.cores import run_icarus

STAND_INS = """
proc ipx::current_core {} { return core }
proc ipx::get_user_parameters {args} { return {} }
proc current_fileset {} { return sources_1 }
foreach command {
    create_project add_files set_property update_compile_order ipx::package_project ipx::associate_bus_interfaces
    ipx::create_xgui_files ipx::update_checksums ipx::check_integrity ipx::save_core close_project
} { proc $command {args} "puts \\"$command \\$args\\"" }
"""


def test_the_script_packages_the_core(outs, tmp_path):
    done = hwflow.export(outs["wide"], "vivado-ip", tmp_path / "wide")
    script = f"namespace eval ipx {{}}\n{STAND_INS}\nset argv0 x\ninfo script package_ip.tcl\nsource package_ip.tcl\n"
    ran = subprocess.run(
        ["tclsh"], input=script, cwd=done.folder, capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""
    called = ran.stdout.splitlines()
    assert "create_project -force package" in called[0] and called[0].endswith("-part xc7z020clg400-1")
    assert "set_property top wide sources_1" in called
    assert "ipx::associate_bus_interfaces -busif s_axis -clock aclk core" in called
    assert "ipx::associate_bus_interfaces -busif m_axis -clock aclk core" in called
    assert "ipx::associate_bus_interfaces -clock aclk -reset aresetn core" in called
    assert called[-2:] == ["ipx::save_core core", "close_project "]
    (added,) = (line for line in called if line.startswith("add_files"))
    packaged = done.folder / "ip" / "src"
    names = {path.rsplit("/")[-1] for path in re.findall(r"[^ {}]+", added)[2:]}
    assert {path.name for path in packaged.iterdir()} == names
    # The files work by themselves, in one folder: the bench of another export runs them there.
    bench = hwflow.export(outs["wide"], "verilog", tmp_path / "bench", reset="aresetn")
    shutil.copytree(bench.folder / "vectors", packaged / "vectors")
    ran = run_icarus(packaged, "wide_tb", [bench.folder / "sim/wide_tb.v", "wide.v", "wide_design.v"])
    assert ran.returncode == 0 and ran.stdout.startswith("PASS"), ran.stdout


def test_a_vivado_boards_part_is_its_own(tmp_path):
    from tests.flow.networks import dense_network

    model = dense_network(tmp_path / "model.onnx", (3, 2))
    hwflow.compile(model, "arty_a7_35", fps=1000, inline_weights=True).write(tmp_path / "out")
    done = hwflow.export(tmp_path / "out", "vivado-ip", tmp_path / "ip")
    settings = (done.folder / "settings.tcl").read_text()
    assert "set part {xc7a35ticsg324-1L}\n" in settings and "set weights {}\n" in settings
