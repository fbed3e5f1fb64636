"""Lipschitz bounds of functions, against the steepest of many secants in floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Abs, Affine, Clip, LeakyRelu, Relu, Sign
from hwflow.numerics.functions.power import Pow, Reciprocal, RootMultiply, Sqrt
from hwflow.numerics.functions.slopes import greatest_slope
from hwflow.numerics.functions.smooth import (
    Celu,
    Elu,
    Erf,
    Exp,
    Gelu,
    HardSwish,
    Log,
    Mish,
    Selu,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
)
from hwflow.numerics.interval import Interval

CASES: list[tuple[list[Elementwise], Callable[[float], float], tuple[int, int]]] = [
    ([Affine(Fraction(-3), Fraction(1))], lambda x: 1 - 3 * x, (-2, 5)),
    ([Relu()], lambda x: max(x, 0.0), (-2, 3)),
    ([Clip(Fraction(-1), Fraction(2))], lambda x: min(max(x, -1.0), 2.0), (-5, 5)),
    ([Abs()], abs, (-2, 3)),
    ([LeakyRelu(Fraction(-2))], lambda x: x if x >= 0 else -2 * x, (-2, 3)),
    ([Exp()], math.exp, (-3, 2)),
    ([Log()], math.log, (1, 9)),
    ([Sqrt()], math.sqrt, (1, 16)),
    ([Reciprocal()], lambda x: 1 / x, (2, 9)),
    ([Pow(Fraction(3))], lambda x: x**3, (-3, 2)),
    ([RootMultiply(Fraction(2))], lambda x: x * math.sqrt(2), (-3, 2)),
    ([Sigmoid()], lambda x: 1 / (1 + math.exp(-x)), (-4, 4)),
    ([Tanh()], math.tanh, (-2, 2)),
    ([Erf()], math.erf, (-2, 2)),
    ([Softplus()], lambda x: math.log1p(math.exp(x)), (-3, 9)),
    ([Gelu(False)], lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2, (-4, 4)),
    ([Elu(Fraction(1, 2))], lambda x: x if x >= 0 else math.expm1(x) / 2, (-3, 3)),
    (
        [Gelu(True)],
        lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), (-4, 4),
    ),
    ([HardSwish()], lambda x: x * min(max(x + 3, 0), 6) / 6, (-5, 5)),
    ([Mish()], lambda x: x * math.tanh(math.log1p(math.exp(x))), (-5, 5)),
    ([Softsign()], lambda x: x / (1 + abs(x)), (-2, 2)),
    ([Selu(Fraction(3, 2), Fraction(2))], lambda x: 2 * x if x > 0 else 3 * math.expm1(x), (-4, 4)),
    ([Celu(Fraction(2))], lambda x: x if x > 0 else 2 * math.expm1(x / 2), (-4, 4)),
    ([Affine(Fraction(1, 2), Fraction(0)), Exp()], lambda x: math.exp(x / 2), (-2, 4)),
]


@pytest.mark.parametrize(("functions", "meaning", "ends"), CASES, ids=[type(c[0][-1]).__name__ for c in CASES])
def test_no_secant_is_steeper(
    functions: list[Elementwise], meaning: Callable[[float], float], ends: tuple[int, int]
) -> None:
    slope = greatest_slope(functions, Interval(Fraction(ends[0]), Fraction(ends[1])))
    assert slope is not None
    x = np.linspace(*ends, 20001)
    steepest = float(np.max(np.abs(np.diff([meaning(v) for v in x.tolist()]) / np.diff(x))))
    assert 0.99 * float(slope) <= steepest * 1.01 and steepest <= float(slope) * (1 + 1e-6)


@pytest.mark.parametrize("functions", [[Sign()], [Sqrt()], [Reciprocal()], [Log()]])
def test_none_where_there_is_no_bound(functions: list[Elementwise]) -> None:
    assert greatest_slope(functions, Interval(Fraction(0), Fraction(2))) is None
