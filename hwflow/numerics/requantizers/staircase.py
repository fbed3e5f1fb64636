"""Staircases: non-decreasing functions from an integer interval to a small integer range, stored as thresholds.

A canonical form of requantization: two staircases are the same function on the same interval if and only if they
compare equal.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.numerics.requantizers.hull import Indices, binding

IntArray = npt.NDArray[np.int64]

LIMIT = 1 << 62  # of input values: thresholds and values stay within int64
MAX_LEVELS = 1 << 20  # of an output range


def narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only copy, of 32 bits where these suffice; the array itself where it is one."""
    small = not array.size or (array.min() >= -(1 << 31) and array.max() < 1 << 31)
    kind = np.dtype(np.int32 if small else np.int64)
    if array.dtype == kind and array.flags.owndata and not array.flags.writeable:
        return array
    result: npt.NDArray[Any] = array.astype(kind)
    result.flags.writeable = False
    return result


class Staircase:
    """``y(x) = low + #{k : x >= thresholds[k]}`` for integers ``lo <= x <= hi``.

    ``thresholds`` are sorted and lie in ``(lo, hi]``; a repeated threshold is a jump of several levels. ``low`` is
    ``y(lo)``. Raises ValueError if this does not hold, or an end of the interval exceeds 2**62.
    Immutable and hashable.
    """

    def __init__(self, lo: int, hi: int, low: int, thresholds: npt.ArrayLike) -> None:
        if lo > hi:
            raise ValueError(f"interval of a staircase must not be empty, not [{lo}, {hi}]")
        if lo < -LIMIT or hi > LIMIT:
            raise ValueError(f"interval of a staircase must lie within 62 bits, not [{lo}, {hi}]")
        self.lo, self.hi, self.low = lo, hi, low
        t = np.asarray(thresholds)
        if t.dtype != np.int32:
            t = t.astype(np.int64, copy=False)
        if (t[1:] < t[:-1]).any():
            raise ValueError("thresholds of a staircase must be sorted")
        if t.size and (t[0] <= lo or t[-1] > hi):
            raise ValueError(f"thresholds must lie in ({lo}, {hi}], not in [{t[0]}, {t[-1]}]")
        self._thresholds = narrow(t)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Staircase):
            return NotImplemented
        same = (self.lo, self.hi, self.low) == (other.lo, other.hi, other.low)
        return same and np.array_equal(self._thresholds, other._thresholds)

    def __hash__(self) -> int:
        return hash((self.lo, self.hi, self.low, self._thresholds.tobytes()))

    def __repr__(self) -> str:
        return f"Staircase(lo={self.lo}, hi={self.hi}, low={self.low}, thresholds={self.thresholds})"

    @property
    def thresholds(self) -> tuple[int, ...]:
        return tuple(self._thresholds.tolist())

    @cached_property
    def binding(self) -> tuple[Indices, Indices]:
        """The indices of the thresholds that bind lines above their points, and of those that bind lines below; see
        :func:`hwflow.numerics.requantizers.hull.binding`."""
        return binding(self.array)

    @property
    def count(self) -> int:
        """The number of thresholds."""
        return len(self._thresholds)

    @property
    def high(self) -> int:
        """``y(hi)``, the greatest value."""
        return self.low + self.count

    def __call__(self, x: int) -> int:
        """Return the value at ``x``. Raises ValueError outside the interval."""
        if not self.lo <= x <= self.hi:
            raise ValueError(f"input of a staircase must lie in [{self.lo}, {self.hi}], not {x}")
        return self.low + int(np.searchsorted(self.array, x, side="right"))

    @property
    def array(self) -> IntArray:
        """The thresholds as int64."""
        return self._thresholds.astype(np.int64)

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """Return the values at an integer array of any shape. Raises ValueError outside the interval."""
        x = np.asarray(x)
        if x.size and (int(x.min()) < self.lo or int(x.max()) > self.hi):
            raise ValueError(f"inputs of a staircase must lie in [{self.lo}, {self.hi}], not [{x.min()}, {x.max()}]")
        return np.asarray(self.low + np.searchsorted(self.array, x, side="right"), dtype=np.int64)
