"""`sim --weights` and `compare --weights`, and what does not fit the hardware."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hwflow
from hwflow.cli import main
from tests.loading.networks import network, separable
from tests.models import Builder
from tests.quantization.test_recurrent_networks import classifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("weights")
    network(made, 0, name="one.onnx")
    network(made, 1, 0.0191, 2.5, name="other.onnx")
    network(made, 1, 0.5, name="coarse.onnx")
    network(made, 1, 0.0191, side=6, name="larger.onnx")
    return synthesized(made, "--fps", "100000")


@pytest.mark.parametrize("stall", ["0", "0.3"])
def test_simulated(folder, capsys, stall: str) -> None:
    found = told(folder, "sim", "other.onnx", capsys, "--frames", "3", "--stall", stall)
    size = json.loads((folder / "out/manifest.json").read_text())["load"]["bytes"]
    assert (found["frames"], found["mismatches"], found["verdict"]) == (3 + 3, 0, "equal")
    assert (found["load"]["frames"], found["load"]["bytes"]) == (3, size)
    assert size < found["load"]["cycles"]


def test_compared(folder, capsys) -> None:
    assert told(folder, "compare", "other.onnx", capsys, "--frames", "3")["unexplained"] == 0


@pytest.mark.parametrize(("name", "code", "text"), [
    ("coarse.onnx", 1, "must be a multiplication by at most"),
    ("larger.onnx", 1, "input 'x': must have shape [2, 5, 5], not [2, 6, 6]"),
    ("missing.onnx", 2, "missing.onnx"),
])
def test_what_does_not_fit(folder, capsys, name: str, code: int, text: str) -> None:
    assert main(["sim", str(folder / "out"), "--weights", str(folder / name)]) == code
    assert text in capsys.readouterr().err


def synthesized(folder: Path, *options: str) -> Path:
    """Make the design of one.onnx with everything loaded; return ``folder``."""
    args = ["--board", "ulx3s_12f", *options, "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(folder / "one.onnx"), *args, "-o", str(folder / "out")]) == 0
    return folder


def told(folder: Path, command: str, other: str, capsys, *options: str) -> Any:
    """Run a command on the design with other weights; return what it tells."""
    capsys.readouterr()
    weights = ["--weights", str(folder / other), "--seed", "1", "--format", "json"]
    assert main([command, str(folder / "out"), *weights, *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def depthwise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("depthwise")
    separable(made, 0, name="one.onnx")
    separable(made, 1, 0.5, name="other.onnx")
    return synthesized(made, "--fps", "40000")


@pytest.mark.parametrize("stall", ["0", "0.3"])
def test_depthwise_ties_and_an_output_of_sums(depthwise, capsys, stall: str) -> None:
    """Every layer is loaded: other weights, and scales twice as large that are powers of two as well."""
    assert len(json.loads((depthwise / "out/manifest.json").read_text())["load"]["memories"]) == 6
    found = told(depthwise, "sim", "other.onnx", capsys, "--frames", "3", "--stall", stall)
    assert (found["frames"], found["mismatches"], found["verdict"]) == (3 + 3, 0, "equal")


def test_depthwise_ties_and_an_output_of_sums_compared(depthwise, capsys) -> None:
    assert told(depthwise, "compare", "other.onnx", capsys, "--frames", "3")["unexplained"] == 0


@pytest.fixture(scope="module")
def one_channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("one_channel")
    for seed, name in enumerate(("one", "other")):
        b = Builder()
        x = b.requantize(b.input("x", ("N", 9)), 0.5, 3)
        weights = b.weights(np.random.default_rng(seed).integers(-60, 61, (9, 1)), 0.0173 + 0.001 * seed)
        b.output(b.requantize(b.node("MatMul", x, weights, name="dense"), 1.9, 100))
        b.save(made, f"{name}.onnx")
    return synthesized(made)


@pytest.mark.parametrize("stall", ["0", "0.3"])
def test_one_output_channel(one_channel, capsys, stall: str) -> None:
    """The quantizer's parameters are a word, which stands twice in its table."""
    assert told(one_channel, "sim", "other.onnx", capsys, "--frames", "5", "--stall", stall)["mismatches"] == 0


