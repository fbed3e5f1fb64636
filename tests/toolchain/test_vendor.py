"""Projects for vendors' tools: what is in them, that the scripts are whole, and a run with a stand-in for the tool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from boards import find_board
from hwflow.api.request import check_until
from hwflow.codegen.board.board_files import write_board
from hwflow.errors import ToolError, UsageError
from hwflow.toolchain.build import build, write_top_verilog, write_vendor_project
from tests.codegen.plus_one import emit

NOTHING = "/usr/bin:/bin"  # a PATH without vendors' tools


def project(out: Path, board: str) -> Path:
    """The board's folder of the smallest design."""
    emit(out)
    write_board(out, find_board(board), 80)
    write_top_verilog(out)
    write_vendor_project(out)
    return out / "board"


@pytest.fixture(scope="module")
def arty(tmp_path_factory) -> Path:
    return project(tmp_path_factory.mktemp("arty") / "out", "arty_a7_35")


@pytest.fixture(scope="module")
def zynq(tmp_path_factory) -> Path:
    return project(tmp_path_factory.mktemp("zynq") / "out", "pynq_z1")


@pytest.fixture(scope="module")
def cyclone(tmp_path_factory) -> Path:
    return project(tmp_path_factory.mktemp("cyclone") / "out", "de10_nano")


def settings(folder: Path) -> dict[str, str]:
    return dict(re.findall(r"^set (\w+) \{(.*)\}$", (folder / "settings.tcl").read_text(), re.MULTILINE))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix not in (".log", ".il")}


def test_a_project_for_vivado(arty):
    assert names(arty) == {
        "board.json", "build.sh", "build.tcl", "settings.tcl", "settings_use.tcl", "simulation", "simulation.v",
        "top.v", "top.xdc", "vivado_report.tcl",
    }
    assert settings(arty) == {
        "part": "xc7a35ticsg324-1L", "top": "top", "mhz": "80.000000", "design_sources": "design.v",
        "weights": "weights/increment.mem",
    }
    pins = (arty / "top.xdc").read_text()
    # Digilent's Arty A7 reference manual: oscillator E3, serial port A9 (in) and D10 (out)
    for pin, port in (("E3", "clk100_0__io"), ("A9", "uart_0__rx__io"), ("D10", "uart_0__tx__io")):
        assert f'set_property LOC {pin} [get_ports "{port}"]' in pins
    assert "create_clock -name clk100_0__io -period 10.0" in pins
    top = (arty / "top.v").read_text()
    assert "PLLE2_BASE #(" in top and "\\" not in top and "ASYNC_REG" in top


def test_a_project_for_quartus(cyclone):
    assert names(cyclone) == {
        "board.json", "build.sh", "build.tcl", "settings.tcl", "settings_use.tcl", "simulation", "simulation.v",
        "top.v", "top.qsf", "top.sdc",
    }
    pins = (cyclone / "top.qsf").read_text().splitlines()
    assert "set_global_assignment -name DEVICE 5CSEBA6U23I7" in pins
    # Terasic's DE10-Nano user manual: FPGA_CLK1_50 V11, ARDUINO_IO0 AG13, ARDUINO_IO1 AF13
    for pin, port in (("V11", "clk50_0__io"), ("AG13", "uart_0__rx__io"), ("AF13", "uart_0__tx__io")):
        assert f'set_location_assignment -to "{port}" PIN_{pin}' in pins
    assert not any("VERILOG_FILE" in line for line in pins)
    clocks = (cyclone / "top.sdc").read_text().splitlines()
    assert clocks[0].startswith('create_clock -name "clk50_0__io" -period 20.0 [get_ports')
    assert clocks[1:] == ["derive_pll_clocks", "derive_clock_uncertainty"]


def test_a_project_for_a_zynq(zynq):
    assert names(zynq) == {
        "board.json", "build.sh", "build.tcl", "hwflow_axis.v", "package_ip.tcl", "settings.tcl", "settings_use.tcl",
        "vivado_report.tcl",
    }
    assert settings(zynq) == {
        "part": "xc7z020clg400-1", "top": "hwflow_axis", "mhz": "76.923077", "design_sources": "design.v",
        "weights": "weights/increment.mem", "board_part": "www.digilentinc.com:pynq-z1:part0:1.0", "crystal_mhz": "50",
        "input_beat": "1", "output_beat": "1",
    }
    verilog = (zynq / "hwflow_axis.v").read_text()
    assert "module hwflow_axis(" in verilog and "\\" not in verilog
    assert "ipx::package_project" in (zynq / "package_ip.tcl").read_text()


def words(text: str) -> list[str]:
    """The commands of a Tcl script, as far as braces, brackets and quotes tell: raises if one stays open."""
    text = re.sub(r"(?m)^\s*#.*$", "", text).replace("\\\n", " ")
    opened: list[str] = []
    commands, start = [], 0
    for at, letter in enumerate(text):
        if letter in "{[":
            opened.append(letter)
        elif letter in "}]":
            if not opened or opened.pop() + letter not in ("{}", "[]"):
                raise ValueError(f"unbalanced: {text[start:at + 1]}")
        elif letter == "\n" and not opened:
            commands.append(text[start:at].strip())
            start = at + 1
    if opened or text[start:].strip():
        raise ValueError(f"open at the end: {text[start:]}")
    return [command for command in commands if command]


