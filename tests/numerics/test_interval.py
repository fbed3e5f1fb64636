"""Exact intervals by hand: which ends are attained."""

from __future__ import annotations

from fractions import Fraction as F
from math import inf

import pytest

from hwflow.numerics.interval import LARGEST_BITS, MOST_EXACT_BITS, Interval, NoSteps, Undefined, length


def test_ends_that_are_not_attained() -> None:
    """(1, 2] and [1, 2): one end each."""
    left, right = Interval(F(1), F(2), True, False), Interval(F(1), F(2), False, True)
    assert [x in left for x in (F(0), F(1), F(3, 2), F(2), F(3))] == [False, False, True, True, False]
    assert [x in right for x in (F(0), F(1), F(3, 2), F(2), F(3))] == [False, True, True, False, False]
    assert Interval(-inf, F(0)) == Interval(-inf, F(0), True, False)
    assert Interval(F(0), inf) == Interval(F(0), inf, False, True)
    assert (Interval.point(F(3)).exact, left.exact, Interval(-inf, inf).exact) == (3, None, None)


def test_arithmetic() -> None:
    x, y = Interval(F(1), F(2), True, False), Interval(F(-3), F(5), False, True)
    assert -x == Interval(F(-2), F(-1), False, True)
    assert x + y == Interval(F(-2), F(7), True, True)
    assert y + y == Interval(F(-6), F(10), False, True)
    assert x.affine(F(2), F(1)) == Interval(F(3), F(5), True, False)
    assert x.affine(F(-2), F(1)) == Interval(F(-3), F(-1), False, True)
    assert x.affine(F(0), F(7)) == Interval.point(F(7))
    assert Interval(-inf, F(1)).affine(F(-1), F(0)) == Interval(F(-1), inf)
    assert x * y == Interval(F(-6), F(10), False, True)  # 2 * -3 is attained, 2 * 5 is not
    assert x * Interval(F(-3), F(-1)) == Interval(F(-6), F(-1), False, True)
    assert x * Interval.point(F(0)) == Interval.point(F(0))
    assert Interval(F(0), F(1), False, True) * y == Interval(F(-3), F(5), True, True)
    assert Interval(F(-1), F(0)) * Interval(F(1), inf) == Interval(-inf, F(0))
    assert Interval(F(-1), F(2)) * Interval(F(3), inf) == Interval(-inf, inf)


def test_reciprocals() -> None:
    assert Interval(F(2), F(4), True, False).reciprocal() == Interval(F(1, 4), F(1, 2), False, True)
    assert Interval(F(-4), F(-2)).reciprocal() == Interval(F(-1, 2), F(-1, 4))
    assert Interval(F(0), F(2), True, False).reciprocal() == Interval(F(1, 2), inf)
    assert Interval(F(-2), F(0), False, True).reciprocal() == Interval(-inf, F(-1, 2))
    assert Interval(F(2), inf).reciprocal() == Interval(F(0), F(1, 2), True, False)
    for x, certain in ((Interval(F(0), F(1)), False), (Interval.point(F(0)), True)):
        with pytest.raises(Undefined) as raised:
            x.reciprocal()
        assert raised.value.certain == certain
        assert raised.value.reason == "have a value everywhere, but it divides by 0"


def test_two_intervals() -> None:
    x, y = Interval(F(0), F(4), True, False), Interval(F(0), F(4), False, True)
    assert x.maximum(y) == Interval(F(0), F(4), True, False)  # of x alone 0 is not, and 4 is
    assert x.minimum(y) == Interval(F(0), F(4), False, True)
    assert x.hull(y) == Interval(F(0), F(4))
    assert x.intersection(y) == Interval(F(0), F(4), True, True)
    high = Interval(F(3), F(9))
    assert x.maximum(high) == high
    assert x.minimum(high) == x
    assert x.hull(high) == Interval(F(0), F(9), True, False)
    assert x.intersection(high) == Interval(F(3), F(4))
    assert x.intersection(Interval(F(4), F(5))) == Interval.point(F(4))
    assert y.intersection(Interval(F(4), F(5))) is None
    assert x.intersection(Interval(F(5), F(6))) is None


def test_long_ends_are_rounded_outwards() -> None:
    """An end that is rounded lies beyond the values: it is not attained; the other one stays as it is."""
    third = F((1 << 6000) + 1, 3 << 6000)  # a little more than 1/3, 6,002 bits
    for x, other in ((third, F(1)), (-third, F(0))):
        rounded = Interval(x, other).limited(8)
        assert (rounded.lo_open, rounded.hi, rounded.hi_open) == (True, other, False)
        assert rounded.lo < x and 0 < x - rounded.lo < abs(x) / 2**70
    for x, other in ((third, F(0)), (-third, F(-1))):
        rounded = Interval(other, x).limited(8)
        assert (rounded.lo, rounded.lo_open, rounded.hi_open) == (other, False, True)
        assert 0 < rounded.hi - x < abs(x) / 2**70
    short = Interval(F(1, 3), F(1))
    assert short.limited(8) == short
    assert Interval(third, F(1)).limited(500) == Interval(third, F(1))  # 4,096 + 4 * 500 bits are not long
    assert Interval(-inf, third).limited(8).lo == -inf


def test_ends_far_from_1_are_bounded() -> None:
    huge, tiny = F(1 << 2 * LARGEST_BITS), F(1, 1 << 2 * LARGEST_BITS)
    most = F(1 << LARGEST_BITS - 1)
    assert Interval(F(0), huge).limited(8) == Interval(F(0), inf)
    assert Interval(huge, 2 * huge).limited(8) == Interval(most, inf, True)
    assert Interval(-huge, F(0)).limited(8) == Interval(-inf, F(0))
    assert Interval(F(-1), tiny).limited(8) == Interval(F(-1), 1 / most, False, True)
    assert Interval(tiny, F(1)).limited(8) == Interval(F(0), F(1), True, False)


def test_a_point_of_too_many_bits_is_refused() -> None:
    with pytest.raises(NoSteps, match=f"keep its exact values within {MOST_EXACT_BITS} bits, but one has 65537"):
        Interval.point(F(1 << MOST_EXACT_BITS)).limited(8)
    longest = Interval.point(F((1 << MOST_EXACT_BITS) - 1))
    assert longest.limited(8) == longest
    assert (length(F(5, 1024)), length(F(1023, 4)), length(inf)) == (11, 10, 0)
