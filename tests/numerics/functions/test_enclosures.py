"""Enclosures of functions: float64 and exact ones contain the values of a second implementation."""

from __future__ import annotations

from fractions import Fraction as F
from math import inf

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp

from hwflow.numerics.functions.combination import Combination
from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.function import Elementwise, enclose, floats
from hwflow.numerics.functions.piecewise import Clip, Rational
from hwflow.numerics.functions.power import Pow, Sqrt
from hwflow.numerics.functions.real_steps import Levels
from hwflow.numerics.functions.smooth import Celu, Elu, Erf, Exp, Gelu, Log, Mish, Sigmoid, Softplus, Softsign, Tanh
from hwflow.numerics.interval import Interval, NoSteps
from hwflow.numerics.rounding import Quantizer, Rounding
from tests.numerics.functions.reals import BITS, NoValue, Real, Unsure, value
from tests.numerics.functions.test_quantizer_steps import combinations, either, rational, smooth

special = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e30])
arguments = st.floats(-40, 40) | st.floats(-1e6, 1e6) | st.floats(-1, 1) | special
chains = st.lists(either | combinations, min_size=1, max_size=3).map(tuple)


def _mpf(x: Real | float) -> object:
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, F) else mp.mpf(x)


@settings(max_examples=250, deadline=None)
@given(either, arguments, arguments)
def test_functions_that_rise_do_not_fall(function: Elementwise, a: float, b: float) -> None:
    assume(function.rising)
    lo, hi = (F(v) for v in sorted((a, b)))
    try:
        with mp.workprec(4 * BITS):
            below, above = (_mpf(value((function,), x)) for x in (lo, hi))
            assert below <= above + abs(above) * mp.mpf(2) ** -(2 * BITS)
    except (NoValue, OverflowError, Unsure):
        assume(False)


@settings(max_examples=250, deadline=None)
@given(st.one_of(smooth.map(lambda f: (f,)), chains), arguments, arguments, st.floats(0, 1))
@example((Combination("mul", (), ()), Tanh()), 0.0, 1.0034560405681075e-206, 0.0)
def test_enclosures_contain_the_value(functions: tuple[Elementwise, ...], a: float, b: float, part: float) -> None:
    lo, hi = min(a, b), max(a, b)
    x = min(max(lo + (hi - lo) * part, lo), hi)
    with np.errstate(all="ignore"):
        bounds = floats(functions, FloatIntervals.of(np.array([lo, lo, hi]), np.array([hi, lo, hi])))
    with mp.workprec(4 * BITS):
        for place, k in ((x, 0), (lo, 1), (hi, 2)):
            try:
                exact = _mpf(value(functions, F(place)))
            except NoValue:
                assert bounds.partly[k]
                continue
            except (OverflowError, Unsure):
                assume(False)
            assert not bounds.nowhere[k]
            assert bounds.lo[k] <= exact <= bounds.hi[k]
            for interval in (Interval.point(F(place)), Interval(F(lo), F(hi))):
                try:
                    y = enclose(functions, interval, 100)
                except NoSteps:
                    continue
                slack = abs(exact) * mp.mpf(2) ** -(2 * BITS)
                assert _mpf(y.lo) - slack <= exact <= _mpf(y.hi) + slack


@settings(max_examples=300, deadline=None)
@given(smooth, arguments)
def test_floats_enclose_a_value_narrowly(function: Elementwise, x: float) -> None:
    """A point's bounds are a few units in the last place apart; what is defined there is known to be."""
    assume(x == 0 or abs(x) > 1e-60)  # no underflow of powers
    with np.errstate(all="ignore"):
        bounds = floats((function,), FloatIntervals.of(np.array([x]), np.array([x])))
    with mp.workprec(4 * BITS):
        try:
            exact = _mpf(value((function,), F(x)))
        except (NoValue, OverflowError, Unsure):
            assume(False)
        assert not bounds.partly[0] and not bounds.nowhere[0]
        if exact == 0 or 1e-290 < abs(exact) < 1e300:
            assert bounds.hi[0] - bounds.lo[0] <= abs(exact) * 2.0**-30 + 2.0**-1050


