"""The float error bounds of functions, against mpmath (50 digits) on the exact inputs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import onnx
import pytest

from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.operators.float_errors.analysis import Bounds, analyse
from tests.onnxspec.build import model, node, value
from tests.verify.test_float_error import exact

Array = np.ndarray[Any, Any]
mp = mpmath.mp.clone()
mp.dps = 50


def bounds_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Any], feeds: dict[str, Array], opset: int = 20
) -> Bounds:
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    inputs = [value(name, [None] * a.ndim, kinds[name]) for name, a in feeds.items()]
    proto = model(nodes, inputs, [value("y", None)], constants, {"": opset})
    return analyse(RegionEvaluator(proto).region(["y"], frozenset(feeds)), feeds)


def real(x: Fraction) -> Any:
    return mp.mpf(x.numerator) / x.denominator


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def elu(alpha: Any, gamma: Any = 1, divisor: Any = 1) -> Callable[[Any], Any]:
    return lambda x: gamma * (x if x > 0 else alpha * mp.expm1(x / divisor))


def clip(x: Any) -> Any:
    return max(mp.mpf(0), min(mp.mpf(1), x))


def f32(x: float) -> Any:
    return mp.mpf(float(np.float32(x)))


def gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)))


# Operator, attributes, the function; over reals of both signs.
FUNCTIONS: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("Sigmoid", {}, sigmoid),
    ("Tanh", {}, mp.tanh),
    ("Exp", {}, mp.exp),
    ("Erf", {}, mp.erf),
    ("Sin", {}, mp.sin),
    ("Cos", {}, mp.cos),
    ("Tan", {}, mp.tan),
    ("Atan", {}, mp.atan),
    ("Sinh", {}, mp.sinh),
    ("Cosh", {}, mp.cosh),
    ("Asinh", {}, mp.asinh),
    ("Softplus", {}, lambda x: mp.log1p(mp.exp(x))),
    ("Softsign", {}, lambda x: x / (1 + abs(x))),
    ("Mish", {}, lambda x: x * mp.tanh(mp.log1p(mp.exp(x)))),
    ("LeakyRelu", {"alpha": 0.1}, lambda x: x if x > 0 else f32(0.1) * x),
    ("HardSigmoid", {}, lambda x: clip(f32(0.2) * x + mp.mpf("0.5"))),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.6}, lambda x: clip(f32(0.3) * x + f32(0.6))),
    ("HardSwish", {}, lambda x: x * clip(x / 6 + mp.mpf("0.5"))),
    ("Elu", {}, elu(1)),
    ("Elu", {"alpha": 1.7}, elu(f32(1.7))),
    ("Selu", {}, elu(f32(1.67326319217681884765625), f32(1.05070102214813232421875))),
    ("Celu", {"alpha": 0.7}, elu(f32(0.7), 1, f32(0.7))),
    ("Gelu", {}, lambda x: x * mp.ncdf(x)),
    ("Gelu", {"approximate": "tanh"}, gelu_tanh),
    ("Neg", {}, lambda x: -x),
    ("Abs", {}, abs),
    ("Round", {}, mp.nint),
    ("Floor", {}, mp.floor),
    ("Ceil", {}, mp.ceil),
    ("Sign", {}, mp.sign),
    ("ThresholdedRelu", {"alpha": 0.01}, lambda x: x if x > f32(0.01) else mp.mpf(0)),
    ("Dropout", {}, lambda x: x),
]
POSITIVE: list[tuple[str, Callable[[Any], Any]]] = [
    ("Sqrt", mp.sqrt), ("Reciprocal", lambda x: 1 / x), ("Log", mp.log),
]


def check(bounds: Bounds, truth: list[Any], tightness: float) -> None:
    """Every error within its bound, which is not looser than ``tightness`` times the greatest relative error."""
    computed, error = bounds.values["y"].reshape(-1), bounds.errors["y"]
    assert error is not None and error.shape == bounds.values["y"].shape and np.isfinite(error).all()
    flat = error.reshape(-1)
    found = [float(abs(real(Fraction(float(c))) - t)) for c, t in zip(computed, truth, strict=True)]
    worst = max(f / e for f, e in zip(found, flat, strict=True) if f)
    assert worst <= 1
    assert worst >= 1 / tightness


def reals(scale: float, zero: int = 0) -> tuple[list[onnx.NodeProto], dict[str, Any], Array, list[Any]]:
    """All int8 integers times ``scale`` (which the region computes, with an error), and the exact reals."""
    x = np.arange(-128, 128, dtype=np.int8).reshape(1, -1)
    constants = {"s": np.float32(scale), "zero": np.int8(zero)}
    truth = [real(Fraction(int(q) - zero) * Fraction(float(np.float32(scale)))) for q in x.reshape(-1)]
    return [node("DequantizeLinear", ["x", "s", "zero"], ["d"])], constants, x, truth


@pytest.mark.parametrize("scale", [0.0013, 0.0371, 0.17, 0.6])
@pytest.mark.parametrize("name, attributes, function", FUNCTIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_functions(name: str, attributes: dict[str, Any], function: Callable[[Any], Any], scale: float) -> None:
    if name == "Exp" and scale > 0.5:
        scale = 0.5  # no overflow
    nodes, constants, x, truth = reals(scale)
    nodes.append(node(name, ["d"], ["y"], **attributes))
    bounds = bounds_of(nodes, constants, {"x": x})
    steps = name in ("Round", "Floor", "Ceil", "Sign")
    if steps:
        error = bounds.errors["y"]
        assert error is not None
        for bound, found, t in zip(error[0], bounds.values["y"][0], truth, strict=True):
            assert abs(float(found) - float(function(t))) <= bound
            if bound:  # a step is near: a multiple of 1/2
                assert bound <= 1.001 and abs(2 * t - mp.nint(2 * t)) < 1e-4
        return
    check(bounds, [function(t) for t in truth], 1000)


@pytest.mark.parametrize("scale", [0.0013, 0.0371, 0.6])
@pytest.mark.parametrize("name, function", POSITIVE)
def test_functions_of_positive_reals(name: str, function: Callable[[Any], Any], scale: float) -> None:
    nodes, constants, x, truth = reals(scale, -128)
    nodes.append(node(name, ["d"], ["y"]))
    x, truth = x[:, 1:], truth[1:]
    check(bounds_of(nodes, constants, {"x": x}), [function(t) for t in truth], 100)


@pytest.mark.parametrize("name", ["Reciprocal", "Log"])
def test_where_a_function_may_be_undefined_there_is_no_finite_bound(name: str) -> None:
    """(q + 0.1) - 0.1 is 0 or nearly: nobody knows."""
    nodes, constants, _, _ = reals(0.1)
    constants |= {"a": np.float32(0.3)}
    nodes += [node("Add", ["d", "a"], ["e"]), node("Sub", ["e", "a"], ["g"]), node(name, ["g"], ["y"])]
    error = bounds_of(nodes, constants, {"x": np.array([[0]], np.int8)}).errors["y"]
    assert error is not None and not np.isfinite(error).any()


@pytest.mark.parametrize("power", [2.0, 3.0, 0.5, 1.5, -1.0, -2.0, 0.0, 1.0])
def test_power(power: float) -> None:
    nodes, constants, x, truth = reals(0.0371, -128)
    constants["p"] = np.float32(power)
    nodes.append(node("Pow", ["d", "p"], ["y"]))
    x, truth = x[:, 1:], truth[1:]
    bounds = bounds_of(nodes, constants, {"x": x})
    if power == 0:
        assert (bounds.values["y"] == 1).all()
        return
    check(bounds, [t ** mp.mpf(power) for t in truth], 100)


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_power_of_both_signs(power: float) -> None:
    nodes, constants, x, truth = reals(0.0371)
    constants["p"] = np.float32(power)
    nodes.append(node("Pow", ["d", "p"], ["y"]))
    check(bounds_of(nodes, constants, {"x": x}), [t ** int(power) for t in truth], 100)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean"])
def test_two_computed_values(op: str) -> None:
    rng = np.random.default_rng(1)
    feeds = {name: rng.integers(1, 128, (4, 50)).astype(np.int8) for name in ("a", "b")}
    constants = {"s": np.float32(0.013), "t": np.float32(0.37)}
    nodes = [
        node("DequantizeLinear", ["a", "s"], ["c"]), node("DequantizeLinear", ["b", "t"], ["d"]),
        node(op, ["c", "d"], ["y"]),
    ]
    bounds = bounds_of(nodes, constants, feeds)
    a, b = (exact(feeds[n]) * Fraction(float(constants[s])) for n, s in (("a", "s"), ("b", "t")))
    truth = {
        "Add": lambda: a + b, "Sub": lambda: a - b, "Mul": lambda: a * b, "Div": lambda: a / b,
        "Min": lambda: np.minimum(a, b), "Max": lambda: np.maximum(a, b), "Sum": lambda: a + b,
        "Mean": lambda: (a + b) / 2,
    }[op]()
    check(bounds, [real(t) for t in truth.reshape(-1)], 20)


def test_batch_normalization_that_cancels() -> None:
    """The mean is what x nearly is: of the difference few bits are left, and the scale blows up their error."""
    rng = np.random.default_rng(2)
    q = rng.integers(90, 110, (4, 3, 20)).astype(np.int8)
    constants = {
        "s": np.float32(0.1), "g": np.array([1000, -3, 0.5], np.float32), "b": np.array([0, 1e4, -0.5], np.float32),
        "m": np.array([9.9999, 10.03, 10], np.float32), "v": np.array([1e-4, 2, 0.3], np.float32),
    }
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]),
        node("BatchNormalization", ["d", "g", "b", "m", "v"], ["y"], epsilon=1e-5),
    ]
    for opset in (10, 13, 15, 20):
        bounds = bounds_of(nodes, constants, {"x": q}, opset)
        x = exact(q) * Fraction(float(np.float32(0.1)))
        gain, bias, mean, variance = ([Fraction(float(v)) for v in constants[n]] for n in "gbmv")
        epsilon = Fraction(float(np.float32(1e-5)))
        truth = []
        for index in np.ndindex(*q.shape):
            c = index[1]
            centred = real(gain[c] * (x[index] - mean[c]))
            truth.append(centred / mp.sqrt(real(variance[c] + epsilon)) + real(bias[c]))
        check(bounds, truth, 50)


POOLED: list[tuple[str, dict[str, Any]]] = [
    ("GlobalAveragePool", {}), ("AveragePool", {"kernel_shape": [3], "pads": [1, 1]}), ("ReduceMean", {}),
    ("ReduceSum", {}),
]


@pytest.mark.parametrize("op, more", POOLED)
def test_means_and_sums(op: str, more: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    q = rng.integers(-128, 128, (1, 8, 40)).astype(np.int8)
    constants: dict[str, Any] = {"s": np.float32(0.1)}
    inputs = ["d"]
    if op.startswith("Reduce"):
        constants["axes"] = np.array([2])
        inputs.append("axes")
    nodes = [node("DequantizeLinear", ["x", "s"], ["d"]), node(op, inputs, ["y"], **more)]
    x = exact(q) * Fraction(float(np.float32(0.1)))
    if op == "AveragePool":
        sums = [
            sum(x[0, c, max(0, i - 1):i + 2]) / len(x[0, c, max(0, i - 1):i + 2]) for c in range(8) for i in range(40)
        ]
    else:
        sums = [sum(x[0, c]) / (1 if op == "ReduceSum" else 40) for c in range(8)]
    check(bounds_of(nodes, constants, {"x": q}), [real(t) for t in sums], 500)


@pytest.mark.parametrize("op, opset", [("Softmax", 20), ("LogSoftmax", 20), ("Softmax", 11), ("LogSoftmax", 11)])
def test_softmax(op: str, opset: int) -> None:
    rng = np.random.default_rng(4)
    q = rng.integers(-128, 128, (1, 3, 4)).astype(np.int8)
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), node("Add", ["d", "o"], ["e"]), node(op, ["e"], ["y"], axis=1),
    ]
    constants = {"s": np.float32(0.1), "o": np.float32(1000)}
    bounds = bounds_of(nodes, constants, {"x": q}, opset)
    powers = [mp.exp(real(Fraction(int(v)) * Fraction(float(np.float32(0.1))))) for v in q.reshape(-1)]
    truth = []
    for index, p in enumerate(powers):
        total = sum(powers) if opset < 13 else sum(powers[index % 4 :: 4])
        truth.append(mp.log(p / total) if op == "LogSoftmax" else p / total)
    check(bounds, truth, 1000)


def test_the_greatest_of_nearly_equal_values() -> None:
    """10 x 0.1 (0.99999994 or 1.0000001 in float32) beside 1.0 of another scale: either may be the greatest."""
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), node("DequantizeLinear", ["z", "t"], ["e"]),
        node("Concat", ["d", "e"], ["c"], axis=1), node("ArgMax", ["c"], ["y"], axis=1, keepdims=0),
    ]
    constants = {"s": np.float32(0.1), "t": np.float32(0.2)}
    feeds = {"x": np.array([[10, 3], [11, 3]], np.int8), "z": np.array([[2, 5], [2, 5]], np.int8)}
    bounds = bounds_of(nodes, constants, feeds)
    error = bounds.errors["y"]
    assert error is not None and error.tolist() == pytest.approx([3.0, 0.0], rel=1e-5)


@pytest.mark.parametrize("op", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons(op: str) -> None:
    """10 x 0.1 and 5 x 0.2 may compare as anything; 11 x 0.1 is greater."""
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), node("DequantizeLinear", ["z", "t"], ["e"]),
        node(op, ["d", "e"], ["y"]),
    ]
    constants = {"s": np.float32(0.1), "t": np.float32(0.2)}
    feeds = {"x": np.array([[10, 11]], np.int8), "z": np.array([[5, 5]], np.int8)}
    error = bounds_of(nodes, constants, feeds).errors["y"]
    assert error is not None and error.tolist() == [[pytest.approx(1.0, rel=1e-5), 0.0]]


def test_the_best() -> None:
    """Of 1.0, 2.0 and 10 x 0.1 the second is one of two whose floats may come in either order."""
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), node("DequantizeLinear", ["z", "t"], ["e"]),
        node("Concat", ["d", "e"], ["c"], axis=1), node("TopK", ["c", "k"], ["y", "i"], axis=1),
    ]
    constants = {"s": np.float32(0.1), "t": np.float32(0.2), "k": np.array([2])}
    feeds = {"x": np.array([[10, 3]], np.int8), "z": np.array([[10, 5]], np.int8)}
    errors = bounds_of(nodes, constants, feeds).errors
    places, values = errors["i"], errors["y"]
    assert places is not None and places.tolist() == [[0.0, pytest.approx(3.0, rel=1e-5)]]
    assert values is not None and values.shape == (1, 2) and 0 < values.max() < 1e-6


def test_moves() -> None:
    """Split, Concat, Slice, Pad, Where, Gather, ReduceMax, ReduceMin: the bound goes where the element goes."""
    q = np.array([[1, 100, 3, -50]], np.int8)
    single = bounds_of([node("DequantizeLinear", ["x", "s"], ["y"])], {"s": np.float32(0.1)}, {"x": q}).errors["y"]
    assert single is not None
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), node("Split", ["d", "two"], ["a", "b"], axis=1),
        node("Concat", ["b", "a"], ["c"], axis=1), node("Pad", ["c", "pads", "one"], ["p"]),
        node("Slice", ["p", "from", "to", "axis"], ["e"]), node("Gather", ["e", "places"], ["g"], axis=1),
        node("Where", ["yes", "g", "e"], ["y"]),
    ]
    constants = {
        "s": np.float32(0.1), "two": np.array([2, 2]), "pads": np.array([0, 1, 0, 0]), "one": np.float32(0.1),
        "from": np.array([0]), "to": np.array([4]), "axis": np.array([1]), "places": np.array([3, 2, 1, 0]),
        "yes": np.array([[True, True, True, False]]),
    }
    bounds = bounds_of(nodes, constants, {"x": q})
    found, error = bounds.values["y"], bounds.errors["y"]
    assert found.tolist() == [[float(np.float32(0.1)) * v for v in (1,)] + found.tolist()[0][1:]]
    assert error is not None
    np.testing.assert_allclose(error, [[single[0, 0], single[0, 3], single[0, 2], single[0, 0]]], rtol=1e-4)
    for op in ("ReduceMax", "ReduceMin"):
        nodes = [node("DequantizeLinear", ["x", "s"], ["d"]), node(op, ["d", "axis"], ["y"], keepdims=0)]
        error = bounds_of(nodes, constants, {"x": q}).errors["y"]
        assert error is not None
        np.testing.assert_allclose(error, [single.max()], rtol=1e-4)


def test_casts() -> None:
    nodes = [
        node("DequantizeLinear", ["x", "s"], ["d"]), node("Cast", ["d"], ["h"], to=onnx.TensorProto.FLOAT16),
        node("Cast", ["h"], ["f"], to=onnx.TensorProto.FLOAT), node("Cast", ["f"], ["y"], to=onnx.TensorProto.INT32),
    ]
    q = np.array([[10, 17, 90]], np.int8)  # 1, 1.7, 9: half precision may be off by 2**-11 of it
    bounds = bounds_of(nodes, {"s": np.float32(0.1)}, {"x": q})
    half, whole = bounds.errors["h"], bounds.errors["y"]
    assert half is not None and whole is not None
    assert (half >= [2.0**-11, 1.7 * 2.0**-11, 9 * 2.0**-11]).all() and (half <= 9.3 * 2.0**-11).all()
    assert whole.tolist() == [pytest.approx([1.0, 0.0, 1.0], rel=1e-5)]


def test_prelu() -> None:
    nodes, constants, x, truth = reals(0.0371)
    constants["p"] = np.array([[0.3]], np.float32)
    nodes.append(node("PRelu", ["d", "p"], ["y"]))
    check(bounds_of(nodes, constants, {"x": x}), [t if t > 0 else f32(0.3) * t for t in truth], 20)


def test_blocked_scales() -> None:
    """Blocks of two along axis 1: scales 0.1 and 0.3."""
    nodes = [node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=2)]
    q = np.array([[5, 7, 9]], np.int8)
    bounds = bounds_of(nodes, {"s": np.array([[0.1, 0.3]], np.float32)}, {"x": q}, 21)
    scales = [Fraction(float(np.float32(s))) for s in (0.1, 0.1, 0.3)]
    check(bounds, [real(int(v) * s) for v, s in zip(q[0], scales, strict=True)], 20)


def test_exact_ties_are_certain() -> None:
    """5 / 2 = 2.5 and 2.5 + 0.5 = 3 without any rounding: the quotients have no error, and no level may differ; a third
    has one."""
    domain = "qonnx.custom_op.general"
    constants = {
        "w": np.array([[5.0, 1.0, -3.0]], np.float32), "s": np.float32(2), "z": np.float32(0.5), "b": np.float32(8),
        "i": np.int8(1), "t": np.float32(3), "o": np.float32(1),
    }
    nodes = [
        node("QuantizeLinear", ["w", "s", "i"], ["q"]), node("QuantizeLinear", ["w", "t", "i"], ["r"]),
        node("Quant", ["w", "s", "z", "b"], ["a"], domain=domain, signed=1),
        node("Quant", ["w", "t", "z", "b"], ["c"], domain=domain, signed=1),
        node("DequantizeLinear", ["x", "o"], ["d"]),
    ]
    names = ["q", "r", "a", "c", "d"]
    inputs, outputs = [value("x", [1, 1], onnx.TensorProto.INT8)], [value(n, None) for n in names]
    proto = model(nodes, inputs, outputs, constants, {"": 19, domain: 1})
    feeds = {"x": np.array([[1]], np.int8)}
    bounds = analyse(RegionEvaluator(proto).region(names, frozenset(feeds)), feeds)
    thirds = [False, False, True]
    for name, certain in (("q", [True] * 3), ("r", thirds), ("a", [True] * 3), ("c", thirds)):
        quotient = bounds.quotients[name]
        assert quotient is not None and (quotient == 0).reshape(-1).tolist() == certain
    assert bounds.values["q"].tolist() == [[3, 1, -1]]  # 2.5 -> 2, 0.5 -> 0, -1.5 -> -2, plus 1
