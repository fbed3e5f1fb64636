"""Even schedules: every process spreads its steps over the period, so that only its start is to be found.

What :mod:`hwflow.schedule.throughput.periodic` looks for, a schedule in which every event comes ``period`` cycles after
the same one of the frame before, is known of each process but for one number then. A wait of one process for another
says by how much it starts later at the least: the most that any of the events says. Starts that satisfy all waits prove
that the period is kept, and queues need no more room than for what is in them meanwhile. Self-timed hardware with such
queues is never later than that schedule (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992, theorem
3.28 and section 2.5).

Depths found so suffice, but are not the least. They take two looks at each event and hardly any memory: they are for
frames of many millions of beats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hwflow.cores.timing import Steps, every
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.evaluate import Run
from hwflow.schedule.throughput.events import new_waits

SYNC_DEPTH = 2  # of a frame synchroniser, which has no choice
_FRAMES = 2  # of a run: each is a period later than the one before
_AT_ONCE = 1 << 18  # events looked at together
_KEPT = 3  # timings in memory: neighbours are looked at one after the other
_BITS = 62  # of a number of cycles with what is behind its point

_Process = tuple[Node, int]
_Later = tuple[_Process, _Process, int]  # the second one starts so many cycles after the first at the least


@dataclass(frozen=True, eq=False)
class Pace:
    """Of a process with ``steps`` a frame the cycle of each after its start, all ``period / steps`` from each other,
    rounded down. ``at_these``: only these are steps of the process, one after the other."""

    period: int
    steps: int
    at_these: Steps | None = None

    @property
    def count(self) -> int:
        """Steps of the process."""
        return self.steps if self.at_these is None else len(self.at_these)

    @cached_property
    def _shift(self) -> int:
        return _BITS - self.period.bit_length()

    @cached_property
    def _rate(self) -> int:
        """Cycles from step to step, at least one."""
        return (self.period << self._shift) // self.steps

    def cycles(self, steps: Steps) -> Steps:
        """Those of these steps, which ascend; negative ones are of frames before."""
        frame, step = _in_frames(steps.astype(np.int64, copy=False), self.count)
        if self.at_these is not None:
            step = self.at_these[step].astype(np.int64, copy=False)
        result: Steps = frame * self.period + (step * self._rate >> self._shift)
        return result

    def done(self, cycles: Steps) -> Steps:
        """How many steps, from the first one of the frame on, are no later than each of these cycles, which ascend."""
        frame, cycle = _in_frames(cycles, self.period)
        step = np.minimum((((cycle + 1) << self._shift) - 1) // self._rate, self.steps - 1)
        if self.at_these is not None:
            step = self.at_these.searchsorted(step, side="right") - 1
        result: Steps = frame * self.count + step + 1
        return result


@dataclass(frozen=True, eq=False)
class _End:
    """Of a queue: the process that makes its beats or takes them, and the step that does so of each."""

    process: _Process
    pace: Pace
    steps: Steps

    def cycles(self, beats: Steps) -> Steps:
        """Of these beats, after the start; negative ones are of frames before."""
        frame, beat = _in_frames(beats, len(self.steps))
        return self.pace.cycles(frame * self.pace.count + self.steps[beat])

    def followed(self) -> Pace:
        """That of a process with a step for each beat."""
        steps = self.steps if self.pace.at_these is None else self.pace.at_these[self.steps]
        return Pace(self.pace.period, self.pace.steps, steps)

    def done(self, cycles: Steps) -> Steps:
        """How many beats, from the first one of the frame on, are no later than each of these cycles."""
        steps = self.pace.done(cycles)
        if len(self.steps) == self.pace.count:
            return steps
        frame, step = _in_frames(steps, self.pace.count)
        result: Steps = frame * len(self.steps) + self.steps.searchsorted(step, side="left")
        return result


class EvenSchedule:
    """That of a plan whose depths may be open, with a frame every ``period`` cycles, no fewer than the steps of any
    process. A frame synchroniser makes each beat as it is taken, a queue in a node of its own takes each as it is made:
    neither has a pace of its own.

    ``starts``: after :meth:`settle` found them, the cycle in which each process begins."""

    def __init__(self, plan: Plan, period: int) -> None:
        self._graph, self.period = plan.graph, period
        self._makers = plan.graph.producers()
        self._takers = {value: readers[0][0] for value, readers in plan.graph.consumers().items() if readers}
        self._timing = lru_cache(_KEPT)(plan.timing)
        self.starts: Mapping[_Process, int] = {}

    def settle(self) -> bool:
        """Find the starts. False if there are none."""
        processes: list[_Process] = []
        later: list[_Later] = []
        for node in self._graph.nodes:
            processes += self._processes(node)
            later += self._waits(node)
            for value in node.inputs:
                if value in self._makers:
                    later += self._arrivals(value)
        starts = least_starts(processes, later)
        self.starts = starts or {}
        return starts is not None

    def allows(self, node: Node) -> bool:
        """Whether the processes of a core, as it is now, keep the pace by themselves."""
        self._timing.cache_clear()
        return least_starts(self._processes(node), list(self._waits(node))) is not None

    def release(self) -> None:
        """Give up the memory that the timings take."""
        self._timing.cache_clear()

    def depths(self) -> dict[Value, int]:
        """Of the queue of each value the least depth with which this very schedule is possible."""
        found: dict[Value, int] = {}
        for node in self._graph.nodes:
            for value in (*node.inputs, *node.outputs):
                if value in self._makers and (value in node.inputs or value not in self._takers):
                    sync = self._makers[value].op == "frame_sync"
                    found[value] = SYNC_DEPTH if sync else self._depth(value)
        return found

    def run(self) -> Run:
        """Cycles that self-timed hardware with these depths is never later than, whose interval is the period."""
        outputs = []
        for port in self._graph.outputs:
            if port.value in self._makers:
                taken = self._taken(port.value)
                first = self._start(port.value) + taken.cycles(every(len(taken.steps)))
                outputs.append(np.array([first + frame * self.period for frame in range(_FRAMES)]))
        return Run(tuple(outputs), exact=False)

    # --- waits -----------------------------------------------------------------------------------------------------

    def _processes(self, node: Node) -> list[_Process]:
        return [(node, k) for k in range(len(self._timing(node).processes))]

    def _waits(self, node: Node) -> Iterator[_Later]:
        """Of a core's processes for each other."""
        for target, process in enumerate(self._timing(node).processes):
            for wait in process.waits:
                steps, needs = new_waits(wait)
                before = _End((node, wait.process), self._pace(node, wait.process), needs)
                after = _End((node, target), self._pace(node, target), steps)
                yield before.process, after.process, _apart(before, after) + wait.lag

    def _arrivals(self, value: Value) -> Iterator[_Later]:
        """Of who takes a value's beats for who makes them, and of a frame synchroniser for its credits."""
        made, taken = self._made(value), self._taken(value)
        yield made.process, taken.process, _apart(made, taken) + self._latency(value)
        if self._makers[value].op == "frame_sync":
            yield taken.process, made.process, _apart(taken, made, SYNC_DEPTH) + 1

    def _depth(self, value: Value) -> int:
        made, taken = self._made(value), self._taken(value)
        between = self.starts[made.process] - self._start(value)
        under_way = (beats + 1 - taken.done(made.cycles(beats) + between - 1) for beats in _parts(len(made.steps)))
        return max(1, *(int(some.max()) for some in under_way))

    # --- ends of queues --------------------------------------------------------------------------------------------

    def _made(self, value: Value) -> _End:
        node = self._makers[value]
        index = node.outputs.index(value)
        for k, process in enumerate(self._timing(node).processes):
            if index in process.produces:
                return _End((node, k), self._pace(node, k), process.produces[index])
        raise KeyError(value)

    def _taken(self, value: Value) -> _End:
        """Beats of an output are taken as soon as they are there."""
        if value not in self._takers:
            made = self._made(value)
            return _End(made.process, made.followed(), every(len(made.steps)))
        node = self._takers[value]
        index = node.inputs.index(value)
        for k, process in enumerate(self._timing(node).processes):
            if index in process.consumes:
                return _End((node, k), self._pace(node, k), process.consumes[index])
        raise KeyError(value)

    def _start(self, value: Value) -> int:
        """Of what takes a value's beats."""
        if value in self._takers:
            return self.starts[self._taken(value).process]
        return self.starts[self._made(value).process] + self._latency(value)

    def _latency(self, value: Value) -> int:
        node = self._makers[value]
        return self._timing(node).latency[node.outputs.index(value)]

    def _pace(self, node: Node, process: int) -> Pace:
        if node.op == "frame_sync" and node.outputs[0] in self._takers:
            return self._taken(node.outputs[0]).followed()
        if node.op == "fifo":
            return self._made(node.inputs[0]).followed()
        return Pace(self.period, self._timing(node).processes[process].steps)


