"""A small dense network, all the way to a bitstream for the iCEBreaker, as fast as its link."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.flow.test_digits import lint
from tests.icebreaker import with_bitstream


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    made = with_bitstream(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made / "out", tmp_path_factory.mktemp("icebreaker") / "out"))


def test_a_bitstream_comes_out(built):
    report = json.loads((built / "report.json").read_text())
    assert report["clock"]["target_mhz"] == 36.0
    assert report["clock"]["fmax_mhz"] > 36.0
    assert report["model"]["macs"] == 12 * 8 + 8 * 4
    assert report["timing"]["frames_per_second"] == 36e6 / report["timing"]["initiation_interval"]
    dsp = report["resources"]["dsp"]
    assert 0 < dsp["synthesized"] == dsp["predicted"] <= dsp["available"] == 8
    assert report["resources"]["bram"]["synthesized"] == report["resources"]["bram"]["predicted"]
    for name in ("lut", "ff"):
        row = report["resources"][name]
        assert row["predicted"] == pytest.approx(row["synthesized"], rel=0.1), name
    assert all(report["seconds"][step] > 0 for step in ("import", "schedule", "verilog", "synthesis", "place_route"))
    assert (built / "board" / "top.bin").stat().st_size > 50_000
    assert {p.name for p in (built / "board").iterdir()} >= {"synthesis.log", "place_route.log", "pack.log", "build.sh"}


@pytest.mark.parametrize("options", [(), ("--stall", "0.3"), ("--simulator", "icarus")])
def test_it_computes_the_model(hwflow, built, options):
    ran = hwflow("sim", built, "--seed", 5, "--format", "json", *options)
    assert ran.code == 0, ran.err
    table = json.loads(ran.out)
    assert table["mismatches"] == 0
    assert table["frames"] == (4 if "icarus" in options else 16)  # no inputs.npz beside the model: random ones


def test_verilator_writes_a_waveform(hwflow, built, tmp_path):
    wave = tmp_path / "wave.vcd"
    ran = hwflow("sim", built, "--frames", 1, "--wave", wave)
    assert ran.code == 0, ran.err
    assert "initiation interval" not in ran.out  # one frame has none
    text = wave.read_text()
    assert "$enddefinitions" in text
    assert "dense0_mvu" in text and "m_axis_tvalid" in text


def test_inputs_of_ones_own(hwflow, built, tmp_path):
    """By name, and as `input`; values far outside what the quantizer tells apart saturate."""
    x = np.random.default_rng(3).normal(0, 10, (5, 12)).astype(np.float32)
    for name in ("x", "input"):
        np.savez(tmp_path / f"{name}.npz", **{name: x})
        ran = hwflow("sim", built, "--input", tmp_path / f"{name}.npz", "--format", "json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["frames"] == 5


def test_verilator_has_nothing_to_say(built):
    assert lint(built) == ""
