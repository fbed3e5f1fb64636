"""Constants and scales that vary over several axes of a frame, against exact rational arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tests.agreement import agree
from tests.models import Builder

SHAPES = [
    ((4, 6), (4, 6)),  # a positional embedding
    ((2, 3, 4), (1, 2, 3, 4)),
    ((2, 3, 4), (3, 4)),  # the same for all channels
    ((2, 3, 4), (2, 1, 4)),  # an axis between that does not count
    ((1, 6), (4, 1)),  # the stream is repeated
    ((1, 6), (4, 6)),
]


@pytest.mark.parametrize(("frame", "constant"), SHAPES)
@pytest.mark.parametrize(("op", "place"), [("Add", 1), ("Mul", 1), ("Sub", 0), ("Sub", 1), ("Div", 1)])
def test_arithmetic(frame: tuple[int, ...], constant: tuple[int, ...], op: str, place: int) -> None:
    b, rng = Builder(), np.random.default_rng(1)
    x = b.requantize(b.input("x", ["N", *frame]), 0.5, 7)
    c = b.constant(rng.integers(-40, 40, constant) / 8 + (6 if op == "Div" else 0.05))
    b.output(b.requantize(b.node(op, *((x, c) if place else (c, x))), 0.75, 90))
    agree(b)


@pytest.mark.parametrize(("frame", "constant"), SHAPES)
@pytest.mark.parametrize(("op", "place"), [("QLinearAdd", 3), ("QLinearAdd", 0), ("QLinearMul", 3)])
def test_quantized_arithmetic(frame: tuple[int, ...], constant: tuple[int, ...], op: str, place: int) -> None:
    b, rng = Builder(), np.random.default_rng(2)
    x = b.quantize(b.input("x", ["N", *frame]), 0.5, 7)
    c = b.constant(rng.integers(0, 256, constant), "uint8")
    parameters = [b.constant(0.5), b.constant(7, "uint8")]
    own = [b.constant(0.037), b.constant(131, "uint8")]
    operands = [x, *parameters, c, *own] if place else [c, *own, x, *parameters]
    y = b.node(op, *operands, b.constant(0.75), b.constant(90, "uint8"), domain="com.microsoft")
    shape = np.broadcast_shapes((1, *frame), constant)[1:]
    b.output(b.dequantize(b.declare(y, ["N", *shape], "uint8"), 0.75, 90))
    agree(b)


def test_scales_along_two_axes() -> None:
    """Of the operand along one, of the quantizer along another one."""
    b = Builder()
    x = b.requantize(b.input("x", ["N", 2, 3]), [0.5, 1.0], [0, 9], axis=1)
    b.output(b.quantize(x, [1.0, 2.0, 3.0], [0, 5, 0], axis=2))
    agree(b)


def test_sums_of_streams_with_scales_along_two_axes() -> None:
    b = Builder()
    x = b.requantize(b.input("x", ["N", 2, 3]), [0.5, 1.0], [0, 9], axis=1)
    y = b.requantize(b.input("y", ["N", 2, 3]), [0.25, 1.0, 0.75], [4, 0, 9], axis=2)
    b.output(b.requantize(b.node("Add", x, y), 1.5, 3))
    agree(b)


def test_a_function_of_several_axes_in_front_of_a_matrix() -> None:
    """A Relu of sums with a constant, without a quantizer: tables of its few values, one per element."""
    b, rng = Builder(), np.random.default_rng(3)
    x = b.requantize(b.input("x", ["N", 3, 4]), 0.5, 7)
    shifted = b.node("Relu", b.node("Add", x, b.constant(rng.integers(-8, 8, (3, 4)) / 2)))
    product = b.node("MatMul", shifted, b.weights(rng.integers(-9, 9, (4, 2)), 0.25))
    b.output(b.requantize(product, 3.0, 100))
    agree(b)


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("kind", ["uint8", "float", "quantized", "alike"])
@pytest.mark.parametrize("places", ["c x", "x c", "x c y c", "c x y"])
def test_concat(axis: int, kind: str, places: str) -> None:
    """A class token, say: a constant beside streams, each with a scale of its own."""
    b, rng = Builder(), np.random.default_rng(4)
    streams = {name: b.quantize(b.input(name, ["N", 2, 3]), 0.5, 7) for name in set(places) & {"x", "y"}}
    operands = []
    for name in places.split():
        values = rng.integers(0, 256, (1, 2, 3))
        if name != "c":
            operands.append(streams[name] if kind == "uint8" else b.dequantize(streams[name], 0.5, 7))
        elif kind == "uint8":
            operands.append(b.constant(values, "uint8"))
        elif kind == "alike":
            operands.append(b.constant(np.full((1, 2, 3), 1.5)))
        elif kind == "quantized":
            operands.append(b.weights(values, [0.25, 0.4], [3, 128], "uint8", axis=1))
        else:
            operands.append(b.constant(values / 7 - 11))
    joined = b.node("Concat", *operands, axis=axis)
    b.output(joined if kind == "uint8" else b.requantize(joined, 0.75, 60))
    agree(b)


def test_concat_of_functions_that_no_table_holds() -> None:
    b = Builder()
    x = b.node("Sigmoid", b.requantize(b.input("x", ["N", 2, 3]), 0.5, 7))
    y = b.node("Relu", b.requantize(b.input("y", ["N", 2, 3]), 0.25, 9))
    token = b.constant(np.arange(3.0).reshape(1, 1, 3) / 7)
    b.output(b.requantize(b.node("Concat", token, x, y, axis=1), 0.0078125, 3))
    agree(b)


def test_concat_in_front_of_a_matrix() -> None:
    b, rng = Builder(), np.random.default_rng(5)
    x = b.requantize(b.input("x", ["N", 2, 3]), 0.5, 7)
    token = b.weights(rng.integers(0, 256, (1, 1, 3)), 0.5, 7, "uint8")
    product = b.node("MatMul", b.node("Concat", token, x, axis=1), b.weights(rng.integers(-9, 9, (3, 2)), 0.25))
    b.output(b.requantize(product, 3.0, 100))
    agree(b)


@pytest.mark.parametrize("axis", [1, 2])
def test_quantized_concat(axis: int) -> None:
    b, rng = Builder(), np.random.default_rng(6)
    x = b.quantize(b.input("x", ["N", 2, 3]), 0.5, 7)
    own = [b.constant(0.5), b.constant(7, "uint8")]
    token = [b.constant(rng.integers(0, 256, (1, 2, 3)), "uint8"), b.constant(0.037), b.constant(131, "uint8")]
    y = b.node("QLinearConcat", b.constant(0.75), b.constant(60, "uint8"), *token, x, *own, axis=axis,
               domain="com.microsoft")
    b.output(b.dequantize(b.declare(y, ["N", *((4, 3) if axis == 1 else (2, 6))], "uint8"), 0.75, 60))
    agree(b)
