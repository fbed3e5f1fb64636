"""Which functions never fall, by hand: a property that shortens the search for thresholds, and must not be missed."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from hwflow.numerics.functions.piecewise import (
    Abs,
    Affine,
    Clip,
    HardSigmoid,
    LeakyRelu,
    Ranked,
    Relu,
    Round,
    Sign,
    Steps,
    ThresholdedRelu,
)
from hwflow.numerics.functions.power import Reciprocal, Sqrt
from hwflow.numerics.functions.smooth import Celu, Elu, Exp, Gelu, HardSwish, Log, Mish, Selu, Sigmoid, Softplus
from hwflow.numerics.rounding import Rounding


@pytest.mark.parametrize(
    ("function", "rises"),
    [
        (Affine(F(2), F(-3)), True), (Affine(F(-1, 5), F(7)), False), (Affine(F(0), F(1)), True),
        (Clip(F(-2), F(6)), True), (Clip(None, F(6)), True), (Relu(), True), (Abs(), False), (Sign(), True),
        (LeakyRelu(F(1, 10)), True), (LeakyRelu(F(-1, 10)), False),
        # from 0 to alpha at alpha
        (ThresholdedRelu(F(3)), True), (ThresholdedRelu(F(-3)), False),
        # continuous, with an addend in the middle that is not the slope
        (HardSigmoid(F(1, 5), F(1, 2)), True), (HardSigmoid(F(3), F(-1, 4)), True),
        (HardSigmoid(F(-1, 5), F(1, 2)), False),
        (Round(Rounding.ROUND), True), (Round(Rounding.FLOOR), True),
        (Ranked((F(-1), F(0), F(2))), True), (Steps((F(-1), F(2))), True),
        (Exp(), True), (Log(), True), (Sigmoid(), True), (Softplus(), True), (Sqrt(), True), (Reciprocal(), False),
        (Elu(F(1)), True), (Elu(F(-1)), False), (Celu(F(1)), True), (Selu(F(5, 3), F(1)), True),
        (Selu(F(5, 3), F(-1)), False), (Gelu(), False), (Mish(), False), (HardSwish(), False),
    ],
)  # fmt: skip
def test_rising(function, rises):
    assert function.rising is rises
