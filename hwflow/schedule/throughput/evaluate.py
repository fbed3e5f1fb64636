"""Exact cycle of every step of every core: the static schedules of :mod:`hwflow.cores.timing` run against each other.

Each process is a recurrence ``t[n] = max(t[n-1] + 1, dependencies)``; dependencies are beats that must have arrived,
credits that must have come back and steps of a core's other process. Together they are a timed event graph with finite
buffers (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992, section 2.5), evaluated frame by frame
in three ways:

- *By sweeps*: all steps of a process in a frame at once. With ``s`` the place of a step, ``t[n] - s[n]`` is the
  cumulative maximum of ``dependency - s``. Processes are gone through again and again, forwards and backwards, until
  nothing changes. No step depends on itself, so the recurrences have one solution: whatever the sweeps begin with, what
  no longer changes is that one. They begin with the frame before, later by the least that anything was later from frame
  to frame: nothing is ever too late then, so that a sweep only looks at what became later; in the steady state nothing
  does. Once all that a frame depends on is a constant later than for the frame before, so is everything after it.
- *By windows*: where queues are so short that beats wait for credits all the time, each sweep would only bring a few
  beats forward. Where a schedule is known that is possible, what comes early in it is brought to its end first
  (:mod:`hwflow.schedule.throughput.event_order`).
- *By steps*: where none is known, one after the other as they get known.

Only steps that others depend on, or that depend on others, are visited: the cost grows with beats, not with cycles.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hwflow.cores.timing import Steps, compact, every
from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Graph, Value
from hwflow.schedule.throughput.event_order import Windows
from hwflow.schedule.throughput.events import ROUND_TRIPS, Events, Track, events_of
from hwflow.schedule.throughput.groups import Wait
from hwflow.schedule.throughput.strided import Places
from hwflow.schedule.throughput.trips import RoundTrips

_BEFORE = -(1 << 60)  # the cycle of what was before the first frame: nothing waits for it
# Sweeps compute each event of a frame so many times on average before the frame is done step by step, or by windows;
# after such a frame only those in the steady state are worth a try.
_PATIENCE, _SOME_PATIENCE, _LITTLE_PATIENCE = 32, 8, 3


@dataclass(eq=False)
class _Runner:
    """A process. ``steps``: those of a frame that matter, ascending, the last one among them: its "events".

    ``cycles``: those of the events of the last ``back`` frames and of the present one, one after the other.
    """

    track: Track
    steps: Steps
    needs: list[_Need] = field(default_factory=list)
    needed_by: list[_Need] = field(default_factory=list)
    loops: list[tuple[Places, RoundTrips]] = field(default_factory=list)  # of its queues
    visits: int = 0  # sweeps in this frame
    back: int = 1
    cycles: Steps = field(default_factory=lambda: every(0))

    @property
    def events(self) -> int:
        return len(self.steps)

    @property
    def present(self) -> Steps:
        """Cycles of the present frame (a view)."""
        return self.cycles[-self.events :]


@dataclass(eq=False)
class _Need:
    """Event ``targets[k]`` of a process is not before event ``events[k]`` of ``source`` was ``lag`` cycles ago.

    Both ascend. ``events`` are relative to the frame: negative ones are of frames before.
    """

    source: _Runner
    target: _Runner
    events: Steps
    targets: Steps
    lag: int

    @cached_property
    def places(self) -> Places:
        """Where the events are among the source's cycles, whose ``back`` must be known."""
        return Places(compact(self.events + np.int64(self.source.back * self.source.events)))

    @cached_property
    def target_places(self) -> Places:
        return Places(self.targets)

    def wait(self, number: Mapping[_Runner, int]) -> Wait:
        """What it says within a frame; processes are numbered."""
        within = self.events >= 0
        events, targets = self.events[within], self.targets[within]
        offsets = self.lag + self.source.steps[events] - self.target.steps[targets]
        return Wait(number[self.source], number[self.target], events, targets, offsets)


