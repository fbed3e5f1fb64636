"""Places in arrays, looked up as slices where they are evenly spaced: several times quicker than one by one."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from hwflow.ops.timing import Steps

_MOST_RUNS = 2  # the beats of a frame, and those of the one before


class Places:
    """Of an array, the places ``at``, in this order."""

    def __init__(self, at: Steps) -> None:
        self.at = at
        self.runs = _runs(at)
        self._view = at.data  # quicker than the array where numbers are looked up one by one

    def __getitem__(self, index: int) -> int:
        place: int = self._view[index]
        return place

    def index(self, place: int) -> int:
        """Which of them ``place`` is; they ascend."""
        if len(self.runs) == 1:
            return (place - self.runs[0].start) // self.runs[0].step
        return bisect_left(self._view, place)

    @property
    def run(self) -> slice | None:
        """All of them, where they are evenly spaced."""
        return self.runs[0] if len(self.runs) == 1 else None

    def take(self, array: Steps) -> Steps:
        """What is there; a view where that is possible."""
        if not self.runs:
            return array.take(self.at)
        if len(self.runs) == 1:
            return array[self.runs[0]]
        return np.concatenate([array[run] for run in self.runs])


def _runs(at: Steps) -> list[slice]:
    """The evenly spaced, ascending ranges that ``at`` consists of; none if there are many."""
    runs = []
    begin = 0
    while begin < len(at):
        if len(runs) == _MOST_RUNS:
            return []
        step = int(at[begin + 1] - at[begin]) if begin + 1 < len(at) else 1
        if step <= 0:
            step = 1
        even = at[begin:] == np.arange(at[begin], at[begin] + step * (len(at) - begin), step)
        end = len(at) if even.all() else begin + int(even.argmin())
        runs.append(slice(int(at[begin]), int(at[end - 1]) + 1, step))
        begin = end
    return runs
