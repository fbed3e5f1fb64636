"""A staircase: a non-decreasing function from an integer interval to a small integer range, held as its thresholds.

It is the canonical form of every requantization, whatever that came from: two staircases are the same function on the
same interval if and only if they compare equal.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

LIMIT = 1 << 62  # of input values: thresholds and values stay within int64
MAX_LEVELS = 1 << 20  # of an output range


@dataclass(frozen=True)
class Staircase:
    """``y(x) = low + #{k : x >= thresholds[k]}`` for integers ``lo <= x <= hi``.

    ``thresholds`` are sorted and lie in ``(lo, hi]``; a threshold that is repeated is a jump of several levels.
    ``low`` is ``y(lo)``. Raises ValueError where that does not hold, or an end of the interval exceeds 2**62.
    """

    lo: int
    hi: int
    low: int
    thresholds: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"interval of a staircase must not be empty, not [{self.lo}, {self.hi}]")
        if self.lo < -LIMIT or self.hi > LIMIT:
            raise ValueError(f"interval of a staircase must lie within 62 bits, not [{self.lo}, {self.hi}]")
        t = self.thresholds
        if list(t) != sorted(t):
            raise ValueError("thresholds of a staircase must be sorted")
        if t and (t[0] <= self.lo or t[-1] > self.hi):
            raise ValueError(f"thresholds must lie in ({self.lo}, {self.hi}], not in [{t[0]}, {t[-1]}]")

    @property
    def high(self) -> int:
        """``y(hi)``, the greatest value."""
        return self.low + len(self.thresholds)

    def __call__(self, x: int) -> int:
        """The value at ``x``; ValueError if ``x`` is outside the interval."""
        if not self.lo <= x <= self.hi:
            raise ValueError(f"input of a staircase must lie in [{self.lo}, {self.hi}], not {x}")
        return self.low + bisect_right(self.thresholds, x)

    @cached_property
    def array(self) -> IntArray:
        """The thresholds as int64."""
        return np.array(self.thresholds, dtype=np.int64)

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """The values at an integer array of any shape; ValueError if one is outside the interval."""
        x = np.asarray(x)
        if x.size and (int(x.min()) < self.lo or int(x.max()) > self.hi):
            raise ValueError(f"inputs of a staircase must lie in [{self.lo}, {self.hi}], not [{x.min()}, {x.max()}]")
        return np.asarray(self.low + np.searchsorted(self.array, x, side="right"), dtype=np.int64)
