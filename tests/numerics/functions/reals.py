"""A second implementation of the elementwise functions: the ONNX formulas in mpmath with many digits, and a Fraction
where the value is rational. Nothing of hwflow's numerics is used but the names of the functions."""

from __future__ import annotations

from fractions import Fraction as F
from math import ceil, floor
from typing import Any

from mpmath import mp, mpf

from hwflow.numerics.functions import combination, hyperbolic, piecewise, power, trigonometric
from hwflow.numerics.functions import smooth as s
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.rounding import Rounding

BITS = 320
NEAR = F(1, 1 << 150)


Real = F | mpf


def _real(x: Real) -> Any:
    return mpf(x.numerator) / x.denominator if isinstance(x, F) else x


def rounded(x: F, mode: Rounding) -> int:
    """From the definitions of the modes, not from hwflow's thresholds."""
    down, up = floor(x), ceil(x)
    if down == up:
        return down
    towards_zero, away = (down, up) if x > 0 else (up, down)
    nearest = down if x - down < F(1, 2) else up
    tie = x - down == F(1, 2)
    return {
        "ROUND": (down if down % 2 == 0 else up) if tie else nearest,
        "CEIL": up, "FLOOR": down, "UP": away, "DOWN": towards_zero, "ROUND_TO_ZERO": towards_zero,
        "HALF_UP": away if tie else nearest, "HALF_DOWN": towards_zero if tie else nearest,
    }[mode.value]  # fmt: skip


class NoValue(Exception):
    """The function is not defined there."""


def value(functions: tuple[Elementwise, ...], x: Real) -> Real:
    for function in functions:
        x = _apply(function, x)
    return x


class Unsure(Exception):
    """A number that is not known exactly is too near to where roundings change."""


def position(x: Real, scale: F, zero_point: F | int) -> F:
    """``x / scale + zero_point``, for rounding."""
    if isinstance(x, F):
        return x / scale + zero_point
    if abs(x) > 2**300:
        raise Unsure
    magnitude = F(int(x.man)) * F(2) ** int(x.exp)
    quotient = (magnitude if x >= 0 else -magnitude) / scale + zero_point
    if abs(quotient) < 1 << 40 and abs(quotient * 2 - round(quotient * 2)) < NEAR:
        raise Unsure
    return quotient


