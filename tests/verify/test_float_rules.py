"""The float error bounds, operator by operator: sound against the same in float64 (or by hand), and not loose; zero
where integers are exact; none where a rule cannot tell. A quantizer's bound is on the quotient that it rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from hwflow.onnxspec.reference.evaluation import RegionEvaluator
from hwflow.operators.float_errors.analysis import Bounds, analyse
from tests.onnxspec.build import model, node, value

Array = np.ndarray[Any, Any]
MS = "com.microsoft"
S, Z = np.float32(0.1), np.int8(3)  # a scale that is no binary fraction
X = np.random.default_rng(5).integers(-128, 128, (2, 3, 4)).astype(np.int8)
REALS = X * float(S)
IMAGE = REALS[:, :, None]  # [2, 3, 1, 4]
F, G = (np.random.default_rng(seed).uniform(-2, 2, 24).astype(np.float32) for seed in (6, 7))


def bounds_of(nodes: list[onnx.NodeProto], constants: dict[str, Any], x: Array = X, opset: int = 21) -> Bounds:
    """Of a region that is fed ``x`` exactly; ``d`` is its real value, with the errors of float32."""
    real = [node("Cast", ["x"], ["i"], to=TensorProto.FLOAT), node("Mul", ["i", "S"], ["d"])]
    ahead = real if x.dtype == np.int8 else []
    inputs = [value("x", x.shape, onnx.helper.np_dtype_to_tensor_dtype(x.dtype))]
    opsets = {"": opset} | ({MS: 1} if any(n.domain for n in nodes) else {})
    proto = model([*ahead, *nodes], inputs, [value("y", None)], {"S": S, **constants}, opsets)
    return analyse(RegionEvaluator(proto).region(["y"], frozenset(["x"])), {"x": x})


def floats(count: int, *shape: int) -> Array:
    return F[:count].reshape(shape)


REAL: dict[str, tuple[list[onnx.NodeProto], dict[str, Any], Callable[[], Array]]] = {
    # name: nodes behind d, constants, the result in float64
    "ConvTranspose": (
        [node("Slice", ["d", "zero", "one", "axis"], ["e"]), node("ConvTranspose", ["e", "w"], ["y"])],
        {"w": floats(3, 1, 1, 3), "zero": np.array([0]), "one": np.array([1]), "axis": np.array([1])},
        lambda: np.array([[np.convolve(image[0], F[:3].astype(float))] for image in REALS]),
    ),
    "Einsum": (
        [node("Einsum", ["d", "w"], ["y"], equation="nij,jk->nk")], {"w": floats(12, 4, 3)},
        lambda: REALS.sum(axis=1) @ F[:12].reshape(4, 3).astype(float),
    ),
    "Einsum of one": (
        [node("Einsum", ["d"], ["y"], equation="nij->nj")], {}, lambda: REALS.sum(axis=1),
    ),
    "Einsum that moves": ([node("Einsum", ["d"], ["y"], equation="nij->nji")], {}, lambda: REALS.transpose(0, 2, 1)),
    "CumSum": ([node("CumSum", ["d", "axis"], ["y"])], {"axis": np.array(2)}, lambda: REALS.cumsum(axis=2)),
    "CumProd": ([node("CumProd", ["d", "axis"], ["y"])], {"axis": np.array(2)}, lambda: REALS.cumprod(axis=2)),
    "Col2Im": (  # blocks of two pixels, four places along a line of five
        [node("Slice", ["d", "zero", "two", "axis"], ["e"]), node("Col2Im", ["e", "size", "block"], ["y"])],
        {"size": np.array([1, 5]), "block": np.array([1, 2]), "zero": np.array([0]), "two": np.array([2]),
         "axis": np.array([1])},
        lambda: np.array([[[np.r_[a, 0] + np.r_[0, b]]] for a, b, _ in REALS]),
    ),
    "Upsample": (
        [node("Upsample", ["d"], ["y"], scales=[1.0, 1.0, 2.0])], {}, lambda: REALS.repeat(2, axis=2),
    ),
    "Resize": (
        [node("Resize", ["d", "", "scales"], ["y"], mode="nearest", nearest_mode="floor",
              coordinate_transformation_mode="asymmetric")],
        {"scales": np.array([1, 1, 2], np.float32)}, lambda: REALS.repeat(2, axis=2),
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_reals(name: str) -> None:
    nodes, constants, truth = REAL[name]
    bounds = bounds_of(nodes, constants, opset={"Upsample": 7, "CumProd": 26}.get(name, 21))
    computed, error, exact = bounds.values["y"], bounds.errors["y"], truth()
    assert error is not None and computed.shape == exact.shape == error.shape
    apart = np.abs(computed.astype(np.float64) - exact)
    assert (apart <= error).all() and apart.max() > 0
    assert error.max() <= 70 * apart.max()


INTEGERS: dict[str, tuple[list[onnx.NodeProto], dict[str, Any]]] = {
    "Div": ([node("Div", ["x", "c"], ["y"])], {"c": np.int8(3)}),
    "CumSum": (
        [node("Cast", ["x"], ["j"], to=TensorProto.INT32), node("CumSum", ["j", "c"], ["y"])], {"c": np.array(1)}
    ),
    "ReduceSum": (
        [node("Cast", ["x"], ["j"], to=TensorProto.INT32), node("ReduceSum", ["j", "c"], ["y"])], {"c": np.array([1])}
    ),
    "Einsum": (
        [node("Cast", ["x"], ["j"], to=TensorProto.INT32), node("Einsum", ["j"], ["y"], equation="nij->n")], {}
    ),
    "Pow": ([node("Cast", ["x"], ["j"], to=TensorProto.INT32), node("Pow", ["j", "c"], ["y"])], {"c": np.int32(2)}),
    "Cast": ([node("Cast", ["x"], ["y"], to=TensorProto.INT16)], {}),
    "CumProd": (
        [node("Cast", ["x"], ["j"], to=TensorProto.INT32), node("CumProd", ["j", "c"], ["y"])], {"c": np.array(1)}
    ),
    "BitCast": ([node("BitCast", ["x"], ["y"], to=TensorProto.UINT8)], {}),
    "EyeLike": ([node("Squeeze", ["x", "c"], ["m"]), node("EyeLike", ["m"], ["y"])], {"c": np.array([0])}),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_exact(name: str) -> None:
    nodes, constants = INTEGERS[name]
    opset = 26 if name in ("CumProd", "BitCast") else 21
    bounds = bounds_of(nodes, constants, X[:1] if name == "EyeLike" else X, opset)
    error = bounds.errors["y"]
    assert error is not None and error.shape == bounds.values["y"].shape and not error.any()


NONE: dict[str, tuple[list[onnx.NodeProto], dict[str, Any]]] = {
    "Cast": ([node("Mul", ["d", "c"], ["e"]), node("Cast", ["e"], ["y"], to=TensorProto.INT8)], {"c": np.float32(99)}),
    "Cast of integers": (
        [node("Cast", ["x"], ["y"], to=TensorProto.UINT8)], {},  # -1 becomes 255
    ),
    "ReduceMean": (
        [node("Cast", ["x"], ["j"], to=TensorProto.INT32), node("ReduceMean", ["j", "c"], ["y"])], {"c": np.array([1])}
    ),
    "BatchNormalization": (
        [node("BatchNormalization", ["d", "c", "c", "c", "c"], ["y", "a", "b"], training_mode=1)],
        {"c": np.ones(3, np.float32)},
    ),
    "Dropout": ([node("Dropout", ["d", "c", "t"], ["y"], seed=1)], {"c": np.float32(0.5), "t": np.bool_(True)}),
    "QuantizeLinear": (  # the scale is computed with an error
        [node("ReduceMax", ["d"], ["m"], keepdims=0), node("QuantizeLinear", ["d", "m"], ["y"])], {}
    ),
    "CumSum": (
        [node("Cast", ["d"], ["e"], to=TensorProto.FLOAT16), node("Concat", ["e"] * 2000, ["f"], axis=2),
         node("CumSum", ["f", "c"], ["y"])],
        {"c": np.array(2)},
    ),
}
"""Too many to be summed in float16: :func:`gamma` ends at half of 2**11 terms."""


@pytest.mark.parametrize("name", NONE)
def test_no_bound(name: str) -> None:
    nodes, constants = NONE[name]
    bounds = bounds_of(nodes, constants)
    assert bounds.errors["y"] is None and bounds.unbounded == {nodes[-1].op_type}


def test_the_least_position() -> None:
    """x is 1, 1 + 1/4 and 3, with errors of some 2**-23: the least is no other. Two equal ones may change places."""
    x = np.array([[[4, 5, 12], [12, 4, 4]]], np.int8)
    bounds = bounds_of([node("ArgMin", ["d"], ["y"], axis=2, keepdims=0)], {}, x)
    assert bounds.values["y"].tolist() == [[0, 1]]
    error = bounds.errors["y"]
    assert error is not None and [round(e, 3) for e in error[0]] == [0, 1]


def test_a_choice_that_an_error_may_turn() -> None:
    """x is 0.5 and 0.6, d with errors of some 2**-26: below 0.6 in float32 is not sure of the latter, so that 5 may be
    -3; for the former -3 is the result."""
    x = np.array([[[5, 6]]], np.int8)
    nodes = [node("Less", ["d", "limit"], ["c"]), node("Where", ["c", "low", "high"], ["y"])]
    constants = {"limit": np.float32(0.6), "low": np.float32(-3), "high": np.float32(5)}
    bounds = bounds_of(nodes, constants, x)
    error = bounds.errors["y"]
    assert error is not None and bounds.values["y"][0, 0, 0] == -3
    assert [round(e, 3) for e in error[0, 0]] == [0, 8]


def test_prelu_s_slope_of_channels() -> None:
    """The evaluator takes a slope [3] along axis 1, which numpy's rules do not: there is no bound."""
    x = X[:, :, :4].reshape(2, 3, 4)
    bounds = bounds_of([node("PRelu", ["d", "s"], ["y"])], {"s": np.array([0.1, 0.2, 0.3], np.float32)}, x)
    assert bounds.errors["y"] is None and bounds.unbounded == {"PRelu"}


