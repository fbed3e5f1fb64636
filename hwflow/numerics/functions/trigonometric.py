"""Trigonometric functions and their inverses, of radians.

By the Lindemann-Weierstrass theorem their values at rational numbers are transcendental except where ``rational``
returns one (0 and 1).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from flint import arb, ctx

from hwflow.numerics.functions.curve import Curve, enclosed, flint_fraction
from hwflow.numerics.functions.float_interval import ELEMENTARY, TINY, BoolArray, FloatArray, FloatIntervals
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.interval import End, Interval, Undefined, length

ZERO, ONE = Fraction(0), Fraction(1)
UNIT = Interval(-ONE, ONE)
QUARTER_TURN = Fraction(1571, 1000)  # more than pi / 2
_FAR = 2.0**40  # beyond, floats do not say which quarter turns lie in an interval


def _turns(x: Interval, shift: Fraction) -> tuple[int, int] | None:
    """Return the integers below ``x / pi + shift`` at both ends of ``x``; None where it is unbounded. Where an end is
    too near to an integer, the interval is taken for the wider one."""
    if isinstance(x.lo, float) or isinstance(x.hi, float):
        return None
    with ctx.workprec(128 + max(length(x.lo), length(x.hi))):
        low, high = ((arb(flint_fraction(end)) / arb.pi() + flint_fraction(shift)) for end in (x.lo, x.hi))
        return int(low.lower().floor().unique_fmpz()), int(high.upper().floor().unique_fmpz())


def _float_turns(x: FloatIntervals, shift: float) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the same of floats, and where they say so."""
    near = x.magnitude < _FAR
    ends = (np.where(near, end, 0.0) / np.pi + shift for end in (x.lo, x.hi))
    low, high = (np.floor(end + sign * (1 + np.abs(end)) * 2.0**-40) for end, sign in zip(ends, (-1, 1), strict=True))
    return low, high, near


