"""The com.microsoft operators against onnxruntime, but for ties; and on ties by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from tests.onnxspec.dialect_operators.run import Array, evaluate, feeds, proto

MS = "com.microsoft"
KINDS = {np.uint8: onnx.TensorProto.UINT8, np.int8: onnx.TensorProto.INT8, np.float32: onnx.TensorProto.FLOAT}


def runtime(op: str, inputs: list[Array | None], kind: int, **attributes: Any) -> Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = proto(MS, op, inputs, kind, **attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds(inputs))[0])


def f(value: float) -> Array:
    return np.array(value, np.float32)


def integers(rng: np.random.Generator, kind: type, *shape: int) -> Array:
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max + 1, shape).astype(kind)


def tensor(rng: np.random.Generator, kind: type, *shape: int) -> list[Array | None]:
    """Integers, their scale and zero point."""
    return [integers(rng, kind, *shape), f(rng.uniform(0.01, 0.1)), integers(rng, kind)]


def out(rng: np.random.Generator, kind: type, scale: float) -> list[Array | None]:
    return [f(scale * rng.uniform(0.7, 1.3)), integers(rng, kind)]


CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "add": ("QLinearAdd", lambda r, k: [*tensor(r, k, 3, 4, 5), *tensor(r, k, 4, 1), *out(r, k, 0.1)], {}),
    "mul": ("QLinearMul", lambda r, k: [*tensor(r, k, 3, 4, 5), *tensor(r, k, 3, 4, 5), *out(r, k, 0.3)], {}),
    "leaky": ("QLinearLeakyRelu", lambda r, k: [*tensor(r, k, 3, 40), *out(r, k, 0.05)], {"alpha": 0.1}),
    "leaky default": ("QLinearLeakyRelu", lambda r, k: [*tensor(r, k, 3, 40), *out(r, k, 0.05)], {}),
    "sigmoid": ("QLinearSigmoid", lambda r, k: [*tensor(r, k, 3, 40), *out(r, k, 0.004)], {}),
    "softmax": ("QLinearSoftmax", lambda r, k: [*tensor(r, k, 3, 10), *out(r, k, 0.004)], {"opset": 13, "axis": -1}),
    "softmax 11": ("QLinearSoftmax", lambda r, k: [*tensor(r, k, 3, 4, 3), *out(r, k, 0.01)], {"opset": 11, "axis": 1}),
    "pool": (
        "QLinearAveragePool", lambda r, k: [*tensor(r, k, 2, 3, 6, 7), *out(r, k, 0.03)],
        {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]},
    ),
    "pool pads": (
        "QLinearAveragePool", lambda r, k: [*tensor(r, k, 2, 3, 6, 6), *out(r, k, 0.03)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "pool ceil": (
        "QLinearAveragePool", lambda r, k: [*tensor(r, k, 2, 3, 6, 6), *out(r, k, 0.03)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    "pool last": (
        "QLinearAveragePool", lambda r, k: [*tensor(r, k, 2, 6, 7, 3), *out(r, k, 0.03)],
        {"kernel_shape": [2, 3], "strides": [2, 1], "channels_last": 1},
    ),
    "global": ("QLinearGlobalAveragePool", lambda r, k: [*tensor(r, k, 2, 3, 5, 7), *out(r, k, 0.02)], {}),
    "global last": (
        "QLinearGlobalAveragePool", lambda r, k: [*tensor(r, k, 2, 5, 7, 3), *out(r, k, 0.02)], {"channels_last": 1},
    ),
    "where": (
        "QLinearWhere",
        lambda r, k: [r.integers(0, 2, (3, 1, 4)) > 0, *tensor(r, k, 3, 2, 4), *tensor(r, k, 2, 1), *out(r, k, 0.04)],
        {},
    ),
    "max": (
        "NhwcMaxPool", lambda r, k: tensor(r, k, 2, 9, 7, 3)[:1],
        {"kernel_shape": [2, 3], "strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 0, 2], "ceil_mode": 1},
    ),
    "concat": (
        "QLinearConcat",
        lambda r, k: [*out(r, k, 0.05), *tensor(r, k, 2, 3, 4), *tensor(r, k, 2, 5, 4)], {"axis": 1},
    ),
}


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("name", CASES)
def test_against_onnxruntime(name: str, kind: type) -> None:
    """Float32 kernels differ by one where the quotient is near a tie, and onnxruntime rounds ties its own way; nowhere
    else. With these arbitrary scales that is at most a few elements; its softmax is off more often."""
    op, make, attributes = CASES[name]
    rng = np.random.default_rng(len(name))
    levels: set[int] = set()
    for _ in range(5):
        inputs = make(rng, kind)
        found = evaluate(MS, op, inputs, **attributes)
        expected = runtime(op, inputs, KINDS[kind], **attributes)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        difference = np.abs(found.astype(int) - expected.astype(int))
        assert difference.max() <= 1 and (difference > 0).mean() <= (0.1 if "softmax" in name else 0.02)
        levels |= set(found.reshape(-1).tolist())
    assert len(levels) > 4


@pytest.mark.parametrize("weights", [np.uint8, np.int8])
def test_gemm_against_onnxruntime(weights: type) -> None:
    """Small integers: where a processor saturates the sum of two products at 16 bits, these do not reach it."""
    rng = np.random.default_rng(3)
    for transposed in (0, 1):
        a = rng.integers(0, 100, (4, 6)).astype(np.uint8)
        b = (rng.integers(0, 50, (6, 5)) - (0 if weights is np.uint8 else 25)).astype(weights)
        b = b.T.copy() if transposed else b
        scale = rng.uniform(0.01, 0.02, 5).astype(np.float32)
        bias = rng.integers(-500, 500, 5).astype(np.int32)
        inputs: list[Array | None] = [
            a, f(0.05), np.array(7, np.uint8), b, scale, np.zeros(5, weights) + weights(3), bias
        ]
        more: list[Array | None] = [f(0.031), np.array(130, np.uint8)]
        expected = runtime("QGemm", inputs + more, KINDS[np.uint8], transB=transposed)
        found = evaluate(MS, "QGemm", inputs + more, transB=transposed)
        assert found.dtype == expected.dtype and np.abs(found.astype(int) - expected.astype(int)).max() == 0
        expected = runtime("QGemm", inputs, KINDS[np.float32], transB=transposed)
        found = evaluate(MS, "QGemm", inputs, transB=transposed)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gemm_by_hand() -> None:
    """(5 - 1) * (2 - 0) + (3 - 1) * (-1) + 4 = 10; * 0.5 * 0.25 * alpha 2 = 2.5; / 1 rounds to 2; + 7 = 9."""
    a, b = np.array([[5, 3]], np.uint8), np.array([[2], [-1]], np.int8)
    inputs: list[Array | None] = [
        a, f(0.5), np.array(1, np.uint8), b, f(0.25), np.array(0, np.int8), np.array([4], np.int32), f(1),
        np.array(7, np.uint8),
    ]
    assert evaluate(MS, "QGemm", inputs, alpha=2.0).tolist() == [[9]]
    assert evaluate(MS, "QGemm", inputs[:6], alpha=2.0).tolist() == [[1.5]]
    inputs[0], inputs[3] = a.T.copy(), b.T.copy()
    assert evaluate(MS, "QGemm", inputs, alpha=2.0, transA=1, transB=1).tolist() == [[9]]


def test_ties_round_before_the_zero_point() -> None:
    """(1 * q) / 2: 0.5, 1.5, 2.5, 3.5 round to 0, 2, 2, 4; then 3 is added."""
    q, zero = np.array([[1, 3, 5, 7]], np.uint8), np.array(0, np.uint8)
    none, three = np.zeros((1, 4), np.uint8), np.array(3, np.uint8)
    expected = [[3, 5, 5, 7]]
    unit: list[Array | None] = [q, f(1), zero]
    assert evaluate(MS, "QLinearAdd", [*unit, none, f(1), zero, f(2), three]).tolist() == expected
    assert evaluate(MS, "QLinearMul", [*unit, none + np.uint8(1), f(1), zero, f(2), three]).tolist() == expected
    assert evaluate(MS, "QLinearLeakyRelu", [*unit, f(2), three]).tolist() == expected
    assert evaluate(MS, "QLinearConcat", [f(2), three, *unit], axis=1).tolist() == expected
    pairs: list[Array | None] = [np.array([[[1, 0], [3, 0], [2, 3], [7, 0]]], np.uint8), f(1), zero]
    pooled = [[[3], [5], [5], [7]]]
    assert evaluate(MS, "QLinearGlobalAveragePool", [*pairs, f(1), three]).tolist() == pooled
    assert evaluate(MS, "QLinearAveragePool", [*pairs, f(1), three], kernel_shape=[2]).tolist() == pooled
    assert evaluate(MS, "QLinearReduceMean", [*pairs, f(1), three], axes=[-1], keepdims=1).tolist() == pooled


def test_where() -> None:
    """True: (6 - 2) * 0.5 = 2, / 0.25 = 8, + 1; false: (3 - 0) * 1 = 3, / 0.25 = 12, + 1. Saturation: 255."""
    condition = np.array([[True, False, False]])
    inputs: list[Array | None] = [
        condition, np.array([[6, 6, 6]], np.uint8), f(0.5), np.array(2, np.uint8), np.array([[3, 3, 200]], np.uint8),
        f(1), np.array(0, np.uint8), f(0.25), np.array(1, np.uint8),
    ]
    assert evaluate(MS, "QLinearWhere", inputs).tolist() == [[9, 13, 255]]


def test_reduce_mean() -> None:
    x = np.array([[[1, 3], [5, 8]]], np.int8)
    inputs: list[Array | None] = [x, f(1), np.array(0, np.int8), f(0.5), np.array(0, np.int8)]
    assert evaluate(MS, "QLinearReduceMean", inputs, axes=[1], keepdims=0).tolist() == [[6, 11]]
    assert evaluate(MS, "QLinearReduceMean", inputs, keepdims=1).tolist() == [[[8]]]  # 17 / 4 / 0.5 = 8.5, a tie


@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.uint4, np.int16, np.uint16, np.int8, np.uint8])
def test_quantize_and_back(kind: Any) -> None:
    """x / 0.5: -1e9, -2.5 -> -2, 1.5 -> 2, 1e9; + zero point 1, saturated."""
    low, high = int(ml_dtypes.iinfo(kind).min), int(ml_dtypes.iinfo(kind).max)
    x = np.array([[-5e8, -1.25, 0.75, 5e8]], np.float32)
    found = evaluate(MS, "QuantizeLinear", [x, f(0.5), np.array(1, kind)])
    assert found.dtype == kind
    assert found.astype(int).tolist() == [[low, max(low, -1), 3, high]]
    real = evaluate(MS, "DequantizeLinear", [found, f(0.5), np.array(1, kind)])
    assert real.dtype == np.float32
    assert real.tolist() == [[0.5 * (low - 1), 0.5 * (max(low, -1) - 1), 1, 0.5 * (high - 1)]]


def test_quantize_per_channel() -> None:
    x = np.array([[3, 3]], np.float32)
    scale, zero = np.array([1, 2], np.float32), np.array([0, 10], np.int8)
    found = evaluate(MS, "QuantizeLinear", [x, scale, zero], axis=1)
    assert found.tolist() == [[3, 12]]  # 1.5 rounds to 2
    assert evaluate(MS, "DequantizeLinear", [found, scale, zero], axis=-1).tolist() == [[3, 4]]
    assert evaluate(MS, "QuantizeLinear", [x, f(2)]).dtype == np.uint8
    assert evaluate(MS, "DequantizeLinear", [found, f(2)]).tolist() == [[6, 24]]
