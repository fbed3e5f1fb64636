"""Arrays of float64 intervals that certainly contain a function's values: the fast path of deciding steps.

Bounds are widened by more than the rounding error of each operation (IEEE 754 double, 2**-53 of the result) and of the
platform's elementary functions, whose relative error is assumed below ELEMENTARY (64 units in the last place; libraries
promise 4 or better, and tests compare with many digits). By hand: Arb takes one interval at a time; here numpy bounds
whole arrays before, and Arb gets what they leave undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

STEP = 2.0**-52  # one operation
ELEMENTARY = 2.0**-46  # an elementary function
TINY = 2.0**-1060  # underflow
LEAST_FACTOR = Fraction(1, 1 << 960)  # it, its inverse, and products of these with 64 bits are finite and not 0
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class FloatIntervals:
    """``lo <= x <= hi`` elementwise. ``partly``: a function so far may be undefined at some x of the interval;
    ``nowhere``: it is undefined at all of them."""

    lo: FloatArray
    hi: FloatArray
    partly: BoolArray
    nowhere: BoolArray

    @classmethod
    def of(cls, lo: FloatArray, hi: FloatArray) -> FloatIntervals:
        nothing = np.zeros(lo.shape, dtype=np.bool_)
        return cls(lo, hi, nothing, nothing)

    def bounded(self, lo: FloatArray, hi: FloatArray, relative: float | FloatArray = 0.0) -> FloatIntervals:
        """Replace the bounds, widened by ``relative`` of each (exact zeros stay); NaN means unbounded."""
        lo, hi = np.minimum(lo, LARGEST), np.maximum(hi, -LARGEST)
        if not np.isscalar(relative) or relative:
            lo, hi = lo - np.abs(lo) * relative, hi + np.abs(hi) * relative
        return FloatIntervals(
            np.where(np.isnan(lo), -inf, lo), np.where(np.isnan(hi), inf, hi), self.partly, self.nowhere
        )

    def rising(self, f: Callable[[FloatArray], FloatArray], relative: float | FloatArray = 0.0) -> FloatIntervals:
        """Apply ``f``, which must be non-decreasing, to both ends."""
        return self.bounded(f(self.lo), f(self.hi), relative)

    def within(self, lo: float, hi: float) -> FloatIntervals:
        """Intersect with [lo, hi], known to contain every value."""
        return FloatIntervals(np.clip(self.lo, lo, hi), np.clip(self.hi, lo, hi), self.partly, self.nowhere)

    def undefined(self, partly: BoolArray, nowhere: BoolArray) -> FloatIntervals:
        """Mark these places as undefined, too."""
        return FloatIntervals(self.lo, self.hi, self.partly | partly, self.nowhere | nowhere)

    def affine(self, multiplier: Fraction, addend: Fraction) -> FloatIntervals:
        """Return ``multiplier * x + addend``."""
        if multiplier and not LEAST_FACTOR <= abs(multiplier) <= 1 / LEAST_FACTOR:  # out of the range of float64
            part = LEAST_FACTOR if abs(multiplier) < 1 else 1 / LEAST_FACTOR
            return self.affine(part, Fraction(0)).affine(multiplier / part, addend)
        m, a = nearest(multiplier), nearest(addend)
        if m == 0 and multiplier == 0:
            constant = np.full(self.lo.shape, a)
            return self.bounded(constant, constant.copy(), 0.0 if addend == Fraction(a) else STEP)
        lo, hi = (self.lo, self.hi) if m > 0 else (self.hi, self.lo)
        result = self
        if multiplier != 1:
            underflow = np.where(self.magnitude > 0, TINY, 0.0)
            result = self.bounded(_product(m, lo), _product(m, hi), 2 * STEP).widened(underflow)
        if addend != 0:
            slack = (result.magnitude + abs(a)) * (2 * STEP) + (TINY if abs(addend) < LEAST_FACTOR else 0.0)
            if abs(addend) > LARGEST:  # out of the range of float64
                far = np.full(result.lo.shape, inf)
                lo, hi = (result.lo + a, far) if addend > 0 else (-far, result.hi + a)
                return result.bounded(lo, hi).widened(slack)
            result = result.bounded(result.lo + a, result.hi + a).widened(slack)
        return result

    def widened(self, by: FloatArray) -> FloatIntervals:
        """Widen by ``by`` on either side."""
        return FloatIntervals(self.lo - by, self.hi + by, self.partly, self.nowhere)

    @property
    def magnitude(self) -> FloatArray:
        """The greatest |x|."""
        return np.asarray(np.maximum(np.abs(self.lo), np.abs(self.hi)))

    def reciprocal(self) -> FloatIntervals:
        """Return ``1 / x``; undefined where 0 is in it."""
        partly = (self.lo <= 0) & (self.hi >= 0)
        result = self.bounded(1 / self.hi, 1 / self.lo, STEP).undefined(partly, (self.lo == 0) & (self.hi == 0))
        return FloatIntervals(
            np.where(partly, -inf, result.lo), np.where(partly, inf, result.hi), result.partly, result.nowhere
        ).widened(np.where(np.isinf(self.magnitude), TINY, 0.0))

    def combined(self, other: FloatIntervals, corners: list[FloatArray], relative: float) -> FloatIntervals:
        """Bound a function of both by its values at the corners, widened; undefined where either is."""
        lo, hi = np.minimum.reduce(corners), np.maximum.reduce(corners)
        return self.bounded(lo, hi, relative).undefined(other.partly, other.nowhere)

    def sum(self, other: FloatIntervals) -> FloatIntervals:
        """Return ``x + y``."""
        return self.combined(other, [self.lo + other.lo, self.hi + other.hi], STEP)

    def product(self, other: FloatIntervals) -> FloatIntervals:
        """Return ``x * y``."""
        corners = [_product(a, b) for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        underflow = np.where((self.magnitude > 0) & (other.magnitude > 0), TINY, 0.0)
        return self.combined(other, corners, STEP).widened(underflow)

    def negated(self) -> FloatIntervals:
        return FloatIntervals(-self.hi, -self.lo, self.partly, self.nowhere)

    def minimum(self, other: FloatIntervals) -> FloatIntervals:
        """Return ``min(x, y)``."""
        return self.negated().maximum(other.negated()).negated()

    def maximum(self, other: FloatIntervals) -> FloatIntervals:
        """Return ``max(x, y)``."""
        return self.bounded(np.maximum(self.lo, other.lo), np.maximum(self.hi, other.hi)).undefined(
            other.partly, other.nowhere
        )


def _product(a: FloatArray | float, b: FloatArray) -> FloatArray:
    """Multiply; 0 times an infinite bound is 0."""
    product = np.asarray(a * b)
    return np.where(np.isnan(product), 0.0, product)


def nearest(x: Fraction) -> float:
    """Return the nearest finite float64."""
    if abs(x) >= LARGEST:
        return LARGEST if x > 0 else -LARGEST
    return float(x)


def outwards(x: Fraction) -> tuple[float, float]:
    """Return the tightest floats around ``x``, equal if it is a float."""
    if abs(x) > LARGEST:
        return (LARGEST, inf) if x > 0 else (-inf, -LARGEST)
    f = float(x)
    exact = Fraction(f)
    return (f if exact <= x else float(np.nextafter(f, -inf))), (f if exact >= x else float(np.nextafter(f, inf)))
