"""Hyperbolic functions and their inverses; for the hyperbolic tangent see :mod:`hwflow.numerics.functions.smooth`.

By the Lindemann-Weierstrass theorem their values at rational numbers are transcendental except where ``rational``
returns one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from hwflow.numerics.functions.curve import Curve, Turn
from hwflow.numerics.functions.float_interval import FloatArray
from hwflow.numerics.interval import End, Interval

ZERO, ONE = Fraction(0), Fraction(1)


class _Odd(Curve):
    """A rising function without bounds that is 0 at 0."""

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def side(self, x: Fraction) -> Interval:
        return Interval(ZERO, inf, True) if x > 0 else Interval(-inf, ZERO, hi_open=True)

    def limits(self) -> tuple[End, End]:
        return -inf, inf


@dataclass(frozen=True)
class Sinh(_Odd):
    """The hyperbolic sine."""

    def ball(self, x: Any) -> Any:
        return x.sinh()

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.sinh(x))


@dataclass(frozen=True)
class Asinh(_Odd):
    """The number whose hyperbolic sine is ``x``."""

    def ball(self, x: Any) -> Any:
        return x.asinh()

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh(x))


@dataclass(frozen=True)
class Atanh(_Odd):
    """The number whose hyperbolic tangent is ``x``, between -1 and 1."""

    domain = Interval(-ONE, ONE, True, True)

    @property
    def outside(self) -> str:
        return "it takes the hyperbolic arc tangent of a number that is not between -1 and 1"

    def ball(self, x: Any) -> Any:
        return x.atanh()

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.arctanh(x))


@dataclass(frozen=True)
class Cosh(Curve):
    """The hyperbolic cosine: falls up to 0 and then rises."""

    @property
    def turn(self) -> Turn | None:
        return Turn(Interval.point(ZERO), ONE)

    def rational(self, x: Fraction) -> Fraction | None:
        return ONE if x == 0 else None

    def ball(self, x: Any) -> Any:
        return x.cosh()

    def side(self, x: Fraction) -> Interval:
        return Interval(ONE, inf, True)

    def limits(self) -> tuple[End, End]:
        return inf, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.cosh(x))


@dataclass(frozen=True)
class Acosh(Curve):
    """The number, not negative, whose hyperbolic cosine is ``x``, at least 1."""

    domain = Interval(ONE, inf)

    @property
    def outside(self) -> str:
        return "it takes the hyperbolic arc cosine of a number below 1"

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 1 else None

    def ball(self, x: Any) -> Any:
        return x.acosh()

    def side(self, x: Fraction) -> Interval:
        return Interval(ZERO, inf, True)

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.arccosh(x))
