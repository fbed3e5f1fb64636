"""The exact evaluation itself, on numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.dialects.exact import reals
from tests.dialects.exact.exact_model import evaluate
from tests.models import Builder

QONNX = "qonnx.custom_op.general"

# Columns of the table in the document of QONNX's IntQuant, row by row.
NUMBERS = ("5.5", "2.5", "1.6", "1.1", "1.0", "-1.0", "-1.1", "-1.6", "-2.5", "-5.5")
ROUNDED = {
    "ROUND": (6, 2, 2, 1, 1, -1, -1, -2, -2, -6),
    "CEIL": (6, 3, 2, 2, 1, -1, -1, -1, -2, -5),
    "FLOOR": (5, 2, 1, 1, 1, -1, -2, -2, -3, -6),
    "UP": (6, 3, 2, 2, 1, -1, -2, -2, -3, -6),
    "DOWN": (5, 2, 1, 1, 1, -1, -1, -1, -2, -5),
    "HALF_UP": (6, 3, 2, 1, 1, -1, -1, -2, -3, -6),
    "HALF_DOWN": (5, 2, 2, 1, 1, -1, -1, -2, -2, -5),
}


@pytest.mark.parametrize("mode", ROUNDED)
def test_rounding_modes(mode: str) -> None:
    assert tuple(reals.rounded(Fraction(number), mode) for number in NUMBERS) == ROUNDED[mode]


def test_rational_values_of_functions_are_rational() -> None:
    zero = Fraction(0)
    assert reals.sigmoid(zero) == Fraction(1, 2) and reals.exp(zero) == 1 and reals.tanh(zero) == 0
    assert reals.sqrt(Fraction(9, 16)) == Fraction(3, 4) and reals.power(Fraction(4), Fraction(-3, 2)) == Fraction(1, 8)
    assert reals.log(Fraction(1)) == 0 and reals.erf(zero) == 0


def test_irrational_numbers_are_decided_however_near() -> None:
    """sqrt(n**2 + 1) exceeds n by about 1 / (2 n); exp(-100) is about 4e-44."""
    n = 10**60
    assert reals.rounded(reals.sqrt(Fraction(n * n + 1)), "FLOOR") == n
    assert reals.rounded(reals.sqrt(Fraction(n * n + 1)), "CEIL") == n + 1
    assert reals.rounded(reals.exp(Fraction(-100)) + Fraction(1, 2)) == 1
    assert reals.rounded(Fraction(1, 2) - reals.exp(Fraction(-100))) == 0
    assert float(reals.softplus(Fraction(0))) == pytest.approx(np.log(2))
    assert float(reals.PI) == np.pi


def test_equal_irrational_numbers_cannot_be_told_apart() -> None:
    root = reals.sqrt(Fraction(2))
    with pytest.raises(reals.Undecided):
        reals.sign(root * root - 2)


def value(b: Builder, name: str, **feeds: Any) -> list[Any]:
    b.output(b.declare(name, ["N"]))
    result: list[Any] = evaluate(b.build(), {k: np.asarray(v) for k, v in feeds.items()})[name].reshape(-1).tolist()
    return result


def test_quantize_rounds_before_it_adds_the_zero_point() -> None:
    """2.5 and 3.5 round to 2 and 4; with the odd zero point inside they would give 6 (5.5 and 6.5 round to 6)."""
    b = Builder()
    x = b.input("x", [1, 4])
    assert value(b, b.quantize(x, 1.0, 3), x=np.float32([[2.5, 3.5, -100, 1000]])) == [5, 7, 0, 255]


def test_quant_adds_the_zero_point_before_it_rounds() -> None:
    b = Builder()
    x = b.input("x", [1, 4])
    name = b.node("Quant", x, b.constant(1.0), b.constant(3.0), b.constant(4.0), domain=QONNX, signed=0, narrow=1)
    assert value(b, name, x=np.float32([[2.5, 3.5, -100, 1000]])) == [3, 3, -3, 11]


def test_trunc_drops_low_bits() -> None:
    """13 / 4 = 3.25 is 3 of the old scale in version 1; of a scale four times as large, so 12, in version 2."""
    for operands, wanted in (((1, 0, 8, 6), [3, -4, 25]), ((1, 0, 8, 4, 4), [12, -16, 28])):
        b = Builder()
        x = b.input("x", [1, 3])
        name = b.node("Trunc", x, *(b.constant(float(v)) for v in operands), domain=QONNX, rounding_mode="FLOOR")
        assert value(b, name, x=np.float32([[13, -13, 100]])) == wanted


def test_multi_threshold_counts() -> None:
    b = Builder()
    x = b.input("x", [1, 2])
    thresholds = b.constant([[1, 2, 2], [-1, 0, 1]])
    name = b.node("MultiThreshold", x, thresholds, domain=QONNX, out_scale=2.0, out_bias=-1.0, out_dtype="INT4")
    assert value(b, name, x=np.float32([[2, -0.5]])) == [5, 1]


def test_qlinear_conv_by_hand() -> None:
    """(3 - 1) * 2 + (5 - 1) * (-1) = 0 and bias 3 make 3, times 1/2 * 1/4 / (1/8) = 1; 10 is zero."""
    b = Builder()
    x = b.input("x", [1, 1, 2], "uint8")
    operands = [x, b.constant(0.5), b.constant(1, "uint8"), b.constant([[[2, -1]]], "int8"), b.constant(0.25)]
    operands += [b.constant(0, "int8"), b.constant(0.125), b.constant(10, "uint8"), b.constant([3], "int32")]
    name = b.node("QLinearConv", *operands, kernel_shape=[2], pads=[0, 1])
    assert value(b, name, x=np.uint8([[[3, 5]]])) == [13, 10 + (5 - 1) * 2 + 3]


def test_qlinear_average_rounds_half_to_even_before_the_zero_point() -> None:
    """(1 + 2) / 2 = 1.5 and (2 + 3) / 2 = 2.5 both round to 2."""
    for pixels in ([1, 2], [2, 3]):
        b = Builder()
        x = b.input("x", [1, 1, 1, 2], "uint8")
        one, zero, odd = b.constant(1.0), b.constant(0, "uint8"), b.constant(7, "uint8")
        name = b.node("QLinearGlobalAveragePool", x, one, zero, one, odd, domain="com.microsoft", channels_last=0)
        assert value(b, name, x=np.uint8([[[pixels]]])) == [9]
