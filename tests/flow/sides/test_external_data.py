"""A model whose tensors lie in a file beside it: compiled, and simulated from the output folder alone."""

from __future__ import annotations

import json
import shutil

import onnx
import pytest

from tests.flow.conftest import DIGITS


@pytest.fixture
def outside(tmp_path):
    """`digits` with every tensor in a file of its own folder; a link leads to it."""
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "digits.onnx"
    onnx.save(onnx.load(DIGITS), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    shutil.copyfile(DIGITS.parent / "inputs.npz", folder / "inputs.npz")
    (tmp_path / "data").mkdir()
    (folder / "w.bin").rename(tmp_path / "data" / "w.bin")
    (folder / "w.bin").symlink_to(tmp_path / "data" / "w.bin")
    return path


def test_from_the_model_to_the_simulation(hwflow, outside, tmp_path):
    out = tmp_path / "out"
    arguments = ("synth", outside, "--board", "ulx3s_85f", "--until", "verilog", "-o", out)
    ran = hwflow(*arguments)
    assert ran.code == 1
    assert "external data must not lie behind a link, but 'w.bin' is a symbolic link [EXT-02]" in ran.err
    assert "--trust" in ran.err and not out.exists()
    (tmp_path / "elsewhere").mkdir()
    trust = ("--trust", tmp_path / "elsewhere", "--trust", tmp_path / "data")
    assert hwflow("check", outside).code == 1
    assert hwflow("check", outside, *trust).code == 0
    assert hwflow("compare", outside, "--frames", 2, *trust).code == 0
    assert hwflow(*arguments, *trust).code == 0

    shutil.rmtree(tmp_path / "data")
    ran = hwflow("sim", out, "--simulator", "icarus", "--frames", 2, "--format", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["mismatches"] == 0


def test_simulating_the_model_itself(hwflow, outside, tmp_path):
    arguments = ("sim", outside, "--simulator", "icarus", "--frames", 1)
    assert hwflow(*arguments).code == 1
    assert hwflow(*arguments, "--trust", tmp_path / "data").code == 0