def _widened(values: FloatArray, inexact: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of values with a relative error of ELEMENTARY, but for exact ones."""
    slack = np.where(inexact, np.abs(values) * ELEMENTARY + TINY, 0.0)
    return values - slack, values + slack


class _Wave(Elementwise):
    """Rises up to 1 and falls to -1 with a period of 2 pi. ``_shift``: ``x / pi + _shift`` is an even integer at each
    maximum, an odd one at each minimum."""

    _shift: Fraction

    @abstractmethod
    def _rational(self) -> Fraction:
        """Return the value at 0."""

    @abstractmethod
    def _ball(self, x: Any) -> Any:
        """Return a ball around the value."""

    @abstractmethod
    def _floats(self, x: FloatArray) -> FloatArray:
        """Return the values of floats, with a relative error below ELEMENTARY."""

    def enclose(self, x: Interval, bits: int) -> Interval:
        if x.exact is not None:
            return self._at(x.exact, bits)
        turns = _turns(x, self._shift)
        if turns is None or turns[1] - turns[0] > 1:
            return UNIT
        assert isinstance(x.lo, Fraction) and isinstance(x.hi, Fraction), "the ends are finite"
        within = self._at(x.lo, bits).hull(self._at(x.hi, bits))
        if turns[0] == turns[1]:
            return within
        return within.hull(Interval.point(ONE if turns[1] % 2 == 0 else -ONE))

    def _at(self, x: Fraction, bits: int) -> Interval:
        if x == 0:
            return Interval.point(self._rational())
        inside = enclosed(lambda: self._ball(arb(flint_fraction(x))), bits).intersection(UNIT)
        assert inside is not None, (self, x)
        return inside

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        low, high, near = _float_turns(x, float(self._shift))
        point = (x.lo == x.hi) & np.isfinite(x.lo)
        known = near | point
        ends = [_widened(self._floats(np.where(known, end, 0.0)), end != 0) for end in (x.lo, x.hi)]
        least, most = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
        most = np.where(point | (near & (np.floor(high / 2) * 2 <= low)), most, 1.0)  # no even number in (low, high]
        least = np.where(point | (near & (np.floor((high - 1) / 2) * 2 + 1 <= low)), least, -1.0)
        return x.bounded(np.maximum(least, -1.0), np.minimum(most, 1.0))


@dataclass(frozen=True)
class Sin(_Wave):
    """The sine."""

    _shift = Fraction(-1, 2)

    def _rational(self) -> Fraction:
        return ZERO

    def _ball(self, x: Any) -> Any:
        return x.sin()

    def _floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.sin(x))


@dataclass(frozen=True)
class Cos(_Wave):
    """The cosine."""

    _shift = ZERO

    def _rational(self) -> Fraction:
        return ONE

    def _ball(self, x: Any) -> Any:
        return x.cos()

    def _floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.cos(x))


@dataclass(frozen=True)
class Tan(Elementwise):
    """The tangent, which is undefined between rational numbers only: an odd number of quarter turns from 0."""

    def enclose(self, x: Interval, bits: int) -> Interval:
        if x.exact is not None:
            return self._at(x.exact, bits)
        turns = _turns(x, Fraction(1, 2))
        if turns is None or turns[0] != turns[1]:
            raise Undefined("it takes the tangent of a quarter turn", False)
        assert isinstance(x.lo, Fraction) and isinstance(x.hi, Fraction), "the ends are finite"
        return Interval(self._at(x.lo, bits).lo, self._at(x.hi, bits).hi)

    def _at(self, x: Fraction, bits: int) -> Interval:
        if x == 0:
            return Interval.point(ZERO)
        return enclosed(lambda: arb(flint_fraction(x)).tan(), bits)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        low, high, near = _float_turns(x, 0.5)
        sure = (near & (low == high)) | ((x.lo == x.hi) & np.isfinite(x.lo))
        ends = [_widened(np.tan(np.where(sure, end, 0.0)), end != 0) for end in (x.lo, x.hi)]
        result = x.bounded(np.where(sure, ends[0][0], -inf), np.where(sure, ends[1][1], inf))
        return result.undefined(~sure, np.zeros_like(sure))


@dataclass(frozen=True)
class Asin(Curve):
    """The angle from -pi / 2 to pi / 2 whose sine is ``x``."""

    domain = UNIT

    @property
    def outside(self) -> str:
        return "it takes the arc sine of a number beyond -1 to 1"

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def ball(self, x: Any) -> Any:
        return x.asin()

    def side(self, x: Fraction) -> Interval:
        return Interval(x, QUARTER_TURN) if x > 0 else Interval(-QUARTER_TURN, x)

    def limits(self) -> tuple[End, End]:
        return -QUARTER_TURN, QUARTER_TURN

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.arcsin(x))


@dataclass(frozen=True)
class _AcosBehind(Curve):
    """The angle from 0 to pi whose cosine is ``-x``: it rises."""

    domain = UNIT

    @property
    def outside(self) -> str:
        return "it takes the arc cosine of a number beyond -1 to 1"

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == -1 else None

    def ball(self, x: Any) -> Any:
        return (-x).acos()

    def side(self, x: Fraction) -> Interval:
        return Interval(ZERO, 2 * QUARTER_TURN)

    def limits(self) -> tuple[End, End]:
        return ZERO, 2 * QUARTER_TURN

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.arccos(-x))


@dataclass(frozen=True)
class Acos(Elementwise):
    """The angle from 0 to pi whose cosine is ``x``."""

    def enclose(self, x: Interval, bits: int) -> Interval:
        return _AcosBehind().enclose(-x, bits)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        return _AcosBehind().floats(x.negated())


@dataclass(frozen=True)
class Atan(Curve):
    """The angle between -pi / 2 and pi / 2 whose tangent is ``x``."""

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def ball(self, x: Any) -> Any:
        return x.atan()

    def side(self, x: Fraction) -> Interval:
        nearest = min(abs(x), QUARTER_TURN)
        return Interval(ZERO, nearest, True, True) if x > 0 else Interval(-nearest, ZERO, True, True)

    def limits(self) -> tuple[End, End]:
        return -QUARTER_TURN, QUARTER_TURN

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.arctan(x))
