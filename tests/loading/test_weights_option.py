"""`sim --weights` and `compare --weights`, and what does not fit the hardware."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from hwflow.cli import main
from tests.loading.networks import network, separable
from tests.models import Builder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("weights")
    network(made, 0, name="one.onnx")
    network(made, 1, 0.0191, 2.5, name="other.onnx")
    network(made, 1, 0.5, name="coarse.onnx")
    network(made, 1, 0.0191, side=6, name="larger.onnx")
    args = ["--board", "ulx3s_12f", "--fps", "100000", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(made / "one.onnx"), *args, "-o", str(made / "out")]) == 0
    return made


@pytest.mark.parametrize("stall", ["0", "0.3"])
def test_simulated(folder, capsys, stall: str) -> None:
    options = ["--frames", "3", "--seed", "1", "--stall", stall, "--format", "json"]
    assert main(["sim", str(folder / "out"), "--weights", str(folder / "other.onnx"), *options]) == 0
    told = json.loads(capsys.readouterr().out)
    size = json.loads((folder / "out/manifest.json").read_text())["load"]["bytes"]
    assert (told["frames"], told["mismatches"], told["verdict"]) == (3 + 3, 0, "equal")
    assert (told["load"]["frames"], told["load"]["bytes"]) == (3, size)
    assert size < told["load"]["cycles"]


def test_compared(folder, capsys) -> None:
    options = ["--frames", "3", "--seed", "1", "--format", "json"]
    assert main(["compare", str(folder / "out"), "--weights", str(folder / "other.onnx"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["unexplained"] == 0


@pytest.mark.parametrize(("name", "code", "text"), [
    ("coarse.onnx", 1, "must be a multiplication by at most"),
    ("larger.onnx", 1, "layer "),
    ("missing.onnx", 2, "missing.onnx"),
])
def test_what_does_not_fit(folder, capsys, name: str, code: int, text: str) -> None:
    assert main(["sim", str(folder / "out"), "--weights", str(folder / name)]) == code
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("stall", ["0", "0.3"])
def test_depthwise_ties_and_an_output_of_sums(tmp_path, capsys, stall: str) -> None:
    """Every layer is loaded: other weights, and scales twice as large that are powers of two as well."""
    separable(tmp_path, 0, name="one.onnx")
    separable(tmp_path, 1, 0.5, name="other.onnx")
    args = ["--board", "ulx3s_12f", "--fps", "40000", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(tmp_path / "one.onnx"), *args, "-o", str(tmp_path / "out")]) == 0
    assert len(json.loads((tmp_path / "out/manifest.json").read_text())["load"]["memories"]) == 6
    capsys.readouterr()
    options = ["--weights", str(tmp_path / "other.onnx"), "--frames", "3", "--seed", "1", "--format", "json"]
    assert main(["sim", str(tmp_path / "out"), *options, "--stall", stall]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["frames"], told["mismatches"], told["verdict"]) == (3 + 3, 0, "equal")
    assert main(["compare", str(tmp_path / "out"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["unexplained"] == 0


@pytest.mark.parametrize("stall", ["0", "0.3"])
def test_one_output_channel(tmp_path, capsys, stall: str) -> None:
    """The quantizer's parameters are a word, which stands twice in its table."""
    for seed, name in enumerate(("one", "other")):
        b = Builder()
        x = b.requantize(b.input("x", ("N", 9)), 0.5, 3)
        weights = b.weights(np.random.default_rng(seed).integers(-60, 61, (9, 1)), 0.0173 + 0.001 * seed)
        b.output(b.requantize(b.node("MatMul", x, weights, name="dense"), 1.9, 100))
        b.save(tmp_path, f"{name}.onnx")
    args = ["--board", "ulx3s_12f", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(tmp_path / "one.onnx"), *args, "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    options = ["--weights", str(tmp_path / "other.onnx"), "--frames", "5", "--seed", "1", "--format", "json"]
    assert main(["sim", str(tmp_path / "out"), *options, "--stall", stall]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0


def pooled(seed: int, *, joined: bool = False) -> Builder:
    """A convolution, with ``joined`` a sum with its input, a mean and a dense layer; all weights and all scales but the
    input's follow from ``seed``."""
    rng = np.random.default_rng(seed)

    def scale(about: float) -> float:
        return float(np.float32(about * rng.uniform(0.7, 1.4)))

    b = Builder()
    x = b.requantize(b.input("x", ("N", 5, 6, 6)), 0.05, 128)
    weights = b.weights(rng.integers(-100, 101, (5, 5, 3, 3)), scale(0.02))
    y = b.requantize(b.node("Conv", x, weights, name="conv", pads=[1, 1, 1, 1]), scale(0.4), 120)
    if joined:
        y = b.requantize(b.node("Add", y, x, name="add"), scale(0.4), 128, "uint8")
    y = b.node("Flatten", b.requantize(b.node("GlobalAveragePool", y, name="pool"), scale(0.1), 100))
    last = b.node("MatMul", y, b.weights(rng.integers(-100, 101, (5, 4)), scale(0.02)), name="dense")
    b.output(b.requantize(last, scale(0.2), 90))
    return b


@pytest.mark.parametrize("other", [1, 2])
def test_a_network_trained_anew_has_other_scales_everywhere(tmp_path, capsys, other: int) -> None:
    """The mean's quantizer is loaded, too, though it is behind no weights."""
    for seed, name in ((0, "one"), (other, "other")):
        pooled(seed).save(tmp_path, f"{name}.onnx")
    args = ["--board", "ulx3s_12f", "--fps", "50000", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(tmp_path / "one.onnx"), *args, "-o", str(tmp_path / "out")]) == 0
    assert len(json.loads((tmp_path / "out/manifest.json").read_text())["held"]) == 3
    capsys.readouterr()
    options = ["--weights", str(tmp_path / "other.onnx"), "--frames", "3", "--seed", "1", "--format", "json"]
    assert main(["sim", str(tmp_path / "out"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["mismatches"] == 0


def test_a_refusal_names_what_differs_alone(tmp_path, capsys) -> None:
    """A sum's scales are hardware; layers with room for others are no part of the reason."""
    for seed, name in enumerate(("one", "other")):
        pooled(seed, joined=True).save(tmp_path, f"{name}.onnx")
    args = ["--board", "ulx3s_12f", "--fps", "50000", "--until", "verilog", "--loadable", "all"]
    assert main(["synth", str(tmp_path / "one.onnx"), *args, "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["sim", str(tmp_path / "out"), "--weights", str(tmp_path / "other.onnx")]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert said and all("'add'" in line or "behind a sum" in line or "quantizelinear" in line for line in said), said
    assert not any("conv" in line or "dense" in line for line in said)


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
    assert "option --patchable: must not be given with --loadable" in capsys.readouterr().err
    inline = ["--inline-weights", "--loadable", "all", "--until", "verilog"]
    assert main(["synth", str(folder / "one.onnx"), "--board", "ulx3s_12f", *inline, "-o", str(tmp_path / "o")]) == 2
    assert "option --inline-weights: must not be given with --loadable" in capsys.readouterr().err
    assert main(["patch", str(folder / "out"), str(folder / "other.onnx")]) == 2