def test_the_scripts_are_whole(arty, zynq, cyclone):
    with pytest.raises(ValueError, match="open at the end"):
        words("proc a {} {\n")
    with pytest.raises(ValueError, match="unbalanced"):
        words("a [b}\n")
    for folder in (arty, zynq, cyclone):
        for script in folder.glob("*.tcl"):
            assert words(script.read_text())
            sourced = re.findall(r"source \[file join .*?(\w+\.tcl)\]", script.read_text())
            assert all((folder / name).exists() for name in sourced)


def test_a_zynqs_system_is_connected_wholly(zynq):
    """By hand: every clock, reset and interface of the six blocks once."""
    overlay = (zynq / "build.tcl").read_text()
    made = re.findall(r"\[block (\w+) ", overlay)
    assert sorted(made) == ["control", "core", "dma", "memory", "ps", "reset"]
    pins = re.findall(r"\b((?:control|core|dma|memory|ps|reset)/\w+)", overlay)
    sources = ["ps/FCLK_CLK0", "ps/FCLK_RESET0_N", "reset/peripheral_aresetn"]
    assert sorted(pins) == sorted(
        [
            "ps/M_AXI_GP0", "control/S00_AXI", "control/M00_AXI", "dma/S_AXI_LITE", "dma/M_AXI_MM2S", "memory/S00_AXI",
            "dma/M_AXI_S2MM", "memory/S01_AXI", "memory/M00_AXI", "ps/S_AXI_HP0", "dma/M_AXIS_MM2S", "core/s_axis",
            "core/m_axis", "dma/S_AXIS_S2MM", "ps/M_AXI_GP0_ACLK", "ps/S_AXI_HP0_ACLK", "control/aclk", "memory/aclk",
            "core/aclk", "reset/slowest_sync_clk", "dma/s_axi_lite_aclk", "dma/m_axi_mm2s_aclk", "dma/m_axi_s2mm_aclk",
            "reset/ext_reset_in", "control/aresetn", "memory/aresetn", "core/aresetn", "dma/axi_resetn", *sources,
        ]
    )


def stand_in(folder: Path, name: str, version: str, work: str) -> Path:
    """A program that knows its version and does ``work``."""
    folder.mkdir()
    program = folder / name
    program.write_text(f'#!/bin/sh\ncase "$1" in -version|--version) echo "{version}"; exit 0;; esac\n{work}\n')
    program.chmod(0o755)
    return program


SAYS = 'echo "$@" >calls; echo made >top.bit; echo \'{"slack_ns": -2.5, "lut": 7, "ff": 13, "dsp": 0, "bram": 0}\''


def test_the_tool_is_run_where_it_is(arty, tmp_path, monkeypatch):
    stand_in(tmp_path / "bin", "vivado", "vivado v2023.2 (64-bit)", f"{SAYS} >report.json")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{NOTHING}")
    lines: list[str] = []
    result = build(arty.parent, progress=lines.append)
    assert lines == ["bitstream: vivado 2023.2"]
    assert (arty / "calls").read_text() == "-mode batch -nojournal -log vivado.log -source build.tcl\n"
    assert result.bitstream == arty / "top.bit" and result.netlist is None
    # 80 MHz are 12.5 ns; 2.5 ns too long is 15 ns
    assert result.design_clock_mhz == 80 and result.fmax_mhz == pytest.approx(1000 / 15) and result.timing_met is False
    assert result.design_resources == {"lut": 7, "ff": 13, "dsp": 0, "bram": 0}


def test_the_script_runs_the_tool(arty, tmp_path):
    program = stand_in(tmp_path / "bin", "vivado", "", SAYS)
    subprocess.run(["sh", str(arty / "build.sh")], env={"PATH": NOTHING, "VIVADO": str(program)}, check=True, cwd="/")
    assert (arty / "calls").read_text() == "-mode batch -nojournal -log vivado.log -source build.tcl\n"


def test_a_missing_tool_is_named(cyclone, monkeypatch):
    monkeypatch.setenv("PATH", NOTHING)
    with pytest.raises(ToolError) as error:
        build(cyclone.parent)
    assert str(error.value) == (
        "error: tool 'quartus_sh': version must be 18.0 or newer, not: none was found [tool-present]\n"
        "  remedy: install Intel Quartus Prime (the Lite edition does) and put it on PATH"
    )


def test_a_tool_that_makes_nothing_failed(cyclone, tmp_path, monkeypatch):
    stand_in(tmp_path / "bin", "quartus_sh", "Version 22.1std.0 Build 915", "echo Error: out of paper")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{NOTHING}")
    with pytest.raises(ToolError) as error:
        build(cyclone.parent)
    assert str(error.value) == (
        f"error: bitstream (quartus_sh): top.sof must be written, not missing (log: {cyclone}/build.log) "
        "[tool-output]\n"
        "    Error: out of paper\n"
        "  remedy: read the log; if the design does not fit, ask for fewer frames per second (--fps)"
    )


def test_a_vendors_tool_has_no_netlist_to_stop_at():
    check_until("netlist", find_board("ulx3s_85f"))
    with pytest.raises(UsageError) as error:
        check_until("netlist", find_board("basys3"))
    assert str(error.value) == (
        "error: option --until: must be verilog or bitstream on basys3, not 'netlist': AMD Vivado keeps its netlists "
        "[known-step]\n"
        "  remedy: choose one, or leave the option out"
    )