def quotient(bounds: Bounds) -> Array:
    found = bounds.quotients["y"]
    assert found is not None
    return found


def test_quantized_integers() -> None:
    """QuantizeLinear of int32: as if 2**24 + 1 were rounded to 2**24 before the quotient."""
    x = np.array([[2**24 + 1, 300, -7]], np.int32)
    bounds = bounds_of([node("QuantizeLinear", ["x", "s", "z"], ["y"])], {"s": np.float32(3), "z": np.int8(0)}, x)
    assert bounds.values["y"].tolist() == [[127, 100, -2]]
    apart = np.abs((x.astype(np.float32) / np.float32(3)).astype(float) - x / 3)
    assert (apart <= quotient(bounds)).all() and apart[0, 0] > 0.1
    error = bounds.errors["y"]
    assert error is not None and (quotient(bounds)[0, 1:] < 1e-4).all() and not error[0, 1:].any()


def test_quantized_in_low_precision() -> None:
    nodes = [node("QuantizeLinear", ["d", "s", "z"], ["y"], precision=TensorProto.FLOAT16)]
    bounds = bounds_of(nodes, {"s": np.float32(0.5), "z": np.int8(0)}, opset=23)
    assert bounds.errors["y"] is None


def test_resized_integers() -> None:
    """Linear means of two integers that end in 1/2 may be rounded either way if the quotient has an error."""
    x = np.array([[[0, 4, 9, 9]]], np.uint8)
    nodes = [node("Resize", ["x", "", "scales"], ["y"], mode="linear")]
    bounds = bounds_of(nodes, {"scales": np.array([1, 1, 2], np.float32)}, x)
    error = bounds.errors["y"]
    assert error is not None and error.shape == (1, 1, 8) and (quotient(bounds) < 1e-4).all()
    # 0, 1, 3, 5.25, 7.75, 9, 9, 9: none is near a half
    assert (np.abs(bounds.values["y"] - np.array([[[0, 1, 3, 5.25, 7.75, 9, 9, 9]]])) < 1).all() and not error.any()


