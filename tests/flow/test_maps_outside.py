"""Maps of an engine that wait in memory outside, where block RAM has room for a few rows of each: simulated beside the
model of the memory that checks its timing, and no later than predicted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.cli import main
from tests.models import Builder

BUDGET = "bram=23,lut=9000,ff=9000,dsp=24"


def wide() -> Builder:
    """Two residual blocks of 32 channels on 28 x 28 pixels (25 KB), of which there is room for a half; one with a
    stride, and one on 14 x 14."""
    rng = np.random.default_rng(4)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 28, 28]), 0.05, 128)

    def convolution(x: str, shape: tuple[int, ...], scale: float, zero: int, stride: int = 1) -> str:
        weights = b.weights(rng.integers(-90, 91, shape), 0.02 / np.sqrt(np.prod(shape[1:])))
        y = b.node("Conv", x, weights, pads=[shape[2] // 2] * 4, strides=[stride] * 2)
        return b.requantize(y if zero else b.node("Relu", y), scale, zero)

    x = convolution(x, (32, 3, 3, 3), 0.0213, 0)
    for stride in (1, 1, 2, 1):
        y = convolution(x, (16, 32, 1, 1), 0.0213, 0)
        y = convolution(y, (16, 16, 3, 3), 0.0213, 0, stride)
        y = convolution(y, (32, 16, 1, 1), 0.0311, 128)
        x = x if stride == 1 else convolution(x, (32, 32, 1, 1), 0.0297, 128, stride)
        x = b.requantize(b.node("Relu", b.node("Add", y, x)), 0.0413, 0)
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, 0))
    b.output(b.requantize(b.node("MatMul", x, b.weights(rng.integers(-90, 91, (32, 10)), 0.01)), 0.11, 128))
    return b


@pytest.fixture(scope="module", params=["ulx3s_85f", "colorlight_i5"])
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside memories with words of 16 and of 32 bits."""
    folder = tmp_path_factory.mktemp("maps")
    path = wide().save(folder)
    arguments = ["--board", request.param, "--clock", "80", "--budget", BUDGET, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(out: Path, stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", str(out), "--frames", "2", "--stall", stall, "--seed", "1", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    if stall == "0":
        report = json.loads((out / "report.json").read_text())
        assert told["latency"] <= told["expected"]["latency"]
        assert told["initiation_interval"] <= report["timing"]["initiation_interval"]


def test_layer_by_layer(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", str(out), "--frames", "1", "--layers"]) == 0
    assert "layers equal the golden model" in capsys.readouterr().out


def test_what_is_said_of_it(out: Path) -> None:
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    (engine,) = memory["engines"]
    assert engine["outside"]
    assert engine["words"] * engine["lanes"] < 28 * 28 * 32
    # Weights lie there once, however often they are fetched.
    (region,) = memory["regions"]
    assert 2 * memory["words"] < region["words"]
    report = json.loads((out / "report.json").read_text())
    assert report["resources"]["bram"]["predicted"] <= 23
