"""Layers in turn on an UP5K, whose RAM of a single port has the maps: weights in the other half of it, or in flash."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.cli import main
from tests.models import Builder


def separable(widths: tuple[int, ...], size: int, zero: int = 128, *, softmax: bool = False) -> Builder:
    """A convolution with a stride, pairs of a depthwise layer and one of single pixels, means and a dense layer, maybe
    a Softmax, of elements without a sign."""
    rng = np.random.default_rng(6)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, size, size]), 0.05, zero)
    before = 3

    def convolution(x: str, shape: tuple[int, ...], scale: float, **attributes) -> str:
        y = b.node("Conv", x, b.weights(rng.integers(-90, 91, shape), 0.004), **attributes)
        return b.requantize(b.node("Relu", y), scale, 0)

    for width in widths:
        if before == 3:
            x = convolution(x, (width, 3, 3, 3), 0.02, pads=[1, 1, 1, 1], strides=[2, 2])
        else:
            x = convolution(x, (before, 1, 3, 3), 0.02, pads=[1, 1, 1, 1], group=before)
            x = convolution(x, (width, before, 1, 1), 0.0217)
        before = width
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, 0))
    x = b.node("MatMul", x, b.weights(rng.integers(-90, 91, (before, 5)), 0.01))
    x = b.requantize(x, 0.05, zero)
    b.output(b.requantize(b.node("Softmax", x), 0.00390625, 0) if softmax else x)
    return b


CASES = {"spram": separable((16, 32, 44, 48), 24, softmax=True), "flash": separable((16, 128, 256, 200), 12, 131)}


@pytest.fixture(scope="module", params=list(CASES))
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many_cycles")
    path = CASES[request.param].save(folder)
    arguments = ["--board", "icebreaker", "--clock", "24", "--budget", "lut=100%,ff=100%,bram=100%"]
    assert main(["synth", str(path), *arguments, "--until", "verilog", "-o", str(folder / request.param)]) == 0
    return folder / request.param


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(out: Path, stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Layer by layer, too: both runs are of one program."""
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    assert memory["kind"] == out.name
    assert [engine["serial"] for engine in memory["engines"]] == [True]
    arguments = ["--layers", "--frames", "2", "--stall", stall, "--seed", "1", "--format", "json"]
    assert main(["sim", str(out), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    assert told["layers"] and told["first_difference"] is None
    if stall == "0":
        assert told["latency"] <= told["expected"]["latency"]
        report = json.loads((out / "report.json").read_text())
        assert told["initiation_interval"] <= report["timing"]["initiation_interval"]


def test_an_image_waits_while_another_one_is_computed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With weights in flash there is RAM left for images: they come over the link meanwhile. On a simulated board."""
    assert ("image_queue" in (out / "board" / "top.il").read_text()) == (out.name == "flash")
    if out.name == "flash":
        assert main(["run", str(out), "--simulated", "--frames", "4", "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["mismatches"] == 0
        report = json.loads((out / "report.json").read_text())
        assert told["statistics"]["cycles"] <= report["timing"]["initiation_interval"]
