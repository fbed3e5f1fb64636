"""The float error bounds: sound against exact rational arithmetic, and not loose by orders of magnitude."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.operators.float_errors.analysis import Bounds, analyse
from tests.onnxspec.build import model, node, value

Array = np.ndarray[Any, Any]
U = 2.0**-24


def exact(values: Any) -> Array:
    """Floats or integers as Fractions, shape kept."""
    array = np.asarray(values)
    result = np.empty(array.size, dtype=object)
    result[:] = [Fraction(v) for v in array.reshape(-1).tolist()]
    return result.reshape(array.shape)


def bounds_of(nodes: list[onnx.NodeProto], constants: dict[str, Any], feeds: dict[str, Array]) -> Bounds:
    inputs = [value(name, [None] * a.ndim, TensorProto.INT8) for name, a in feeds.items()]
    proto = model(nodes, inputs, [value("y", None)], constants, {"": 19})
    return analyse(RegionEvaluator(proto).region(["y"], frozenset(feeds)), feeds)


def check(bounds: Bounds, name: str, truth: Array, tightness: float) -> None:
    """Every error is within its bound, and the greatest bound at most ``tightness`` times the greatest error."""
    computed, error = bounds.values[name], bounds.errors[name]
    assert error is not None and computed.shape == truth.shape == error.shape
    actual = np.abs(exact(computed) - truth)
    assert (actual <= exact(error)).all()
    assert float(actual.max()) > 0
    assert error.max() <= tightness * float(actual.max())


def dequantized(
    rng: np.random.Generator, constants: dict[str, Any], name: str, shape: tuple[int, ...]
) -> tuple[onnx.NodeProto, Array]:
    """A constant ``name`` + "q" behind a DequantizeLinear that makes ``name``; its exact value."""
    integers = rng.integers(-128, 128, shape).astype(np.int8)
    scale = rng.uniform(0.001, 0.1, shape[0]).astype(np.float32)
    zero = rng.integers(-3, 4, shape[0]).astype(np.int8)
    constants |= {f"{name}q": integers, f"{name}s": scale, f"{name}z": zero}
    broad = (-1, *(1,) * (len(shape) - 1))
    truth = (exact(integers) - exact(zero).reshape(broad)) * exact(scale).reshape(broad)
    return node("DequantizeLinear", [f"{name}q", f"{name}s", f"{name}z"], [name], axis=0), truth


def test_dequantize_by_hand() -> None:
    """fl(0.1) = 13421773 * 2**-27; times 3 is 40265319 * 2**-27, spacing 4: up by 1. The bound: u |y| + tiny."""
    nodes = [node("DequantizeLinear", ["x", "s"], ["y"])]
    bounds = bounds_of(nodes, {"s": np.float32(0.1)}, {"x": np.array([[3]], np.int8)})
    assert bounds.values["y"].item() == 40265320 * 2.0**-27
    error = bounds.errors["y"]
    assert error is not None
    assert 2.0**-27 < U * 40265320 * 2.0**-27 < error.item() < U * 40265320 * 2.0**-27 * (1 + 2.0**-19)


def test_dequantize_a_scalar() -> None:
    """Of no axes the same: numpy's numbers are arrays too."""
    nodes = [node("DequantizeLinear", ["x", "s"], ["y"])]
    of_one, of_none = (
        bounds_of(nodes, {"s": np.float32(0.1)}, {"x": np.array(x, np.int8)}).errors["y"] for x in ([3], 3)
    )
    assert of_one is not None and of_none is not None
    assert of_none.shape == () and of_none.item() == of_one.item()


def test_dequantize_of_large_integers() -> None:
    """int32 beyond 2**24 is rounded on its way to float32."""
    q = np.array([2**31 - 1, -(2**31), 2**24 + 1, 2**25 + 3, 123456789, 2**30 + 65], np.int32)
    for zero in (None, 7):
        names = ["b", "s"] if zero is None else ["b", "s", "z"]
        constants = {"b": q, "s": np.float32(0.3), "z": np.int32(zero or 0)}
        nodes = [
            node("DequantizeLinear", names, ["c"]), node("DequantizeLinear", ["x", "s"], ["d"]),
            node("Add", ["d", "c"], ["y"]),
        ]
        bounds = bounds_of(nodes, constants, {"x": np.arange(6, dtype=np.int8)[None]})
        check(bounds, "c", exact(np.float32(0.3)) * (exact(q) - (zero or 0)), 30)


