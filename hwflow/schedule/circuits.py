"""What goes on for ever, or for long: events that push each other on, looked for among what moved them.

From events that are about to move, the way leads back to what moved these before, and so on. Where it comes by an event
again, that one is later than it was for being later than it was: it never comes to rest. Where it only comes by the
same wait again, for other events of the frame, processes go round in a loop, which may take hundreds of rounds. All
waits between them are then looked at together (:mod:`hwflow.schedule.loops`): their events move at once to where these
waits let them rest, or there is no such place. Loops that share processes are one group, since they take turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hwflow.ops.timing import Steps
from hwflow.schedule.lines import (
    LOOP,
    NOT_MOVED,
    ROUND_TRIP,
    STEP_BEFORE,
    Arc,
    End,
    Line,
    LoopMoves,
    Waiting,
    Waits,
    mark,
)
from hwflow.schedule.loops import Rest, Wait, rest_of

_LONGEST = 64  # waits of a loop on the way back
_OFTEN = 4  # sweeps of every process of a group: then it is looked at by itself, and again after as many
_LARGEST, _MOST = 1 << 17, 1 << 18  # events of loops that become one group, of a group at all

Group = dict[Line, None]


@dataclass(frozen=True)
class Endless:
    """Waits among which is a circuit of events that never come to rest. ``group``: of which lines they are, and from
    which cycles less steps on they do not, where that is so for all waits together."""

    waits: Waits
    group: tuple[tuple[Line, Steps], ...] = ()


def search(waiting: Waiting, lines: frozenset[Line], together: Sequence[Line] = ()) -> Endless | bool:
    """Look for circuits, and move the events of loops, from what ``waiting`` arcs are about to move; or of those of the
    processes ``together``, if there are any, and they are few. If no circuit is found: whether any event moved."""
    visits: dict[Line, memoryview] = {}  # when a walk came by each event
    groups: list[Group] = []
    visit = 0
    for line, arcs in waiting.items():
        for arc in arcs:
            start = _start(line, arc)
            if start is None:
                continue
            way: list[Arc] = [arc]
            gone: list[int] = []  # how much of it at each visit
            begin = visit + 1
            for back, at, before in way_back(arc.source, start):
                seen = visits.get(back)
                if seen is None:
                    seen = visits[back] = np.zeros(back.size, dtype=np.int32).data
                if seen[at]:
                    if seen[at] >= begin:
                        return Endless(tuple(way[gone[seen[at] - begin] :]))
                    break  # an earlier walk went on from here
                visit += 1
                seen[at] = visit
                gone.append(len(way))
                way += before
            _join(groups, way)
    if together and sum(line.size for line in together) <= _MOST:
        groups = [dict.fromkeys(together)]
    moved = False
    for group in groups:
        found = _to_rest([line for line in group if line in lines], waiting, lines)
        if isinstance(found, Endless):
            return found
        moved |= found
    return moved


def _join(groups: list[Group], way: list[Arc]) -> None:
    """Put the lines on a way from an arc up to where it came by that arc before into one group."""
    places: dict[Arc, int] = {}
    for place, arc in enumerate(way):
        last = places.get(arc)
        places[arc] = place
        if last is not None and place - last <= _LONGEST:
            group = dict.fromkeys(arc.source for arc in way[last:place])
            if min(line.since for line in group) < _OFTEN or any(group.keys() <= other.keys() for other in groups):
                continue
            for other in [other for other in groups if not other.keys().isdisjoint(group)]:
                if sum(line.size for line in group | other) <= _LARGEST:
                    groups.remove(other)
                    group |= other
            groups.append(group)


def rests(endless: Endless, waits: Waits) -> bool:
    """Whether the events of a group would come to rest, as far as can be told, with other waits."""
    lines, bases = zip(*endless.group, strict=True)
    return _rest(lines, waits, bases) is not None


def _rest(lines: Sequence[Line], waits: Waits, bases: Sequence[Steps]) -> Rest | None:
    number = {line: n for n, line in enumerate(lines)}
    return rest_of(
        [Wait(number[a.source], number[a.target], a.events.at, a.targets.at, a.offsets) for a in waits],
        bases,
        [line.spare for line in lines],
    )


def _to_rest(group: Sequence[Line], waiting: Waiting, lines: frozenset[Line]) -> Endless | bool:
    """Move the events of a group to where they come to rest, if they do; whether any did."""
    waits = tuple(arc for line in group for arc in line.arcs if arc.source in group)
    rest = _rest(group, waits, [line.base for line in group])
    if rest is None:
        return Endless(waits, tuple((line, line.base.copy()) for line in group))
    for line in group:
        line.since = 0
    moved = False
    begins = [0, *itertools.accumulate(line.size for line in group)]
    moves = LoopMoves(waits, tuple(group), begins, rest.roots)
    for line, begin, end in zip(group, begins, begins[1:], strict=False):
        first = line.move(line.everything, rest.base[begin:end], LOOP - len(line.loops))
        if first < line.size:
            moved = True
            line.loops.append((moves, begin))
            line.follow(first)
            mark(line, lines, waiting)
    return moved


def _start(line: Line, arc: Arc) -> int | None:
    """Of the events that an arc is about to move others for, one in the middle."""
    moving = (arc.wanted() > arc.targets.take(line.base)).nonzero()[0]
    return arc.events[int(moving[len(moving) // 2])] if len(moving) else None


def way_back(line: Line, at: int) -> Iterator[tuple[Line, int, Waits]]:
    """From an event to what moved it, and so on, each with the arcs by which it was moved, the last one first."""
    while line.saved is not None:
        cause, found = line.causes[at], at
        if cause == STEP_BEFORE:
            found = line.own(at)
            if found < 0:  # it followed the frame before
                found = line.own(line.size - 1)
            cause = line.causes[found]
        if cause == NOT_MOVED or found < 0:
            return
        here = line, at
        if cause >= 0:
            arc = line.arcs[cause]
            moved_by: Waits = (arc,)
            line, at = arc.source, arc.events[arc.targets.index(found)]
        elif cause > LOOP:
            end = line.ends[ROUND_TRIP - cause]
            at, trips = _trips_back(line, end, found)
            moved_by = end.waits * min(trips, 2)
        else:
            moves, begin = line.loops[LOOP - cause]
            moved_by = moves.waits
            line, at = moves.root(begin + found)
        yield (*here, moved_by)


def _trips_back(line: Line, end: End, event: int) -> tuple[int, int]:
    """From an event that a round trip moved, by such trips of a frame, to one that something else did, or to the frame
    before; and how many trips that is."""
    places, depth = end.places, end.depth
    assert depth is not None
    beat = places.index(event)
    cause, trips, reach = line.causes[event], 0, 16
    while trips * depth <= beat:
        some = places.at[beat - trips * depth :: -depth][:reach]
        others = (line.cause[some] != cause).nonzero()[0]
        if len(others):
            trips += int(others[0])
            break
        trips, reach = trips + len(some), 4 * reach
    return places[(beat - trips * depth) % len(places.at)], trips


