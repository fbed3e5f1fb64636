"""Rounding and saturation: the one place where a real number becomes an integer.

ONNX's ``QuantizeLinear`` is ``saturate(round_half_even(x / scale) + zero_point)``: the rounding happens *before* the
zero point is added. QONNX's ``Quant`` rounds ``x / scale + zero_point``, and has more rounding modes.
Everything is exact (:class:`fractions.Fraction` in, ``int`` out).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from hwflow.numerics.functions.float_interval import FloatArray, FloatIntervals
from hwflow.numerics.functions.real_steps import Cuts, Levels
from hwflow.numerics.interval import End, Interval

IntArray = npt.NDArray[np.int64]

HALF = Fraction(1, 2)


class Rounding(Enum):
    """A rounding mode, named as QONNX names it. Every mode is a non-decreasing function.

    ROUND: to nearest, ties to even. CEIL, FLOOR: towards plus, minus infinity. UP: away from zero. DOWN and
    ROUND_TO_ZERO: towards zero. HALF_UP, HALF_DOWN: to nearest, ties away from and towards zero (by magnitude).
    """

    ROUND = "ROUND"
    CEIL = "CEIL"
    FLOOR = "FLOOR"
    UP = "UP"
    DOWN = "DOWN"
    HALF_UP = "HALF_UP"
    HALF_DOWN = "HALF_DOWN"
    ROUND_TO_ZERO = "ROUND_TO_ZERO"

    def __call__(self, x: Fraction) -> int:
        """Round ``x`` to an integer."""
        match self:
            case Rounding.ROUND:
                return round_half_even(x)
            case Rounding.CEIL:
                return ceil(x)
            case Rounding.FLOOR:
                return floor(x)
            case Rounding.UP:
                return ceil(x) if x > 0 else floor(x)
            case Rounding.HALF_UP:
                return floor(x + HALF) if x > 0 else ceil(x - HALF)
            case Rounding.HALF_DOWN:
                return ceil(x - HALF) if x > 0 else floor(x + HALF)
            case _:
                return floor(x) if x > 0 else ceil(x)

    def bound(self, n: int) -> tuple[Fraction, bool]:
        """Return the set ``{x : self(x) >= n}`` as (v, strict): ``{x > v}`` if strict, else ``{x >= v}``."""
        match self:
            case Rounding.ROUND:  # n - 1/2 lies between n - 1 and n, and goes to the even one
                return n - HALF, n % 2 != 0
            case Rounding.CEIL:
                return Fraction(n - 1), True
            case Rounding.FLOOR:
                return Fraction(n), False
            case Rounding.UP:
                return (Fraction(n - 1), True) if n > 0 else (Fraction(n), False)
            case Rounding.HALF_UP:
                return n - HALF, n <= 0
            case Rounding.HALF_DOWN:
                return n - HALF, n > 0
            case _:
                return (Fraction(n), False) if n > 0 else (Fraction(n - 1), True)

    def bounds(self, n: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return :meth:`bound` of many integers: twice the v, and which are strict."""
        up = n > 0
        match self:
            case Rounding.ROUND:
                return 2 * n - 1, n % 2 != 0
            case Rounding.CEIL:
                return 2 * n - 2, np.full(n.shape, True)
            case Rounding.FLOOR:
                return 2 * n, np.full(n.shape, False)
            case Rounding.UP:
                return 2 * n - 2 * up, up
            case Rounding.HALF_UP:
                return 2 * n - 1, ~up
            case Rounding.HALF_DOWN:
                return 2 * n - 1, up
            case _:
                return 2 * n - 2 * ~up, ~up

    def floats(self, x: FloatArray) -> FloatArray:
        """Round floats to integers, as floats; exact. Infinities stay."""
        whole = np.trunc(x)
        away = whole + np.sign(x)
        match self:
            case Rounding.ROUND:
                return np.asarray(np.rint(x))
            case Rounding.CEIL:
                return np.asarray(np.ceil(x))
            case Rounding.FLOOR:
                return np.asarray(np.floor(x))
            case Rounding.UP:
                return np.where(x == whole, x, away)
            case Rounding.HALF_UP:
                return np.where(_distance(x, whole) >= 0.5, away, whole)
            case Rounding.HALF_DOWN:
                return np.where(_distance(x, whole) > 0.5, away, whole)
            case _:
                return np.asarray(whole)


