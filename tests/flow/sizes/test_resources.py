"""A whole design: what the report predicts against what synthesis made (digits and the iCEBreaker's design: beside
their other tests)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT.parent / "shared" / "bench"
SHARE = 0.10  # of what synthesis made: look-up tables and flip-flops; blocks are exact

NEEDS_BENCH = pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmark networks are not here")


@NEEDS_BENCH
def test_the_prediction_fits_synthesis(hwflow, tmp_path: Path) -> None:
    out = tmp_path / "out"
    model = BENCH / "jet_qdq.onnx"
    ran = hwflow("synth", model, "--board", "ulx3s_85f", "--fps", 300_000, "--until", "netlist", "-o", out)
    assert ran.code == 0, ran.err
    resources = json.loads((out / "report.json").read_text())["resources"]
    for name in ("dsp", "bram"):
        assert resources[name]["predicted"] == resources[name]["synthesized"] > 0, name
    for name in ("lut", "ff"):
        assert resources[name]["predicted"] == pytest.approx(resources[name]["synthesized"], rel=SHARE), name