@settings(max_examples=200, deadline=None)
@given(smooth, arguments.map(F))
def test_values_are_enclosed_as_narrowly_as_asked(f: Elementwise, x: F) -> None:
    try:
        y = f.enclose(Interval.point(x), 200)
    except NoSteps:
        return
    if isinstance(y.hi, F) and isinstance(y.lo, F) and min(abs(y.lo), abs(y.hi)) > F(1, 1 << 16000):
        assert y.hi - y.lo <= 3 * F(1, 1 << 200) * abs(y.hi)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (Exp(), F(1 << 60000), Interval(F(1 << (1 << 14) - 1), inf)),  # no more than that it is beyond 2**(2**14)
        (Exp(), F(-1 << 60000), Interval(F(0), F(1, 1 << (1 << 14)), True)),
        (Exp(), F(-20000), Interval(F(0), F(1, 1 << (1 << 14)), True)),
        (Gelu(), F(-1000), Interval(F(-1, 1 << (1 << 14)), F(0), hi_open=True)),
        (Mish(), F(-30000), Interval(F(-1, 1 << (1 << 14)), F(0), hi_open=True)),
        (Softplus(), F(-1 << 60000), Interval(F(0), F(1, 1 << (1 << 14)), True)),
        (Sigmoid(), F(-1 << 60000), Interval(F(0), F(1, 1 << (1 << 14)), True)),
    ],
)
def test_values_beyond_all_bounds(function: Elementwise, x: F, expected: Interval) -> None:
    assert function.enclose(Interval.point(x), 64) == expected


@pytest.mark.parametrize(
    ("function", "x", "lo", "hi"),
    [
        (Exp(), 2, 1, inf), (Exp(), -2, 0, 1), (Log(), 2, 0, inf), (Log(), F(1, 2), -inf, 0),
        (Sigmoid(), 2, F(1, 2), 1), (Sigmoid(), -2, 0, F(1, 2)),
        (Tanh(), 2, 0, 1), (Tanh(), F(-1, 2), F(-1, 2), 0), (Erf(), 2, 0, 1), (Erf(), -2, -1, 0),
        (Softplus(), 2, 2, inf), (Softplus(), -2, 0, inf), (Softsign(), 2, 0, 1), (Softsign(), -2, -1, 0),
        (Elu(F(3)), -2, -3, 0), (Elu(F(-3)), -2, 0, 3), (Celu(F(3)), -2, -3, 0), (Celu(F(-3)), -2, -inf, 0),
        (Gelu(), 2, 1, 2), (Gelu(), -2, -1, 0), (Mish(), 2, 0, 2), (Mish(), -2, -2, 0),
    ],
)  # fmt: skip
def test_a_value_lies_between_ends_that_it_never_has(function, x, lo, hi) -> None:
    """By hand: the function's limits, or bounds that follow from its form, are not reached at any number."""
    ends = (end if isinstance(end, float) else F(end) for end in (lo, hi))
    assert function.side(F(x)) == Interval(*ends, lo_open=True, hi_open=True)


def test_an_argument_next_to_a_zero() -> None:
    """log(1 + d) lies between d - d**2 / 2 and d, of which it is asked for as many bits as of any other value."""
    d = F(1, 1 << 2000)
    y = Log().enclose(Interval.point(1 + d), 64)
    assert d - d**2 / 2 - d / (1 << 64) <= y.lo <= y.hi <= d + d / (1 << 64)


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        (Gelu(), lambda x: mp.ncdf(x) + x * mp.npdf(x)),
        (Mish(), lambda x: 4 * (x + 1) + 4 * mp.exp(2 * x) + mp.exp(3 * x) + mp.exp(x) * (4 * x + 6)),
        (Gelu(True), lambda x: 1 + x * mp.sqrt(2 / mp.pi) * (1 + mp.mpf("0.134145") * x**2)
            * (1 - mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)))),
    ],
)  # fmt: skip
def test_turning_points(function: Gelu | Mish, derivative: object) -> None:
    """The derivative (times something positive) changes its sign in the stated place; no value is below ``least``."""
    turn = function.turn
    with mp.workprec(BITS):
        low, high = _mpf(F(turn.place.lo)), _mpf(F(turn.place.hi))
        assert derivative(low) < 0 < derivative(high)
        assert 0 < high - low < 1e-19
        at_turn = _mpf(value((function,), F(turn.place.lo)))
        assert 0 < at_turn - _mpf(turn.least) < 1e-19
        assert at_turn - _mpf(turn.least) > (high - low) ** 2  # the function is flat to that over the place


numbers = st.fractions(-9, 9, max_denominator=12)
cuts = st.tuples(numbers, st.booleans())