def pooled(seed: int, *, joined: bool = False, sums: float = 0.4) -> Builder:
    """A convolution, with ``joined`` a sum with its input, of a scale of about ``sums``, a mean and a dense layer; all
    weights and all scales but the input's follow from ``seed``."""
    rng = np.random.default_rng(seed)

    def scale(about: float) -> float:
        return float(np.float32(about * rng.uniform(0.7, 1.4)))

    b = Builder()
    x = b.requantize(b.input("x", ("N", 5, 6, 6)), 0.05, 128)
    weights = b.weights(rng.integers(-100, 101, (5, 5, 3, 3)), scale(0.02))
    y = b.requantize(b.node("Conv", x, weights, name="conv", pads=[1, 1, 1, 1]), scale(0.4), 120)
    if joined:
        y = b.requantize(b.node("Add", y, x, name="add"), scale(sums), 128, "uint8")
    y = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", y, name="pool"), scale(0.1), 100))
    last = b.node("MatMul", y, b.weights(rng.integers(-100, 101, (5, 4)), scale(0.02)), name="dense")
    b.output(b.requantize(last, scale(0.2), 90))
    return b


@pytest.fixture(scope="module")
def trained_anew(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trained_anew")
    for seed, name in enumerate(("one", "two", "three")):
        pooled(seed, joined=True).save(made, f"{name}.onnx")
    pooled(1, joined=True, sums=0.01).save(made, "far.onnx")
    return synthesized(made, "--fps", "50000")


@pytest.mark.parametrize(("other", "stall"), [("two", "0"), ("three", "0.3")])
def test_a_network_trained_anew_has_other_scales_everywhere(trained_anew, capsys, other: str, stall: str) -> None:
    """The factors of the sum and the mean's quantizer are loaded, too, though they are behind no weights."""
    assert len(json.loads((trained_anew / "out/manifest.json").read_text())["held"]) == 4
    assert told(trained_anew, "sim", f"{other}.onnx", capsys, "--frames", "3", "--stall", stall)["mismatches"] == 0


def test_layer_by_layer(trained_anew, capsys) -> None:
    """The sum has the factors that are in its tables."""
    capsys.readouterr()
    options = ["--layers", "--frames", "2", "--seed", "1", "--format", "json"]
    assert main(["sim", str(trained_anew / "out"), *options]) == 0
    layers = {layer["core"]: layer for layer in json.loads(capsys.readouterr().out)["layers"]}
    assert layers["add"]["differing"] == 0 < layers["add"]["elements"]


def test_a_refusal_names_what_differs_alone(trained_anew, capsys) -> None:
    """Layers with room for others are no part of the reason."""
    capsys.readouterr()
    assert main(["sim", str(trained_anew / "out"), "--weights", str(trained_anew / "far.onnx")]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(said) == 1 and "node 'add': must be a sum of scales that hardware has room for" in said[0]


def test_what_cannot_be_loaded_is_built_anew(tmp_path: Path, capsys) -> None:
    """A function's table is hardware: it is no remedy to make everything loadable, which is so already."""
    for name, scale in (("one", 0.031), ("other", 0.033)):
        b = Builder()
        x = b.requantize(b.node("Sigmoid", b.requantize(b.input("x", ("N", 6)), scale, 100)), 1 / 256, 0)
        weights = b.weights(np.random.default_rng(0).integers(-60, 61, (6, 4)), 0.0173)
        b.output(b.requantize(b.node("MatMul", x, weights), 0.03, 100))
        b.save(tmp_path, f"{name}.onnx")
    folder = synthesized(tmp_path)
    capsys.readouterr()
    assert main(["compare", str(folder / "out"), "--weights", str(folder / "other.onnx")]) == 1
    said = capsys.readouterr().err
    assert "must be the same for both models" in said
    assert "build it again" in said and "--loadable" not in said


def test_a_refusal_names_the_layer_alone_whatever_its_name(tmp_path: Path, capsys) -> None:
    """Another zero point of an operand is another constant of the product; the layer behind has room for its."""
    for file, zero_point, scale in (("one", 100, 0.0173), ("other", 104, 0.0191)):
        b = Builder()
        x, z = (b.requantize(b.input(name, ("N", 6)), 0.031, zero_point) for name in ("x", "z"))
        y = b.requantize(b.node("Mul", x, z, name="a/product"), 0.05, 100)
        weights = b.weights(np.random.default_rng(0).integers(-60, 61, (6, 4)), scale)
        b.output(b.requantize(b.node("MatMul", y, weights, name="a/dense"), 0.3, 100))
        b.save(tmp_path, f"{file}.onnx")
    folder = synthesized(tmp_path)
    capsys.readouterr()
    assert main(["compare", str(folder / "out"), "--weights", str(folder / "other.onnx")]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert said and all("a/dense" not in line for line in said) and "a/product" in said[0]


def test_recurrent(tmp_path: Path, capsys) -> None:
    """Every step of a network whose first one begins with zeros has other weights."""
    classifier(tmp_path, "RNN", 2)
    hwflow.quantize(str(tmp_path / "m.onnx"), str(tmp_path / "x.npz"), str(tmp_path / "one.onnx"))
    changed = onnx.load(tmp_path / "one.onnx")
    for tensor in changed.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.int8 and values.ndim == 2:
            tensor.CopyFrom(numpy_helper.from_array(values[::-1, ::-1].copy(), tensor.name))
        elif values.ndim == 1 and tensor.name.startswith("rec/Transpose") and values.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(values[::-1] * np.float32(1.3), tensor.name))
    onnx.save(changed, tmp_path / "other.onnx")
    folder = synthesized(tmp_path, "--fps", "100000")
    assert told(folder, "sim", "other.onnx", capsys, "--frames", "3", "--stall", "0.2")["mismatches"] == 0


def test_what_is_not_loaded_must_be_the_same(folder, capsys) -> None:
    """Only the dense layer is loaded: another kernel of the convolution is refused, whatever table it stands in."""
    args = ["--board", "ulx3s_12f", "--fps", "20000", "--until", "verilog", "--loadable", "dense"]
    assert main(["synth", str(folder / "one.onnx"), *args, "-o", str(folder / "dense")]) == 0
    capsys.readouterr()
    assert main(["compare", str(folder / "dense"), "--weights", str(folder / "other.onnx")]) == 1
    assert "must be the same for both models" in capsys.readouterr().err
    changed = onnx.load(folder / "one.onnx")
    graph = changed.graph
    read = next(node for node in graph.node if node.name == "dense").input[1]
    name = next(node for node in graph.node if read in node.output).input[0]
    kept = next(tensor for tensor in graph.initializer if tensor.name == name)
    kept.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(kept)[::-1].copy(), name))
    onnx.save(changed, folder / "turned.onnx")
    assert main(["compare", str(folder / "dense"), "--weights", str(folder / "turned.onnx"), "--frames", "2"]) == 0


