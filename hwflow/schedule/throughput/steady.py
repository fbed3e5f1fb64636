"""Whether queues of given depths let a graph keep pace: a schedule that repeats itself, or a circuit that is too slow.

Frames can follow each other every ``period`` cycles if and only if there is a schedule in which every event comes
``period`` cycles after the same event of the frame before (Baccelli, Cohen, Olsder, Quadrat: Synchronization and
Linearity, 1992, theorem 3.28 and section 2.5: if no circuit of events takes longer than its frames allow). Self-timed
hardware is then never later than that schedule. So one frame tells everything: its cycles are the longest paths of a
graph in which an arc that leads into an earlier frame is ``period`` cycles shorter. They are found as in
:mod:`hwflow.schedule.throughput.evaluate`, by sweeps over all events of a process at once, beginning with the cycles
for deeper queues: less room only ever makes events later. What no longer changes is a proof. A circuit of events that
push each other on is one of the contrary: it is searched for among the events that moved, and in the loops by which the
credits of the queue that is tried come back (:mod:`hwflow.schedule.throughput.loops`). Where neither comes to an end
soon, all processes that moved lately are looked at together (:mod:`hwflow.schedule.throughput.groups`), and those that
they move on then, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from hwflow.cores.registry import hardware
from hwflow.cores.timing import Steps, compact
from hwflow.ir.graph import Graph, Node
from hwflow.schedule.throughput.events import ROUND_TRIPS, Channel, Events, Order, Track, events_of, tracks_of, waits_of
from hwflow.schedule.throughput.lines import (
    NOT_MOVED,
    ROUND_TRIP,
    STEP_BEFORE,
    Arc,
    Line,
    hops,
    loops_through,
    rest_of_lines,
)
from hwflow.schedule.throughput.loops import settles
from hwflow.schedule.throughput.strided import Places
from hwflow.schedule.throughput.trips import RoundTrips

_PASSES, _VISITS = 3, 2  # sweeps through all processes, visits of each event that moved: then circuits are searched for
_GROWTH = 1.5  # of the visits between two searches: of many, few find anything
_MOST_VISITS, _FEW = 100, 2_000_000  # of each event that moved, unless they are few; of all together
_GROUPS, _VISITS_BETWEEN = 30, 20  # looked at in a trial, and visits of each event that moved between two of them
_EASY, _LARGEST = 1 << 18, 1 << 20  # events of a group: the looks take no time to speak of; a second
_ALL_GROUPS = 5 << 20  # events of all groups ever: the looks take a few seconds
_Waiting = dict[Line, dict[Arc, None]]  # arcs to look at
Bases = dict[Node | None, list[Steps]]  # cycles less steps of each process of a node


class Steady:
    """A schedule of one frame every ``period`` cycles: at first with all the room in queues that it wants.

    ``period`` must be at least the steps a frame of every process. ``too_small``: after :meth:`shrink` failed, the
    greatest depth, that one at the least, with which the period cannot be kept. ``refused``: of every queue for which
    it ever did, the greatest such depth, and the queues that the circuit found then leads through (none where patience
    ended first); other queues only ever get shorter, so that this stays.
    """

    def __init__(self, graph: Graph, period: int, like: Bases | None = None) -> None:
        """``like``: of the graph before nodes were added; there the search for a schedule begins."""
        self.events: Events = events_of(graph)
        self.period = period
        self._lines = {t: Line(t, period - t.of, np.zeros(t.events, dtype=np.int64)) for t in self.events.tracks}
        self._credits: dict[Channel, Arc] = {}
        self._arrivals: dict[Channel, Arc] = {}
        self.depths: dict[Channel, int] = {}
        self.too_small = 0
        self.refused: dict[Channel, tuple[int, frozenset[Channel]]] = {}
        self._circuit: frozenset[Channel] = frozenset()  # queues of the last one found
        self._resting: set[tuple[Arc, ...]] = set()  # loops that do, wherever they begin
        self._tried: Channel | None = None
        self._left_for_groups = _ALL_GROUPS
        self._dirty: dict[Line, dict[Arc, None]] = {}
        for order in self.events.waits:
            self._add(order)
        for channel in self.events.channels:
            self._arrivals[channel] = self._add(channel.arrivals(), channel)
            self._lines[channel.maker].channels.append(channel)
            if channel.taker is not channel.maker:
                self._lines[channel.taker].channels.append(channel)
        if like is not None:
            self._begin_like(like)
        self._all = frozenset(self._lines.values())
        self.patience = 4
        self._size = sum(line.size for line in self._all)

    def _begin_like(self, like: Bases) -> None:
        there = {node: iter(bases) for node, bases in like.items()}
        for track, line in self._lines.items():
            line.base = next(there.get(track.node, iter(())), line.base)

    def release(self) -> Bases:
        """Give up the memory that this schedule takes, of a large frame at once; where the processes of each node are,
        for another one to begin with."""
        found: Bases = {}
        for track, line in self._lines.items():
            found.setdefault(track.node, []).append(line.base)
            line.forget()
        self._credits.clear()
        self._arrivals.clear()
        self._dirty.clear()
        self._lines.clear()
        self._all = frozenset()
        self.events = Events([], [], [], [])
        return found

    # --- what is asked ---------------------------------------------------------------------------------------------

    def settle(self, depths: Mapping[Channel, int] | None = None) -> bool:
        """Whether the period can be kept as things are; the schedule then says how. If not, it is of no more use.

        ``depths``: of queues that had all the room that they wanted until now."""
        for channel, depth in (depths or {}).items():
            self._credits[channel] = self._add(channel.credits(depth), channel)
            self.depths[channel] = depth
        return self._settle(self._all, 100 * self._size + 20_000_000, True)

    def _budget(self, size: int) -> int:
        """Events to visit in a trial before it is given up, among ``size`` of them."""
        return self.patience * size + _FEW

    def shrink(self, channel: Channel, depth: int) -> bool:
        """Give a queue ``depth`` beats. False, and nothing changed, if the period could then not be kept."""
        arc = self._credits.pop(channel, None)
        before = self.depths.get(channel)
        if arc is not None:
            self._remove(arc)
        self._credits[channel] = self._add(channel.credits(depth), channel)
        self.depths[channel] = depth
        self._tried, self.too_small, self._circuit = channel, depth, frozenset()
        self._resting.clear()
        good = self._settle(self._all, self._budget(self._size), True)
        self._tried = None
        if not good and self.refused.get(channel, (0, None))[0] < self.too_small:
            self.refused[channel] = self.too_small, self._circuit
        if not good:
            self._remove(self._credits.pop(channel))
            del self.depths[channel]
            if arc is not None and before is not None:
                self._restore(arc)
                self._credits[channel], self.depths[channel] = arc, before
        return good

    def refit(self, node: Node) -> bool:
        """Take the waits between a core's processes anew from its timing, which has more of them now (a smaller
        memory). False, and the old ones are kept, if the period could then not be kept."""
        lines = {line for line in self._all if line.track.node is node}
        tracks = [line.track for line in self._lines.values() if line in lines]
        timing = hardware(node.op).timing(node, node.attributes["folding"])
        if any(
            not np.isin(new.steps, old.steps).all() for new, old in zip(tracks_of(node, timing), tracks, strict=True)
        ):
            return False  # steps that did not matter do
        old = [arc for line in lines for arc in line.arcs if arc.source in lines and arc.channel is None]
        for arc in old:
            self._remove(arc)
        orders = waits_of(timing, tracks)
        new = [self._add(order) for order in orders]
        near = frozenset(lines)  # what the core cannot do by itself it cannot do at all
        if self._settle(near, self._budget(sum(line.size for line in near)), False):
            for arc in new:
                self._dirty.setdefault(arc.target, {})[arc] = None
            if self._settle(self._all, self._budget(self._size), True):
                others = [order for order in self.events.waits if order.target.node is not node]
                self.events.waits = others + orders
                return True
        for arc in new:
            self._remove(arc)
        for arc in old:
            self._restore(arc)
        return False

    def least(self, channel: Channel) -> int:
        """A depth that no queue of this channel can do with less than: an entry holds a beat for as long as it takes to
        arrive, and a cycle more until its credit is back, and all beats come every period."""
        return max(1, -(-channel.beats * (channel.latency + 1) // self.period))

    def backlog(self, channel: Channel) -> int:
        """The least depth with which this very schedule is possible."""
        made, taken = self._cycles(channel.maker, channel.makes), self._cycles(channel.taker, channel.takes)
        # Credits back by the time of beat b: of all beats ever, those taken before. Those of a frame are taken within a
        # period from its first on.
        frames, cycles = np.divmod(made - 1 - taken[0], self.period)
        back = frames * channel.beats + np.searchsorted(taken - taken[0], cycles, side="right")
        return max(1, int((np.arange(1, channel.beats + 1) - back).max()))

    def cycles(self) -> dict[Track, Steps]:
        """The schedule: of each process the cycles of the events of a frame."""
        return {track: line.base + track.steps for track, line in self._lines.items()}

    # --- arcs ------------------------------------------------------------------------------------------------------

    def _cycles(self, track: Track, events: Steps) -> Steps:
        cycles: Steps = self._lines[track].base[events] + track.steps[events]
        return cycles

    def _add(self, order: Order, channel: Channel | None = None) -> Arc:
        arc = self._arc(order, channel)
        self._restore(arc)
        return arc

    def _arc(self, order: Order, channel: Channel | None) -> Arc:
        source, target = self._lines[order.source], self._lines[order.target]
        events, lag = order.events, np.int64(order.lag)
        offsets: Steps = np.full(1, lag)
        if len(events) and events[0] < 0:  # they ascend: some are of frames before
            frame, events = np.divmod(events, order.source.events)
            offsets = frame * np.int64(self.period) + lag
        offsets = offsets + order.source.steps[events] - order.target.steps[order.targets]
        return Arc(source, target, Places(compact(events)), Places(order.targets), compact(offsets), channel)

    def _restore(self, arc: Arc) -> None:
        arc.target.arcs.append(arc)
        arc.source.leaving.append(arc)
        arc.source.neighbours.add(arc.target)
        arc.target.neighbours.add(arc.source)
        self._dirty.setdefault(arc.target, {})[arc] = None

    def _remove(self, arc: Arc) -> None:
        arc.target.arcs.remove(arc)
        arc.source.leaving.remove(arc)
        self._dirty.get(arc.target, {}).pop(arc, None)

    # --- sweeps ----------------------------------------------------------------------------------------------------

    def _settle(self, lines: frozenset[Line], budget: int, keep: bool) -> bool:
        """Sweep until nothing changes among ``lines``. What does not ``keep``, or fails, is undone.

        Processes near those that something changed for settle first, then those twice as far: nearly all circuits are
        between a few neighbours, and found before the rest of the graph has moved."""
        waiting = {line: arcs for line, arcs in self._dirty.items() if line in lines and arcs}
        rest = {line: arcs for line, arcs in self._dirty.items() if line not in lines and arcs}
        passes, visited, spent, good = 0, 0, 0, True  # visited: events since a circuit was searched for
        visits, groups, patience = float(_VISITS), 0, budget
        active: set[Line] = set()  # since the last look at a group
        near, reach = set(waiting), 1
        order = [line for line in self._lines.values() if line in near]
        while waiting:
            if near.isdisjoint(waiting):
                for _ in range(reach):
                    near |= {other for line in near for other in line.neighbours} & lines
                reach *= 2
                order = [line for line in self._lines.values() if line in near]
                continue
            for line in order:
                arcs = waiting.pop(line, None)
                if arcs is None:
                    continue
                spent += line.size
                visited += line.size
                active.add(line)
                if self._sweep(line, arcs):
                    _mark(line, lines, waiting)
            order.reverse()
            passes += 1
            if not waiting or passes < _PASSES:
                continue
            moved = sum(line.size for line in lines if line.saved is not None)
            if visited > visits * moved:
                visited, visits, good = 0, _GROWTH * visits, not self._too_slow(waiting.values())
            if good and spent > min(patience, max(_FEW, _MOST_VISITS * moved)):
                good = groups < _GROUPS and self._together(active, lines, waiting)
                spent, groups, patience = 0, groups + 1, min(budget, _VISITS_BETWEEN * moved)
                active.clear()
            if not good:
                break
        for line in lines:
            if line.saved is not None and not (good and keep):
                line.base = line.saved
            line.saved, line.visits = None, 0
        self._dirty = rest
        self.passes = passes
        return good

    def _sweep(self, line: Line, arcs: Iterable[Arc]) -> bool:
        """Move the events of a line as its arcs say; whether any did."""
        first = min([self._move(arc, arc.wanted()) for arc in arcs])
        if first == line.size:
            return False
        line.visits += 1
        line.follow(first)
        if line.visits > ROUND_TRIPS:
            moved = [self._round_trips(line, channel, number) for number, channel in enumerate(line.channels)]
            if any(moved):
                line.follow(0)
        return True

    def _move(self, arc: Arc, least: Steps) -> int:
        """Move what an arc leads to; the first event that did, or the number of all."""
        line, run = arc.target, arc.targets.run()
        present = line.base[run] if run else line.base.take(arc.targets.at)
        later = least > present
        place = int(later.argmax())
        if not later[place]:
            return line.size
        line.save()
        number = line.arcs.index(arc)
        if run:
            np.maximum(line.base[run], least, out=line.base[run])
            line.cause[run][later] = number
        else:
            places = later.nonzero()[0]
            events = arc.targets.at[places]
            line.base[events] = least[places]
            line.cause[events] = number
        return int(arc.targets.at[place])

    def _round_trips(self, line: Line, channel: Channel, number: int) -> bool:
        """What the credits of a queue say about one of its ends alone: a beat comes a round trip after the beat that
        was ``depth`` beats before it."""
        depth = self.depths.get(channel)
        if depth is None or 2 * depth > channel.beats or channel.maker is channel.taker:
            return False
        places = self._ends(channel, line)
        trips = line.trips.get(number)
        if trips is None or trips.depth != depth:
            trips = line.trips[number] = RoundTrips(places.take(line.track.steps), depth, channel.latency + 1)
        found = trips.later(places.take(line.base))
        if found is None:
            return False
        first, after = found
        run = places.run(first) or places.at[first:]
        later = after > line.base[run]
        line.base[run] = after
        if isinstance(run, slice):
            np.copyto(line.cause[run], ROUND_TRIP - number, where=later)
        else:
            line.cause[run[later]] = ROUND_TRIP - number
        return True

    def _ends(self, channel: Channel, line: Line) -> Places:
        """The events of a line at one end of a queue that make its beats or take them."""
        arc = self._arrivals[channel]
        return arc.events if line.track is channel.maker else arc.targets

    # --- circuits --------------------------------------------------------------------------------------------------

    def _too_slow(self, waiting: Iterable[dict[Arc, None]]) -> bool:
        """Whether an event that moved, to make room for what made it move, is among what made it move; or will be, if
        events go on to move like that."""
        visits: dict[Line, memoryview] = {}  # when a walk came by each event
        credits = self._credits.get(self._tried) if self._tried else None
        loops: set[tuple[Arc, ...]] = set()  # from the credits of the queue that is tried to where they come from
        visit = 0
        for arcs in waiting:
            for arc in arcs:
                way: list[Arc] = []
                gone: list[int] = []  # how much of it at each visit
                begin = visit + 1
                for line, at, before in self._way_back(arc.source, arc.events[len(arc.events.at) // 2]):
                    seen = visits.get(line)
                    if seen is None:
                        seen = visits[line] = np.zeros(line.size, dtype=np.int32).data
                    if seen[at]:
                        if seen[at] >= begin:
                            self._circuit = _channels(way[gone[seen[at] - begin] :])
                            return True
                        break  # an earlier walk went on from here
                    visit += 1
                    seen[at] = visit
                    gone.append(len(way))
                    way += before
                if credits is not None:
                    loops.update(loops_through(way, credits))
        return any([self._never_rests(loop) for loop in loops])

    def _way_back(self, line: Line, at: int) -> Iterator[tuple[Line, int, tuple[Arc, ...]]]:
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
            if cause <= ROUND_TRIP:
                channel = line.channels[ROUND_TRIP - cause]
                moved_by: tuple[Arc, ...] = (self._credits[channel], self._arrivals[channel])
                if line.track is channel.taker:
                    moved_by = moved_by[::-1]
                at, trips = self._trips_back(line, channel, found)
                moved_by *= min(trips, 2)
            else:
                arc = line.arcs[cause]
                moved_by = (arc,)
                line, at = arc.source, arc.events[arc.targets.index(found)]
            yield (*here, moved_by)

    def _trips_back(self, line: Line, channel: Channel, event: int) -> tuple[int, int]:
        """From an event that a round trip moved, by such trips of a frame, to one that something else did, or to the
        frame before; and how many trips that is."""
        places, depth = self._ends(channel, line), self.depths[channel]
        beat = places.index(event)
        cause, trips, reach = line.causes[event], 0, 16
        while trips * depth <= beat:
            some = places.at[beat - trips * depth :: -depth][:reach]
            others = (line.cause[some] != cause).nonzero()[0]
            if len(others):
                trips += int(others[0])
                break
            trips, reach = trips + len(some), 4 * reach
        return places[(beat - trips * depth) % channel.beats], trips

    def _never_rests(self, loop: tuple[Arc, ...]) -> bool:
        """Whether the events of a loop (the credits of the queue that is tried, then the arcs before them, the last one
        first) go on to move forever. All depths of that queue with which they do are then ruled out."""
        if loop in self._resting:
            return False
        first = loop[0]
        base = first.targets.take(first.target.base)
        rests = settles(hops(loop), base)
        if rests:
            self._resting.add(loop)
        if rests is not False:
            return False
        self._circuit = _channels(loop)
        self._rule_out(lambda depth: self._possible(depth, loop, base))
        return True

    # --- groups ----------------------------------------------------------------------------------------------------

    def _together(self, group: Collection[Line], lines: frozenset[Line], waiting: _Waiting) -> bool:
        """Move the events of a group of lines to where they come to rest, as far as they wait for each other; False if
        they never do, or looking would take long. All depths of the queue that is tried with which they do not are then
        ruled out, if these are quick to find."""
        members = [line for line in self._lines.values() if line in group]
        size = sum(line.size for line in members)
        if size > min(_LARGEST, self._left_for_groups):
            return False
        self._left_for_groups -= size
        arcs = [arc for line in members for arc in line.arcs if arc.source in group]
        found = rest_of_lines(members, arcs)
        if found is None:
            self._circuit = _channels(arcs)
            credits = self._credits.get(self._tried) if self._tried else None
            if credits in arcs and size <= _EASY:
                self._rule_out(lambda depth: self._possible_together(depth, members, arcs))
            return False
        for line, base in zip(members, found, strict=True):
            later = base > line.base
            if later.any():
                line.save()
                line.base = base
                line.cause[later] = NOT_MOVED  # by nothing that a way back could follow
                _mark(line, lines, waiting)
        return True

    def _possible_together(self, depth: int, members: Sequence[Line], arcs: Sequence[Arc]) -> bool:
        """The same of the events of a group."""
        assert self._tried is not None
        credits, present = self._arc(self._tried.credits(depth), self._tried), self._credits[self._tried]
        return rest_of_lines(members, [credits if arc is present else arc for arc in arcs]) is not None

    def _rule_out(self, possible: Callable[[int], bool]) -> None:
        """Find the greatest depth, from the one that was refused on, that is not possible."""
        stride = 1
        while not possible(self.too_small + stride):
            self.too_small += stride
            stride *= 2
        self.too_small += bisect_left(range(1, stride), True, key=lambda more: possible(self.too_small + more))

    def _possible(self, depth: int, loop: tuple[Arc, ...], base: Steps) -> bool:
        """Whether the events of a loop by its credits come to rest if the queue that is tried is so deep."""
        assert self._tried is not None
        credits = self._arc(self._tried.credits(depth), self._tried)
        return settles(hops(tuple(credits if arc is loop[0] else arc for arc in loop)), base) is not False


def _channels(arcs: Iterable[Arc]) -> frozenset[Channel]:
    return frozenset(arc.channel for arc in arcs if arc.channel is not None)


def _mark(line: Line, lines: frozenset[Line], waiting: _Waiting) -> None:
    """What waits for a line that moved must be looked at."""
    for arc in line.leaving:
        if arc.target in lines:
            waiting.setdefault(arc.target, {})[arc] = None
