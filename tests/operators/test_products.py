"""Matrix products of integers in their dialects' forms, and what their parameters may be, against exact arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.agreement import agree
from tests.models import Builder

# The frame of the stream, the constant, and which of the two is on the left.
OPERANDS = [
    ((5,), (5, 3), "stream"),
    ((4, 5), (5, 3), "stream"),
    ((2, 4, 5), (2, 5, 3), "stream"),
    ((4, 5), (1, 5, 3), "stream"),
    ((3, 4, 5), (1, 3, 5, 2), "stream"),
    ((4, 5), (3, 4), "constant"),
    ((2, 4, 5), (2, 3, 4), "constant"),
]
PER = ["tensor", "row or column", "all axes"]


def _along(shape: tuple[int, ...], axis: int, per: str, values: npt.ArrayLike) -> Any:
    """Parameters for all of a tensor, for each index of ``axis``, or of its rank."""
    if per == "tensor" or len(shape) < -axis:
        return np.asarray(values).reshape(-1)[0]
    own = np.resize(values, shape[axis])
    place = axis % len(shape)
    return own if per == "row or column" else own.reshape([-1 if a == place else 1 for a in range(len(shape))])


def _operands(
    frame: tuple[int, ...], constant: tuple[int, ...], left: str, per: str, signed: str
) -> tuple[Builder, list[Any], tuple[int, ...]]:
    """Each operand with its name, scale and zero point, the left one first; the result's frame."""
    b, rng = Builder(21, 10), np.random.default_rng(len(frame) + len(constant))
    x = b.quantize(b.input("x", ["N", *frame]), 0.5, 7)
    w = b.constant(rng.integers(-9, 9, constant), signed)
    found = []
    for name, shape in ((x, (1, *frame)), (w, constant)) if left == "stream" else ((w, constant), (x, (1, *frame))):
        axis = -2 if not found else -1
        kind = "uint8" if name == x else signed
        here = "tensor" if name == x and len(frame) + 1 == -axis else per  # rows that are frames are alike
        scale = b.constant(_along(shape, axis, here, [0.25, 0.125, 0.5]))
        found.append((name, scale, b.constant(_along(shape, axis, here, [3, 0, 5]), kind)))
    shapes = [(1, *frame), constant] if left == "stream" else [constant, (1, *frame)]
    return b, found, np.matmul(*(np.zeros(shape) for shape in shapes)).shape[1:]


@pytest.mark.parametrize("per", PER)
@pytest.mark.parametrize(("frame", "constant", "left"), OPERANDS)
def test_qlinear_matmul(frame: tuple[int, ...], constant: tuple[int, ...], left: str, per: str) -> None:
    b, (a, w), _ = _operands(frame, constant, left, per, "uint8")
    b.output(b.dequantize(b.node("QLinearMatMul", *a, *w, b.constant(4.0), b.constant(100, "uint8")), 4.0, 100))
    agree(b)


@pytest.mark.parametrize("per", PER)
@pytest.mark.parametrize(("frame", "constant", "left"), OPERANDS)
def test_matmul_integer(frame: tuple[int, ...], constant: tuple[int, ...], left: str, per: str) -> None:
    b, (a, w), _ = _operands(frame, constant, left, per, "int8")
    sums = b.node("Cast", b.node("MatMulInteger", a[0], w[0], a[2], w[2]), to=1)
    b.output(b.quantize(b.node("Mul", sums, b.constant(0.01)), 1.0, 100))
    agree(b)


@pytest.mark.parametrize("per", PER)
@pytest.mark.parametrize("bias", [None, (), (1,), "columns", "rows and columns"])
@pytest.mark.parametrize(("frame", "constant", "left"), OPERANDS)
def test_matmul_integer_to_float(
    frame: tuple[int, ...], constant: tuple[int, ...], left: str, bias: Any, per: str
) -> None:
    b, (a, w), result = _operands(frame, constant, left, per, "int8")
    shape = {"columns": result[-1:], "rows and columns": result}.get(bias, bias)
    more = [] if bias is None else [b.constant(np.arange(np.prod(shape)).reshape(shape) / 3 - 1)]
    y = b.node("MatMulIntegerToFloat", a[0], w[0], a[1], w[1], a[2], w[2], *more, domain="com.microsoft")
    b.output(b.requantize(b.declare(y, ["N", *result]), 4.0, 100))
    agree(b)