def contrib(op: str, inputs: list[str], **attributes: Any) -> list[onnx.NodeProto]:
    return [node(op, inputs, ["y"], domain=MS, **attributes)]


def test_microsoft_s_quantizers() -> None:
    """QuantizeLinear's quotient has the error of d, divided by the scale, per channel; DequantizeLinear rounds once."""
    scales, zeros = np.array([0.3, 0.5, 7], np.float32), np.array([1, 0, -1], np.int8)
    bounds = bounds_of(contrib("QuantizeLinear", ["d", "s", "z"], axis=1), {"s": scales, "z": zeros})
    exact = REALS / scales.astype(float)[:, None]
    apart = np.abs(bounds.values["d"].astype(float) / scales.astype(float)[:, None] - exact)
    assert (apart <= quotient(bounds)).all() and quotient(bounds).max() <= 40 * apart.max()

    bounds = bounds_of(contrib("DequantizeLinear", ["x", "s", "z"], axis=1), {"s": scales, "z": zeros})
    error = bounds.errors["y"]
    exact = (X - zeros[:, None].astype(int)) * scales.astype(float)[:, None]
    apart = np.abs(bounds.values["y"] - exact)
    assert error is not None and (apart <= error).all() and 0 < error.max() <= 2 * 2.0**-24 * np.abs(exact).max()

    nodes = [node("QuantizeLinear", ["d", "h", "n"], ["q"]), *contrib("DequantizeLinear", ["q", "s", "z"], axis=1)]
    bounds = bounds_of(nodes, {"s": scales, "z": zeros, "h": np.float32(0.2), "n": np.int8(0)})
    assert bounds.errors["y"] is None  # half of the levels are ties: their integers are not certain


