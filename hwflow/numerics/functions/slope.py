"""Bounds of the slopes of functions over intervals: their sign proves that a function is monotone there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.function import Elementwise


class Sloped(NamedTuple):
    """Values of a function, and bounds of its slopes between any two numbers of an interval (see
    :meth:`~hwflow.numerics.function.Elementwise.slopes`)."""

    value: FloatIntervals
    slope: FloatIntervals

    @classmethod
    def of(cls, x: FloatIntervals) -> Sloped:
        """x itself."""
        ones = np.ones(x.lo.shape)
        return cls(x, FloatIntervals.of(ones, ones))

    def then(self, function: Elementwise) -> Sloped:
        """Apply ``function``."""
        return Sloped(function.floats(self.value), _product(function.slopes(self.value), self.slope))

    def through(self, functions: Iterable[Elementwise]) -> Sloped:
        """Apply ``functions`` in order."""
        result = self
        for function in functions:
            result = result.then(function)
        return result

    def negated(self) -> Sloped:
        return Sloped(self.value.negated(), self.slope.negated())

    def sum(self, other: Sloped) -> Sloped:
        """``x + y``."""
        return Sloped(self.value.sum(other.value), self.slope.sum(other.slope))

    def product(self, other: Sloped) -> Sloped:
        """``x * y``; its slope is ``y(b) * slope of x + x(a) * slope of y``."""
        slope = _product(other.value, self.slope).sum(_product(self.value, other.slope))
        return Sloped(self.value.product(other.value), slope)

    def reciprocal(self) -> Sloped:
        """``1 / x``; its slope is that of x divided by ``-x(a) * x(b)``."""
        inverse = self.value.reciprocal()
        squares = _product(inverse, inverse)
        return Sloped(inverse, _product(squares, self.slope).negated())

    def minimum(self, other: Sloped) -> Sloped:
        """``min(x, y)``."""
        return self.negated().maximum(other.negated()).negated()

    def maximum(self, other: Sloped) -> Sloped:
        """``max(x, y)``; its slope is that of the greater one throughout, else between both slopes."""
        mine, yours = self.value.lo >= other.value.hi, other.value.lo >= self.value.hi
        lo, hi = np.minimum(self.slope.lo, other.slope.lo), np.maximum(self.slope.hi, other.slope.hi)
        for certain, slope in ((mine, self.slope), (yours, other.slope)):
            lo, hi = np.where(certain, slope.lo, lo), np.where(certain, slope.hi, hi)
        return Sloped(self.value.maximum(other.value), FloatIntervals.of(lo, hi))


def _product(a: FloatIntervals, b: FloatIntervals) -> FloatIntervals:
    """``a * b``, with a certain sign even on underflow."""
    product = a.product(b)
    same = ((a.lo >= 0) & (b.lo >= 0)) | ((a.hi <= 0) & (b.hi <= 0))
    opposite = ((a.lo >= 0) & (b.hi <= 0)) | ((a.hi <= 0) & (b.lo >= 0))
    return FloatIntervals.of(
        np.where(same, np.maximum(product.lo, 0.0), product.lo),
        np.where(opposite, np.minimum(product.hi, 0.0), product.hi),
    )
