"""Functions that rise, or fall and then rise, with values that are mostly irrational.

A value is enclosed by two rationals as near as asked for; mpmath computes it with 64 guard bits. Where a value is known
to be rational it is exact, and where it is known to stay on one side of a rational (a sigmoid below 1, a softplus
above its argument) the enclosure does, too.

By the Lindemann-Weierstrass theorem exp, log, tanh, sigmoid, softplus, mish and elu of a rational number are
transcendental except where ``rational`` says otherwise (0, and 1 for log), so enough bits always part one such value
from a boundary of rounding. For erf, gelu and chains of several functions that is not proved, and nothing relies on
it: a rounding is decided when an enclosure lies on one side, and only then.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np
from mpmath import mp

from hwflow.numerics.functions.float_interval import ELEMENTARY, TINY, FloatArray, FloatIntervals, outwards
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.interval import LARGEST_BITS, End, Interval, Undefined

GUARD_BITS = 64  # beyond the relative precision asked for: the elementary functions' conditioning takes less

REALS = Interval(-inf, inf)


@dataclass(frozen=True)
class Turn:
    """Where a function that falls begins to rise: within ``place``, and nowhere is the value below ``least`` (exact if
    ``place`` is one number)."""

    place: Interval
    least: Fraction


class Curve(Elementwise):
    """A function that is continuous on an interval and rises there, or falls up to ``turn`` and rises from it."""

    domain: ClassVar[Interval] = REALS

    @property
    def outside(self) -> str:
        """Why it is undefined outside its domain."""
        return "it is undefined there"

    @property
    def turn(self) -> Turn | None:
        """None: rises everywhere."""
        return None

    @property
    def rising(self) -> bool:
        return self.turn is None

    @property
    def strictly(self) -> bool:
        """No part is flat: an end that is not reached stays so."""
        return True

    @abstractmethod
    def rational(self, x: Fraction) -> Fraction | None:
        """The value at ``x`` if it is known to be rational."""

    @abstractmethod
    def approximate(self, x: Any) -> Any:
        """The value at an mpf ``x``, an mpf with a relative error below 2**32 units of the working precision."""

    @abstractmethod
    def side(self, x: Fraction) -> Interval:
        """An interval, however wide, in which the value at ``x`` certainly lies."""

    @abstractmethod
    def limits(self) -> tuple[End, End]:
        """Of the values towards minus and plus infinity."""

    @abstractmethod
    def approximate_floats(self, x: FloatArray) -> FloatArray:
        """The values as floats, with an error below :meth:`float_error`."""

    def float_error(self, x: FloatArray) -> FloatArray | float:
        """Relative."""
        return ELEMENTARY

    def at(self, x: Fraction, bits: int) -> Interval:
        """The value at one number."""
        exact = self.rational(x)
        if exact is not None:
            return Interval.point(exact)
        with mp.workprec(bits + GUARD_BITS):
            value = surroundings(self.approximate(mp.mpf(x.numerator) / x.denominator), bits)
        inside = value.intersection(self.side(x))
        assert inside is not None, (self, x)
        return inside

    def enclose(self, x: Interval, bits: int) -> Interval:
        inside = x.intersection(self.domain)
        if inside != x:
            raise Undefined(self.outside, inside is None)
        if x.exact is not None:
            return self.at(x.exact, bits)
        left, right = (self._end(x.lo, x.lo_open, 0, bits), self._end(x.hi, x.hi_open, 1, bits))
        turn = self.turn
        if turn is None or turn.place.hi <= x.lo:
            return Interval(left.lo, right.hi, left.lo_open, right.hi_open)
        if turn.place.lo >= x.hi:
            return Interval(right.lo, left.hi, right.lo_open, left.hi_open)
        top = left.hull(right)
        return Interval(turn.least, top.hi, False, top.hi_open)

    def _end(self, end: End, is_open: bool, side: int, bits: int) -> Interval:
        """The value at an end; an end that is exact and not reached gives a value that is not reached."""
        if isinstance(end, float):
            limit = self.limits()[side]
            return Interval(limit, limit, self.strictly, self.strictly)
        value = self.at(end, bits)
        is_open = is_open and self.strictly and value.exact is not None
        return Interval(value.lo, value.hi, is_open or value.lo_open, is_open or value.hi_open)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        least, most = (outwards(e)[k] if isinstance(e, Fraction) else e for k, e in enumerate(self._ends()))
        if self.domain != REALS:
            x = self._inside(x)
        left = self._float_end(x.lo)
        right = left if x.hi is x.lo else self._float_end(x.hi)
        turn = self.turn
        if turn is None:
            lo, hi = left[0], right[1]
        else:
            begin, end = _around(turn.place)
            across = (x.lo < end) & (x.hi > begin)
            lo = np.where(across, outwards(turn.least)[0], np.minimum(left[0], right[0]))
            hi = np.maximum(left[1], right[1])
        return x.bounded(np.maximum(lo, least), np.minimum(hi, most))

    def slopes(self, x: FloatIntervals) -> FloatIntervals:
        slopes = super().slopes(x)
        if self.turn is None:
            return slopes
        begin, end = _around(self.turn.place)
        return FloatIntervals.of(np.where(x.lo >= end, 0.0, slopes.lo), np.where(x.hi <= begin, 0.0, slopes.hi))

    def _float_end(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = self.approximate_floats(x)
        slack = np.abs(value) * self.float_error(x) + TINY * (x != 0)
        slack = np.where(np.isnan(slack) | np.isinf(slack), 0.0, slack)
        return (
            np.where(np.isnan(value), -inf, np.minimum(value, np.finfo(np.float64).max) - slack),
            np.where(np.isnan(value), inf, value + slack),
        )

    def _ends(self) -> tuple[End, End]:
        """Bounds of all values."""
        left, right = self.limits()
        return (left if self.turn is None else self.turn.least), max(left, right)

    def _inside(self, x: FloatIntervals) -> FloatIntervals:
        """Cut to the domain, which begins at 0, and marked where that takes something away."""
        is_open = self.domain.lo_open
        partly, nowhere = (x.lo <= 0, x.hi <= 0) if is_open else (x.lo < 0, x.hi < 0)
        return x.within(0.0, inf).undefined(partly, nowhere)


def _around(place: Interval) -> tuple[float, float]:
    """Floats at most its lower and at least its upper end."""
    return outwards(Fraction(place.lo))[0], outwards(Fraction(place.hi))[1]


def surroundings(value: Any, bits: int) -> Interval:
    """All numbers within ``2**-bits`` of an mpf, relative to it."""
    if value == 0:
        return Interval.point(Fraction(0))
    if value < 0:
        return -surroundings(-value, bits)
    magnitude = int(mp.mag(value))
    if magnitude > LARGEST_BITS:
        return Interval(Fraction(1 << LARGEST_BITS - 1), inf)  # the value may be a little less than its approximation
    if magnitude < -LARGEST_BITS:
        return Interval(Fraction(0), Fraction(1, 1 << LARGEST_BITS), lo_open=True)
    mantissa, exponent = int(value.man) << bits, int(value.exp) - bits
    lo, hi = mantissa - int(value.man), mantissa + int(value.man)
    if exponent >= 0:
        return Interval(Fraction(lo << exponent), Fraction(hi << exponent))
    return Interval(Fraction(lo, 1 << -exponent), Fraction(hi, 1 << -exponent))
