"""Intervals of floats by hand: exact where they can be, and beyond the range of float64."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F
from math import inf, nextafter

import numpy as np
import pytest

from hwflow.numerics.functions.float_interval import LARGEST, TINY, FloatIntervals, nearest, outwards
from hwflow.numerics.functions.smooth import Elu, Erf, Exp, Sigmoid, Softsign, Tanh

HUGE = F(1 << 2000)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """As those who ask do it: infinite ends and undefined values are no errors here."""
    with np.errstate(all="ignore"):
        yield


def of(*ends: tuple[float, float]) -> FloatIntervals:
    lo, hi = np.array(ends).T
    return FloatIntervals.of(lo, hi)


def ends(x: FloatIntervals) -> list[tuple[float, float]]:
    return list(zip(x.lo.tolist(), x.hi.tolist(), strict=True))


def test_the_tightest_floats_around_a_number() -> None:
    assert outwards(F(1, 2)) == (0.5, 0.5)
    assert outwards(F(-3)) == (-3.0, -3.0)
    third = 1 / 3  # below 1/3
    assert F(third) < F(1, 3)
    assert outwards(F(1, 3)) == (third, nextafter(third, inf))
    assert outwards(F(-1, 3)) == (nextafter(-third, -inf), -third)
    assert outwards(HUGE) == (LARGEST, inf)
    assert outwards(-HUGE) == (-inf, -LARGEST)
    assert outwards(F(LARGEST)) == (LARGEST, LARGEST)
    assert outwards(1 / HUGE) == (0.0, nextafter(0.0, 1.0))


def test_the_nearest_float() -> None:
    assert [nearest(x) for x in (F(1, 2), HUGE, -HUGE, F(LARGEST), F(0))] == [0.5, LARGEST, -LARGEST, LARGEST, 0.0]


@pytest.mark.parametrize(
    ("multiplier", "addend"),
    [(F(1), F(0)), (F(1), F(3)), (F(-1, 3), F(2, 7)), (F(10) ** 300, F(-1)), (1 / HUGE, F(0)), (HUGE, F(1)),
     (-HUGE, F(0)), (F(0), F(1, 3)), (F(1), HUGE), (F(-2), -HUGE), (F(3), F(1, 1 << 1000))],
)
def test_lines_contain_their_values_and_little_more(multiplier: F, addend: F) -> None:
    points = [(-2.0, -1.0), (0.0, 0.0), (0.25, 3.0), (1e-300, 1e300)]
    result = of(*points).affine(multiplier, addend)
    for (a, b), (lo, hi) in zip(points, ends(result), strict=True):
        exact = sorted(multiplier * F(x) + addend for x in (a, b))
        assert (lo == -inf or F(lo) <= exact[0]) and (hi == inf or exact[1] <= F(hi)), (a, b)
        size = max(abs(multiplier) * max(abs(F(a)), abs(F(b))), abs(addend))
        if 1 / F(LARGEST) < size < F(LARGEST) / 4:
            assert exact[0] - F(lo) <= size / 2**48 and F(hi) - exact[1] <= size / 2**48, (a, b)
    assert not result.partly.any() and not result.nowhere.any()


def test_exact_lines() -> None:
    """Nothing is added to a number that stays itself, or to a constant that is a float."""
    assert ends(of((-2.0, 0.3)).affine(F(1), F(0))) == [(-2.0, 0.3)]
    assert ends(of((-2.0, 0.3)).affine(F(0), F(5, 4))) == [(1.25, 1.25)]
    assert ends(of((0.0, 0.0)).affine(F(1, 3), F(0))) == [(0.0, 0.0)]


def test_reciprocals() -> None:
    result = of((2.0, 4.0), (-4.0, -2.0), (0.0, 1.0), (-1.0, 1.0), (0.0, 0.0), (1.0, inf)).reciprocal()
    assert result.partly.tolist() == [False, False, True, True, True, False]
    assert result.nowhere.tolist() == [False, False, False, False, True, False]
    (a, b), (c, d), *undefined, (e, f) = ends(result)
    assert a <= 0.25 < 0.5 <= b and b - a < 0.2501 and c <= -0.5 < -0.25 <= d and d - c < 0.2501
    assert undefined == [(-inf, inf)] * 3
    assert -TINY <= e <= 0 and 1 <= f < 1.0001


def test_two_intervals() -> None:
    x, y = of((-2.0, 3.0), (0.0, 0.0), (1.0, 2.0)), of((-5.0, 7.0), (-inf, inf), (4.0, 8.0))
    assert ends(x.maximum(y)) == [(-2.0, 7.0), (0.0, inf), (4.0, 8.0)]
    assert ends(x.minimum(y)) == [(-5.0, 3.0), (-inf, 0.0), (1.0, 2.0)]
    assert ends(x.negated()) == [(-3.0, 2.0), (0.0, 0.0), (-2.0, -1.0)]
    for result, exact in ((x.sum(y), [(-7, 10), None, (5, 10)]), (x.product(y), [(-15, 21), (0, 0), (4, 16)])):
        for (lo, hi), wanted in zip(ends(result), exact, strict=True):
            if wanted is None:
                assert (lo, hi) == (-inf, inf)
            else:
                assert lo <= wanted[0] and wanted[1] <= hi and hi - lo - (wanted[1] - wanted[0]) < 1e-13
    assert ends(x.product(y))[1] == (0.0, 0.0)  # of 0, however far the other reaches
    bad = x.undefined(np.array([True, False, False]), np.array([False, False, True]))
    for result in (bad.sum(y), y.sum(bad), y.product(bad), y.maximum(bad), bad.minimum(y)):
        assert (result.partly.tolist(), result.nowhere.tolist()) == ([True, False, False], [False, False, True])
    assert ends(x.within(-1.0, 1.5)) == [(-1.0, 1.5), (0.0, 0.0), (1.0, 1.5)]


@pytest.mark.parametrize("function", [Tanh(), Erf(), Elu(F(1)), Softsign()])
def test_0_stays_0(function: Tanh | Erf | Elu | Softsign) -> None:
    """Nothing else does: 1 and what is next to 0 have values with an error."""
    zero, one, tiny = ends(function.floats(of((0.0, 0.0), (1.0, 1.0), (5e-324, 5e-324))))
    assert zero == (0.0, 0.0)
    assert one[0] < one[1] or isinstance(function, Elu | Softsign)
    assert tiny[0] <= 5e-324 <= tiny[1]


def test_curves_keep_to_their_sides() -> None:
    x = of((-800.0, 800.0), (-inf, inf), (0.0, 0.0))
    for function, least, most in ((Sigmoid(), 0, 1), (Tanh(), -1, 1), (Exp(), 0, inf), (Elu(F(2)), -2, inf)):
        bounds = ends(function.floats(x))
        assert all(least <= lo <= hi <= most for lo, hi in bounds)
        assert bounds[1] == (least, most)
    ((lo, hi),) = ends(Sigmoid().floats(of((0.0, 0.0))))
    assert lo < 0.5 < hi and hi - lo < 1e-12