@dataclass(frozen=True)
class Run:
    """What a full-rate run does: source and sink always willing, cycle 0 is the first input beat.

    ``outputs``: for each graph output the cycle of every beat's handshake, [frames, beats]. ``first_output``: cycle of
    each frame's first beat on any output; ``last_output``: of its last beat on all of them. Not ``exact``: cycles that
    no beat is later than, and the interval in the long run.
    """

    outputs: tuple[Steps, ...]
    exact: bool = True

    @property
    def first_output(self) -> tuple[int, ...]:
        return tuple(int(c) for c in np.min([o[:, 0] for o in self.outputs], axis=0))

    @property
    def last_output(self) -> tuple[int, ...]:
        return tuple(int(c) for c in np.max([o[:, -1] for o in self.outputs], axis=0))

    @property
    def latency(self) -> int:
        """Cycles from the first input beat to the first output beat of the first frame."""
        return self.first_output[0]

    @property
    def initiation_interval(self) -> int:
        """Cycles between the last beats of the last two frames."""
        return self.last_output[-1] - self.last_output[-2]


def evaluate(
    graph: Graph, frames: int, events: Events | None = None, possible: Mapping[Track, Steps] | None = None
) -> Run:
    """Run ``frames`` frames of a scheduled graph. ``events``: the graph's, where they are known; ``possible``: of these
    the cycles in a frame of a schedule that the queues allow, where one is known.

    Raises :class:`InternalError` naming the cores if it deadlocks."""
    network = Network(graph, frames, events, possible)
    try:
        return network.run(frames)
    finally:
        network.release()


