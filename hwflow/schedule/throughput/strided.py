"""Places in arrays, looked up as slices where they are evenly spaced: several times quicker than one by one."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from hwflow.cores.timing import Steps

_MOST_RUNS = 2  # the beats of a frame, and those of the one before


class Places:
    """Of an array, the places ``at``, in this order."""

    def __init__(self, at: Steps) -> None:
        self.at = at
        self._runs = _runs(at)
        self._view = at.data  # quicker than the array where numbers are looked up one by one

    def __getitem__(self, index: int) -> int:
        return int(self._view[index])

    def index(self, place: int) -> int:
        """Which of them ``place`` is; they ascend."""
        if len(self._runs) == 1:
            return int(place - self._runs[0].start) // int(self._runs[0].step)
        return bisect_left(self._view, place)

    def run(self, first: int = 0) -> slice | None:
        """All of them from the one numbered ``first`` on, where they are evenly spaced."""
        if len(self._runs) != 1:
            return None
        (run,) = self._runs
        return slice(run.start + first * run.step, run.stop, run.step) if first else run

    def take(self, array: Steps, first: int = 0) -> Steps:
        """What is there, from the place numbered ``first`` on; a view where that is possible."""
        run = self.run(first)
        if run:
            return array[run]
        if self._runs and not first:
            return np.concatenate([array[run] for run in self._runs])
        taken: Steps = array.take(self.at[first:])
        return taken


def _runs(at: Steps) -> list[slice]:
    """The evenly spaced, ascending ranges that ``at`` consists of; none if there are many."""
    runs: list[slice] = []
    begin = 0
    while begin < len(at):
        if len(runs) == _MOST_RUNS:
            return []
        step = max(1, int(at[begin + 1] - at[begin])) if begin + 1 < len(at) else 1
        place = int(at[begin])
        even = at[begin:] == np.arange(place, place + step * (len(at) - begin), step)
        end = len(at) if even.all() else begin + int(even.argmin())
        runs.append(slice(int(at[begin]), int(at[end - 1]) + 1, step))
        begin = end
    return runs
