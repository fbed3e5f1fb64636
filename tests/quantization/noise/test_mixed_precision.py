"""``quantize --bits auto``: the cheapest widths that keep a target, against trying all of them."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import onnx
import pytest

import hwflow
from hwflow.cli import main
from hwflow.errors import UsageError
from hwflow.quantization.integer_kinds import IntegerKind
from hwflow.quantization.noise.mixed_precision import Costs, Product, Unit, bit_operations, choose_kinds
from tests.quantization.networks import Network

RNG = np.random.default_rng(11)


def signed(*bits):
    return tuple(IntegerKind(b, signed=True) for b in bits)


@pytest.mark.parametrize("limit", [1e-6, 3e-4, 0.02, 0.5, 10.0, 1e-12])
def test_the_cheapest_of_all_where_noise_adds_up(limit):
    """Two layers of very different size and noise, each with an activation: 4 * 4 * 4 * 4 ways."""
    unsigned = tuple(map(IntegerKind, (4, 6, 8, 12)))
    units = [
        Unit(("x",), False, unsigned), Unit(("y",), False, unsigned),
        Unit(("v",), True, signed(2, 4, 8, 14)), Unit(("w",), True, signed(2, 4, 8, 14)),
    ]  # fmt: skip
    costs = Costs([Product("x", "v", 100), Product("y", "w", 7)], {"x": 10, "y": 3}, bit_operations)
    gain = {"x": 1.0, "y": 9.0, "v": 0.3, "w": 40.0}

    def noise(kinds):
        return sum(gain[name] * 4.0**-kind.bits for name, kind in kinds.items())

    found = choose_kinds(units, {}, costs, dict, lambda kinds: noise(kinds) <= limit, noise)
    every = [
        dict(zip("xyvw", kinds, strict=True)) for kinds in itertools.product(*(unit.kinds for unit in units))
    ]
    fitting = [kinds for kinds in every if noise(kinds) <= limit]
    if not fitting:
        assert found == {unit.names[0]: unit.kinds[-1] for unit in units}
        return
    assert noise(found) <= limit
    assert costs.of(found) <= 1.2 * min(map(costs.of, fitting))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two layers, the first of which hardly matters for the classes; labels are the float model's, but for a tenth."""
    path = tmp_path_factory.mktemp("mixed")
    n = Network(["N", 8])
    hidden = n.node("Relu", n.node("MatMul", "x", n.constant(RNG.normal(size=(8, 24)), name="first")))
    n.save(path / "m.onnx", n.node("MatMul", hidden, n.constant(RNG.normal(size=(24, 3)), name="second")), ["N", 3])
    x = RNG.normal(size=(200, 8)).astype(np.float32)
    first, second = (onnx.numpy_helper.to_array(i) for i in onnx.load(path / "m.onnx").graph.initializer)
    classes = (np.maximum(x @ first, 0) @ second).argmax(axis=1)
    classes[::10] = (classes[::10] + 1) % 3
    np.savez(path / "x.npz", x=x, label=classes)
    return path


def quantized(folder, output, **options):
    return hwflow.quantize(folder / "m.onnx", folder / "x.npz", output, **options)


def test_a_ratio_is_kept_with_few_bits(folder, tmp_path):
    done = quantized(folder, tmp_path / "q.onnx", bits="auto", activations="auto", target_snr=32)
    assert 32 <= done.qualities[0].snr_db < 35
    bits = {layer.name: IntegerKind.named(layer.kind).bits for layer in done.layers}
    x, hidden, _, first, second = bits.values()
    enough = next(
        b for b in (5, 6, 7, 8)
        if quantized(folder, tmp_path / "u.onnx", bits=b, activations=f"uint{b}").qualities[0].snr_db >= 32
    )
    assert 8 * 24 * x * first + 24 * 3 * hidden * second <= (8 * 24 + 24 * 3) * enough**2
    assert done.compiles and hwflow.compare(tmp_path / "q.onnx", inputs=folder / "x.npz").unexplained == 0


def test_an_accuracy_is_kept_with_fewer(folder, tmp_path, capsys):
    model, data, output = folder / "m.onnx", folder / "x.npz", tmp_path / "q.onnx"
    arguments = ["quantize", str(model), "--calibration", str(data), "-o", str(output)]
    targets = ["--bits", "auto", "--activations", "auto", "--target-accuracy", "-2"]
    assert main([*arguments, *targets, "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    (output,) = table["outputs"]
    assert table["target_accuracy"] == -2 and table["target_snr_db"] is None and output["float_accuracy"] == 0.9
    assert output["accuracy"] >= 0.88
    bits = [IntegerKind.named(layer["type"]).bits for layer in table["layers"]]
    assert np.mean(bits) < 6
    assert main([*arguments, *targets]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(": weights of chosen bits, per-channel scales, auto activations")
    (line,) = [line for line in lines if line.startswith("weights: ")]
    kinds = Counter(layer["type"] for layer in table["layers"] if layer["weights"])
    counts = sorted(kinds.items(), key=lambda pair: IntegerKind.named(pair[0]))
    assert line == "weights: " + ", ".join(f"{number} of {kind}" for kind, number in counts)


def test_weights_alone(folder, tmp_path):
    done = quantized(folder, tmp_path / "q.onnx", bits="auto", activations="uint10", target_snr=20)
    assert {layer.kind for layer in done.layers if not layer.weights} == {"uint10"}
    assert done.qualities[0].snr_db >= 20 and all(int(layer.kind[3:]) <= 6 for layer in done.layers if layer.weights)


def test_what_no_width_can_keep_gets_the_widest_and_a_note(folder, tmp_path):
    done = quantized(folder, tmp_path / "q.onnx", bits="auto", activations="uint4", target_snr=60)
    assert {layer.kind for layer in done.layers if layer.weights} == {"int16"}
    assert "note: SNR is below the 60 dB asked for: not even 16 bits keep more" in list(done.lines())


@pytest.mark.parametrize(("options", "words"), [
    ({"target_accuracy": -1.0}, "must be given with --bits auto or --activations auto, not with 8 and uint8"),
    ({"bits": "auto", "target_accuracy": 1.0}, "must be percentage points from -100 to 0, not 1"),
    ({"bits": "auto", "target_accuracy": -1.0, "target_snr": 30.0}, "must not be given with --target-accuracy"),
    ({"bits": "auto", "target_snr": 300.0}, "must be more than 0 and less than 100 dB, not 300"),
    ({"calibration_method": "best"}, "must be one of minmax, percentile, entropy, mse, not best"),
])  # fmt: skip
def test_options_that_do_not_go_together(folder, tmp_path, options, words):
    with pytest.raises(UsageError) as refused:
        quantized(folder, tmp_path / "q.onnx", **options)
    assert words in str(refused.value)


def test_an_accuracy_needs_labels(folder, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.load(folder / "x.npz")["x"])
    with pytest.raises(UsageError, match="must be given with an array 'label' in the calibration data, not without"):
        hwflow.quantize(folder / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", bits="auto", target_accuracy=-1.0)