def _distance(x: FloatArray, whole: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):  # the difference of two infinities
        return np.where(x == whole, 0.0, np.abs(x - whole))


def round_half_even(x: Fraction) -> int:
    """Return the integer nearest to ``x``, ties to even."""
    n = floor(x + HALF)
    return n - 1 if n % 2 and n - x == HALF else n


@dataclass(frozen=True)
class Quantizer:
    """Maps a real number to an integer level in ``[low, high]``.

    ``saturate(rounding(x / scale) + zero_point)`` with an integer zero point, or, with ``zero_point_inside`` (QONNX),
    ``saturate(rounding(x / scale + zero_point))`` with any zero point. ``scale`` must be positive.
    """

    scale: Fraction
    zero_point: Fraction | int
    low: int
    high: int
    rounding: Rounding = Rounding.ROUND
    zero_point_inside: bool = False

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise ValueError(f"quantizer scale must be positive, not {self.scale}")
        if self.low > self.high:
            raise ValueError(f"quantizer range must not be empty, not [{self.low}, {self.high}]")
        if not self.zero_point_inside and Fraction(self.zero_point).denominator != 1:
            raise ValueError(f"zero point must be an integer, not {self.zero_point}")

    def __call__(self, x: Fraction) -> int:
        """Return the level of the real number ``x``."""
        if self.zero_point_inside:
            level = self.rounding(Fraction(x) / self.scale + self.zero_point)
        else:
            level = self.rounding(Fraction(x) / self.scale) + int(self.zero_point)
        return max(self.low, min(self.high, level))

    def dequantize(self, level: int) -> Fraction:
        """Return the real number that ``level`` represents."""
        return self.scale * (level - self.zero_point)

    def bound(self, level: int) -> tuple[Fraction, bool]:
        """Return ``{x : self(x) >= level}`` for ``low < level <= high`` as (v, strict), see :meth:`Rounding.bound`."""
        if self.zero_point_inside:
            value, strict = self.rounding.bound(level)
            return (value - self.zero_point) * self.scale, strict
        value, strict = self.rounding.bound(level - int(self.zero_point))
        return value * self.scale, strict

    @property
    def levels(self) -> Levels:
        """The quantizer as a step function of the reals."""
        return _levels(self)

    def enclose(self, x: Interval) -> tuple[int, int]:
        """Return the minimum and maximum level over ``x``."""
        return self._beside(x.lo, 1 if x.lo_open else 0), self._beside(x.hi, -1 if x.hi_open else 0)

    def _beside(self, x: End, side: int) -> int:
        """Return the level at ``x`` (side 0), just above it (1) or just below it (-1)."""
        if not isinstance(x, Fraction):
            return self.high if x > 0 else self.low
        level = self(x)
        while side > 0 and level < self.high and self.bound(level + 1)[0] <= x:
            level += 1
        while side < 0 and level > self.low and self.bound(level)[0] >= x:
            level -= 1
        return level

    def floats(self, x: FloatIntervals) -> tuple[IntArray, IntArray]:
        """Return the minimum and maximum level over each interval."""
        inside = self.zero_point_inside
        quotient = x.affine(1 / Fraction(self.scale), Fraction(self.zero_point) if inside else Fraction(0))
        offset = 0 if inside else int(self.zero_point)
        lo, hi = (
            np.clip(self.rounding.floats(end), self.low - offset, self.high - offset).astype(np.int64) + offset
            for end in (quotient.lo, quotient.hi)
        )
        return lo, hi


@lru_cache(maxsize=64)
def _levels(quantizer: Quantizer) -> Levels:
    levels = np.arange(quantizer.low, quantizer.high + 1)
    inside, scale = quantizer.zero_point_inside, Fraction(quantizer.scale)
    numerators, strict = quantizer.rounding.bounds(levels[1:] - (0 if inside else int(quantizer.zero_point)))
    offset = -scale * quantizer.zero_point if inside else Fraction(0)
    return Levels(levels, (Cuts(numerators, strict, scale / 2, offset),))
