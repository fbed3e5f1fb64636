"""The events of a frame in an order in which nothing waits for what comes later, so many of them at once.

Where queues are so short that beats wait for credits all the time, a sweep over the processes of a graph only brings a
few beats forward. But where one schedule is known that the queues allow, its order tells what can be done first: none
of the events up to some cycle in it waits for an event after that, whatever the cycles of the schedule that is looked
for. So the frame is cut into windows of a few events, which are brought to their end one after the other, all processes
at once, by policy iteration (:mod:`hwflow.schedule.throughput.groups`). What holds an event up in the schedule that is
known, or did in the frame before, mostly holds it up again: two or three policies are enough then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps
from hwflow.schedule.throughput.groups import NEVER, Wait
from hwflow.schedule.throughput.rounds import in_order, rounds

_EVENTS = 1 << 11  # of a window: few, for the cycles that policies begin with to be near the right ones
_APART = 1 << 40  # cycles by which a process is behind the one before it, so that no running maximum leads over


@dataclass(frozen=True)
class _Column:
    """A wait of every event: it is not before what is at ``sources[place]``, plus ``offsets[place]``."""

    sources: Steps
    offsets: Steps


class Windows:
    """The events of some processes, in windows, and what holds each of them up.

    ``cycles``: of each process those of its events in a schedule that is possible; ``steps``: of these; ``waits``:
    between the processes, within a frame. Inside, an event is at the place where its window has it, one process after
    the other, and its cycle is less its step, all that of a process so much more than that of the process before."""

    def __init__(self, cycles: Sequence[Steps], steps: Sequence[Steps], waits: Sequence[Wait]) -> None:
        begins = np.cumsum([0, *map(len, cycles)])
        possible = np.concatenate(cycles)
        number = np.unique(np.sort(possible)[_EVENTS::_EVENTS]).searchsorted(possible, side="right")
        lines = np.repeat(np.arange(len(cycles)) * _APART, np.diff(begins))
        self._splits = begins[1:-1]
        every = np.arange(len(possible))
        self._order = number.argsort(kind="stable")
        self._place = np.empty_like(self._order)
        self._place[self._order] = every
        self._added = lines - np.concatenate(steps)
        self._ends = np.cumsum(np.bincount(number)).tolist()
        self._before = self._place.take(np.maximum(every - 1, np.repeat(begins[:-1], np.diff(begins))))[self._order]
        self._columns = [_Column(every, lines[self._order] - _APART // 2)]  # for nothing
        self._columns += self._columns_of(waits, begins)
        self._follows, self._delays = np.empty_like(self._order), np.empty_like(self._order)
        values = self._values(cycles)
        for begin, end in self._windows():
            self._follows[begin:end], self._delays[begin:end], _ = self._policy(values, begin, end)

    def _columns_of(self, waits: Sequence[Wait], begins: Steps) -> list[_Column]:
        columns: list[_Column] = []
        seen = [0] * (len(begins) - 1)
        for wait in waits:
            if seen[wait.target] == len(columns):
                columns.append(_Column(np.arange(begins[-1]), np.full(begins[-1], NEVER)))
            column = columns[seen[wait.target]]
            seen[wait.target] += 1
            targets = self._place[begins[wait.target] + wait.targets]
            column.sources[targets] = self._place[begins[wait.source] + wait.events]
            column.offsets[targets] = wait.offsets + np.int64((wait.target - wait.source) * _APART)
        return columns

    def _windows(self) -> Iterator[tuple[int, int]]:
        return zip([0, *self._ends], self._ends, strict=False)

    def _values(self, cycles: Sequence[Steps]) -> Steps:
        values: Steps = (np.concatenate(cycles) + self._added)[self._order]
        return values

    def solve(self, least: Sequence[Steps]) -> list[Steps]:
        """Of each process the cycles of its events, the least that the waits and ``least``, cycles which they are not
        before, allow. :class:`ValueError` where the schedule that was said to be possible is not."""
        values = self._values(least)
        for begin, end in self._windows():
            self._solve(values, begin, end)
        return np.split(values[self._place] - self._added, self._splits)

    def _solve(self, values: Steps, begin: int, end: int) -> None:
        """Those of a window, where all before it are done."""
        window, places = values[begin:end], np.arange(end - begin)
        np.maximum(window, values.take(self._before[begin:end]), out=window)
        np.maximum.accumulate(window, out=window)
        follows, delays, least = self._follows[begin:end], self._delays[begin:end], window + 1
        while (least > window).any():
            done = follows < begin
            np.maximum(window, values.take(follows) + delays, out=window, where=done)
            found = rounds(window, np.where(done, places, follows - begin), np.where(done, 0, delays))
            if found is None:
                raise ValueError("cycles must be those of a schedule that the waits allow")
            window[:] = found
            follows, delays, least = self._policy(values, begin, end)
        self._follows[begin:end], self._delays[begin:end] = follows, delays

    def _policy(self, values: Steps, begin: int, end: int) -> tuple[Steps, Steps, Steps]:
        """Of each event of a window the one that holds it up longest, by how much, and until when."""
        nothing, *columns = self._columns
        least, follows = nothing.offsets[begin:end].copy(), nothing.sources[begin:end]
        for column in columns:
            sources = column.sources[begin:end]
            wanted = values.take(sources) + column.offsets[begin:end]
            later = wanted > least
            np.copyto(least, wanted, where=later)
            follows = np.where(later, sources, follows)
        least, follows = in_order(least, follows)
        return follows, least - values.take(follows), least
