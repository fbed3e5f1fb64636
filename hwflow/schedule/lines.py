"""Processes whose events wait for each other, and what moved each of them last.

An event's cycle less its step never falls from one event of a process to the next; what all events of a process must
wait for is looked at at once (a *sweep*). An event that moved remembers its cause: a step before it, a wait (an *arc*),
round trips of a queue's credits (:mod:`hwflow.schedule.trips`), or rounds of loops (:mod:`hwflow.schedule.loops`), of
which the *root* is remembered, the event that the rounds began at. Whatever the cause is, some way of waits leads from
another event to this one; it was earlier than that way takes before it moved, and is not later now, since the other
event can only have become later. So the waits on a circuit of causes take longer than they may, whichever way events
moved, one by one or many at once: what is on it never comes to rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwflow.ops.timing import Steps, every
from hwflow.schedule.places import Places
from hwflow.schedule.trips import RoundTrips

Causes = npt.NDArray[np.int32]  # numbers of arcs, or:
STEP_BEFORE, NOT_MOVED, ROUND_TRIP = -1, -2, -3  # that less the number of a queue's end
LOOP = -(1 << 20)  # that less the number of a loop
_ROUND_TRIPS = 3  # sweeps of a process after which round trips are looked at by themselves


@dataclass(eq=False)
class Line:
    """A process. ``base``: cycle less step of each event of the frame; ``spare``: cycles of a period without a step."""

    spare: int
    base: Steps
    arcs: list[Arc] = field(default_factory=list)  # into this line
    leaving: list[Arc] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)  # of queues, here
    neighbours: set[Line] = field(default_factory=set)  # of which an event ever waited for one of the other
    saved: Steps | None = None  # before anything moved
    cause: Causes = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # what moved each event last
    causes: memoryview = field(default_factory=lambda: memoryview(b""))  # of these: quicker one by one
    loops: list[tuple[LoopMoves, int]] = field(default_factory=list)  # with the place of its first event there
    visits: int = 0  # sweeps that moved anything
    since: int = 0  # those since the line was in a group that was looked at

    def __post_init__(self) -> None:
        self.size = len(self.base)
        self.everything = Places(every(self.size))

    def own(self, event: int) -> int:
        """The last event, up to this one, that is not where it is because it follows the step before; -1 if none."""
        causes = self.causes
        for near in range(event, max(-1, event - 16), -1):  # quicker one by one
            if causes[near] != STEP_BEFORE:
                return near
        event, reach = max(0, event - 15), 32
        while event > 0:
            begin = max(0, event - reach)
            found = (self.cause[begin:event] != STEP_BEFORE).nonzero()[0]
            if len(found):
                return begin + int(found[-1])
            event, reach = begin, 8 * reach
        return -1

    def move(self, places: Places, least: Steps, cause: int) -> int:
        """Move these events where they are to be later; the first that did, or the number of all."""
        run = places.run()
        present = self.base[run] if run else self.base.take(places.at)
        later = least > present
        place = int(later.argmax())
        if not later[place]:
            return self.size
        if self.saved is None:
            self.saved, self.base = self.base, self.base.copy()
            self.cause = np.full(self.size, NOT_MOVED, dtype=np.int32)
            self.causes = self.cause.data
        if run:
            np.maximum(self.base[run], least, out=self.base[run])
            self.cause[run][later] = cause
        else:
            moved = later.nonzero()[0]
            events = places.at[moved]
            self.base[events] = least[moved]
            self.cause[events] = cause
        return int(places.at[place])

    def follow(self, first: int) -> None:
        """A step a cycle, the frame after the one before; ``first``: what moved last is not before it."""
        moved = self.base[first:]
        descends = moved[1:] < moved[:-1]
        place = int(descends.argmax()) if len(descends) else 0
        if len(descends) and descends[place]:
            moved = moved[place:]
            before = moved.copy()
            np.maximum.accumulate(moved, out=moved)
            np.copyto(self.cause[first + place :], STEP_BEFORE, where=moved != before)
        least = self.base[-1] - self.spare
        if least > self.base[0]:
            early = int(self.base.searchsorted(least))
            self.base[:early] = least
            self.cause[:early] = STEP_BEFORE

    def round_trips(self, number: int) -> bool:
        """Move what is too early after the beats that were a queue's depth before; whether there was any."""
        end = self.ends[number]
        found = end.later(self.base)
        if found is None:
            return False
        first, after = found
        run = end.places.run(first) or end.places.at[first:]
        later = after > self.base[run]
        self.base[run] = after
        if isinstance(run, slice):
            np.copyto(self.cause[run], ROUND_TRIP - number, where=later)
        else:
            self.cause[run[later]] = ROUND_TRIP - number
        return True


@dataclass(eq=False)
class Arc:
    """``target.base[targets[k]]`` is at least ``source.base[events[k]] + offsets[k]``."""

    source: Line
    target: Line
    events: Places
    targets: Places
    offsets: Steps

    def wanted(self) -> Steps:
        least: Steps = self.events.take(self.source.base) + self.offsets
        return least


@dataclass(eq=False)
class End:
    """One end of a queue: the events of a line, at these steps, that make its beats, or take them. ``trip``: cycles
    until a beat's credit is back. ``depth`` is None as long as the queue never gets full; ``waits``: the arcs of its
    round trips, the one that leads to these events first."""

    places: Places
    steps: Steps
    trip: int
    depth: int | None = None
    waits: tuple[Arc, ...] = ()
    _trips: RoundTrips | None = None

    def later(self, base: Steps) -> tuple[int, Steps] | None:
        """As :meth:`RoundTrips.later`, of the events of a line of which ``base`` are cycles less steps."""
        if self.depth is None or 2 * self.depth > len(self.steps):
            return None
        if self._trips is None or self._trips.depth != self.depth:
            self._trips = RoundTrips(self.steps, self.depth, self.trip)
        return self._trips.later(self.places.take(base))


@dataclass(frozen=True)
class LoopMoves:
    """That events of these lines moved at once, by these waits between them. Events are counted through all lines,
    which begin at ``begins``; ``roots``: what each is later for."""

    waits: Waits
    lines: tuple[Line, ...]
    begins: Sequence[int]
    roots: Steps

    def root(self, place: int) -> tuple[Line, int]:
        """What event ``place`` is later for."""
        root = int(self.roots[place])
        line = bisect_right(self.begins, root) - 1
        return self.lines[line], root - self.begins[line]


Waits = tuple[Arc, ...]
Waiting = dict[Line, dict[Arc, None]]  # arcs to look at


def sweep(line: Line, arcs: Iterable[Arc]) -> bool:
    """Move the events of a line as arcs into it say; whether any did."""
    first = min([line.move(arc.targets, arc.wanted(), line.arcs.index(arc)) for arc in arcs])
    if first == line.size:
        return False
    line.visits += 1
    line.since += 1
    line.follow(first)
    if line.visits > _ROUND_TRIPS and any([line.round_trips(number) for number in range(len(line.ends))]):
        line.follow(0)
    return True


def mark(line: Line, lines: frozenset[Line], waiting: Waiting) -> None:
    """What waits for a line that moved must be looked at."""
    for arc in line.leaving:
        if arc.target in lines:
            waiting.setdefault(arc.target, {})[arc] = None