def test_microsoft_s_products() -> None:
    """MatMulIntegerToFloat and QGemm without an output scale: integers' sums times both scales, rounded once."""
    w = F[:8].reshape(4, 2).view(np.int32).astype(np.int8)
    scales, bias = np.array([0.3, 0.7], np.float32), np.array([1, -100], np.float32)
    constants = {"w": w, "t": scales, "z": Z, "n": np.zeros(2, np.int8), "b": bias, "c": np.array([5, -9], np.int32)}
    x = X[0]
    sums = (x.astype(int) - 3) @ w.astype(int)
    factors = float(S) * scales.astype(float)
    for nodes, exact in (
        (contrib("MatMulIntegerToFloat", ["x", "w", "S", "t", "z", "n", "b"]), sums * factors + bias),
        (contrib("MatMulIntegerToFloat", ["x", "w", "S", "t", "z"]), sums * factors),
        (contrib("QGemm", ["x", "S", "z", "w", "t", "n", "c"]), (sums + constants["c"]) * factors),
    ):
        bounds = bounds_of(nodes, constants, x)
        error = bounds.errors["y"]
        apart = np.abs(bounds.values["y"] - exact)
        assert error is not None and (apart <= error).all() and apart.max() > 0
        assert error.max() <= 4 * 2.0**-24 * (np.abs(exact).max() + 100)


@pytest.mark.parametrize("count, known", [(1000, True), (70_000, False)])
def test_microsoft_s_softmax(count: int, known: bool) -> None:
    """Sums of too many elements have no bound."""
    x = np.resize(X, (1, count)).astype(np.int8)
    nodes = contrib("QLinearSoftmax", ["x", "S", "z", "t", "z"], axis=1, opset=13)
    bounds = bounds_of(nodes, {"z": Z, "t": np.float32(0.01)}, x)
    assert (bounds.errors["y"] is not None) == known
