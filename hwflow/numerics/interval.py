"""Exact intervals of the reals, with open and closed ends.

A function of an interval encloses all its values. An open end is not attained: a sigmoid of large numbers lies in
[1 - d, 1), which decides a rounding whose boundary is 1, however small d is.

Written by hand, because ends are exact fractions, open or closed; the balls of Arb (python-flint), which enclose the
values of functions, are closed and rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

End = Fraction | float  # of floats only -inf and inf

LARGEST_BITS = 1 << 14  # values beyond 2**+-LARGEST_BITS are enclosed by that and infinity, or by 0 and that
MOST_EXACT_BITS = 1 << 16  # limit for numerator and denominator of an exact value


class NoSteps(ValueError):
    """No step function exists on the interval: a value is undefined (the root of a negative number, a division by 0),
    or undecided. ``reason`` completes "the function must": "have a value everywhere, but it divides by 0"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Undefined(NoSteps):
    """A value is undefined because of ``of_what`` ("it divides by 0"); ``certain``: all of the interval's are."""

    def __init__(self, of_what: str, certain: bool) -> None:
        super().__init__(f"have a value everywhere, but {of_what}")
        self.certain = certain


@dataclass(frozen=True)
class Interval:
    """The reals from ``lo`` to ``hi``; infinite ends are open."""

    lo: End
    hi: End
    lo_open: bool = False
    hi_open: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lo_open", self.lo_open or isinstance(self.lo, float))
        object.__setattr__(self, "hi_open", self.hi_open or isinstance(self.hi, float))

    @classmethod
    def point(cls, x: Fraction) -> Interval:
        return cls(x, x)

    @property
    def exact(self) -> Fraction | None:
        """The number of a single-point interval, else None."""
        return self.lo if self.lo == self.hi and isinstance(self.lo, Fraction) else None

    def __contains__(self, x: Fraction | int) -> bool:
        above = x > self.lo if self.lo_open else x >= self.lo
        return above and (x < self.hi if self.hi_open else x <= self.hi)

    def affine(self, multiplier: Fraction, addend: Fraction) -> Interval:
        """Return ``multiplier * x + addend``."""
        if multiplier == 0:
            return Interval(addend, addend)
        lo, hi = (_add(_times(multiplier, end), addend) for end in (self.lo, self.hi))
        if multiplier < 0:
            return Interval(hi, lo, self.hi_open, self.lo_open)
        return Interval(lo, hi, self.lo_open, self.hi_open)

    def limited(self, bits: int) -> Interval:
        """Round ends that are much longer than ``bits`` outwards to ``bits + 64`` significant bits. Raises NoSteps for
        a single point of more than MOST_EXACT_BITS."""
        size = max(length(self.lo), length(self.hi))
        if self.lo == self.hi:
            if size > MOST_EXACT_BITS:
                raise NoSteps(f"keep its exact values within {MOST_EXACT_BITS} bits, but one has {size}")
            return self
        if size <= 4096 + 4 * bits:
            return self
        lo, hi = -_upwards(-self.lo, bits + 64), _upwards(self.hi, bits + 64)
        return Interval(lo, hi, self.lo_open or lo != self.lo, self.hi_open or hi != self.hi)

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo, self.hi_open, self.lo_open)

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            _add(self.lo, other.lo), _add(self.hi, other.hi), self.lo_open or other.lo_open,
            self.hi_open or other.hi_open,
        )

    def __mul__(self, other: Interval) -> Interval:
        if self.exact is not None and other.exact is not None:
            return Interval.point(self.exact * other.exact)
        corners = [
            (_times(a, b), (a_open or b_open) and not (a == 0 and not a_open) and not (b == 0 and not b_open))
            for a, a_open in ((self.lo, self.lo_open), (self.hi, self.hi_open))
            for b, b_open in ((other.lo, other.lo_open), (other.hi, other.hi_open))
        ]
        lo, hi = min(c[0] for c in corners), max(c[0] for c in corners)
        return Interval(
            lo, hi, all(is_open for c, is_open in corners if c == lo), all(is_open for c, is_open in corners if c == hi)
        )

    def reciprocal(self) -> Interval:
        """Return ``1 / x``; Undefined if 0 is in it."""
        if 0 in self:
            raise Undefined("it divides by 0", self.lo == self.hi)
        lo = -inf if self.hi == 0 else _inverse(self.hi)
        hi = inf if self.lo == 0 else _inverse(self.lo)
        return Interval(lo, hi, self.hi_open, self.lo_open)

    def minimum(self, other: Interval) -> Interval:
        """Return ``min(x, y)``."""
        return -(-self).maximum(-other)

    def maximum(self, other: Interval) -> Interval:
        """Return ``max(x, y)``."""
        lo, hi = max(self.lo, other.lo), max(self.hi, other.hi)
        sides = (self, other)
        return Interval(
            lo, hi, any(s.lo_open for s in sides if s.lo == lo), all(s.hi_open for s in sides if s.hi == hi)
        )

    def intersection(self, other: Interval) -> Interval | None:
        """Return the intersection; None if it is empty."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        sides = (self, other)
        lo_open = any(s.lo_open for s in sides if s.lo == lo)
        hi_open = any(s.hi_open for s in sides if s.hi == hi)
        if lo > hi or (lo == hi and (lo_open or hi_open)):
            return None
        return Interval(lo, hi, lo_open, hi_open)

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        lo, hi = min(self.lo, other.lo), max(self.hi, other.hi)
        sides = (self, other)
        return Interval(
            lo, hi, all(s.lo_open for s in sides if s.lo == lo), all(s.hi_open for s in sides if s.hi == hi)
        )


def length(end: End) -> int:
    """Return the bits of the longer of numerator and denominator."""
    return 0 if isinstance(end, float) else max(end.numerator.bit_length(), end.denominator.bit_length())


def _upwards(x: End, bits: int) -> End:
    """Round ``x`` up to ``bits`` significant bits; values beyond ``2**+-LARGEST_BITS`` as stated there."""
    if isinstance(x, float) or x == 0:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if exponent > LARGEST_BITS:
        return inf if x > 0 else -Fraction(1 << LARGEST_BITS - 1)
    if exponent < -LARGEST_BITS:
        return Fraction(1, 1 << LARGEST_BITS - 1) if x > 0 else Fraction(0)
    shift = bits - exponent
    unit = Fraction(1 << shift) if shift >= 0 else Fraction(1, 1 << -shift)
    return ceil(x * unit) / unit


def _add(a: End, b: End) -> End:
    """Add ends; they are never opposite infinities."""
    return a if isinstance(a, float) else b if isinstance(b, float) else a + b


def _times(a: End, b: End) -> End:
    """Multiply ends; 0 times an infinite end is 0, the limit of the products with finite numbers."""
    if a == 0 or b == 0:
        return Fraction(0)
    if isinstance(a, float) or isinstance(b, float):
        return inf if (a > 0) == (b > 0) else -inf
    return a * b


def _inverse(a: End) -> End:
    return Fraction(0) if isinstance(a, float) else 1 / a
