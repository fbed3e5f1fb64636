"""Real numbers, exactly: Fractions where they are rational, else expressions that can be enclosed as tightly as asked.

:func:`decide` asks for as much as it takes until the answer is certain. A comparison of equal irrational numbers cannot
be decided this way: :class:`Undecided`. Functions return Fractions where their value is rational (sigmoid(0), sqrt(4),
...); by the theorems of Lindemann and of Siegel the transcendental ones are rational, for rational x, nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, isinf, isqrt
from typing import Any

import mpmath

Enclosure = tuple[Fraction, Fraction]
Number = Any  # int, Fraction, float infinity or Real

FIRST_BITS, MOST_BITS = 64, 1 << 17


class Undecided(Exception):
    """More precision than :data:`MOST_BITS` would be needed, or the numbers are equal."""


class _TooWide(Exception):
    """An enclosure is too wide to go on; with more precision it may not be."""


class Real:
    """An irrational number (or one not known to be rational). ``enclose(bits)`` gives bounds about 2**-bits apart."""

    __slots__ = ("_bits", "_enclose", "_known")

    def __init__(self, enclose: Callable[[int], Enclosure]) -> None:
        self._enclose = enclose
        self._bits, self._known = 0, (Fraction(0), Fraction(0))

    def enclosure(self, bits: int) -> Enclosure:
        if bits != self._bits:
            lo, hi = self._enclose(bits)
            unit = 1 << bits
            self._known = Fraction(floor(lo * unit), unit), Fraction(ceil(hi * unit), unit)
            self._bits = bits
        return self._known

    def __add__(self, other: Number) -> Number:
        return Real(lambda bits: _add(self.enclosure(bits), enclosure(other, bits)))

    __radd__ = __add__

    def __neg__(self) -> Number:
        return self * -1

    def __sub__(self, other: Number) -> Number:
        return self + -1 * other

    def __rsub__(self, other: Number) -> Number:
        return self * -1 + other

    def __mul__(self, other: Number) -> Number:
        if not isinstance(other, Real) and other == 0:
            return Fraction(0)
        return Real(lambda bits: _multiply(self.enclosure(bits), enclosure(other, bits)))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        return self * (reciprocal(other) if isinstance(other, Real) else 1 / Fraction(other))

    def __rtruediv__(self, other: Number) -> Number:
        return reciprocal(self) * other

    def __lt__(self, other: Number) -> bool:
        return sign(self - other) < 0 if not _infinite(other) else other > 0

    def __gt__(self, other: Number) -> bool:
        return sign(self - other) > 0 if not _infinite(other) else other < 0

    def __ge__(self, other: Number) -> bool:
        return not self < other

    def __le__(self, other: Number) -> bool:
        return not self > other

    def __abs__(self) -> Number:
        return self if sign(self) > 0 else -self

    def __float__(self) -> float:
        bits = FIRST_BITS  # after the point: quotients of large numbers take more for a float's 53 in all
        while True:
            lo, hi = self.enclosure(bits)
            if bits == MOST_BITS or hi - lo <= max(abs(lo), abs(hi), Fraction(1, 1 << 60)) / (1 << 50):
                return float((lo + hi) / 2)
            bits *= 2


def _infinite(x: Number) -> bool:
    return isinstance(x, float) and isinf(x)


def _add(a: Enclosure, b: Enclosure) -> Enclosure:
    return a[0] + b[0], a[1] + b[1]


def _multiply(a: Enclosure, b: Enclosure) -> Enclosure:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def enclosure(x: Number, bits: int) -> Enclosure:
    return x.enclosure(bits) if isinstance(x, Real) else (Fraction(x), Fraction(x))


def decide(x: Number, answer: Callable[[Fraction], int]) -> int:
    """``answer(x)`` for a non-decreasing ``answer``."""
    if not isinstance(x, Real):
        return answer(Fraction(x))
    bits = FIRST_BITS
    while bits <= MOST_BITS:
        try:
            lo, hi = (answer(end) for end in x.enclosure(bits))
            if lo == hi:
                return lo
        except _TooWide:
            pass
        bits *= 2
    raise Undecided


def sign(x: Number) -> int:
    """-1, 0 or 1. Of an irrational number never 0."""
    if not isinstance(x, Real):
        return (x > 0) - (x < 0)
    return decide(x, lambda v: (v > 0) - (v < 0))


def reciprocal(x: Number) -> Number:
    if not isinstance(x, Real):
        return 1 / Fraction(x)

    def enclose(bits: int) -> Enclosure:
        lo, hi = x.enclosure(bits)
        if lo <= 0 <= hi:
            raise _TooWide
        return 1 / hi, 1 / lo

    return Real(enclose)


def _increasing(function: Callable[[Any], Any], x: Number) -> Real:
    """``function`` of mpmath, which must increase; its error is far less than the margin left for it."""

    def bounds(v: Fraction, bits: int) -> Enclosure:
        magnitude = max(0, abs(v.numerator).bit_length() - v.denominator.bit_length() + 1)
        with mpmath.workprec(bits + 64 + magnitude):
            result = function(mpmath.mpf(v.numerator) / v.denominator)
            margin = mpmath.ldexp(abs(result) + 1, -bits - 16)
            low, high = mpmath.ldexp(result - margin, bits), mpmath.ldexp(result + margin, bits)
            return Fraction(int(mpmath.floor(low)), 1 << bits), Fraction(int(mpmath.ceil(high)), 1 << bits)

    def enclose(bits: int) -> Enclosure:
        lo, hi = enclosure(x, bits)
        return bounds(lo, bits)[0], bounds(hi, bits)[1]

    return Real(enclose)


def _positive(x: Number) -> None:
    if sign(x) <= 0:
        raise ZeroDivisionError(f"not defined at {float(x)}")


def exp(x: Number) -> Number:
    return Fraction(1) if _is_zero(x) else _increasing(mpmath.exp, x)


def log(x: Number) -> Number:
    _positive(x)
    if isinstance(x, Real):
        return _of_positive(mpmath.log, x)
    return Fraction(0) if x == 1 else _increasing(mpmath.log, x)


def _of_positive(function: Callable[[Any], Any], x: Real) -> Real:
    """Of a number that is positive: its enclosure may touch 0 only while it is wide."""
    inner = _increasing(function, x)

    def enclose(bits: int) -> Enclosure:
        if x.enclosure(bits)[0] <= 0:
            raise _TooWide
        return inner.enclosure(bits)

    return Real(enclose)


def sqrt(x: Number) -> Number:
    if sign(x) < 0:
        raise ZeroDivisionError(f"no square root of {float(x)}")
    if isinstance(x, Real):
        return _of_positive(mpmath.sqrt, x)
    x = Fraction(x)
    n, d = isqrt(x.numerator), isqrt(x.denominator)
    if n * n == x.numerator and d * d == x.denominator:
        return Fraction(n, d)
    return _increasing(mpmath.sqrt, x)


def power(x: Number, exponent: Fraction) -> Number:
    """x**exponent for a dyadic exponent: square roots of a power."""
    if exponent < 0:
        return reciprocal(power(x, -exponent))
    result: Number = Fraction(1)
    for _ in range(exponent.numerator):
        result = result * x
    roots = exponent.denominator.bit_length() - 1
    for _ in range(roots):
        result = sqrt(result)
    return result


def tanh(x: Number) -> Number:
    return Fraction(0) if _is_zero(x) else _increasing(mpmath.tanh, x)


def erf(x: Number) -> Number:
    return Fraction(0) if _is_zero(x) else _increasing(mpmath.erf, x)


def sigmoid(x: Number) -> Number:
    return Fraction(1, 2) if _is_zero(x) else _increasing(lambda v: 1 / (1 + mpmath.exp(-v)), x)


def softplus(x: Number) -> Number:
    """log(1 + exp(x)), without exp(x) of a large x."""
    return _increasing(lambda v: max(v, mpmath.mpf(0)) + mpmath.log1p(mpmath.exp(-abs(v))), x)


PI = Real(lambda bits: _constant(mpmath.pi, bits))


def _constant(value: Any, bits: int) -> Enclosure:
    with mpmath.workprec(bits + 16):
        scaled = int(mpmath.floor(mpmath.ldexp(+value, bits)))
    return Fraction(scaled - 1, 1 << bits), Fraction(scaled + 2, 1 << bits)


def _is_zero(x: Number) -> bool:
    return not isinstance(x, Real) and x == 0


# --- rounding ---------------------------------------------------------------------------------------------------------


def nearest_even(x: Fraction) -> int:
    return round(x)


def _away(x: Fraction) -> int:
    return ceil(x) if x > 0 else floor(x)


def _towards_zero(x: Fraction) -> int:
    return int(x)  # Python's own


def _half_away(x: Fraction) -> int:
    whole = int(abs(x))
    whole += abs(x) - whole >= Fraction(1, 2)
    return whole if x >= 0 else -whole


def _half_to_zero(x: Fraction) -> int:
    whole = int(abs(x))
    whole += abs(x) - whole > Fraction(1, 2)
    return whole if x >= 0 else -whole


ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "ROUND": nearest_even,
    "CEIL": ceil,
    "FLOOR": floor,
    "UP": _away,
    "DOWN": _towards_zero,
    "ROUND_TO_ZERO": _towards_zero,
    "HALF_EVEN": nearest_even,
    "HALF_UP": _half_away,
    "HALF_DOWN": _half_to_zero,
}


def rounded(x: Number, mode: str = "ROUND") -> int:
    return decide(x, ROUNDINGS[mode.upper()])