def least_starts(processes: Sequence[_Process], later: Sequence[_Later]) -> dict[_Process, int] | None:
    """The least starts, from 0 on, with these distances between them; None if there are none."""
    starts = dict.fromkeys(processes, 0)
    for _ in range(len(processes) + 1):  # no way is longer, unless it leads round in a circle
        moved = False
        for first, second, apart in later:
            if starts[first] + apart > starts[second]:
                starts[second] = starts[first] + apart
                moved = True
        if not moved:
            return starts
    return None


def _in_frames(numbers: Steps, count: int) -> tuple[Steps | int, Steps]:
    """Frames of so many, and the numbers in these; they ascend, and most are of one frame."""
    first, last = int(numbers[0]) // count, int(numbers[-1]) // count
    if first == last:
        return first, numbers - first * count
    return np.divmod(numbers, count)


def _apart(first: _End, second: _End, back: int = 0) -> int:
    """The most cycles by which a beat of ``first``, so many ``back``, comes later than one of ``second`` if both start
    at once."""
    return max(int((first.cycles(beats - back) - second.cycles(beats)).max()) for beats in _parts(len(second.steps)))


def _parts(count: int) -> Iterator[Steps]:
    """The numbers of so many beats, some at a time."""
    for begin in range(0, count, _AT_ONCE):
        yield np.arange(begin, min(count, begin + _AT_ONCE))
