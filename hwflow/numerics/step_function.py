"""A step function: any function from an integer interval to integers, held as the places where it changes.

It is the canonical form of every requantization: two step functions are the same function on the same interval if and
only if they compare equal. Non-decreasing ones are staircases (:mod:`hwflow.numerics.staircase`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import eq, lt

import numpy as np
import numpy.typing as npt

from hwflow.numerics.staircase import LIMIT, IntArray, Staircase


@dataclass(frozen=True)
class StepFunction:
    """``y(x) = values[k]`` with ``k = #{breaks <= x}``, for integers ``lo <= x <= hi``.

    ``breaks`` rise strictly and lie in ``(lo, hi]``; neighbouring ``values`` differ (there is one more of them).
    Raises ValueError where that does not hold, or an end of the interval exceeds 2**62.
    """

    lo: int
    hi: int
    breaks: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"interval of a step function must not be empty, not [{self.lo}, {self.hi}]")
        if self.lo < -LIMIT or self.hi > LIMIT:
            raise ValueError(f"interval of a step function must lie within 62 bits, not [{self.lo}, {self.hi}]")
        if len(self.values) != len(self.breaks) + 1:
            raise ValueError(f"{len(self.breaks)} breaks need {len(self.breaks) + 1} values, not {len(self.values)}")
        if not rises((self.lo, *self.breaks)) or (self.breaks and self.breaks[-1] > self.hi):
            raise ValueError(f"breaks must rise strictly within ({self.lo}, {self.hi}], not be {self.breaks}")
        if any(map(eq, self.values, self.values[1:])):
            raise ValueError("neighbouring values of a step function must differ")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Of hundreds of numbers, once."""
        return hash((self.lo, self.hi, self.breaks, self.values))

    @classmethod
    def of(cls, lo: int, hi: int, starts: Iterable[tuple[int, int]]) -> StepFunction:
        """From (start, value) in rising order of start: value holds from there on. The first start must be ``lo``;
        starts beyond ``hi`` are left out, equal neighbours joined, and of equal starts the last one counts."""
        breaks: list[int] = []
        values: list[int] = []
        for start, value in starts:
            if start > hi:
                break
            if values and start == (breaks[-1] if breaks else lo):
                values.pop()
                if breaks:
                    breaks.pop()
            if values and values[-1] == value:
                continue
            if values:
                breaks.append(start)
            values.append(value)
        return cls(lo, hi, tuple(breaks), tuple(values))

    @classmethod
    def of_staircase(cls, s: Staircase) -> StepFunction:
        """The same function."""
        starts = [(s.lo, s.low)] + [(t, s.low + k) for k, t in enumerate(s.thresholds, 1)]
        return cls.of(s.lo, s.hi, starts)

    @classmethod
    def of_table(cls, lo: int, table: Iterable[int]) -> StepFunction:
        """From the values at lo, lo + 1, ..."""
        array = np.fromiter(table, dtype=np.int64)
        places = np.flatnonzero(np.diff(array)) + 1
        values = (int(array[0]), *(int(v) for v in array[places]))
        return cls(lo, lo + len(array) - 1, tuple(int(p) + lo for p in places), values)

    @cached_property
    def low(self) -> int:
        """The least value."""
        return min(self.values)

    @cached_property
    def high(self) -> int:
        """The greatest value."""
        return max(self.values)

    @cached_property
    def direction(self) -> int:
        """1: non-decreasing (or constant), -1: non-increasing, 0: neither."""
        if rises(self.values):
            return 1
        return -1 if rises(self.values[::-1]) else 0

    @property
    def is_identity(self) -> bool:
        count = self.hi - self.lo + 1  # compared first: an interval may be far too large to be listed
        return len(self.values) == count and self.values == tuple(range(self.lo, self.hi + 1))

    def staircase(self) -> Staircase:
        """The same function as a staircase; ValueError unless it is non-decreasing."""
        return self._staircase

    @cached_property
    def _staircase(self) -> Staircase:
        if self.direction != 1:
            raise ValueError("a staircase must be non-decreasing")
        thresholds = [
            t for t, (a, b) in zip(self.breaks, pairwise(self.values), strict=True) for _ in range(b - a)
        ]
        return Staircase(self.lo, self.hi, self.values[0], tuple(thresholds))

    def mirrored(self) -> StepFunction:
        """``y(-x)``, over ``[-hi, -lo]``."""
        return StepFunction(-self.hi, -self.lo, tuple(1 - b for b in reversed(self.breaks)), self.values[::-1])

    def __call__(self, x: int) -> int:
        """The value at ``x``; ValueError if ``x`` is outside the interval."""
        if not self.lo <= x <= self.hi:
            raise ValueError(f"input of a step function must lie in [{self.lo}, {self.hi}], not {x}")
        return self.values[bisect_right(self.breaks, x)]

    @cached_property
    def _arrays(self) -> tuple[IntArray, IntArray]:
        return np.array(self.breaks, dtype=np.int64), np.array(self.values, dtype=np.int64)

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """The values at an integer array of any shape; ValueError if one is outside the interval."""
        x = np.asarray(x)
        if x.size and (int(x.min()) < self.lo or int(x.max()) > self.hi):
            found = f"[{x.min()}, {x.max()}]"
            raise ValueError(f"inputs of a step function must lie in [{self.lo}, {self.hi}], not {found}")
        breaks, values = self._arrays
        return np.asarray(values[np.searchsorted(breaks, x, side="right")], dtype=np.int64)


def rises(numbers: tuple[int, ...]) -> bool:
    """Whether each number is greater than the one before it."""
    return all(map(lt, numbers, numbers[1:]))


def compose(outer: StepFunction, inner: StepFunction) -> StepFunction:
    """``outer(inner(x))`` over inner's interval; outer must be defined on [inner.low, inner.high]."""
    starts = zip((inner.lo, *inner.breaks), map(outer, inner.values), strict=True)
    return StepFunction.of(inner.lo, inner.hi, starts)


def all_alike(steps: Sequence[StepFunction]) -> bool:
    """Whether there is one function only. (Comparing ends at the first difference; a set would take every number.)"""
    return all(step is steps[0] or step == steps[0] for step in steps)