def test_conv_chain() -> None:
    """Conv with dilation and pads, float bias; Relu, MaxPool, Clip, Transpose, Flatten; quantized."""
    rng = np.random.default_rng(0)
    constants: dict[str, Any] = {
        "s": np.float32(0.0371), "z": np.int8(-4), "b": rng.uniform(-1, 1, 3).astype(np.float32),
        "low": np.float32(0.2), "high": np.float32(30), "t": np.float32(0.0123),
    }
    weights, w = dequantized(rng, constants, "w", (3, 2, 2, 2))
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["d"]), weights,
        node("Conv", ["d", "w", "b"], ["c"], pads=[1, 1, 0, 0], dilations=[2, 1]),
        node("Relu", ["c"], ["r"]), node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]),
        node("Clip", ["p", "low", "high"], ["k"]), node("Transpose", ["k"], ["u"], perm=[0, 2, 1, 3]),
        node("Flatten", ["u"], ["f"]), node("QuantizeLinear", ["f", "t", "z"], ["y"]),
    ]
    x = rng.integers(-128, 128, (3, 2, 5, 5)).astype(np.int8)
    bounds = bounds_of(nodes, constants, {"x": x})
    real = (exact(x) + 4) * exact(np.float32(0.0371))
    padded = np.pad(real, ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=Fraction(0))
    c = np.empty((3, 3, 4, 5), dtype=object)
    for m in range(3):
        for row in range(4):
            for column in range(5):
                window = padded[:, :, row : row + 3 : 2, column : column + 2]
                c[:, m, row, column] = (window * w[m]).sum(axis=(1, 2, 3)) + Fraction(constants["b"][m].item())
    check(bounds, "c", c, 40)
    r = np.maximum(c, Fraction(0))
    p = np.maximum.reduce([r[:, :, i : i + 3, j : j + 4] for i in range(2) for j in range(2)])
    k = np.minimum(np.maximum(p, exact(np.float32(0.2))), Fraction(30))
    assert (k == 30).any() and (k < 30).any()
    assert bounds.errors["k"] is not None and not bounds.errors["k"][bounds.values["p"] > 30.1].any()  # saturated
    check(bounds, "k", k, 40)
    check(bounds, "f", k.transpose(0, 2, 1, 3).reshape(3, -1), 40)
    quotient = bounds.quotients["y"]
    assert quotient is not None
    truth = k.transpose(0, 2, 1, 3).reshape(3, -1) / Fraction(np.float32(0.0123).item())
    computed = exact(bounds.values["f"] / np.float32(0.0123))
    assert (np.abs(computed - truth) <= exact(quotient)).all()


@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (0.3, 1.7)])
def test_gemm_and_matmul_chain(alpha: float, beta: float) -> None:
    rng = np.random.default_rng(1)
    constants: dict[str, Any] = {
        "s": np.float32(0.0371), "b": rng.uniform(-1, 1, 7).astype(np.float32),
        "a": rng.uniform(-1, 1, (1, 5)).astype(np.float32),
    }
    (wn, w), (vn, v) = dequantized(rng, constants, "w", (7, 30)), dequantized(rng, constants, "v", (7, 5))
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), wn, vn,
        node("Gemm", ["d", "w", "b"], ["g"], transB=1, alpha=alpha, beta=beta),
        node("MatMul", ["g", "v"], ["m"]), node("Add", ["m", "a"], ["y"]),
    ]
    x = rng.integers(-128, 128, (20, 30)).astype(np.int8)
    bounds = bounds_of(nodes, constants, {"x": x})
    d = exact(x) * exact(np.float32(0.0371))
    g = exact(np.float32(alpha)) * d.dot(w.T) + exact(np.float32(beta)) * exact(constants["b"])
    check(bounds, "g", g, 200)
    check(bounds, "y", g.dot(v) + exact(constants["a"]), 500)


def test_half_precision() -> None:
    rng = np.random.default_rng(2)
    constants = {"s": np.float16(0.1), "b": rng.uniform(-1, 1, 8).astype(np.float16)}
    nodes = [node("DequantizeLinear", ["x", "s"], ["d"]), node("Add", ["d", "b"], ["y"])]
    x = rng.integers(-128, 128, (50, 8)).astype(np.int8)
    check(bounds_of(nodes, constants, {"x": x}), "y", exact(x) * exact(np.float16(0.1)) + exact(constants["b"]), 10)


def test_constants_are_exact_and_others_without_a_rule_have_no_bound() -> None:
    constants = {"s": np.float32(0.1), "a": np.array([1, 2], np.float32)}
    nodes = [
        node("Mul", ["a", "a"], ["k"]), node("DequantizeLinear", ["x", "s"], ["d"]), node("Add", ["d", "k"], ["e"]),
        node("RandomUniformLike", ["e"], ["g"]), node("QuantizeLinear", ["g", "s"], ["y"]),
    ]
    bounds = bounds_of(nodes, constants, {"x": np.array([[3, 4]], np.int8)})
    assert bounds.errors["k"] is not None and not bounds.errors["k"].any()
    assert bounds.errors["e"] is not None
    assert bounds.errors["g"] is None and bounds.errors["y"] is None and "y" not in bounds.quotients
    assert bounds.unbounded == {"RandomUniformLike"}
