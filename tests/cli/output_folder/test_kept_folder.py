"""The output folder of `synth`: whole, or as it was."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from hwflow.api.output_folder import claimed
from hwflow.errors import UsageError
from tests.cli import models
from tests.cli.refused.refusals import DIGITS, WRITING, error, failing, refused, synth


def test_an_output_folder_that_cannot_be(hwflow, tmp_path):
    """Root may write anywhere, but not below a file, and not in /proc."""
    (tmp_path / "file").write_text("mine\n")

    def attempt(out: str, where: str, reason: str) -> None:
        ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", out)
        message = f"must be a folder that can be written, but {reason}"
        refused(
            ran, 2, error(f"output '{where}'", message, "output-folder", "choose another folder with -o"), before=""
        )

    attempt("file/below", f"{tmp_path}/file/below", f"'{tmp_path}/file' is a file")
    attempt("file", f"{tmp_path}/file", "it is a file")
    attempt("/proc/out", "/proc/out", "the system says: No such file or directory")
    attempt("x" * 300, f"{tmp_path}/{'x' * 300}", "the system says: File name too long")
    assert (tmp_path / "file").read_text() == "mine\n"


def test_a_folder_with_other_files_is_left_alone(hwflow, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("mine\n")
    ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", "thesis")
    message = "must be a new, an empty or an earlier output folder, not one with other files"
    remedy = "choose another folder with -o"
    refused(ran, 2, error(f"output '{tmp_path}/thesis'", message, "output-folder", remedy), before="")
    assert [p.name for p in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_an_earlier_output_stays_until_a_new_one_is_whole(hwflow, tmp_path, monkeypatch):
    models.relu(tmp_path / "good.onnx")
    models.unsupported(tmp_path / "bad.onnx")
    assert synth(hwflow, "good.onnx", board="icebreaker").code == 0
    before = snapshot(tmp_path)
    assert synth(hwflow, "bad.onnx").code == 1
    assert snapshot(tmp_path) == before
    for at in ("", "board/top.v"):  # the design's Verilog, the board's top
        with monkeypatch.context() as patch:
            patch.setattr("hwflow.api.output.YOSYS", failing(tmp_path.parent / f"{tmp_path.name}-tools", at))
            assert synth(hwflow, "good.onnx", board="ulx3s_12f").code == 3
        assert snapshot(tmp_path) == before
    assert synth(hwflow, "good.onnx", board="ulx3s_12f").code == 0  # and then it is replaced
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["board"] == "ulx3s_12f"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.onnx", "good.onnx", "out"]


def test_without_o_the_output_is_named_after_the_model(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    ran = hwflow("synth", "good.onnx", "--board", "icebreaker", "--until", "verilog")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "good on icebreaker (iCE40UP5K): build/good")
    assert (tmp_path / "build" / "good" / "design.v").is_file()


def test_a_link_stays_one(hwflow, tmp_path):
    """What it leads to is made, or replaced."""
    models.relu(tmp_path / "good.onnx")
    (tmp_path / "out").symlink_to("elsewhere/it")
    for board in ("icebreaker", "ulx3s_12f"):
        assert synth(hwflow, "good.onnx", board=board).code == 0
        assert (tmp_path / "out").is_symlink()
        manifest = tmp_path / "elsewhere" / "it" / "manifest.json"
        assert json.loads(manifest.read_text())["board"] == board
    assert os.listdir(tmp_path / "elsewhere") == ["it"]


def test_a_link_to_nowhere(hwflow, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    ran = hwflow("synth", DIGITS, "--board", "ulx3s_85f", "-o", "loop")
    message = "must be a folder that can be written, but it is a link that leads to itself"
    remedy = "choose another folder with -o"
    refused(ran, 2, error(f"output '{tmp_path}/loop'", message, "output-folder", remedy), before="")


def leftover(folder: Path, *names: str) -> Path:
    """A hidden folder with these folders in it, whose process has died."""
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text(name)
    (folder / "lock").write_text("1")
    return folder


HOLDER = """
import sys
from pathlib import Path
from hwflow.api.output_folder import claimed
with claimed(Path(sys.argv[1])):
    print("claimed", flush=True)
    sys.stdin.read()
