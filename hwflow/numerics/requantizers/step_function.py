"""Step functions: any functions from an integer interval to integers, stored as the places where they change.

The canonical form of every requantization: two step functions are the same function on the same interval if and only if
they compare equal. Non-decreasing ones are staircases (:mod:`hwflow.numerics.requantizers.staircase`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.numerics.requantizers.staircase import MAX_LEVELS, IntArray, Staircase, narrow

_INT64 = np.iinfo(np.int64)

_SHARED_FROM = 64
"""Values: fewer take no more memory than a view."""


@cache
def _ramp() -> npt.NDArray[np.int32]:
    result = np.arange(-MAX_LEVELS, MAX_LEVELS, dtype=np.int32)
    result.flags.writeable = False
    return result


def _shared(levels: IntArray) -> npt.NDArray[Any]:
    """Return ``levels`` read-only: where they rise one by one, as nearly all long ones do, a view of an array that all
    step functions share."""
    if len(levels) >= _SHARED_FROM and levels[-1] - levels[0] == len(levels) - 1:
        first = int(levels[0]) + MAX_LEVELS
        if first >= 0 and first + len(levels) <= 2 * MAX_LEVELS:
            ramp = _ramp()[first : first + len(levels)]
            if np.array_equal(levels, ramp):
                return ramp
    return narrow(levels)


class StepFunction:
    """``y(x) = values[k]`` with ``k = #{breaks <= x}``, for integers ``lo <= x <= hi``.

    ``breaks`` rise strictly and lie in ``(lo, hi]``; neighbouring ``values`` differ (there is one more of them).
    Raises ValueError if this does not hold, or the interval is not within int64. Immutable and hashable; stored in
    arrays, because a 16-bit quantizer has thousands of breaks in each of hundreds of channels.
    """

    def __init__(self, lo: int, hi: int, breaks: npt.ArrayLike, values: npt.ArrayLike) -> None:
        if lo > hi:
            raise ValueError(f"interval of a step function must not be empty, not [{lo}, {hi}]")
        if lo < _INT64.min or hi > _INT64.max:
            raise ValueError(f"interval of a step function must lie within int64, not [{lo}, {hi}]")
        self.lo, self.hi = lo, hi
        starts, levels = np.asarray(breaks, dtype=np.int64), np.asarray(values, dtype=np.int64)
        if len(levels) != len(starts) + 1:
            raise ValueError(f"{len(starts)} breaks need {len(starts) + 1} values, not {len(levels)}")
        if len(starts) and (starts[0] <= lo or starts[-1] > hi or not (starts[1:] > starts[:-1]).all()):
            raise ValueError(f"breaks must rise strictly within ({lo}, {hi}], not be {tuple(starts.tolist())}")
        if (levels[1:] == levels[:-1]).any():
            raise ValueError("neighbouring values of a step function must differ")
        self._breaks, self._values = narrow(starts), _shared(levels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepFunction):
            return NotImplemented
        return (
            (self.lo, self.hi) == (other.lo, other.hi) and np.array_equal(self._breaks, other._breaks)
            and np.array_equal(self._values, other._values)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The cached hash."""
        return hash((self.lo, self.hi, self._breaks.tobytes(), self._values.tobytes()))

    def __repr__(self) -> str:
        return f"StepFunction(lo={self.lo}, hi={self.hi}, breaks={self.breaks}, values={self.values})"

    def __reduce__(self) -> tuple[Callable[..., StepFunction], tuple[Any, ...]]:
        """Pickle without caches."""
        return StepFunction, (self.lo, self.hi, self._breaks, self._values)

    @property
    def breaks(self) -> tuple[int, ...]:
        return tuple(self._breaks.tolist())

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(self._values.tolist())

    @property
    def break_array(self) -> IntArray:
        return self._breaks.astype(np.int64)

    @property
    def value_array(self) -> IntArray:
        return self._values.astype(np.int64)

    @property
    def first(self) -> int:
        """The value at ``lo``."""
        return int(self._values[0])

    @property
    def last(self) -> int:
        """The value at ``hi``."""
        return int(self._values[-1])

    @property
    def count(self) -> int:
        """The number of breaks."""
        return len(self._breaks)

    @classmethod
    def of(cls, lo: int, hi: int, starts: Iterable[tuple[int, int]]) -> StepFunction:
        """Build from (start, value) pairs in rising order of start. The first start must be ``lo``; starts beyond
        ``hi`` are dropped, equal neighbours merged, and the last of equal starts counts."""
        pairs = np.array(list(starts), dtype=np.int64).reshape(-1, 2)
        return cls.of_arrays(lo, hi, pairs[:, 0], pairs[:, 1])

    @classmethod
    def of_arrays(cls, lo: int, hi: int, starts: IntArray, values: IntArray) -> StepFunction:
        """Build from arrays of starts and values, as :meth:`of`."""
        last = np.append(starts[1:] != starts[:-1], True)
        if starts[-1] > hi or not last.all():  # rarely; copies of thousands of numbers are expensive
            last &= starts <= hi
            starts, values = starts[last], values[last]
        new = np.append(True, values[1:] != values[:-1])
        if not new.all():
            starts, values = starts[new], values[new]
        return cls(lo, hi, starts[1:], values)

    @classmethod
    def of_table(cls, lo: int, table: Iterable[int]) -> StepFunction:
        """Build from the values at lo, lo + 1, ..."""
        array = table if isinstance(table, np.ndarray) else np.fromiter(table, dtype=np.int64)
        places = np.flatnonzero(array[1:] != array[:-1]) + 1
        return cls(lo, lo + len(array) - 1, places + lo, np.append(array[:1], array[places]))

    @cached_property
    def low(self) -> int:
        """The minimum value."""
        return int(self._values.min())

    @cached_property
    def high(self) -> int:
        """The maximum value."""
        return int(self._values.max())

    @cached_property
    def direction(self) -> int:
        """1: non-decreasing (or constant), -1: non-increasing, 0: neither."""
        rises = self._values[1:] > self._values[:-1]
        return 1 if rises.all() else 0 if rises.any() else -1

    @property
    def travel(self) -> int:
        """The total variation."""
        return int(np.abs(np.diff(self.value_array)).sum())

    @property
    def is_identity(self) -> bool:
        count = self.hi - self.lo + 1  # compared first: an interval may be far too large to enumerate
        return len(self._values) == count and bool((self._values == np.arange(self.lo, self.hi + 1)).all())

    def staircase(self) -> Staircase:
        """Convert to a staircase. Raises ValueError unless it is non-decreasing."""
        return self._staircase

    @cached_property
    def _staircase(self) -> Staircase:
        if self.direction != 1:
            raise ValueError("a staircase must be non-decreasing")
        if self.last - self.first == self.count:  # the thresholds are the breaks: one array has both
            return Staircase(self.lo, self.hi, self.first, self._breaks)
        return Staircase(self.lo, self.hi, self.first, np.repeat(self.break_array, np.diff(self.value_array)))

    def reach(self, lo: int, hi: int) -> tuple[int, int]:
        """Return the minimum and the maximum value over [lo, hi], which lies within the interval."""
        if (lo, hi) == (self.lo, self.hi):
            return self.low, self.high
        first, last = np.searchsorted(self._breaks, [lo, hi], side="right")
        inside = self._values[first : last + 1]
        return int(inside.min()), int(inside.max())

    def mirrored(self) -> StepFunction:
        """Return ``y(-x)``, over ``[-hi, -lo]``."""
        return StepFunction(-self.hi, -self.lo, 1 - self.break_array[::-1], self._values[::-1])

    def __call__(self, x: int) -> int:
        """Return the value at ``x``. Raises ValueError outside the interval."""
        if not self.lo <= x <= self.hi:
            raise ValueError(f"input of a step function must lie in [{self.lo}, {self.hi}], not {x}")
        return int(self._values[np.searchsorted(self.break_array, x, side="right")])

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """Return the values at an integer array of any shape. Raises ValueError outside the interval."""
        x = np.asarray(x)
        if x.size and (int(x.min()) < self.lo or int(x.max()) > self.hi):
            found = f"[{x.min()}, {x.max()}]"
            raise ValueError(f"inputs of a step function must lie in [{self.lo}, {self.hi}], not {found}")
        return np.asarray(self._values[np.searchsorted(self.break_array, x, side="right")], dtype=np.int64)


def compose(outer: StepFunction, inner: StepFunction) -> StepFunction:
    """Compose ``outer(inner(x))`` over inner's interval; outer must be defined on [inner.low, inner.high]."""
    starts = np.append(inner.lo, inner.break_array)
    return StepFunction.of_arrays(inner.lo, inner.hi, starts, outer.evaluate(inner.value_array))


def all_alike(steps: Sequence[StepFunction]) -> bool:
    """Tell whether all are one function. (Lists compare identity first, up to the first difference; a set would hash
    every number.)"""
    return list(steps) == list(steps[:1]) * len(steps)
