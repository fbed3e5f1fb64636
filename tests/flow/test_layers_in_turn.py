"""Layers in turn on one engine where block RAM has room for nothing else: simulated beside the model of the memory that
checks its timing, and no later than predicted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import compile
from hwflow.cli import main
from tests.models import Builder

HEADED = "bram=40,lut=7500,ff=9000,dsp=24"
BUDGET = "bram=20,lut=9000,ff=9000,dsp=24"
NARROW = "bram=23,lut=9000,ff=9000,dsp=24"
ROOMY = "bram=30,lut=7500,ff=9500,dsp=44"


def deep(outputs: int = 10, blocks: int = 2, *, quantized: bool = True) -> Builder:
    """An image made larger between its pixels, which is no layer of an engine; convolutions of 32 channels around a
    pool, a table behind one of them, with weights of 43 KB, 18 KB more with each further one of ``blocks``, and maps of
    18 KB; maybe two that are joined, and a dense layer that is quantized."""
    rng = np.random.default_rng(4)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 4, 12, 12]), 0.05, 128)
    x = b.node("Resize", x, "", b.constant([1, 1, 2, 2]), mode="linear", coordinate_transformation_mode="asymmetric")
    x = b.requantize(x, 0.05, 128)

    def convolution(x: str, shape: tuple[int, ...], scale: float, **attributes) -> str:
        return b.node("Conv", x, b.weights(rng.integers(-90, 91, shape), scale), pads=[1, 1, 1, 1], **attributes)

    x = b.requantize(convolution(x, (32, 4, 3, 3), 0.0021), 0.0513, 128)
    x = b.requantize(b.node("HardSwish", x), 0.0313, 12)
    x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for _ in range(blocks):
        y = b.requantize(b.node("Relu", convolution(x, (32, 32, 3, 3), 0.0013)), 0.0417, 0)
        y = b.requantize(convolution(y, (32, 32, 3, 3), 0.0011), 0.0311, 128)
        x = b.requantize(b.node("Relu", b.node("Add", y, x)), 0.0613, 0)
    if quantized:
        y = b.requantize(convolution(x, (10, 32, 3, 3), 0.0011), 0.0511, 30)
        x = b.node("Concat", y, b.requantize(convolution(y, (22, 10, 3, 3), 0.0021), 0.0417, 128), axis=1)
        x = b.requantize(x, 0.0613, 99)
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0217, 0))
    x = b.node("MatMul", x, b.weights(rng.integers(-90, 91, (32, outputs)), 0.01))
    b.output(b.requantize(x, 0.11, 128) if quantized else x)
    return b


def headed(outputs: int = 6000, tail: int = 0) -> Builder:
    """Convolutions with weights of four bits, the first one's map enlarged, the last ones, which wait for their
    weights, on 2 x 2 pixels, and a dense layer of eight bits."""
    rng = np.random.default_rng(7)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 4, 8, 8]), 0.05, 128)
    for channels in (4, *[32] * 8):
        y = b.node("Conv", x, b.weights(rng.integers(-7, 8, (32, channels, 3, 3)), 0.0163), pads=[1, 1, 1, 1])
        x = b.requantize(b.node("Relu", y), 0.0417, 0)
        if channels == 4:
            x = b.node("Resize", x, "", b.constant([1, 1, 2, 2]), coordinate_transformation_mode="asymmetric")
    for number in range(tail):
        shape = (64, 64 if number else 32, 3, 3)
        stride = [1, 1] if number else [8, 8]
        y = b.node("Conv", x, b.weights(rng.integers(-7, 8, shape), 0.0097), pads=[1, 1, 1, 1], strides=stride)
        x = b.requantize(b.node("Relu", y), 0.0417, 0)
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0217, 0))
    weights = b.weights(rng.integers(-90, 91, (64 if tail else 32, outputs)), 0.01)
    b.output(b.requantize(b.node("MatMul", x, weights), 0.11, 128))
    return b


def wide() -> Builder:
    """Two residual blocks of 32 channels on 28 x 28 pixels (25 KB), of which there is room for a half; one with a
    stride, and one on 14 x 14. A convolution in front steps over two pixels of the image, which share a word."""
    rng = np.random.default_rng(4)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 1, 56, 56]), 0.05, 117)

    def convolution(x: str, shape: tuple[int, ...], scale: float, zero: int, stride: int = 1) -> str:
        weights = b.weights(rng.integers(-90, 91, shape), 0.02 / np.sqrt(np.prod(shape[1:])))
        y = b.node("Conv", x, weights, pads=[shape[2] // 2] * 4, strides=[stride] * 2)
        return b.requantize(y if zero else b.node("Relu", y), scale, zero)

    x = convolution(x, (32, 1, 3, 3), 0.0213, 0, 2)
    for stride in (1, 1, 2, 1):
        y = convolution(x, (16, 32, 1, 1), 0.0213, 0)
        y = convolution(y, (16, 16, 3, 3), 0.0213, 0, stride)
        y = convolution(y, (32, 16, 1, 1), 0.0311, 128)
        x = x if stride == 1 else convolution(x, (32, 32, 1, 1), 0.0297, 128, stride)
        x = b.requantize(b.node("Relu", b.node("Add", y, x)), 0.0413, 0)
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, 0))
    b.output(b.requantize(b.node("MatMul", x, b.weights(rng.integers(-90, 91, (32, 10)), 0.01)), 0.11, 128))
    return b


def inverted() -> Builder:
    """A pool behind a convolution, then five inverted residual blocks of 24 channels, depthwise layers of 48 (the third
    one with a stride, and without a sum) on 28 x 28 pixels; all weights in four bits, also those of means."""
    rng = np.random.default_rng(5)
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3, 56, 56]), 0.05, 117)

    def convolution(x: str, shape: tuple[int, ...], scale: float, zero: int, stride: int = 1, group: int = 1) -> str:
        weights = b.weights(rng.integers(-8, 8, shape), 0.25 / np.sqrt(np.prod(shape[1:])))
        y = b.node("Conv", x, weights, pads=[shape[2] // 2] * 4, strides=[stride] * 2, group=group)
        return b.requantize(y if zero else b.node("Relu", y), scale, zero)

    x = convolution(x, (24, 3, 3, 3), 0.0213, 0)
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stride in (1, 1, 2, 1, 1):
        y = convolution(x, (48, 24, 1, 1), 0.0213, 0)
        y = convolution(y, (48, 1, 3, 3), 0.0213, 0, stride, group=48)
        y = convolution(y, (24, 48, 1, 1), 0.0311, 128)
        x = b.requantize(b.node("Add", y, x), 0.0413, 128) if stride == 1 else y
    x = convolution(x, (24, 24, 3, 3), 0.0213, 0)
    x = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", x), 0.0117, 0))
    b.output(b.requantize(b.node("MatMul", x, b.weights(rng.integers(-8, 8, (24, 10)), 0.1)), 0.11, 128))
    return b


DESIGNS = {
    "deep": (deep, "ulx3s_85f", "100", BUDGET),
    "wide": (wide, "ulx3s_85f", "80", NARROW),
    "wide, words of 32 bits": (wide, "colorlight_i5", "80", NARROW),
    "inverted, four_bits": (inverted, "ulx3s_85f", "80", ROOMY),
}


@pytest.fixture(scope="module", params=DESIGNS)
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many_cycles")
    network, board, clock, budget = DESIGNS[request.param]
    path = network().save(folder)
    arguments = ["--board", board, "--clock", clock, "--budget", budget, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.mark.parametrize("stall", ["0", "0.4"])
def test_simulated(out: Path, stall: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Layer by layer, too: both runs are of one program."""
    arguments = ["--layers", "--frames", "2", "--stall", stall, "--seed", "1", "--format", "json"]
    assert main(["sim", str(out), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mismatches"] == 0
    assert told["layers"] and told["first_difference"] is None
    if stall == "0":
        report = json.loads((out / "report.json").read_text())
        assert told["latency"] <= told["expected"]["latency"]
        assert told["initiation_interval"] <= report["timing"]["initiation_interval"]


@pytest.mark.parametrize("out", ["deep"], indirect=True)
def test_what_is_said_of_it(out: Path) -> None:
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    (engine,) = memory["engines"]
    assert engine["layers"] == 12
    assert engine["lanes"] ** 2 <= 24
    report = json.loads((out / "report.json").read_text())
    assert not report["timing"]["exact"]
    assert report["resources"]["bram"]["predicted"] <= 20


@pytest.mark.parametrize("out", ["wide", "wide, words of 32 bits"], indirect=True)
def test_maps_that_wait_in_the_memory(out: Path) -> None:
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    (engine,) = memory["engines"]
    assert engine["outside"]
    assert engine["words"] * engine["lanes"] < 28 * 28 * 32
    # Weights lie there once, however often they are fetched.
    (region,) = memory["regions"]
    assert 2 * memory["words"] < region["words"]
    report = json.loads((out / "report.json").read_text())
    assert report["resources"]["bram"]["predicted"] <= 23
    assert "pixels_before" in (out / "design.v").read_text()


@pytest.mark.parametrize("out", ["inverted, four_bits"], indirect=True)
def test_weights_of_four_bits(out: Path) -> None:
    """64 products in 32 multiplier blocks, beside those of quantizers; windows of both rows that share blocks slide."""
    manifest = json.loads((out / "manifest.json").read_text())
    (engine,) = manifest["memory"]["engines"]
    assert (engine["lanes"], engine["soft"], engine["layers"]) == (8, 0, 19)  # the last one is beside it
    assert engine["outside"]
    report = json.loads((out / "report.json").read_text())
    assert 32 < report["resources"]["dsp"]["predicted"] <= 44
    assert "kept_words" in (out / "design.v").read_text()


def test_only_where_nothing_else_fits_or_it_is_faster(tmp_path: Path) -> None:
    path = deep().save(tmp_path)
    roomy = compile(path, "ulx3s_85f", clock_mhz=100)
    assert not any(node.op == "layer_engine" for node in roomy.schedule.graph.nodes)


def test_a_large_last_layer_beside_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An engine would wait for its weights. They come while it computes the next frame's other layers, in bursts half
    as long as its own."""
    path = headed().save(tmp_path)
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", HEADED, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(tmp_path / "out")]) == 0
    memory = json.loads((tmp_path / "out" / "manifest.json").read_text())["memory"]
    assert [engine["layers"] for engine in memory["engines"]] == [11]
    first, last = (region["burst"] for region in memory["regions"])
    assert (first, last) == (252, 128)  # 252 of the longest, 255, since as many bursts have all words
    capsys.readouterr()
    assert main(["sim", str(tmp_path / "out"), "--frames", "3", "--layers"]) == 0
    assert "layers equal the golden model" in capsys.readouterr().out


def test_what_follows_the_engine_is_done_before_its_last_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """These wait for their weights, and have the memory for themselves, as the dense layer behind the engine has had
    its own: were these to come at any time, there would be 356,791 cycles from frame to frame."""
    path, out = headed(1000, 6).save(tmp_path), tmp_path / "out"
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", ROOMY, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert [engine["layers"] for engine in manifest["memory"]["engines"]] == [17]
    assert len(manifest["memory"]["regions"]) == 2
    assert manifest["timing"]["initiation_interval"] < 352_000
    capsys.readouterr()
    assert main(["sim", str(out), "--frames", "5"]) == 0  # the last one no later than said
    assert "equal" in capsys.readouterr().out


def test_a_dense_layer_beside_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sums that leave as they are: no layer of an engine, but their weights come from the same memory."""
    path, out = deep(300, 3, quantized=False).save(tmp_path), tmp_path / "many_cycles"
    arguments = ["--board", "ulx3s_85f", "--clock", "100", "--budget", BUDGET, "--until", "verilog"]
    assert main(["synth", str(path), *arguments, "-o", str(out)]) == 0
    memory = json.loads((out / "manifest.json").read_text())["memory"]
    assert [engine["layers"] for engine in memory["engines"]] == [9]
    assert list(memory["groups"].values()) == [1]
    assert len(memory["regions"]) == 2
    capsys.readouterr()
    assert main(["sim", str(out), "--frames", "1", "--layers"]) == 0
    assert "layers equal the golden model" in capsys.readouterr().out
