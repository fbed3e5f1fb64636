"""Sums with small multipliers: ``clamp((ma * a + mb * b + addend) >> shift)`` instead of steps of an exact sum.

Exact sums of two tensors with different scales have multipliers as long as the scales' mantissas. Only the quantized
value of the sum is needed: :func:`find_sum_shift` finds the smallest shift with multipliers that give the same value
for every pair (a, b). For given multipliers and shift, a point with value ``y`` bounds the addend from below by
``bound(y) - t`` (unless y is the minimum) and from above by ``bound(y + 1) - 1 - t`` (unless it is the maximum), with
``t = ma * a + mb * b`` and ``bound(y)`` the smallest number that the shift maps to y: an addend exists iff the greatest
lower bound is at most the least upper bound. Candidates are the exact slopes, rounded, and their neighbours. The points
nearest to a step reject nearly all of them; the others are checked on every point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from hwflow.numerics.requantizers.shift_rounding import ShiftRounding, least_reaching
from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction

GREATEST_SHIFT = 24
_CHUNK = 1 << 18  # points evaluated at once
_TIGHT = 2048  # points nearest to a step, on either side of it


def sums_of(multipliers: tuple[int, int], a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Return the minimum and maximum of ``ma * a + mb * b`` over all pairs of two intervals."""
    ends = [sorted(m * x for x in interval) for m, interval in zip(multipliers, (a, b), strict=True)]
    return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]


@dataclass(frozen=True)
class Grid:
    """All pairs (a, b) of two intervals, and their required values: ``steps(ma * a + mb * b)``.

    ``steps`` is non-decreasing and defined on all sums, which lie within 62 bits.
    """

    a: tuple[int, int]
    b: tuple[int, int]
    multipliers: tuple[int, int]
    steps: StepFunction

    def chunks(self) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Yield the grid in chunks: a, b and the exact sum of each point, flat."""
        b = np.arange(self.b[0], self.b[1] + 1)
        rows = max(1, _CHUNK // len(b))
        for first in range(self.a[0], self.a[1] + 1, rows):
            a = np.arange(first, min(first + rows, self.a[1] + 1))
            left, right = np.repeat(a, len(b)), np.tile(b, len(a))
            yield left, right, self.multipliers[0] * left + self.multipliers[1] * right

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The minimum and maximum value, at corners of the grid."""
        least, most = sums_of(self.multipliers, self.a, self.b)
        return self.steps(least), self.steps(most)

    @cached_property
    def tight(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return a, b and value of the points whose exact sums are nearest to a step, above it and below it."""
        breaks = self.steps.break_array
        best = [np.empty((3, 0), dtype=np.int64)] * 2
        for a, b, sums in self.chunks():
            place = np.searchsorted(breaks, sums, side="right")
            for side, inside in enumerate((place > 0, place < len(breaks))):
                nearest = breaks[place[inside] - 1 + side]
                rows = np.stack([np.abs(sums[inside] - nearest), a[inside], b[inside]])
                rows = np.hstack([best[side], rows])
                if rows.shape[1] > _TIGHT:
                    rows = rows[:, np.argpartition(rows[0], _TIGHT)[:_TIGHT]]
                best[side] = rows
        _, a, b = np.hstack(best)
        return a, b, self.steps.evaluate(self.multipliers[0] * a + self.multipliers[1] * b)


@dataclass(frozen=True)
class SumShift:
    """``clamp(round((ma * a + mb * b + addend) / 2**shift), low, high)``; ``rounding`` as in
    :class:`hwflow.numerics.requantizers.multiply_add_shift.MultiplyAddShift`."""

    multipliers: tuple[int, int]
    addend: int
    shift: int
    low: int
    high: int
    rounding: ShiftRounding

    def shifted_by(self, shift: int) -> SumShift:
        """Return the same with a shift that is no smaller."""
        more = shift - self.shift
        a, b = self.multipliers
        return replace(self, multipliers=(a << more, b << more), addend=self.addend << more, shift=shift)

    def steps(self, lo: int, hi: int) -> StepFunction:
        """Return the value as a function of ``ma * a + mb * b`` from ``lo`` to ``hi``."""
        starts = least_reaching(np.arange(self.low + 1, self.high + 1), self.shift, self.rounding) - self.addend
        reached = int((starts <= lo).sum())
        later = ((int(s), self.low + k) for k, s in enumerate(starts.tolist(), 1) if k > reached)
        return StepFunction.of(lo, hi, [(lo, self.low + reached), *later])


def find_sum_shift(
    grid: Grid, rounding: ShiftRounding, greatest_shift: int = GREATEST_SHIFT,
    clamp: tuple[int, int] | None = None,
) -> SumShift | None:
    """Return the form of the smallest shift that is right on every point of ``grid``; None if there is none up to
    ``greatest_shift`` among the candidates, or the value takes fewer than three levels. ``clamp``: to which it must
    clamp (default: the least and the greatest value on the grid)."""
    if grid.steps.count < 2:
        return None
    slope = _slope(grid.steps)
    a, b, y = grid.tight
    low, high = clamp or grid.ends
    for shift in range(int(rounding != ShiftRounding.FLOOR), greatest_shift + 1):
        nearest = [round(slope * m * (1 << shift)) for m in grid.multipliers]
        candidates = np.array(
            [p for p in product(*([n - 1, n, n + 1] for n in nearest)) if all(p)], dtype=np.int64
        ).reshape(-1, 2)
        sums = candidates[:, :1] * a + candidates[:, 1:] * b
        at_least, at_most = _addends(sums, y, shift, low, high, rounding)
        widths = at_most - at_least
        for index in np.argsort(-widths, kind="stable"):
            if widths[index] < 0:
                break
            pair = int(candidates[index, 0]), int(candidates[index, 1])
            addend = _addend_of_all(grid, pair, shift, low, high, rounding)
            if addend is not None:
                return SumShift(pair, addend, shift, low, high, rounding)
    return None


def _slope(steps: StepFunction) -> Fraction:
    """Return the mean rise of the value per unit of the sum."""
    breaks, values = steps.break_array, steps.value_array
    return Fraction(int(values[-1] - values[1]), int(breaks[-1] - breaks[0]))


def _addends(
    sums: IntArray, y: IntArray, shift: int, low: int, high: int, rounding: ShiftRounding
) -> tuple[IntArray, IntArray]:
    """Return the minimum and maximum addend that every point allows, for each row of ``sums``."""
    far = np.int64(1) << 61
    at_least = np.where(y > low, least_reaching(y, shift, rounding) - sums, -far).max(axis=-1, initial=-far)
    at_most = np.where(y < high, least_reaching(y + 1, shift, rounding) - 1 - sums, far).min(axis=-1, initial=far)
    return at_least, at_most


def _addend_of_all(
    grid: Grid, multipliers: tuple[int, int], shift: int, low: int, high: int, rounding: ShiftRounding
) -> int | None:
    """Return the addend nearest to 0 that is right on every point of the grid; None if there is none."""
    at_least, at_most = -(1 << 61), 1 << 61
    for a, b, exact in grid.chunks():
        sums = multipliers[0] * a + multipliers[1] * b
        least, most = _addends(sums, grid.steps.evaluate(exact), shift, low, high, rounding)
        at_least, at_most = max(at_least, int(least)), min(at_most, int(most))
        if at_least > at_most:
            return None
    return min(max(0, at_least), at_most)


