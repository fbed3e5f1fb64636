"""Combinations that share their parts, and numbers that are larger than floats."""

from __future__ import annotations

import pickle
from fractions import Fraction as F

import numpy as np
import pytest

from hwflow.numerics.functions.combination import Combination, combination
from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.function import Elementwise, enclose
from hwflow.numerics.functions.piecewise import Affine, Relu
from hwflow.numerics.interval import MOST_EXACT_BITS, Interval, NoSteps
from hwflow.numerics.requantizers.stages import QuantizerStage

DEPTH = 2000


def sums_with_relu(depth: int) -> Combination:
    """``h + relu(h)`` of ``h + relu(h)`` and so on: 2**depth * x above 0, x below."""
    chain: tuple[Elementwise, ...] = ()
    for _ in range(depth):
        chain = (combination("add", chain, (*chain, Relu())),)
    (result,) = chain
    assert isinstance(result, Combination)
    return result


def test_shared_parts_once() -> None:
    deep = sums_with_relu(DEPTH)
    assert deep.size == 2 * DEPTH
    for x in (F(3, 7), F(-5)):
        assert enclose([deep], Interval.point(x), 96).exact == (x * 2**DEPTH if x > 0 else x)


def test_pickled() -> None:
    deep = pickle.loads(pickle.dumps(sums_with_relu(DEPTH)))
    assert deep.size == 2 * DEPTH
    assert enclose([deep], Interval.point(F(-3)), 96).exact == -3


def test_steps_beyond_floats() -> None:
    """2**2000 * x is no float: nothing but its sign matters to a quantizer of 8 bits."""
    stage = QuantizerStage(F(1, 4), F(0), (sums_with_relu(DEPTH),), F(1, 4), 0, -128, 127)
    steps = stage.steps(-200, 200)
    assert [steps(q) for q in range(-200, 201)] == [127 if q > 0 else max(q, -128) for q in range(-200, 201)]


@pytest.mark.parametrize("multiplier", [F(2**3000), F(-(2**3000), 3), F(1, 2**3000), F(1, 3 * 2**1060)])
@pytest.mark.parametrize("addend", [F(0), F(7**900), F(-(7**900)), F(1, 7**900)])
def test_float_bounds_of_any_factor(multiplier: F, addend: F) -> None:
    points = [F(2) ** e * sign for e in (-900, -30, 0, 900) for sign in (-1, 1)] + [F(0)]
    x = np.array([float(p) for p in points])
    with np.errstate(all="ignore"):
        y = FloatIntervals.of(x, x).affine(multiplier, addend)
    for p, lo, hi in zip(points, y.lo.tolist(), y.hi.tolist(), strict=True):
        assert lo <= multiplier * p + addend <= hi


def test_exact_values_that_are_too_long() -> None:
    square = combination("mul", (Affine(F(1), F(1, 3)),), (Affine(F(1), F(1, 3)),))
    assert enclose([square] * 10, Interval.point(F(1, 7)), 96).exact is not None
    with pytest.raises(NoSteps, match=f"keep its exact values within {MOST_EXACT_BITS} bits, but one has"):
        enclose([square] * 40, Interval.point(F(1, 7)), 96)
    wide = enclose([square] * 40, Interval(F(1, 7), F(1, 6)), 96)  # the ends of an interval are rounded
    assert wide.lo < wide.hi
