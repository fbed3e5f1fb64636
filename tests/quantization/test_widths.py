"""Integers of 2 to 16 bits, and the ranges that they stand for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hwflow
from hwflow.quantization.clipping import BINS, Histogram, clipped
from hwflow.quantization.integer_kinds import IntegerKind, grid_of
from hwflow.quantization.weight_scales import weight_scales
from tests.quantization.networks import Network

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Two layers, and data."""
    folder = tmp_path_factory.mktemp("widths")
    n = Network(["N", 6])
    hidden = n.node("Relu", n.node("Gemm", "x", n.constant(RNG.normal(size=(6, 8))), n.constant(RNG.normal(size=8))))
    n.save(folder / "m.onnx", n.node("Gemm", hidden, n.constant(RNG.normal(size=(8, 4)))), ["N", 4])
    np.savez(folder / "x.npz", x=RNG.normal(size=(60, 6)).astype(np.float32))
    return folder


@pytest.mark.parametrize(
    ("bits", "activations"), [(2, "uint2"), (3, "int3"), (5, "uint5"), (6, "uint4"), (7, "int6"), (9, "uint7"),
                              (12, "uint10"), (16, "int13")],
)  # fmt: skip
def test_every_width_is_exact_in_hardware(network, tmp_path, bits, activations):
    """No value takes more levels than its kind has, and the golden model is the reference evaluator's."""
    done = hwflow.quantize(
        network / "m.onnx", network / "x.npz", tmp_path / "q.onnx", bits=bits, activations=activations
    )
    assert done.compiles and {layer.kind for layer in done.layers} == {activations, f"int{bits}"}
    proto = onnx.load(tmp_path / "q.onnx")
    for tensor in proto.graph.initializer:
        if tensor.name.endswith("_quantized") and tensor.data_type != onnx.TensorProto.INT32:
            assert np.abs(numpy_helper.to_array(tensor).astype(int)).max() == 2 ** (bits - 1) - 1
    graph = hwflow.load(tmp_path / "q.onnx").quantized
    kind = IntegerKind.named(activations)
    inside = [v.typed.element for n in graph.nodes if n.op == "requantize" for v in n.outputs]
    assert inside and all(element.bits <= kind.bits for element in inside)
    assert hwflow.compare(tmp_path / "q.onnx", inputs=network / "x.npz").unexplained == 0


def test_more_bits_are_less_noise(network, tmp_path):
    ratios = [
        hwflow.quantize(
            network / "m.onnx", network / "x.npz", tmp_path / "q.onnx", bits=bits, activations=f"uint{bits}"
        ).qualities[0].snr_db
        for bits in (2, 4, 6, 8, 10, 12)
    ]
    # 6 dB a bit; scales that are powers of two, from 9 bits on, cost 6 dB at most.
    assert all(5 < more - less < 17 for less, more in pairwise(ratios)), ratios


def test_grids_by_hand():
    assert grid_of((-1.0, 3.0), IntegerKind(2)).limits == pytest.approx((-4 / 3, 8 / 3))
    assert grid_of((0.5, 3.1), IntegerKind(5)) == grid_of((0.0, 3.1), IntegerKind(5))
    assert grid_of((0.0, 100.0), IntegerKind(10)).scale == 0.125  # 100 / 1023 is less than an eighth
    assert (IntegerKind(5).held_in, IntegerKind(3, True).held_in) == (IntegerKind(8), IntegerKind(4, True))


def test_scales_of_weights_have_the_least_error():
    """Of all scales, tried one by one; a channel of zeros has some."""
    weights = np.vstack([RNG.normal(size=(5, 40)), np.zeros((1, 40)), np.eye(1, 40)])
    for bits in (2, 3, 4, 6):
        kind = IntegerKind(bits, signed=True)

        def error(row, scale, most=kind.most):
            return ((row - scale * np.clip(np.rint(row / scale), -most, most)) ** 2).sum()

        found = weight_scales(weights, kind)
        for row, scale in zip(weights[:5], found[:5], strict=True):
            others = [error(row, s) for s in np.linspace(0.4, 1, 601) * np.abs(row).max() / kind.most]
            assert error(row, scale) <= 1.15 * min(others)
        assert found[5] == 1 and error(weights[6], found[6]) == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(weight_scales(weights[:5], IntegerKind(8, True)), np.abs(weights[:5]).max(axis=1) / 127)


def histogram(values):
    found = Histogram((float(values.min()), float(values.max())))
    found.add(values)
    return found


def test_a_percentile_leaves_out_what_it_says():
    values = np.concatenate([np.linspace(-1, 1, 99_999), [50.0]])  # of 100,000 five on each side
    low, high = clipped(histogram(values), "percentile", 255)
    width = 51 / BINS
    assert -1 <= low <= -1 + width and 1 <= high <= 1 + width
    ones = np.concatenate([np.linspace(0, 1, 99_995), np.full(5, 9.0)])  # of one side ten
    assert clipped(histogram(ones), "percentile", 255) == (0.0, pytest.approx(1, abs=9 / BINS))
    some = np.concatenate([np.linspace(0, 1, 99_980), np.full(20, 9.0)])
    assert clipped(histogram(some), "percentile", 255) == (0.0, pytest.approx(9))


@pytest.mark.parametrize("steps", [3, 15, 255])
def test_the_range_of_least_squared_error(steps):
    """Like trying ranges on the values themselves."""
    values = RNG.laplace(size=20_000)

    def error(low, high):
        step = (high - low) / steps
        return ((values - (np.clip(np.rint((values - low) / step), 0, steps) * step + low)) ** 2).mean()

    factors = np.linspace(0.1, 1, 46)
    tried = [error(a * values.min(), b * values.max()) for a in factors for b in factors]
    low, high = clipped(histogram(values), "mse", steps)
    assert error(low, high) <= 1.1 * min(tried)
    if steps == 15:
        assert min(tried) < 0.5 * error(values.min(), values.max())


def test_entropy_cuts_far_outliers_and_keeps_a_flat_distribution():
    flat = RNG.uniform(0, 1, 50_000)
    assert clipped(histogram(flat), "entropy", 255)[1] > 0.9
    low, high = clipped(histogram(np.concatenate([np.abs(RNG.normal(size=50_000)), [40.0]])), "entropy", 127)
    assert low == 0 and 2 < high < 15


@pytest.mark.parametrize("method", ["percentile", "entropy", "mse"])
def test_methods_beat_the_whole_range_where_there_are_outliers(tmp_path, method):
    n = Network(["N", 4])
    n.save(tmp_path / "m.onnx", n.node("MatMul", "x", n.constant(np.eye(4))), ["N", 4])
    x = RNG.normal(size=(6000, 4))
    x[3, 1] = 60.0
    np.savez(tmp_path / "x.npz", x=x)
    np.savez(tmp_path / "typical.npz", x=np.delete(x, 3, axis=0)[:100])
    data = "x.npz" if method == "mse" else "typical.npz"  # to that one the outlier's own error counts
    whole, cut = (
        hwflow.quantize(
            tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx", activations="uint5",
            calibration_method=each, inputs=tmp_path / data,
        ).qualities[0].snr_db for each in ("minmax", method)
    )
    assert cut > whole + (2 if method == "mse" else 10)
