"""Boards whose tools hwflow does not bring: what `synth` leaves, and what it says."""

from __future__ import annotations

import json

import pytest

from boards import find_board
from tests.cli import models
from tests.cli.refused.refusals import WRITING, error

NOTE = (
    "note: a bitstream for {board} needs {title}, and {tool} is not on PATH: "
    "out/board/build.sh makes it where that is installed\n"
)


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """No vendor's tools, whatever this machine has."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.mark.parametrize(
    ("board", "title", "tool"),
    [("arty_a7_35", "AMD Vivado", "vivado"), ("pynq_z1", "AMD Vivado", "vivado"),
     ("de10_nano", "Intel Quartus Prime", "quartus_sh")],
)
def test_the_project_is_left_and_the_tool_is_named(hwflow, tmp_path, board, title, tool):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", board, "-o", "out")
    assert ran.code == 0
    assert ran.err == f"{WRITING}writing the board's top\n{NOTE.format(board=board, title=title, tool=tool)}"
    assert f"their cost models were measured on ecp5, not on {find_board(board).part.family}\n" in ran.out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["board"] == board and report["clock"] == {"target_mhz": 100.0, "fmax_mhz": None}
    folder = tmp_path / "out" / "board"
    assert {"build.sh", "build.tcl", "settings.tcl"} <= {path.name for path in folder.iterdir()}
    assert (folder / "overlay.py").exists() == (board == "pynq_z1")


def test_a_bitstream_that_was_asked_for_needs_the_tool(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", "basys3", "-o", "out", "--until", "bitstream")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"{WRITING}writing the board's top\n" + error(
        "tool 'vivado'", "version must be 2019.2 or newer, not: none was found", "tool-present",
        "install AMD Vivado (the free edition does) and put it on PATH",
    )
    assert (tmp_path / "out" / "board" / "build.sh").exists()  # the project stays


def test_a_netlist_is_refused(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", "de10_nano", "-o", "out", "--until", "netlist")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == error(
        "option --until",
        "must be verilog or bitstream on de10_nano, not 'netlist': Intel Quartus Prime keeps its netlists",
        "known-step", "choose one, or leave the option out",
    )


def test_verilog_says_nothing_of_the_tool(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", "basys3", "-o", "out", "--until", "verilog")
    assert (ran.code, ran.err) == (0, f"{WRITING}writing the board's top\n")