@settings(deadline=None)
@given(rational, st.integers(-3, 3), st.lists(st.tuples(cuts, st.integers(-3, 3)), max_size=6), st.lists(numbers))
def test_pulled_levels(f: Rational, first: int, steps: list[tuple[tuple[F, bool], int]], places: list[F]) -> None:
    """The levels of f(x), pulled back, at x: at random numbers, and at and beside every cut."""
    levels = Levels.of(first, sorted(steps, key=lambda s: s[0]))
    pulled = f.pull(levels)
    for cut, _ in pulled.cuts():
        places += [cut[0], cut[0] - F(1, 9999), cut[0] + F(1, 9999)]
    for x in places:
        y = f(x)
        level = first
        for (v, strict), after in sorted(steps, key=lambda s: s[0]):
            if y > v or (y == v and not strict):
                level = after
        assert pulled(x) == level


ends = st.fractions(-3, 3, max_denominator=2)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    lo, hi = sorted((draw(ends), draw(ends)))
    lo_open, hi_open = (draw(st.booleans()) and lo < hi for _ in range(2))
    kind = draw(st.integers(0, 8))
    return Interval(-inf if kind == 0 else lo, inf if kind == 1 else hi, lo_open, hi_open)


def _samples(x: Interval) -> list[F]:
    """The numbers of a grid that lie in it, with its ends and numbers just inside."""
    some = [F(n, 4) for n in range(-16, 17)] + [F(-1000), F(1000)]
    for end in (x.lo, x.hi):
        if isinstance(end, F):
            some += [end, end - F(1, 1000), end + F(1, 1000)]
    return [s for s in some if s in x]


@settings(max_examples=50, deadline=None)
@given(intervals(), intervals(), numbers)
def test_interval_arithmetic(x: Interval, y: Interval, m: F) -> None:
    for a in _samples(x):
        assert m * a + 1 in x.affine(m, F(1))
        assert -a in -x
        assert (a in y) == ((both := x.intersection(y)) is not None and a in both)
        assert a in x.hull(y) and a in y.hull(x)
        if 0 not in x:
            assert 1 / a in x.reciprocal()
        for b in _samples(y):
            assert a + b in x + y
            assert a * b in x * y
            assert min(a, b) in x.minimum(y)
            assert max(a, b) in x.maximum(y)


def test_open_ends_by_hand() -> None:
    half_open = Interval(F(0), F(1), False, True)
    assert half_open * half_open == Interval(F(0), F(1), False, True)
    assert half_open.affine(F(-2), F(1)) == Interval(F(-1), F(1), True, False)
    assert half_open + Interval.point(F(1)) == Interval(F(1), F(2), False, True)
    assert Interval(F(0), F(1), True).reciprocal() == Interval(F(1), inf)
    assert Interval(F(0), F(1), True, True).reciprocal() == Interval(F(1), inf, True)
    assert half_open.maximum(Interval.point(F(1))) == Interval.point(F(1))
    assert half_open.minimum(Interval.point(F(1))) == half_open
    assert Clip(F(0), F(1)).enclose(half_open, 9) == half_open
    assert Sqrt().enclose(Interval(F(0), F(4), True, True), 9) == Interval(F(0), F(2), True, True)
    assert Pow(F(2)).enclose(Interval(F(-1), F(2), True, True), 9) == Interval(F(0), F(4), False, True)


@pytest.mark.parametrize("mode", Rounding)
@pytest.mark.parametrize("inside", [False, True])
def test_levels_of_intervals(mode: Rounding, inside: bool) -> None:
    """Ends that are not reached count by what lies beside them; floats enclose that."""
    q = Quantizer(F(1, 2), 1, -3, 4, mode, inside)
    for n in range(-24, 24):
        x, beside = F(n, 8), F(1, 1000)
        assert q.enclose(Interval(x, x + 1)) == (q(x), q(x + 1))
        assert q.enclose(Interval(x, x + 1, True, True)) == (q(x + beside), q(x + 1 - beside))
        low, high = q.floats(FloatIntervals.of(np.array([float(x)]), np.array([float(x)])))
        assert low[0] <= q(x) <= high[0] <= low[0] + 2
    assert q.enclose(Interval(-inf, inf)) == (-3, 4)


@pytest.mark.parametrize("mode", Rounding)
def test_rounding_of_floats(mode: Rounding) -> None:
    values = [n / 8 for n in range(-40, 41)] + [0.49999999999999994, -0.49999999999999994, 2.0**52 + 1, 2.0**53 - 1]
    assert mode.floats(np.array(values)).tolist() == [mode(F(v)) for v in values]
    assert mode.floats(np.array([inf, -inf])).tolist() == [inf, -inf]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="alpha of a Celu must not be 0"):
        Celu(F(0))
