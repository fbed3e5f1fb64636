"""Where the error comes from: ratios behind each quantizer, and its share of the noise, against arithmetic by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hwflow
from hwflow.report.quantization_note import KEY, noted
from tests.quantization.networks import Network, thirds, thirds_data


def layers(done):
    return {layer.name: layer for layer in done.layers}


def test_the_noisiest_quantizer_of_a_network_with_exact_weights(tmp_path):
    """The hidden values have steps some sixteen times those of input and output (test_precision.py)."""
    thirds(tmp_path / "m.onnx")
    proto = onnx.load(tmp_path / "m.onnx")
    onnx.helper.set_model_props(proto, {KEY: "of an earlier time", "author": "somebody"})
    onnx.save(proto, tmp_path / "m.onnx")
    thirds_data(tmp_path / "x.npz")
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    found = layers(done)
    assert [*found] == ["x", "v1", "y", "w1", "w2"]
    assert [layer.kind for layer in done.layers] == ["uint8"] * 3 + ["int8"] * 2
    assert [layer.node for layer in done.layers] == ["", "relu1 (Relu)", "gemm2 (Gemm)", "gemm0 (Gemm)", "gemm2 (Gemm)"]
    assert found["v1"].noise_share > 0.8 and math.isclose(sum(layer.noise_share for layer in done.layers), 1)
    assert found["w1"].snr_db > 100 and found["w1"].noise_share < 1e-6
    assert found["y"].snr_db == pytest.approx(done.qualities[0].snr_db, abs=0.01)
    entries = [(entry.key, entry.value) for entry in onnx.load(tmp_path / "q.onnx").metadata_props]
    metadata = dict(entries)
    assert sorted(key for key, _ in entries) == ["author", KEY] and metadata["author"] == "somebody"
    assert noted(metadata) == done.table()["layers"]  # which the page of a design then shows
    (line,) = [line for line in done.lines() if "'v1'" in line]
    assert line.endswith("uint8 'v1' of relu1 (Relu)")


def test_ratios_by_hand(tmp_path):
    """A quantizer's own noise, and that of its operand behind a product by a constant: what numpy makes of the file's
    scales."""
    rng = np.random.default_rng(3)
    network = Network(["N", 5])
    network.save(tmp_path / "m.onnx", network.node("MatMul", "x", network.constant(rng.normal(size=(5, 4)))), ["N", 4])
    x = rng.normal(size=(40, 5)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", bits=3, activations="uint5")
    initializers = onnx.load(tmp_path / "q.onnx").graph.initializer
    constants = {i.name: numpy_helper.to_array(i).astype(float) for i in initializers}

    def rounded(values, name):
        scale, zero = constants[f"{name}_scale"], constants[f"{name}_zero_point"]
        return scale * (np.clip(np.rint(values / scale) + zero, 0, 31) - zero)

    def ratio(values, found):
        return 10 * np.log10((values**2).sum() / ((values - found) ** 2).sum())

    weights = numpy_helper.to_array(onnx.load(tmp_path / "m.onnx").graph.initializer[0]).astype(float)
    (name,) = [layer.name for layer in done.layers if layer.weights]
    written = constants[f"{name}_quantized"] * constants[f"{name}_scale"]
    assert np.abs(constants[f"{name}_quantized"]).max() == 3
    exact = x.astype(float) @ weights
    y = rounded(rounded(x, "x") @ written, "y")
    found = {layer.name: layer.snr_db for layer in done.layers}
    assert found["x"] == pytest.approx(ratio(x, rounded(x, "x")), abs=1e-3)
    assert found[name] == pytest.approx(ratio(weights, written), abs=1e-3)
    assert found["y"] == pytest.approx(ratio(exact, y), abs=1e-3)
    alone = rounded(x, "x") @ weights, rounded(exact, "y"), x @ written
    noises = [((exact - other) ** 2)[:8].sum() for other in alone]
    shares = [layer.noise_share for layer in done.layers]
    np.testing.assert_allclose(shares, np.array(noises) / sum(noises), rtol=1e-3)


def test_a_float_model_of_one_exact_value(tmp_path):
    """No noise at all is no share of any."""
    network = Network(["N", 2])
    network.save(tmp_path / "m.onnx", network.node("MatMul", "x", network.constant(np.eye(2))), ["N", 2])
    np.savez(tmp_path / "x.npz", x=np.array([[0.0, 255.0], [255.0, 0.0]], np.float32))
    done = hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    assert {layer.snr_db for layer in done.layers if not layer.weights} == {math.inf}
    assert all(row["snr_db"] is None or row["weights"] for row in done.table()["layers"])
    assert Path(done.output).exists()
