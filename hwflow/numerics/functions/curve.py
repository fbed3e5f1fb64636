"""Functions that rise, or fall and then rise, with mostly irrational values.

A value is enclosed by two rationals to any precision: the ends of a ball that Arb (python-flint; Johansson: Arb,
efficient arbitrary-precision midpoint-radius interval arithmetic, IEEE Transactions on Computers 66, 2017) proves to
contain it. A value known to be rational is exact. Where a value is known to stay on one side of a rational (a sigmoid
below 1, a softplus above its argument), so does its enclosure.

By the Lindemann-Weierstrass theorem exp, log, tanh, sigmoid, softplus, mish and elu of a rational number are
transcendental except where ``rational`` returns a value (0, and 1 for log), so enough bits always separate such a value
from a rounding boundary. For erf, gelu and chains of several functions this is not proved, and nothing relies on it: a
rounding is decided only when an enclosure lies on one side of the boundary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx, fmpq

from hwflow.numerics.functions.float_interval import ELEMENTARY, TINY, FloatArray, FloatIntervals, outwards
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.interval import LARGEST_BITS, MOST_EXACT_BITS, End, Interval, Undefined

GUARD_BITS = 32  # extra bits of the first attempt, beyond the required relative precision
_MOST_PRECISION = 2 * MOST_EXACT_BITS  # enough for the exponential of any exact number

REALS = Interval(-inf, inf)


@dataclass(frozen=True)
class Turn:
    """The minimum of a function that falls, then rises: it lies within ``place``, and no value is below ``least``
    (exact if ``place`` is one number)."""

    place: Interval
    least: Fraction


class Curve(Elementwise):
    """A function that is continuous on an interval and rises there, or falls up to ``turn`` and rises after it."""

    domain: ClassVar[Interval] = REALS

    @property
    def outside(self) -> str:
        """Why the function is undefined outside its domain."""
        return "it is undefined there"

    @property
    def turn(self) -> Turn | None:
        """The minimum; None if the function rises everywhere."""
        return None

    @property
    def rising(self) -> bool:
        return self.turn is None

    @property
    def strictly(self) -> bool:
        """Whether no part is flat: the value at an open end is then not attained."""
        return True

    @abstractmethod
    def rational(self, x: Fraction) -> Fraction | None:
        """Return the value at ``x`` if it is known to be rational."""

    @abstractmethod
    def ball(self, x: Any) -> Any:
        """Return a ball that contains the value at the number in ``x``, a ball (flint.arb)."""

    @abstractmethod
    def side(self, x: Fraction) -> Interval:
        """Return an interval, however wide, that certainly contains the value at ``x``."""

    @abstractmethod
    def limits(self) -> tuple[End, End]:
        """Return the limits towards minus and plus infinity."""

    @abstractmethod
    def approximate_floats(self, x: FloatArray) -> FloatArray:
        """Return the values as floats, with a relative error below :meth:`float_error`."""

    def float_error(self, x: FloatArray) -> FloatArray | float:
        """Return a bound of the relative error of :meth:`approximate_floats`."""
        return ELEMENTARY

    def at(self, x: Fraction, bits: int) -> Interval:
        """Enclose the value at one number."""
        exact = self.rational(x)
        if exact is not None:
            return Interval.point(exact)
        number = flint_fraction(x)
        inside = enclosed(lambda: self.ball(arb(number)), bits).intersection(self.side(x))
        assert inside is not None, (self, x)
        return inside

    def enclose(self, x: Interval, bits: int) -> Interval:
        exact = x.exact
        if exact is not None and exact in self.domain:
            return self.at(exact, bits)
        inside = x.intersection(self.domain)
        if inside != x:
            raise Undefined(self.outside, inside is None)
        left, right = (self._end(x.lo, x.lo_open, 0, bits), self._end(x.hi, x.hi_open, 1, bits))
        turn = self.turn
        if turn is None or turn.place.hi <= x.lo:
            return Interval(left.lo, right.hi, left.lo_open, right.hi_open)
        if turn.place.lo >= x.hi:
            return Interval(right.lo, left.hi, right.lo_open, left.hi_open)
        top = left.hull(right)
        return Interval(turn.least, top.hi, False, top.hi_open)

    def _end(self, end: End, is_open: bool, side: int, bits: int) -> Interval:
        """Enclose the value at an end; an exact open end gives an open end."""
        if isinstance(end, float):
            limit = self.limits()[side]
            return Interval(limit, limit, self.strictly, self.strictly)
        if end not in self.domain:  # its open end, where the function has no bound
            limit = (-inf, inf)[side]
            return Interval(limit, limit)
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

    def _float_end(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = self.approximate_floats(x)
        slack = np.abs(value) * self.float_error(x) + TINY * (x != 0)
        slack = np.where(np.isnan(slack) | np.isinf(slack), 0.0, slack)
        return (
            np.where(np.isnan(value), -inf, np.minimum(value, np.finfo(np.float64).max) - slack),
            np.where(np.isnan(value), inf, value + slack),
        )

    def _ends(self) -> tuple[End, End]:
        """Return bounds of all values."""
        left, right = self.limits()
        return (left if self.turn is None else self.turn.least), max(left, right)

    def _inside(self, x: FloatIntervals) -> FloatIntervals:
        """Clip to the domain, whose ends are floats, and mark as undefined what lies outside."""
        lo, hi = float(self.domain.lo), float(self.domain.hi)
        ends = (self.domain.lo, self.domain.hi)
        below, above = (np.less if isinstance(e, float) or e in self.domain else np.less_equal for e in ends)
        partly, nowhere = below(x.lo, lo) | above(hi, x.hi), below(x.hi, lo) | above(hi, x.lo)
        return x.within(lo, hi).undefined(partly, nowhere)


def _around(place: Interval) -> tuple[float, float]:
    """Return floats at or below the lower end, and at or above the upper end."""
    return outwards(Fraction(place.lo))[0], outwards(Fraction(place.hi))[1]


def flint_fraction(x: Fraction) -> Any:
    """Convert a Fraction to a flint.fmpq."""
    return fmpq(x.numerator, x.denominator)


def enclosed(ball: Callable[[], Any], bits: int) -> Interval:
    """Return an interval at most ``2**-bits`` wide, relative to it, around a nonzero real number; beyond
    ``2**+-LARGEST_BITS`` it may be wider. ``ball`` returns a ball that contains the number, at the precision set."""
    precision = bits + GUARD_BITS
    while True:
        with ctx.workprec(precision):
            value = ball()
            lo, hi = (_end(value.lower()), -_end((-value).lower())) if value.is_finite() else (-inf, inf)
        precision *= 2
        if value.rel_accuracy_bits() > bits or _is_far(lo, hi) or precision > _MOST_PRECISION:
            return Interval(lo, hi)


def _end(number: Any) -> End:
    """Convert an exact ball, rounding down beyond ``2**+-LARGEST_BITS``."""
    mantissa, exponent = (int(part) for part in number.man_exp())
    magnitude = mantissa.bit_length() + exponent
    if mantissa and magnitude > LARGEST_BITS:
        return Fraction(1 << LARGEST_BITS - 1) if mantissa > 0 else -inf
    if mantissa and magnitude < -LARGEST_BITS:
        return Fraction(0) if mantissa > 0 else Fraction(-1, 1 << LARGEST_BITS)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def _is_far(lo: End, hi: End) -> bool:
    """Tell whether a number in between is so large, or so near to 0, that tighter ends are not needed."""
    most = Fraction(1 << LARGEST_BITS - 1)
    return lo >= most or hi <= -most or max(-lo, hi) <= 1 / most
