"""``quantize --equalize``: the same float model, and fewer levels lost to channels of different ranges."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import hwflow
from hwflow.quantization.equalization import equalized
from hwflow.quantization.preparation import name_nodes
from hwflow.quantization.sessions import run_frames
from tests.quantization.networks import Network

RNG = np.random.default_rng(9)
SIZES = 10.0 ** np.linspace(-1.5, 1.5, 8)  # of the eight channels


def gemms(n):
    first = n.node("Gemm", "x", n.constant(RNG.normal(size=(8, 6)) * SIZES[:, None]), n.constant(SIZES), transB=1)
    second = n.node("Gemm", n.node("Relu", first), n.constant(RNG.normal(size=(8, 3)) / SIZES[:, None]))
    return second, ["N", 6], ["N", 3]


def products(n):
    first = n.node("Add", n.node("MatMul", "x", n.constant(RNG.normal(size=(6, 8)) * SIZES)), n.constant(SIZES))
    second = n.node("MatMul", n.node("Relu", first), n.constant(RNG.normal(size=(8, 3)) / SIZES[:, None]))
    return second, ["N", 5, 6], ["N", 5, 3]


def images(n):
    kernels = n.constant(RNG.normal(size=(8, 2, 3, 3)) * SIZES.reshape(-1, 1, 1, 1))
    pool = n.node("MaxPool", n.node("Relu", n.node("Conv", "x", kernels, n.constant(SIZES))), kernel_shape=[2, 2])
    return n.node("Conv", pool, n.constant(RNG.normal(size=(3, 8, 1, 1)) / SIZES.reshape(1, -1, 1, 1))), \
        ["N", 2, 6, 6], ["N", 3, 3, 3]


def transposed(n):
    kernels = n.constant(RNG.normal(size=(2, 8, 2, 2)) * SIZES.reshape(1, -1, 1, 1))
    up = n.node("Relu", n.node("ConvTranspose", "x", kernels, n.constant(SIZES)))
    return n.node("ConvTranspose", up, n.constant(RNG.normal(size=(8, 3, 1, 1)) / SIZES.reshape(-1, 1, 1, 1))), \
        ["N", 2, 4, 4], ["N", 3, 5, 5]


@pytest.mark.parametrize("build", [gemms, products, images, transposed])
def test_the_same_results_with_less_noise(tmp_path, build):
    """Ranges of channels differ a thousand times; weights that grow by it are what equal ranges need."""
    network = Network([])
    y, shape, result = build(network)
    network.input = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    network.save(tmp_path / "m.onnx", y, result)
    x = RNG.normal(size=(40, *shape[1:])).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    model, frames = onnx.load(tmp_path / "m.onnx"), [{"x": frame[np.newaxis]} for frame in x]
    name_nodes(model)
    changed = equalized(model, frames)
    before, after = (run_frames(m, frames, ["y"])["y"] for m in (model, changed))
    np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())
    assert changed != model
    plain, better = (
        hwflow.quantize(
            tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", equalize=equalize
        ).qualities[0].snr_db for equalize in (False, True)
    )
    assert better > plain + 6
    assert hwflow.compare(tmp_path / "q.onnx", inputs=tmp_path / "x.npz", frames=4).unexplained == 0


@pytest.mark.parametrize("what", ["output", "two readers", "function", "group"])
def test_what_must_stay_as_it_is(tmp_path, what):
    """A value that is read elsewhere, a function that is not homogeneous, channels of groups."""
    n = Network(["N", 4, 3, 3])
    first = n.node("Conv", "x", n.constant(RNG.normal(size=(4, 4, 1, 1))), n.constant(RNG.normal(size=4)))
    middle = n.node("Sigmoid" if what == "function" else "Relu", first)
    group = 2 if what == "group" else 1
    y = n.node("Conv", middle, n.constant(RNG.normal(size=(4, 4 // group, 1, 1))), group=group)
    if what == "two readers":
        y = n.node("Add", y, middle)
    n.save(tmp_path / "m.onnx", y, ["N", 4, 3, 3])
    model = onnx.load(tmp_path / "m.onnx")
    if what == "output":
        model.graph.output.append(onnx.helper.make_tensor_value_info(middle, onnx.TensorProto.FLOAT, ["N", 4, 3, 3]))
    name_nodes(model)
    assert equalized(model, [{"x": RNG.normal(size=(1, 4, 3, 3)).astype(np.float32)}]) == model
