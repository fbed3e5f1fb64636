"""Operators on integer tensors: narrow levels, sums of ConvInteger and MatMulInteger, quantized constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.agreement import agree
from tests.models import Builder


def sums(b: Builder) -> str:
    """An int32 tensor."""
    q = b.quantize(b.input("x", ["N", 4]), 0.25, 3, "int8")
    return b.node("MatMulInteger", q, b.constant(np.arange(12).reshape(4, 3) - 4, "int8"), b.constant(3, "int8"))


@pytest.mark.parametrize("second", [(20, 30), (-30, -20), (5, 30)])
def test_clip_beyond_levels_that_are_narrow_already(second: tuple[int, int]) -> None:
    b = Builder(13)
    y = b.quantize(b.input("x", ["N", 4]), 0.25, 0, "int8")
    for low, high in ((-10, 10), second):
        y = b.node("Clip", y, b.constant(low, "int8"), b.constant(high, "int8"))
    b.output(y)
    agree(b)


def test_clip_of_a_quantized_constant_as_reals() -> None:
    """Bounds of reals need not be integers."""
    b = Builder(13)
    x = b.requantize(b.input("x", ["N", 4]), 0.25, 0, "int8")
    levels = b.quantize(b.constant([[1.0], [2.0], [3.0], [-1.0]]), 1.0, 0, "int8")
    weights = b.node("Clip", b.node("Cast", levels, to=1), b.constant(0.5), b.constant(2.5))
    b.output(b.quantize(b.node("MatMul", x, weights), 1.0, 0, "int8"))
    agree(b)


@pytest.mark.parametrize("operator", ["Relu", "Clip", "Abs"])
def test_functions_of_sums_before_they_are_dequantized(operator: str) -> None:
    b = Builder(14)
    bounds = [b.constant(v, "int32") for v in (-50, 70)] if operator == "Clip" else []
    y = b.dequantize(b.node(operator, sums(b), *bounds), 0.5, None)
    b.output(b.quantize(y, 4.0, 0, "int8"))
    agree(b)


def test_moved_sums_are_not_the_integers_that_carry_them() -> None:
    """Zero points, and a Relu, are left to the quantizer."""
    b = Builder(14)
    y = b.node("Reshape", b.node("Relu", sums(b)), b.constant([-1, 3, 1], "int64"))
    b.output(b.quantize(b.node("Cast", b.node("Transpose", y, perm=[0, 2, 1]), to=1), 16.0, 0, "int8"))
    agree(b)


def test_a_function_of_two_names_of_the_same_integers(tmp_path: Path) -> None:
    """The host, which adds, needs both."""
    b = Builder(13)
    q = b.quantize(b.input("x", ["N", 4]), 0.25, 0, "int8")
    b.output(b.node("Add", b.dequantize(q, 0.25, 0, "int8"), b.node("Cast", q, to=1, name="real"), name="sum"))
    graph = b.load(tmp_path).quantized
    assert [port.name for port in graph.outputs] == [q, "real"]
    assert graph.suffix == ("dequantizelinear1", "sum")
    agree(b)


@pytest.mark.parametrize(
    "operator, attributes",
    [
        ("Selu", {"alpha": 1.0, "gamma": -1.0}), ("ThresholdedRelu", {"alpha": 3.0}), ("Sign", {}), ("Abs", {}),
        ("LeakyRelu", {"alpha": -0.5}),
    ],
)
def test_a_maximum_of_functions_that_fall_or_rise(operator: str, attributes: dict[str, float]) -> None:
    b = Builder(13)
    x = b.requantize(b.input("x", ["N", 2, 4, 4]), 0.25)
    if operator != "Selu":  # irrational for negative numbers
        x = b.node("Add", x, b.constant(-20.0))
    pool = b.node("MaxPool", b.node(operator, x, **attributes), kernel_shape=[2, 2], strides=[1, 2])
    b.output(b.quantize(pool, 0.25, 0, "int8"))
    agree(b)


@pytest.mark.parametrize("operator, attributes", [("ThresholdedRelu", {"alpha": 1.0}), ("Sign", {})])
def test_a_maximum_of_functions_of_sums_that_rise(operator: str, attributes: dict[str, float]) -> None:
    b = Builder(13)
    x = b.requantize(b.input("x", ["N", 2, 4, 4]), 0.25, 0, "int8")
    conv = b.node("Conv", x, b.weights([[[[2]], [[-3]]]], 0.5))
    pool = b.node("MaxPool", b.node(operator, conv, **attributes), kernel_shape=[2, 2])
    b.output(b.quantize(pool, 0.25, 0, "int8"))
    agree(b)