def _apply(f: Elementwise, x: Real) -> Real:
    r, zero, one = _real(x), F(0), F(1)
    match f:
        case piecewise.Affine(m, a):
            return m * x + a if isinstance(x, F) else _real(m) * x + _real(a)
        case piecewise.Relu():
            return x if r > 0 else zero
        case piecewise.Clip(low, high):
            x = low if low is not None and r < _real(low) else x
            return high if high is not None and _real(x) > _real(high) else x
        case piecewise.LeakyRelu(alpha):
            return x if r >= 0 else _apply(piecewise.Affine(alpha, zero), x)
        case piecewise.ThresholdedRelu(alpha):
            return x if r > _real(alpha) else zero
        case piecewise.HardSigmoid(alpha, beta):
            return _apply(piecewise.Clip(zero, one), _apply(piecewise.Affine(alpha, beta), x))
        case piecewise.Abs():
            return abs(x)
        case piecewise.Sign():
            return F((r > 0) - (r < 0))
        case piecewise.Round(mode):
            return F(rounded(position(x, one, 0), mode))
        case piecewise.Ranked(levels):
            place = position(x, one, 0)
            return next((y for k, y in reversed([*enumerate(levels)]) if place >= k), levels[0])
        case power.Reciprocal():
            if r == 0:
                raise NoValue
            return 1 / x
        case combination.Combination(op, left, right):
            a, b = value(left, x), value(right, x)
            if not (isinstance(a, F) and isinstance(b, F)):
                if ((isinstance(a, F) and a == 0) or (isinstance(b, F) and b == 0)) and op == "mul":
                    return zero
                a, b = _real(a), _real(b)
            if op == "div" and b == 0:
                raise NoValue
            return {
                "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b,
                "min": lambda: min(a, b), "max": lambda: max(a, b),
            }[op]()  # fmt: skip
        case s.HardSwish():
            return _apply(combination.Combination("mul", (), (piecewise.HardSigmoid(F(1, 6), F(1, 2)),)), x)
        case s.Softsign():
            return x / (1 + abs(x))
        case power.Sqrt():
            return _power(x, F(1, 2))
        case power.Pow(exponent):
            return _power(x, exponent)
        case s.Elu(alpha):
            return x if r >= 0 else _real(alpha) * mp.expm1(r) if alpha else zero
        case s.Selu(alpha, gamma):
            if r > 0 and isinstance(x, F):
                return gamma * x
            return _exactly(_real(gamma) * (r if r > 0 else _real(alpha) * mp.expm1(r)), x == 0 or not gamma, zero)
        case s.Celu(alpha):
            if isinstance(x, F) and r >= 0:
                return x
            return max(mpf(0), r) + min(mpf(0), _real(alpha) * mp.expm1(r / _real(alpha)))
        case s.Exp():
            return _exactly(mp.exp(r), x == 0, one)
        case s.Log():
            if r <= 0:
                raise NoValue
            return _exactly(mp.log(r), x == 1, zero)
        case s.Sigmoid():
            return _exactly(1 / (1 + mp.exp(-r)), x == 0, F(1, 2))
        case s.Tanh():
            return _exactly(mp.tanh(r), x == 0, zero)  # which has all digits of small ones, too
        case s.Erf():
            return _exactly(mp.erf(r), x == 0, zero)
        case trigonometric.Sin():
            return _exactly(mp.sin(r), x == 0, zero)
        case trigonometric.Cos():
            return _exactly(mp.cos(r), x == 0, one)
        case trigonometric.Tan():
            return _exactly(mp.tan(r), x == 0, zero)
        case trigonometric.Asin() | trigonometric.Acos():
            if abs(r) > 1:
                raise NoValue
            if isinstance(f, trigonometric.Acos):
                return _exactly(mp.acos(r), x == 1, zero)
            return _exactly(mp.asin(r), x == 0, zero)
        case trigonometric.Atan():
            return _exactly(mp.atan(r), x == 0, zero)
        case hyperbolic.Sinh():
            return _exactly(mp.sinh(r), x == 0, zero)
        case hyperbolic.Cosh():
            return _exactly((mp.exp(r) + mp.exp(-r)) / 2, x == 0, one)
        case hyperbolic.Asinh():
            return _exactly(mp.asinh(r), x == 0, zero)
        case hyperbolic.Acosh():
            if r < 1:
                raise NoValue
            return _exactly(mp.acosh(r), x == 1, zero)
        case hyperbolic.Atanh():
            if abs(r) >= 1:
                raise NoValue
            return _exactly(mp.atanh(r), x == 0, zero)
        case power.RootMultiply(radicand):
            return _exactly(r * mp.sqrt(mpf(radicand.numerator) / radicand.denominator), x == 0, zero)
        case s.Softplus():
            return mp.log1p(mp.exp(r))
        case s.Mish():
            return _exactly(r * mp.tanh(mp.log1p(mp.exp(r))), x == 0, zero)
        case s.Gelu(True):
            inner = mp.sqrt(2 / mp.pi) * (r + mpf(44715) / 10**6 * r**3)
            factor = 1 + mp.tanh(inner) if inner > -9 else 2 * mp.exp(2 * inner) / (1 + mp.exp(2 * inner))
            return _exactly(r / 2 * factor, x == 0, zero)
        case s.Gelu(False):
            factor = 1 + mp.erf(r / mp.sqrt(2)) if r > -9 else mp.erfc(-r / mp.sqrt(2))
            return _exactly(r / 2 * factor, x == 0, zero)
    raise NotImplementedError(f)


def _exactly(x: Any, known: bool, exact: F) -> Real:
    return exact if known else x


def _power(x: Real, exponent: F) -> Real:
    if exponent == 0:
        return F(1)
    if (x < 0 and exponent.denominator != 1) or (x == 0 and exponent < 0):
        raise NoValue
    if exponent.denominator == 1:
        return x**exponent.numerator
    if x == 0:
        return F(0)
    y = mp.power(_real(x), _real(exponent))
    near = F(int(mp.nint(y * 720720)), 720720)  # a rational power of the small rationals of the tests
    is_root = isinstance(x, F) and near**exponent.denominator == x**exponent.numerator
    return near if is_root else y
