"""Exact cycle of every step of every core: the static schedules of :mod:`hwflow.ops.timing` run against each other.

Each process is a recurrence ``t[n] = max(t[n-1] + 1, dependencies)``; dependencies are beats that must have arrived,
credits that must have come back and steps of a core's other process. Together they are a timed event graph with finite
buffers (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992, section 2.5), evaluated frame by frame
in two ways:

- *By sweeps* (:mod:`hwflow.schedule.sweeps`): all steps of a process in a frame at once. They begin with the frame
  before, later by the least that anything was later from frame to frame: nothing is ever too late then, so that sweeps
  only look at what becomes later.
- *By steps*: one after the other as they get known, where sweeps do not come to an end soon.

No step depends on itself, so the recurrences have one solution: whatever fulfils them is that one. So it is tried first
whether a frame is the one before, later by a period, but for a few steps. Once all that a frame depends on is a
constant later than for the frame before, so is everything after it.

Only steps that others depend on, or that depend on others, are visited: the cost grows with beats, not with cycles.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Graph, Value
from hwflow.ops.timing import Steps, every
from hwflow.schedule.events import Events, Order, Track, events_of
from hwflow.schedule.lines import Arc, End, Line
from hwflow.schedule.places import Places
from hwflow.schedule.sweeps import Sweeps

_BEFORE = -(1 << 60)  # the cycle of what was before the first frame: nothing waits for it
_APART = 1 << 60  # cycles that a frame may take: in a frame nothing waits for the frame after it
# Sweeps visit each event of a frame so many times on average before the frame is done step by step; after such a frame
# only those in the steady state are worth a try.
_PATIENCE, _LITTLE_PATIENCE = 400, 3
_GUESSES = 1  # visits of each event, beginning with what repeats the frame before


@dataclass(eq=False)
class _Runner:
    """A process. ``steps``: those of a frame that matter, ascending, the last one among them: its "events".

    ``cycles``: those of the events of the last ``back`` frames and of the present one, one after the other. ``line``:
    those of the present one, as sweeps see them.
    """

    owner: str
    of: int
    steps: Steps
    needs: list[_Need] = field(default_factory=list)
    needed_by: set[_Runner] = field(default_factory=set)
    back: int = 1
    cycles: Steps = field(default_factory=lambda: every(0))

    def __post_init__(self) -> None:
        self.line = Line(_APART, np.zeros(self.events, dtype=np.int64))

    @property
    def events(self) -> int:
        return len(self.steps)

    @property
    def present(self) -> Steps:
        """Cycles of the present frame (a view)."""
        return self.cycles[-self.events :]

    @property
    def before(self) -> Steps:
        """Cycles of the frame before (a view)."""
        return self.cycles[-2 * self.events : -self.events]


@dataclass(eq=False)
class _Need:
    """Event ``targets[k]`` of a process is not before event ``events[k]`` of ``source`` was ``lag`` cycles ago.

    Both ascend. ``events`` are relative to the frame: the first ``before`` of them are of frames before.
    """

    source: _Runner
    target: _Runner
    events: Steps
    targets: Steps
    lag: int

    def __post_init__(self) -> None:
        self.before = int(np.searchsorted(self.events, 0))

    @cached_property
    def places(self) -> Places:
        """Where the events are among the source's cycles, whose ``back`` must be known."""
        return Places(self.events + self.source.back * self.source.events)

    @cached_property
    def target_places(self) -> Places:
        return Places(self.targets)

    @cached_property
    def least(self) -> Steps:
        """What it adds to the cycle of the other event, less the step of its own."""
        return self.lag - self.target.steps[self.targets]

    @cached_property
    def earlier(self) -> Places:
        """The same of those of frames before."""
        return Places(self.places.at[: self.before])

    def arc(self) -> Arc:
        """Those of the present frame."""
        events, targets = self.events[self.before :], self.targets[self.before :]
        offsets = self.lag + self.source.steps[events] - self.target.steps[targets]
        return Arc(self.source.line, self.target.line, Places(events), Places(targets), offsets)


@dataclass(frozen=True)
class Run:
    """What a full-rate run does: source and sink always willing, cycle 0 is the first input beat.

    ``outputs``: for each graph output the cycle of every beat's handshake, [frames, beats]. ``first_output``: cycle of
    each frame's first beat on any output; ``last_output``: of its last beat on all of them.
    """

    outputs: tuple[Steps, ...]

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


def evaluate(graph: Graph, frames: int, events: Events | None = None) -> Run:
    """Run ``frames`` frames of a scheduled graph. ``events``: the graph's, where they are known.

    Raises :class:`InternalError` naming the cores if it deadlocks."""
    return Network(graph, frames, events).run(frames)