def test_options(folder, tmp_path, capsys) -> None:
    weights = ["--weights", str(folder / "other.onnx")]
    assert main(["compare", str(folder / "one.onnx"), *weights]) == 2
    assert "must be given for an output folder of synth" in capsys.readouterr().err
    assert main(["sim", str(folder / "out"), *weights, "--layers"]) == 2
    assert "without --layers and --threads" in capsys.readouterr().err
    both = ["--patchable", "all", "--loadable", "all"]
    assert main(["synth", str(folder / "one.onnx"), "--board", "ulx3s_12f", *both, "-o", str(tmp_path / "o")]) == 2
    assert "option --patchable: must be given without --loadable, not with it" in capsys.readouterr().err
    for option in ("--patchable", "--loadable"):
        none = [option, ",", "-o", str(tmp_path / "o")]
        assert main(["synth", str(folder / "one.onnx"), "--board", "ulx3s_12f", *none]) == 2
        assert f"option {option}: must name layers, not none" in capsys.readouterr().err
    inline = ["--inline-weights", "--loadable", "all", "--until", "verilog"]
    assert main(["synth", str(folder / "one.onnx"), "--board", "ulx3s_12f", *inline, "-o", str(tmp_path / "o")]) == 2
    assert "option --inline-weights: must not be given with --loadable" in capsys.readouterr().err
    assert main(["patch", str(folder / "out"), str(folder / "other.onnx")]) == 2