class Network:
    """The processes of a scheduled graph, a sink for each output and the queues between them, frame after frame."""

    def __init__(
        self,
        graph: Graph,
        most: int,
        events: Events | None = None,
        possible: Mapping[Track, Steps] | None = None,
    ) -> None:
        """``most``: no more frames will be asked for. ``events``, ``possible``: of :func:`evaluate`."""
        self._most = most
        self._runners: list[_Runner] = []
        self._takers: dict[Value, tuple[_Runner, Steps]] = {}  # who takes a value's beats, and in which events
        self._frame = 0
        self._patience = _PATIENCE if possible is None else _SOME_PATIENCE
        self._possible = possible
        self._windows: Windows | None = None
        self._connect(events or events_of(graph))
        for runner in self._runners:
            for need in runner.needs:
                need.source.needed_by.append(need)
                need.source.back = max(need.source.back, -(int(need.events[0]) // need.source.events))
        for runner in self._runners:
            runner.cycles = np.full((runner.back + 1) * runner.events, _BEFORE, dtype=np.int64)
        self._outputs = [self._takers[port.value] for port in graph.outputs if port.value in self._takers]
        self._left: list[list[Steps]] = [[] for _ in self._outputs]  # cycles of output beats, frame by frame

    def run(self, frames: int) -> Run:
        """Go on until there are ``frames``; all of them. Raises :class:`InternalError` naming cores that deadlock."""
        while self._frame < frames:
            delay = self._repeats()
            if delay is None:
                self._next_frame()
            else:
                self._frames_like_the_last(frames - self._frame, delay)
        return Run(tuple(np.array(frames) for frames in self._left))

    def release(self) -> None:
        """Give up the memory that this takes, of a large frame at once: processes would keep each other until Python
        looks for such circles."""
        for runner in self._runners:
            runner.needs, runner.needed_by = [], []

    def _repeats(self) -> int | None:
        """Cycles by which all that the next frame can depend on is later than what the last one could depend on, where
        that is the same for all: so much later it is then, and all that follow."""
        if self._frame <= max(runner.back for runner in self._runners):
            return None
        delays = {int(r.cycles[-1] - r.cycles[-1 - r.events]) for r in self._runners}
        if len(delays) > 1:
            return None
        (delay,) = delays
        same = all((r.cycles[r.events :] == r.cycles[: -r.events] + delay).all() for r in self._runners)
        return delay if same else None

    def _frames_like_the_last(self, more: int, delay: int) -> None:
        for runner in self._runners:
            runner.cycles += more * delay
        for cycles in self._left:
            cycles += [cycles[-1] + frame * delay for frame in range(1, more + 1)]
        self._frame += more

    def _connect(self, events: Events) -> None:
        """Processes, and what each needs of the others."""
        runners = {track: _Runner(track, track.steps) for track in events.tracks}
        self._runners = list(runners.values())
        orders = list(events.waits)
        for channel in events.channels:
            orders.append(channel.arrivals())
            if channel.depth < self._most * channel.beats:  # else it never gets full
                orders.append(channel.credits(channel.depth))
            if 2 * channel.depth <= channel.beats and channel.maker is not channel.taker:
                for track, beats in ((channel.maker, channel.makes), (channel.taker, channel.takes)):
                    trips = RoundTrips(track.steps[beats], channel.depth, channel.latency + 1)
                    runners[track].loops.append((Places(beats), trips))
            self._takers[channel.value] = runners[channel.taker], channel.takes
        for order in orders:
            target = runners[order.target]
            target.needs.append(_Need(runners[order.source], target, order.events, order.targets, order.lag))

    def _next_frame(self) -> None:
        later = self._least_delay()
        for runner in self._runners:
            runner.cycles[: -runner.events] = runner.cycles[runner.events :].copy()
            runner.visits = 0
            runner.present[:] = np.maximum(runner.present + later, self._begin(runner) + runner.steps)
        if not self._by_sweeps():
            self._patience = _LITTLE_PATIENCE
            if not self._by_windows():
                self._by_steps()
        for (taker, takes), cycles in zip(self._outputs, self._left, strict=True):
            cycles.append(taker.present[takes])
        self._frame += 1

    def _least_delay(self) -> int:
        """The least by which anything came later in the last frame than in the one before."""
        if self._frame < 2:
            return 0
        return min(int((r.present - r.cycles[-2 * r.events : -r.events]).min()) for r in self._runners)

    def _begin(self, runner: _Runner) -> int:
        """The first cycle after the process's last step of the frame before."""
        return int(runner.cycles[-runner.events - 1]) + 1 if self._frame else 0

    def _by_sweeps(self) -> bool:
        """The present frame by sweeps; whether that came to an end soon enough. At the least once through all."""
        left = max(1, self._patience * sum(runner.events for runner in self._runners))
        stale = {runner: dict.fromkeys(runner.needs, 0) for runner in self._runners if runner.needs}
        order = self._runners
        while stale and left > 0:
            for runner in order:
                needs = stale.pop(runner, None)
                if needs is not None:
                    left -= max(len(need.targets) - later for need, later in needs.items())
                    changed = self._sweep(runner, needs)
                    if changed is not None:
                        _mark(runner, changed, stale)
            order = order[::-1]
        return not stale

    def _sweep(self, runner: _Runner, needs: Mapping[_Need, int]) -> int | None:
        """Events later where ``needs``, each looked at from one of its places on, say so; the first event that moved.
        All that the others say is already so."""
        present, changed = runner.present, runner.events
        for need, later in needs.items():
            least = need.places.take(need.source.cycles, later) + need.lag
            run = need.target_places.run(later)
            events = present[run] if run else need.target_places.take(present, later)
            moves = least > events
            first = int(moves.argmax())
            if not moves[first]:
                continue
            if run:
                np.maximum(events, least, out=events)
            else:
                moved = moves.nonzero()[0]
                present[need.targets[later:][moved]] = least[moved]
            changed = min(changed, int(need.targets[later + first]))
        if changed == runner.events:
            return None
        _step_by_step(runner, changed)
        runner.visits += 1
        if runner.visits > ROUND_TRIPS:
            _round_trips(runner, changed)
        return changed

    def _by_windows(self) -> bool:
        """The present frame, gone through by sweeps once, in the order of a schedule that is possible; False if none is
        known."""
        if self._possible is None:
            return False
        if self._windows is None:
            number = {runner: n for n, runner in enumerate(self._runners)}
            waits = [need.wait(number) for runner in number for need in runner.needs]
            possible = [self._possible[runner.track] for runner in number]
            self._windows = Windows(possible, [runner.steps for runner in number], waits)
        found = self._windows.solve([runner.present for runner in self._runners])
        for runner, cycles in zip(self._runners, found, strict=True):
            runner.present[:] = cycles
        return True

    def _by_steps(self) -> None:
        """The present frame step by step; raises :class:`InternalError` if it deadlocks."""
        known = {r: [_BEFORE, *r.cycles[: -r.events].tolist()] for r in self._runners}
        moving = {runner: self._step(runner, known) for runner in self._runners}
        waiting: dict[_Runner, list[tuple[_Runner, int]]] = {runner: [] for runner in self._runners}
        ready = self._runners[::-1]
        while ready:
            runner = ready.pop()
            wanted = next(moving[runner], None)
            if wanted is None:
                del moving[runner]
            else:
                waiting[wanted[0]].append((runner, wanted[1]))
            if waiting[runner]:
                there = len(known[runner])
                ready += [r for r, place in waiting[runner] if place < there]
                waiting[runner] = [(r, place) for r, place in waiting[runner] if place >= there]
        if moving:
            stuck = dict.fromkeys(repr(r.track.owner) for r in moving if r.track.owner)
            raise InternalError(
                Finding(
                    "no-deadlock",
                    f"cores {', '.join(stuck)}",
                    "queues must be deep enough for every beat to move on, "
                    "not so small that the cores wait for each other",
                    "report this model as a defect of hwflow",
                )
            )
        for runner in self._runners:
            runner.present[:] = known[runner][-runner.events :]

    def _step(self, runner: _Runner, known: Mapping[_Runner, list[int]]) -> Iterator[tuple[_Runner, int]]:
        """Append the cycle of each event to ``known[runner]``. Yields whose cycle at which place is missing."""
        own = known[runner]
        cycle = self._begin(runner) - 1
        sources = [(need.source, known[need.source], need.lag) for need in runner.needs]
        gaps = np.diff(runner.steps, prepend=-1).astype(np.int64)
        columns = [array("q", column.tobytes()) for column in (gaps, *map(_column, runner.needs))]
        if len(sources) == 2:  # most have these: beats that arrive, credits that come back
            (source_a, cycles_a, lag_a), (source_b, cycles_b, lag_b) = sources
            for gap, a, b in zip(*columns, strict=True):
                cycle += gap
                while a >= len(cycles_a):
                    yield source_a, a
                while b >= len(cycles_b):
                    yield source_b, b
                if (least := cycles_a[a] + lag_a) > cycle:
                    cycle = least
                if (least := cycles_b[b] + lag_b) > cycle:
                    cycle = least
                own.append(cycle)
            return
        for gap, *places in zip(*columns, strict=True):
            cycle += gap
            for (source, cycles_of, lag), place in zip(sources, places, strict=True):
                while place >= len(cycles_of):
                    yield source, place
                cycle = max(cycle, cycles_of[place] + lag)
            own.append(cycle)


def _step_by_step(runner: _Runner, first: int) -> None:
    """Events from ``first`` on no earlier than those before allow."""
    cycles, steps = runner.present[first:], runner.steps[first:]
    begins = cycles - steps
    if (begins[1:] < begins[:-1]).any():
        np.add(np.maximum.accumulate(begins), steps, out=cycles)


def _round_trips(runner: _Runner, first: int) -> None:
    """No earlier than the credits of its queues come back; these sweeps would bring back one round after the other."""
    moved = False
    for events, trips in runner.loops:
        beat = int(np.searchsorted(events.at, first))
        if len(events.at) - beat <= trips.depth:
            continue
        found = trips.later_cycles(events.take(runner.present, beat))
        if found is not None:
            runner.present[events.at[beat + found[0] :]] = found[1]
            moved = True
    if moved:
        _step_by_step(runner, first)


def _mark(runner: _Runner, changed: int, stale: dict[_Runner, dict[_Need, int]]) -> None:
    """Whatever needs the events of ``runner`` from ``changed`` on must be looked at."""
    for need in runner.needed_by:
        later = int(np.searchsorted(need.events, changed))
        if later < len(need.events):
            needs = stale.setdefault(need.target, {})
            needs[need] = min(needs.get(need, later), later)


def _column(need: _Need) -> Steps:
    """For each event the place among the source's known cycles (one entry is before them) of what it needs: 0 if
    nothing."""
    column = np.zeros(need.target.events, dtype=np.int64)
    column[need.targets] = need.places.at + 1
    return column