class Network:
    """The processes of a scheduled graph, a sink for each output and the queues between them, frame after frame."""

    def __init__(self, graph: Graph, most: int, events: Events | None = None) -> None:
        """``most``: no more frames will be asked for. ``events``: the graph's, where they are known."""
        self._most = most
        self._runners: list[_Runner] = []
        self._takers: dict[Value, tuple[_Runner, Steps]] = {}  # who takes a value's beats, and in which events
        self._frame = 0
        self._patience = _PATIENCE
        self._arcs: list[Arc] = []
        self._connect(events or events_of(graph))
        self._period = max(runner.of for runner in self._runners)  # as far as cores say by themselves
        for runner in self._runners:
            for need in runner.needs:
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
        runners = {track: _Runner(track.owner, track.of, track.steps) for track in events.tracks}
        self._runners = list(runners.values())
        self._sweeps = Sweeps(runner.line for runner in self._runners)
        for order in events.waits:
            self._need(runners, order)
        for channel in events.channels:
            self._takers[channel.value] = runners[channel.taker], channel.takes
            arrivals = self._need(runners, channel.arrivals())
            if channel.depth >= self._most * channel.beats:
                continue  # it never gets full
            credits = self._need(runners, channel.credits(channel.depth))
            if arrivals is None or credits is None or channel.maker is channel.taker:
                continue
            maker, taker, trip = runners[channel.maker], runners[channel.taker], channel.latency + 1
            made = End(Places(channel.makes), maker.steps[channel.makes], trip, channel.depth, (credits, arrivals))
            taken = End(Places(channel.takes), taker.steps[channel.takes], trip, channel.depth, (arrivals, credits))
            maker.line.ends.append(made)
            taker.line.ends.append(taken)

    def _need(self, runners: Mapping[Track, _Runner], order: Order) -> Arc | None:
        """Note what a process needs; within a frame, if anything."""
        need = _Need(runners[order.source], runners[order.target], order.events, order.targets, order.lag)
        need.target.needs.append(need)
        need.source.needed_by.add(need.target)
        if need.before == len(need.events):
            return None
        arc = need.arc()
        self._arcs.append(arc)
        self._sweeps.add(arc)
        return arc

    def _next_frame(self) -> None:
        later = self._least_delay()
        for runner in self._runners:
            runner.cycles[: -runner.events] = runner.cycles[runner.events :].copy()
        if not (self._frame and self._by_guess()):
            for runner in self._runners:
                runner.present[:] = np.maximum(runner.before + later, self._begin(runner) + runner.steps)
            if not self._by_sweeps():
                self._by_steps()
                self._patience = _LITTLE_PATIENCE
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

    def _by_guess(self) -> bool:
        """The present frame as the one before, later by a period, and put right wherever that is wrong; whether that
        came to an end soon enough."""
        for runner in self._runners:
            runner.present[:] = runner.before + self._period
        left = _GUESSES * sum(runner.events for runner in self._runners)
        waiting = dict.fromkeys(self._runners)
        order = self._runners
        while waiting and left > 0:
            for runner in order:
                if runner in waiting:
                    del waiting[runner]
                    left -= runner.events
                    cycles = self._exact(runner)
                    if (cycles != runner.present).any():
                        runner.present[:] = cycles
                        waiting.update(dict.fromkeys(runner.needed_by))
            order = order[::-1]
        return not waiting

    def _exact(self, runner: _Runner) -> Steps:
        """The cycles of a process, given those of the others."""
        least = np.full(runner.events, self._begin(runner))
        for need in runner.needs:
            wanted = need.places.take(need.source.cycles) + need.least
            run = need.target_places.run()
            if run:
                np.maximum(least[run], wanted, out=least[run])
            else:
                least[need.targets] = np.maximum(least[need.targets], wanted)
        np.maximum.accumulate(least, out=least)
        least += runner.steps
        return least

    def _by_sweeps(self) -> bool:
        """The present frame by sweeps; whether that came to an end soon enough."""
        for runner in self._runners:
            for need in runner.needs:
                if need.before:
                    at = need.targets[: need.before]
                    wanted = need.earlier.take(need.source.cycles) + need.lag
                    runner.present[at] = np.maximum(runner.present[at], wanted)
            runner.line.base = np.maximum.accumulate(runner.present - runner.steps)
        for arc in self._arcs:
            self._sweeps.look_at(arc)
        good = self._sweeps.settle(self._sweeps.all, self._patience, 0)
        if good:
            for runner in self._runners:
                np.add(runner.line.base, runner.steps, out=runner.present)
        return good

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
            stuck = dict.fromkeys(repr(r.owner) for r in moving if r.owner)
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
        gaps = np.diff(runner.steps, prepend=-1)
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


def _column(need: _Need) -> Steps:
    """For each event the place among the source's known cycles (one entry is before them) of what it needs: 0 if
    nothing."""
    column = np.zeros(need.target.events, dtype=np.int64)
    column[need.targets] = need.places.at + 1
    return column
