"""Activation functions as the ONNX operator specification defines them, with exact enclosures of their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from flint import arb

from hwflow.numerics.functions.curve import Curve, Turn, flint_fraction
from hwflow.numerics.functions.float_interval import ELEMENTARY, FloatArray, FloatIntervals
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.interval import End, Interval

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Exp(Curve):
    """``e ** x``."""

    def rational(self, x: Fraction) -> Fraction | None:
        return ONE if x == 0 else None

    def ball(self, x: Any) -> Any:
        return x.exp()

    def side(self, x: Fraction) -> Interval:
        return Interval(ONE, inf, True) if x > 0 else Interval(ZERO, ONE, True, True)

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.exp(x))


@dataclass(frozen=True)
class Log(Curve):
    """The natural logarithm of ``x > 0``."""

    domain = Interval(ZERO, inf, lo_open=True)

    @property
    def outside(self) -> str:
        return "it takes the logarithm of a number that is not positive"

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 1 else None

    def ball(self, x: Any) -> Any:
        return x.log()

    def side(self, x: Fraction) -> Interval:
        return Interval(ZERO, inf, True) if x > 1 else Interval(-inf, ZERO, hi_open=True)

    def limits(self) -> tuple[End, End]:
        return -inf, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.log(x))


@dataclass(frozen=True)
class Sigmoid(Curve):
    """``1 / (1 + e ** -x)``."""

    def rational(self, x: Fraction) -> Fraction | None:
        return Fraction(1, 2) if x == 0 else None

    def ball(self, x: Any) -> Any:
        return 1 / (1 + (-x).exp())

    def side(self, x: Fraction) -> Interval:
        return Interval(Fraction(1, 2), ONE, True, True) if x > 0 else Interval(ZERO, Fraction(1, 2), True, True)

    def limits(self) -> tuple[End, End]:
        return ZERO, ONE

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(1 / (1 + np.exp(-x)))


@dataclass(frozen=True)
class Tanh(Curve):
    """The hyperbolic tangent."""

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def ball(self, x: Any) -> Any:
        return x.tanh()

    def side(self, x: Fraction) -> Interval:
        return _between_zero_and(x, min(abs(x), ONE))

    def limits(self) -> tuple[End, End]:
        return -ONE, ONE

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.tanh(x))


@dataclass(frozen=True)
class Erf(Curve):
    """The error function."""

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def ball(self, x: Any) -> Any:
        return x.erf()

    def side(self, x: Fraction) -> Interval:
        return _between_zero_and(x, ONE)

    def limits(self) -> tuple[End, End]:
        return -ONE, ONE

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return _each(math.erf, x)


@dataclass(frozen=True)
class Softplus(Curve):
    """``log(1 + e ** x)``."""

    def rational(self, x: Fraction) -> Fraction | None:
        return None

    def ball(self, x: Any) -> Any:
        return x.exp().log1p()

    def side(self, x: Fraction) -> Interval:
        return Interval(max(x, ZERO), inf, True)

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


@dataclass(frozen=True)
class Softsign(Curve):
    """``x / (1 + |x|)``."""

    def rational(self, x: Fraction) -> Fraction | None:
        return x / (1 + abs(x))

    def ball(self, x: Any) -> Any:
        return x / (1 + abs(x))

    def side(self, x: Fraction) -> Interval:
        return _between_zero_and(x, ONE)

    def limits(self) -> tuple[End, End]:
        return -ONE, ONE

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))))


@dataclass(frozen=True)
class HardSwish(Curve):
    """``x * max(0, min(1, x / 6 + 1 / 2))``, with its minimum at -3/2."""

    @property
    def turn(self) -> Turn | None:
        return Turn(Interval.point(Fraction(-3, 2)), Fraction(-3, 8))

    @property
    def strictly(self) -> bool:
        return False

    def rational(self, x: Fraction) -> Fraction | None:
        return x * max(ZERO, min(ONE, (x + 3) / 6))

    def ball(self, x: Any) -> Any:
        return x * ((x + 3) / 6).min(1).max(0)

    def side(self, x: Fraction) -> Interval:
        return Interval(Fraction(-3, 8), inf)

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.where(x <= -3, 0.0, np.where(x >= 3, x, x * (x + 3) / 6)))


@dataclass(frozen=True)
class Elu(Curve):
    """``alpha * (e ** x - 1)`` for negative x, else x; any ``alpha``."""

    alpha: Fraction

    @property
    def turn(self) -> Turn | None:
        return Turn(Interval.point(ZERO), ZERO) if self.alpha < 0 else None

    @property
    def strictly(self) -> bool:
        return self.alpha != 0

    def rational(self, x: Fraction) -> Fraction | None:
        if x >= 0:
            return x
        return ZERO if self.alpha == 0 else None

    def ball(self, x: Any) -> Any:
        return x.expm1() * flint_fraction(self.alpha)

    def side(self, x: Fraction) -> Interval:
        return _between_zero_and(-self.alpha, abs(self.alpha))  # x is negative

    def limits(self) -> tuple[End, End]:
        return -self.alpha, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.where(x < 0, np.expm1(np.minimum(x, 0.0)) * float(self.alpha), x))


@dataclass(frozen=True)
class Selu(Elementwise):
    """``gamma * alpha * (e ** x - 1)`` for x up to 0, else ``gamma * x``; any ``alpha`` and ``gamma``."""

    alpha: Fraction
    gamma: Fraction

    @property
    def rising(self) -> bool:
        return self.gamma >= 0 and Elu(self.alpha).rising

    def enclose(self, x: Interval, bits: int) -> Interval:
        return Elu(self.alpha).enclose(x, bits).affine(Fraction(self.gamma), ZERO)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        return Elu(self.alpha).floats(x).affine(Fraction(self.gamma), ZERO)


@dataclass(frozen=True)
class Celu(Curve):
    """``max(0, x) + min(0, alpha * (e ** (x / alpha) - 1))``; ``alpha`` must not be 0."""

    alpha: Fraction

    def __post_init__(self) -> None:
        if self.alpha == 0:
            raise ValueError("alpha of a Celu must not be 0")

    def rational(self, x: Fraction) -> Fraction | None:
        return x if x >= 0 else None

    def ball(self, x: Any) -> Any:
        alpha = arb(flint_fraction(self.alpha))
        return alpha * (x / alpha).expm1()

    def side(self, x: Fraction) -> Interval:
        return Interval(self.limits()[0], ZERO, True, True)  # x is negative

    def limits(self) -> tuple[End, End]:
        return (-self.alpha if self.alpha > 0 else -inf), inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        alpha = float(self.alpha)
        return np.asarray(np.where(x < 0, alpha * np.expm1(np.minimum(x, 0.0) / alpha), x))

    def float_error(self, x: FloatArray) -> FloatArray | float:
        quotient = np.minimum(np.abs(x / float(self.alpha)), 800.0)  # rounded; expm1 overflows beyond
        return np.asarray(ELEMENTARY * (1 + quotient))


@dataclass(frozen=True)
class Gelu(Curve):
    """``x / 2 * (1 + erf(x / sqrt(2)))``, or with ``tanh``
    ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``, the constants as real numbers.

    It falls up to about -3/4 and then rises: the derivative of the first has one zero because its own derivative is
    ``density(x) * (2 - x ** 2)``; that of the second has the sign of ``1 + x * g'(x) * (1 - tanh(g(x)))`` with g the
    argument of tanh, where each factor falls in magnitude as a negative x rises.
    """

    tanh: bool = False

    @property
    def turn(self) -> Turn | None:
        return _GELU_TANH_TURN if self.tanh else _GELU_TURN

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def ball(self, x: Any) -> Any:
        if not self.tanh:
            return x / 2 * (-x / arb(2).sqrt()).erfc()
        inner = (2 / arb.pi()).sqrt() * (x + x**3 * 44715 / 1000000)
        return x / (1 + (-2 * inner).exp())  # (1 + tanh(z)) / 2 without cancellation

    def side(self, x: Fraction) -> Interval:
        return Interval(x / 2, x, True, True) if x > 0 else Interval(x / 2, ZERO, True, True)

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        if not self.tanh:
            return np.where(np.isinf(x), np.maximum(x, 0.0), x / 2 * _each(math.erfc, x * -math.sqrt(0.5)))
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return np.where(np.isinf(x), np.maximum(x, 0.0), x / (1 + np.exp(-2 * inner)))

    def float_error(self, x: FloatArray) -> FloatArray | float:
        negative = np.minimum(np.maximum(-x, 0.0), 64.0)  # beyond, the value is at most TINY
        return np.asarray(ELEMENTARY * (1 + negative**2 + self.tanh * negative**3))


@dataclass(frozen=True)
class Mish(Curve):
    """``x * tanh(softplus(x))``: falls up to about -1.19 and then rises.

    The sign of the derivative is that of ``4 * (x + 1) + 4 * t ** 2 + t ** 3 + t * (4 * x + 6)`` with ``t = e ** x``,
    which rises everywhere.
    """

    @property
    def turn(self) -> Turn | None:
        return _MISH_TURN

    def rational(self, x: Fraction) -> Fraction | None:
        return ZERO if x == 0 else None

    def ball(self, x: Any) -> Any:
        t = (-abs(x)).exp()
        if x > 0:
            return x * (1 + 2 * t) / (1 + 2 * t + 2 * t * t)
        return x * t * (t + 2) / (t * (t + 2) + 2)

    def side(self, x: Fraction) -> Interval:
        return _between_zero_and(x, abs(x))

    def limits(self) -> tuple[End, End]:
        return ZERO, inf

    def approximate_floats(self, x: FloatArray) -> FloatArray:
        t = np.exp(-np.abs(x))
        rising = (1 + 2 * t) / (1 + 2 * t + 2 * t * t)
        falling = t * (t + 2) / (t * (t + 2) + 2)
        return np.where(np.isinf(x), np.maximum(x, 0.0), x * np.where(x > 0, rising, falling))


def _turn(place: str, least: str) -> Turn:
    """Return a Turn from truncated decimals: place and minimum are at most one unit of the last digit further from
    0."""
    unit = Fraction(1, 10 ** (len(place) - place.index(".") - 1))
    return Turn(Interval(Fraction(place) - unit, Fraction(place)), Fraction(least) - unit)


_GELU_TURN = _turn("-0.75179152469356445745", "-0.16997120747990366169")
_GELU_TANH_TURN = _turn("-0.75246142207101625848", "-0.17004075057125405063")
_MISH_TURN = _turn("-1.19243121451549521213", "-0.30884341301725040662")


def _between_zero_and(x: Fraction, magnitude: Fraction) -> Interval:
    """Return the open interval between 0 and ``magnitude`` with the sign of ``x``."""
    return Interval(ZERO, magnitude, True, True) if x > 0 else Interval(-magnitude, ZERO, True, True)


def _each(f: Any, x: FloatArray) -> FloatArray:
    """Apply a function of the standard library to every element."""
    return np.array([f(v) for v in x.tolist()], dtype=np.float64).reshape(x.shape)