"""


def test_what_dead_processes_left_is_swept_up(tmp_path):
    """And nothing else: what a living one is about, what others have made."""
    leftover(tmp_path / ".dead.hwflow", "new")
    leftover(tmp_path / ".replaced.hwflow", "new", "old")
    (tmp_path / "replaced").mkdir()
    leftover(tmp_path / ".between.hwflow", "new", "old")  # two renamings, and it died between them
    mine = leftover(tmp_path / ".mine.hwflow", "new", "notes")
    (tmp_path / ".link.hwflow").symlink_to(mine)
    holder = [sys.executable, "-c", HOLDER, str(tmp_path / "alive")]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        assert living.stdout.readline() == "claimed\n"
        with claimed(tmp_path / "out"), pytest.raises(UsageError) as busy, claimed(tmp_path / "alive"):
            raise AssertionError
        there = {p.name for p in tmp_path.iterdir()}
        assert there == {"replaced", "between", ".mine.hwflow", ".link.hwflow", ".alive.hwflow"}
        who = f"must be written by one command at a time, not while another writes it (process {living.pid})"
        assert busy.value.findings[0].message == who
        living.kill()
    assert (tmp_path / "between" / "file").read_text() == "old"
    with claimed(tmp_path / "out"):
        assert not (tmp_path / ".alive.hwflow").exists()
    assert sorted(os.listdir(mine)) == ["lock", "new", "notes"]


def test_an_output_that_is_being_written(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    with claimed(tmp_path / "out"):
        ran = synth(hwflow, "good.onnx", board="icebreaker")
    message = f"must be written by one command at a time, not while another writes it (process {os.getpid()})"
    remedy = "wait for its end, or choose another folder with -o"
    refused(ran, 2, error(f"output '{tmp_path}/out'", message, "output-folder", remedy), before="")


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("at", ["hwflow.api.output.write_testbench", "hwflow.api.output.write_json", "yosys"])
def test_no_space_left(hwflow, tmp_path, monkeypatch, at):
    """In the compiler, or in a tool."""
    models.relu(tmp_path / "good.onnx")
    if at == "yosys":
        tool = failing(tmp_path.parent / f"{tmp_path.name}-tools")
        program = Path(tool.candidates[0]()[0][0])
        program.write_text(program.read_text().replace("out of paper", FULL.strerror))
        monkeypatch.setattr("hwflow.api.output.YOSYS", tool)
    else:
        monkeypatch.setattr(at, Mock(side_effect=FULL))
    ran = synth(hwflow, "good.onnx", board="icebreaker")
    assert (ran.code, ran.out) == (3, "")
    assert f"error: folder '{tmp_path}/out': must have room for all that is written, at least " in ran.err
    assert "are free [output-space]\n  remedy: make room, or choose a folder of another disk with -o\n" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["good.onnx"]


@pytest.mark.parametrize("frames", [1, 3])
def test_few_frames_beside_the_model(hwflow, tmp_path, frames):
    """The test bench takes what there is."""
    models.relu(tmp_path / "good.onnx")
    np.savez(tmp_path / "inputs.npz", x=np.ones((frames, 4), np.float32))
    assert synth(hwflow, "good.onnx", board="icebreaker").code == 0
    vectors = np.load(tmp_path / "out" / "testbench" / "vectors.npz")
    assert {len(vectors[name]) for name in vectors.files} == {frames}
    ran = hwflow("sim", "out", "--format", "json")
    table = json.loads(ran.out)
    assert (ran.code, table["frames"], table["mismatches"]) == (0, frames, 0)
    assert (table["initiation_interval"] is None) == (frames == 1)


def test_no_frames_beside_the_model(hwflow, tmp_path):
    models.relu(tmp_path / "good.onnx")
    np.savez(tmp_path / "inputs.npz", x=np.ones((0, 4), np.float32))
    text = error("inputs 'inputs.npz'", "'x' must hold at least 1 frame, not 0", "inputs-file", "add frames")
    refused(synth(hwflow, "good.onnx", board="icebreaker"), 2, text, before=WRITING)
