"""What a schedule that repeats itself consists of: processes, in lines of events, and the arcs between these."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwflow.cores.timing import Steps
from hwflow.schedule.throughput.events import Channel, Track
from hwflow.schedule.throughput.groups import Wait, rest_of
from hwflow.schedule.throughput.loops import Hop
from hwflow.schedule.throughput.strided import Places
from hwflow.schedule.throughput.trips import RoundTrips

Causes = npt.NDArray[np.int32]  # numbers of arcs, or:
STEP_BEFORE, NOT_MOVED, ROUND_TRIP = -1, -2, -3  # that less the number of a channel
_LONGEST = 64  # arcs of a loop that is looked at by itself


@dataclass(eq=False)
class Line:
    """A process. ``base``: cycle less step of each event of the frame; ``spare``: cycles of a period without a step."""

    track: Track
    spare: int
    base: Steps
    arcs: list[Arc] = field(default_factory=list)  # into this line
    leaving: list[Arc] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    saved: Steps | None = None  # before the present trial
    cause: Causes = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # what moved each event last
    causes: memoryview = field(default_factory=lambda: memoryview(b""))  # of these: quicker one by one
    visits: int = 0
    trips: dict[int, RoundTrips] = field(default_factory=dict)  # of the channel of this number
    neighbours: set[Line] = field(default_factory=set)  # of which an event ever waited for one of the other

    def __post_init__(self) -> None:
        self.size = self.track.events

    def save(self) -> None:
        """Keep what is before events of the line move."""
        if self.saved is None:
            self.saved, self.base = self.base, self.base.copy()
            self.cause = np.full(self.size, NOT_MOVED, dtype=np.int32)
            self.causes = self.cause.data

    def forget(self) -> None:
        """All that leads from and to other lines, which would keep each other until Python looks for such circles."""
        self.arcs, self.leaving, self.channels, self.neighbours, self.trips = [], [], [], set(), {}

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


@dataclass(eq=False)
class Arc:
    """``target.base[targets[k]]`` is at least ``source.base[events[k]] + offsets[k]``."""

    source: Line
    target: Line
    events: Places
    targets: Places
    offsets: Steps
    channel: Channel | None  # whose beats or credits it is about; None: a core's processes wait for each other

    def wanted(self) -> Steps:
        least: Steps = self.events.take(self.source.base) + self.offsets
        return least


def rest_of_lines(lines: Sequence[Line], arcs: Sequence[Arc]) -> list[Steps] | None:
    """Where the events of these lines come to rest, as far as these waits between them say."""
    number = {line: n for n, line in enumerate(lines)}
    waits = [Wait(number[a.source], number[a.target], a.events.at, a.targets.at, a.offsets) for a in arcs]
    return rest_of(waits, [line.base for line in lines], [line.spare for line in lines])


def hops(loop: tuple[Arc, ...]) -> list[Hop]:
    """Those of a loop, of which the last arc comes first."""
    first, *before = loop
    way = [*before[::-1], first]
    return [_hop(entry, leave) for entry, leave in zip([first, *way], way, strict=False)]


def _hop(before: Arc, arc: Arc) -> Hop:
    """From the events that an arc leads to, by way of the next arc."""
    if len(before.targets.at) == before.target.size:
        entered = arc.events.at + 1
    else:
        entered = np.searchsorted(before.targets.at, arc.events.at, side="right")
    return Hop(entered, arc.offsets, arc.source.spare)


def loops_through(way: list[Arc], credits: Arc) -> Iterable[tuple[Arc, ...]]:
    """The parts of a way that begin where these credits came back, up to where they did before."""
    places = [place for place, arc in enumerate(way) if arc is credits]
    return (tuple(way[a:b]) for a, b in itertools.pairwise(places) if b - a <= _LONGEST)
