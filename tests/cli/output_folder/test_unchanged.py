"""What is there already is not made again: the design, and each step behind it by itself."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from boards import find_board
from hwflow.api import made_from
from hwflow.toolchain import up_to_date
from hwflow.toolchain.up_to_date import UpToDate
from tests.cli import models
from tests.cli.refused.refusals import WRITING
from tests.icebreaker import OPTIONS, with_bitstream

DESIGN = [*WRITING.splitlines(), "writing the board's top"]
UNCHANGED = "  up to date: model, options and tools are unchanged (--force rebuilds)"


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A model with its bitstream, made in two goes."""
    return with_bitstream(tmp_path_factory.getbasetemp())


@pytest.fixture
def again(hwflow, built, tmp_path):
    """again(option, ...): the same command once more, on a copy."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)

    def run(*options):
        ran = hwflow("synth", "m.onnx", *OPTIONS, "-o", "out", *options)
        assert ran.code == 0, ran.err
        return ran

    return run


def times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("until", [(), ("--until", "bitstream"), ("--until", "netlist"), ("--until", "verilog")])
def test_an_unchanged_output_stays(again, tmp_path, until):
    before = times(tmp_path)
    ran = again(*until)
    assert (ran.err, ran.out.splitlines()[1]) == ("", UNCHANGED)
    assert times(tmp_path) == before
    table = json.loads(again(*until, "--format", "json").out)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert table.items() >= (report | {"unchanged": True, "findings": []}).items()


def test_a_bitstream_of_verilog_that_is_there(built):
    """Reading, scheduling and writing were done in the first go alone, and their seconds are those."""
    report = json.loads((built / "out" / "report.json").read_text())
    assert report["bitstream"] == "board/top.bin" and report["reused"] == []
    assert all(report["seconds"].values())


def test_other_frames_leave_netlist_and_bitstream(again, tmp_path):
    out = tmp_path / "out"
    bitstream = (out / "board" / "top.bin").read_bytes()
    seconds = json.loads((out / "report.json").read_text())["seconds"]
    np.savez(tmp_path / "inputs.npz", x=np.ones((2, 12), np.float32))
    ran = again()
    steps = ["synthesis: up to date", "registers: ", "place_route: up to date", "pack: up to date"]
    lines = ran.err.splitlines()
    assert len(lines) == len(DESIGN + steps) and all(map(str.startswith, lines, DESIGN + steps)), lines
    assert (out / "board" / "top.bin").read_bytes() == bitstream
    report = json.loads((out / "report.json").read_text())
    assert report["reused"] == ["synthesis", "place_route", "pack"]
    assert all(report["seconds"][step] == seconds[step] for step in ("synthesis", "place_route"))
    assert (out / "inputs.npz").is_file() and again().err == ""


@pytest.mark.parametrize(
    ("file", "done"),
    [
        ("board/top.bin", ["synthesis: up to date", "place_route: up to date", "pack: icepack"]),
        ("design.v", [*DESIGN, "synthesis: up to date", "place_route: up to date", "pack: up to date"]),
    ],
)
def test_a_file_that_was_changed(again, tmp_path, file, done):
    path = tmp_path / "out" / file
    before = path.read_bytes()
    path.write_bytes(before + b" ")
    lines = [line for line in again().err.splitlines() if not line.startswith("registers")]
    assert len(lines) == len(done) and all(map(str.startswith, lines, done)), lines
    assert path.read_bytes() == before
    assert again().err == ""


def test_what_else_was_changed(again, tmp_path, monkeypatch):
    """The model, an option, hwflow itself, or nothing with --force: all is made anew, and no old bitstream stays."""
    bitstream = tmp_path / "out" / "board" / "top.bin"
    verilog = ("--until", "verilog")
    assert again(*verilog, "--force").err.splitlines() == DESIGN
    assert not bitstream.exists() and again(*verilog).err == ""
    verilog += ("--clock", "21")
    assert again(*verilog).err.splitlines() == DESIGN
    models.relu(tmp_path / "m.onnx", ("N", 5))
    assert again(*verilog).err.splitlines() == DESIGN
    monkeypatch.setattr("hwflow.api.made_from.code_digest", lambda: "another")
    assert again(*verilog).err.splitlines() == DESIGN


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"files": {}, "request": 1}', '{"files": [1]}'])
def test_a_damaged_record_is_none(built, tmp_path, damage):
    out = tmp_path / "out"
    shutil.copytree(built / "out", out)
    asked = json.loads((out / made_from.FILE).read_text())["request"]["asked"]
    arguments = out, built / "m.onnx", asked, find_board("icebreaker")
    assert made_from.unchanged(*arguments) is not None
    for file in (made_from.FILE, up_to_date.FILE):
        (out / file).write_text(damage)
    assert made_from.unchanged(*arguments) is None
    assert UpToDate(out).facts("pack", [], []) is None
