"""``quantize --bias-correction``: the mean error of every channel goes away, whatever adds the bias."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hwflow
from tests.quantization.networks import Network

RNG = np.random.default_rng(5)


def dense(network):
    """Gemm with a bias, then MatMul and an Add of one value a column."""
    first = network.node("Gemm", "x", network.constant(RNG.normal(size=(6, 8))), network.constant(RNG.normal(size=8)))
    second = network.node("MatMul", network.node("Relu", first), network.constant(RNG.normal(size=(8, 4))))
    return network.node("Add", network.constant(RNG.normal(size=4)), second), ["N", 4], RNG.uniform(1, 3, (80, 6))


def images(network):
    """A grouped Conv and a ConvTranspose, with biases; a border of zeros."""
    conv = network.node(
        "Conv", "x", network.constant(RNG.normal(size=(4, 1, 3, 3))), network.constant(RNG.normal(size=4)), group=2,
        pads=[1] * 4,
    )
    up = network.node(
        "ConvTranspose", network.node("Relu", conv), network.constant(RNG.normal(size=(4, 3, 2, 2))),
        network.constant(RNG.normal(size=3)), strides=[2, 2],
    )
    return up, ["N", 3, 8, 8], RNG.uniform(1, 3, (30, 2, 4, 4))


@pytest.mark.parametrize(("build", "shape"), [(dense, ["N", 6]), (images, ["N", 2, 4, 4])])
def test_means_of_channels(tmp_path, build, shape):
    """With activations of 16 bits, all noise is that of the weights; inputs have a mean of 2, like those behind a Relu.
    """
    network = Network(shape)
    y, result, x = build(network)
    network.save(tmp_path / "m.onnx", y, result)
    np.savez(tmp_path / "x.npz", x=x)
    evaluated, ratios = [], []
    for correction in (False, True):
        done = hwflow.quantize(
            tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / f"{correction}.onnx", bits=3, activations="uint16",
            bias_correction=correction,
        )
        ratios.append(done.qualities[0].snr_db)
        evaluated.append(outputs(tmp_path / f"{correction}.onnx", x))
        assert done.compiles
    exact = outputs(tmp_path / "m.onnx", x)
    axes = tuple(axis for axis in range(exact.ndim) if axis != 1)
    before, after = (np.abs((found - exact).mean(axis=axes)).max() for found in evaluated)
    # What the first layer's weights do behind a Relu is not linear, so a little is left.
    assert after < before / 4 and ratios[1] > ratios[0] + 2
    assert hwflow.compare(tmp_path / "True.onnx", inputs=tmp_path / "x.npz", frames=8).unexplained == 0


def outputs(path, x):
    session = pytest.importorskip("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
    frames = (frame[np.newaxis].astype(np.float32) for frame in x)
    return np.concatenate([session.run(None, {"x": frame})[0] for frame in frames]).astype(float)


def test_one_layer_by_hand(tmp_path):
    """The bias is less by the error of the weights times the mean input, in steps of the product's scales."""
    network = Network(["N", 3])
    weights, bias = np.array([[1.0, 0.3], [0.2, -0.7], [0.45, 0.11]]), np.array([0.5, -2.0])
    network.save(
        tmp_path / "m.onnx", network.node("Gemm", "x", network.constant(weights), network.constant(bias)), ["N", 2]
    )
    x = RNG.uniform(0, 4, (50, 3)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    hwflow.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", bits=2, bias_correction=True)
    found = {i.name: numpy_helper.to_array(i).astype(float) for i in onnx.load(tmp_path / "q.onnx").graph.initializer}
    (integers,) = [name for name in found if name.endswith("_quantized") and found[name].shape == (3, 2)]
    written = found[integers] * found[integers.replace("_quantized", "_scale")]
    (corrected,) = [name for name in found if name.endswith("_corrected_quantized")]
    step = found[f"{corrected}_scale"]
    expected = bias - x.mean(axis=0) @ (written - weights)
    assert np.abs(found[corrected] * step - expected).max() <= 0.51 * step.max()