@pytest.mark.parametrize("c", [(), (1,), (3,), (1, 1), (1, 3)])
@pytest.mark.parametrize("real", [False, True])
def test_qgemm(c: tuple[int, ...], real: bool) -> None:
    b, rng = Builder(), np.random.default_rng(1)
    x = b.quantize(b.input("x", ["N", 5]), 0.5, 7)
    w = [b.constant(rng.integers(0, 9, (5, 3)), "uint8"), b.constant([0.5, 0.25, 0.75]), b.constant([1, 2, 3], "uint8")]
    bias = b.constant(rng.integers(-99, 99, c), "int32")
    more = [] if real else [b.constant(2.0), b.constant(90, "uint8")]
    y = b.node(
        "QGemm", x, b.constant(0.5), b.constant(7, "uint8"), *w, bias, *more, alpha=0.5, domain="com.microsoft"
    )
    y = b.declare(y, ["N", 3], "float" if real else "uint8")
    b.output(b.requantize(y, 2.0, 90) if real else b.dequantize(y, 2.0, 90))
    agree(b)


@pytest.mark.parametrize("scales", [-0.5, [0.5, -0.25, -1.0]])
@pytest.mark.parametrize("out", [-0.75, [0.75, -1.5, 0.5]])
@pytest.mark.parametrize("op", ["", "Relu", "Conv", "MaxPool", "Add"])
def test_negative_scales(scales: Any, out: Any, op: str) -> None:
    """real = scale * (integer - zero point) whatever the scale's sign is."""
    b, rng = Builder(), np.random.default_rng(2)
    zeros = np.zeros(np.shape(scales), int) + 7
    if op == "MaxPool" and isinstance(scales, list):
        scales = [-0.5, -0.25, -1.0]
    x = b.requantize(b.input("x", ["N", 3, 4, 4]), scales, zeros)
    if op == "Conv":
        x = b.node("Conv", x, b.weights(rng.integers(-9, 9, (3, 3, 2, 2)), [-0.5, 0.25, 1.0], [0, 0, 0], axis=0))
    elif op == "MaxPool":
        x = b.node("MaxPool", x, kernel_shape=[2, 2])
    elif op == "Add":
        x = b.node("Add", x, b.requantize(b.input("y", ["N", 3, 4, 4]), -0.25, 3))
    elif op:
        x = b.node(op, x)
    b.output(b.requantize(x, out, np.zeros(np.shape(out), int) + 90))
    agree(b)


def test_negative_scales_of_constants() -> None:
    """Weights that a quantizer of negative scale makes when the model is compiled."""
    b, rng = Builder(), np.random.default_rng(3)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 7)
    w = b.requantize(b.constant(rng.integers(-40, 40, (4, 3)) / 8), [-0.25, 0.5, -0.125], [3, 0, -1], "int8", axis=1)
    b.output(b.requantize(b.node("MatMul", x, w), 2.0, 90))
    agree(b)


@pytest.mark.parametrize("op", ["Conv", "depthwise", "AveragePool", "MaxPool"])
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_padding_behind_a_zero_point_a_channel(op: str, count_include_pad: int) -> None:
    """Padding means 0, each channel's own zero point."""
    b, rng = Builder(), np.random.default_rng(4)
    scale, zero = [0.5, 0.25], [7, 130]
    x = b.requantize(b.input("x", ["N", 2, 5, 4]), scale, zero, axis=1)
    window: dict[str, Any] = {"pads": [1, 0, 1, 2], "kernel_shape": [3, 3]}
    if op == "AveragePool":
        y = b.node("AveragePool", x, count_include_pad=count_include_pad, **window)
    elif op == "MaxPool":
        y = b.node("MaxPool", x, **window)
    else:
        group = 2 if op == "depthwise" else 1
        y = b.node("Conv", x, b.weights(rng.integers(-9, 9, (4, 2 // group, 3, 3)), 0.25), group=group, **window)
    b.output(b.requantize(y, 4.0, 90))
    agree(b)
