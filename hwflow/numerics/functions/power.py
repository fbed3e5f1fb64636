"""Powers, roots and reciprocals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt
from typing import Any

import numpy as np
from flint import arb

from hwflow.numerics.functions.curve import Curve, Turn, flint_fraction
from hwflow.numerics.functions.float_interval import FloatArray, FloatIntervals
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.nearest_float import nearest_float
from hwflow.numerics.interval import End, Interval

POWER_ERROR = 2.0**-42  # relative error of numpy's power with the exponent rounded to float64 (times ln x < 745)
MAX_POWER_BITS = 1 << 16  # the longest rational power that is computed exactly

ZERO = Fraction(0)


@dataclass(frozen=True)
class Reciprocal(Elementwise):
    """``1 / x``; undefined at 0."""

    def enclose(self, x: Interval, bits: int) -> Interval:
        return x.reciprocal()

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        return x.reciprocal()


@dataclass(frozen=True)
class Pow(Elementwise):
    """``x ** exponent``. Defined for any x if the exponent is an integer (except 0 if it is negative), else for ``x >=
    0`` (``x > 0`` if it is negative). ``x ** 0`` is 1."""

    exponent: Fraction

    @property
    def rising(self) -> bool:
        return self.exponent == 0 or (self.exponent > 0 and self._power.rising)

    def enclose(self, x: Interval, bits: int) -> Interval:
        exponent = Fraction(self.exponent)
        if exponent == 0:
            return Interval.point(Fraction(1))
        power = self._power.enclose(x, bits)
        return power if exponent > 0 else power.reciprocal()

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        exponent = Fraction(self.exponent)
        if exponent == 0:
            return x.affine(ZERO, Fraction(1))
        power = self._power.floats(x)
        return power if exponent > 0 else power.reciprocal()

    @property
    def _power(self) -> Elementwise:
        exponent = abs(Fraction(self.exponent))
        return WholePower(exponent.numerator) if exponent.denominator == 1 else FractionalPower(exponent)


@dataclass(frozen=True)
class Sqrt(Elementwise):
    """The square root of ``x >= 0``."""

    @property
    def rising(self) -> bool:
        return True

    def enclose(self, x: Interval, bits: int) -> Interval:
        return _ROOT.enclose(x, bits)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        return _ROOT.floats(x)


@dataclass(frozen=True)
class WholePower(Curve):
    """``x ** exponent`` with a positive integer exponent."""

    exponent: int

    @property
    def turn(self) -> Turn | None:
        return None if self.exponent % 2 else Turn(Interval.point(ZERO), ZERO)

    def rational(self, x: Fraction) -> Fraction | None:
        bits = max(abs(x.numerator), x.denominator).bit_length()
        return x**self.exponent if x in (-1, 0, 1) or bits * self.exponent <= MAX_POWER_BITS else None

    def ball(self, x: Any) -> Any:
        return x**self.exponent

    def side(self, x: Fraction) -> Interval:
        if x > 0 or self.exponent % 2 == 0:
            return Interval(ZERO, inf, lo_open=True)
        return Interval(-inf, ZERO, hi_open=True)

    def limits(self) -> tuple[End, End]:
        return (-inf if self.exponent % 2 else inf), inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.power(x, float(self.exponent)))

    def float_error(self, x: FloatArray) -> FloatArray | float:
        return POWER_ERROR


@dataclass(frozen=True)
class FractionalPower(Curve):
    """``x ** exponent`` of ``x >= 0``, with a positive exponent."""

    exponent: Fraction
    domain = Interval(ZERO, inf)

    @property
    def outside(self) -> str:
        if self.exponent == Fraction(1, 2):
            return "it takes the square root of a negative number"
        return f"it raises a negative number to the power {self.exponent}"

    def rational(self, x: Fraction) -> Fraction | None:
        """Return the value if ``x`` is a rational to the power of the exponent's denominator (in lowest terms)."""
        if x in (0, 1):
            return x
        degree = self.exponent.denominator
        if degree > max(x.numerator, x.denominator).bit_length():
            return None
        p, q = _root(x.numerator, degree), _root(x.denominator, degree)
        if p is None or q is None:
            return None
        return WholePower(self.exponent.numerator).rational(Fraction(p, q))

    def ball(self, x: Any) -> Any:
        if self.exponent == Fraction(1, 2):
            return x.sqrt()
        return x ** flint_fraction(self.exponent)

    def side(self, x: Fraction) -> Interval:
        one = Fraction(1)  # a power lies on the same side of 1 as x
        return Interval(one, inf, True) if x > 1 else Interval(ZERO, one, True, True)

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.power(x, float(self.exponent)))

    def float_error(self, x: FloatArray) -> FloatArray | float:
        return POWER_ERROR


_ROOT = FractionalPower(Fraction(1, 2))


@dataclass(frozen=True)
class RootMultiply(Curve):
    """``x * sqrt(radicand)`` with a positive radicand: BatchNormalization divides by a square root."""

    radicand: Fraction

    def root(self, bits: int) -> tuple[Fraction, Fraction]:
        """Return lower and upper bound of the root, ``2**-bits`` apart relative to it; equal where it is rational."""
        exact = _ROOT.rational(Fraction(self.radicand))
        if exact is not None:
            return exact, exact
        radicand = Fraction(self.radicand)
        shift = bits + max(0, radicand.denominator.bit_length() - radicand.numerator.bit_length())
        scaled = (radicand.numerator << 2 * shift) // radicand.denominator
        root = isqrt(scaled)
        return Fraction(root, 1 << shift), Fraction(root + 1, 1 << shift)

    def rational(self, x: Fraction) -> Fraction | None:
        """Return the value at 0, and everywhere if the root is rational."""
        if x == 0:
            return ZERO
        root = _ROOT.rational(Fraction(self.radicand))
        return None if root is None else x * root

    def ball(self, x: Any) -> Any:
        return x * arb(flint_fraction(Fraction(self.radicand))).sqrt()

    def side(self, x: Fraction) -> Interval:
        return Interval(ZERO, inf, True) if x > 0 else Interval(-inf, ZERO, hi_open=True)

    def limits(self) -> tuple[End, End]:
        return -inf, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(x * np.sqrt(nearest_float(self.radicand)))


def _root(n: int, degree: int) -> int | None:
    """Return the integer root of ``n >= 0``, if there is one: Newton's iteration from above."""
    x = 1 << -(-n.bit_length() // degree)
    while True:
        y = ((degree - 1) * x + n // x ** (degree - 1)) // degree
        if y >= x:
            return x if x**degree == n else None
        x = y
