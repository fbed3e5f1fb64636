"""Even schedules: every process spreads its steps evenly over the period, so that only its start is unknown.

A periodic schedule (:mod:`hwflow.schedule.throughput.periodic`) is then one number for each process. Each dependence
between two processes gives a minimum distance of their starts: the maximum over their events. Starts that satisfy all
these constraints prove that the period is sustained, with FIFO depths that hold the backlog of this schedule.
Self-timed hardware with these depths is never later (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity,
1992, theorem 3.28 and section 2.5).

Such depths suffice, but are not minimal. They take two passes over the events and little memory, for frames of many
millions of beats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, gcd

import numpy as np

from hwflow.cores.operator import Neighbour
from hwflow.cores.registry import hardware
from hwflow.cores.timing import Beats, Cyclic, Steps, every
from hwflow.ir.graph import Node, Value
from hwflow.schedule.fixed_depths import fixed_depths
from hwflow.schedule.plan import Plan
from hwflow.schedule.shares import shares
from hwflow.schedule.throughput.dependences import Dependence, Dependences, Numbered, Side
from hwflow.schedule.throughput.evaluate import Run

_FRAMES = 2  # of a run: each is a period later than the one before
_CHUNK = 1 << 18  # events processed together
_FEW = 1 << 24  # beats of a queue beside what follows: looked at one by one within a second
_KEPT = 3  # timings in memory: neighbours are visited in succession
_BITS = 62  # of a fixed-point number of cycles

_Constraint = tuple[Numbered, Numbered, int]  # the second starts at least so many cycles after the first


@dataclass(frozen=True, eq=False)
class EvenSteps:
    """The cycles of a process with ``steps`` per frame after its start, spaced by ``period / steps`` and rounded down.
    ``taken``: if given, only so many are steps of the process, the first ones."""

    period: int
    steps: int
    taken: int | None = None

    @property
    def count(self) -> int:
        """Return the number of steps per frame."""
        return self.steps if self.taken is None else self.taken

    @cached_property
    def shift(self) -> int:
        """Return the fraction's bits of a cycle in fixed point."""
        return _BITS - self.period.bit_length()

    @cached_property
    def rate(self) -> int:
        """Return the cycles from step to step, in fixed point, at least one."""
        return (self.period << self.shift) // self.steps

    def cycles(self, steps: Steps) -> Steps:
        """Return the cycles of ``steps``, which ascend; negative ones are of earlier frames."""
        frame, step = _in_frames(steps.astype(np.int64, copy=False), self.count)
        result: Steps = frame * self.period + (step * self.rate >> self.shift)
        return result

    def done(self, cycles: Steps) -> Steps:
        """Return, for each of ``cycles`` (ascending), how many steps since the start of the frame are no later."""
        frame, cycle = _in_frames(cycles, self.period)
        step = np.minimum((((cycle + 1) << self.shift) - 1) // self.rate, self.count - 1)
        result: Steps = frame * self.count + step + 1
        return result


@dataclass(frozen=True, eq=False)
class _QueueEnd:
    """One end of a queue, or of what a process waits for: its step for each beat. ``follows``: the process has no steps
    of its own; spacing and steps are those of the end that it follows."""

    spacing: EvenSteps
    steps: Beats
    follows: bool = False

    @property
    def times(self) -> int:
        """Return how often in a frame the steps repeat, in equal parts of the process; once where it pauses, and where
        it follows another one and its beats are few enough to look at all."""
        if self.spacing.taken is not None or (self.follows and len(self.steps) <= _FEW):
            return 1
        whole = isinstance(self.steps, Cyclic) and self.steps.period * self.steps.times == self.spacing.count
        return self.steps.times if isinstance(self.steps, Cyclic) and whole else 1

    def exact(self, beats: Steps) -> Steps:
        """Return the cycles of ``beats`` after the start before they are rounded down, in fixed point; negative ones
        are of the frame before."""
        frame, beat = _in_frames(beats, len(self.steps))
        spacing = self.spacing
        result: Steps = frame * (spacing.period << spacing.shift) + self.steps[beat] * spacing.rate
        return result

    def of_part(self, times: int) -> int:
        """Return the cycles of a part of a frame, of ``times`` equal ones, in fixed point."""
        return self.spacing.count // times * self.spacing.rate

    def cycles(self, beats: Steps) -> Steps:
        """Return the cycles of ``beats`` after the start; negative ones are of earlier frames."""
        frame, beat = _in_frames(beats, len(self.steps))
        return self.spacing.cycles(frame * self.spacing.count + self.steps[beat])

    def done(self, cycles: Steps) -> Steps:
        """Return, for each of ``cycles``, how many beats since the start of the frame are no later."""
        steps = self.spacing.done(cycles)
        if len(self.steps) == self.spacing.count:
            return steps
        frame, step = _in_frames(steps, self.spacing.count)
        result: Steps = frame * len(self.steps) + self.steps.searchsorted(step, side="left")
        return result


class EvenSchedule:
    """The even schedule of a plan, whose depths may be open, with one frame every ``period`` cycles. The period must be
    at least the steps per frame of every process. A frame synchroniser, and a relay behind one, follow their consumer,
    and a FIFO in a node of its own and an output of the graph follow their producer: none of them has steps of its own.

    ``starts``: the cycle in which each process begins, once :meth:`settle` has found them.
    """

    def __init__(self, plan: Plan, period: int) -> None:
        self._graph, self.period = plan.graph, period
        self._depends = Dependences(plan, _KEPT)
        self._fixed_depths, self._shares = fixed_depths(plan.graph), shares(plan.graph)
        self._relays_follow = False
        self.starts: Mapping[Numbered, int] = {}

    def settle(self) -> bool:
        """Find the starts; return False if there are none. Relays spread their steps, too, or else follow the cores
        before them: those of streams that end early in a frame must, and others need not."""
        if self._settle():
            return True
        self._relays_follow = any(hardware(node.op).follows is Neighbour.EITHER for node in self._graph.nodes)
        return self._relays_follow and self._settle()

    def _settle(self) -> bool:
        processes: list[Numbered] = []
        constraints: list[_Constraint] = []
        for node in self._graph.nodes:
            processes += self._processes(node)
            constraints += map(self._constraint, self._depends.of_core(node))
            for value in self._depends.queues(node):
                constraints += map(self._constraint, self._depends.of_queue(value, self._fixed_depths.get(value)))
        starts = least_starts([*processes, *self._depends.ends.values()], constraints)
        self.starts = starts or {}
        return starts is not None

    def allows(self, node: Node) -> bool:
        """Tell whether the processes of a core, with its present decision, sustain the period by themselves."""
        self.release()
        return least_starts(self._processes(node), [*map(self._constraint, self._depends.of_core(node))]) is not None

    def release(self) -> None:
        """Free the memory of the cached timings."""
        self._depends.timing.cache_clear()

    def depths(self) -> dict[Value, int]:
        """Return for each value the least FIFO depth with which this schedule is possible."""
        queues = (value for node in self._graph.nodes for value in self._depends.queues(node))
        return {value: self._fixed_depths.get(value) or self._depth(value) for value in queues}

    def run(self) -> Run:
        """Return upper bounds of the cycles of self-timed hardware with these depths; its interval is the period."""
        outputs = []
        for value, process in self._depends.ends.items():
            consumed = self._end(self._depends.taken(value))
            first = self.starts[process] + consumed.cycles(every(len(consumed.steps)))
            outputs.append(np.array([first + frame * self.period for frame in range(_FRAMES)]))
        return Run(tuple(outputs), exact=False)

    def _processes(self, node: Node) -> list[Numbered]:
        return [(node, k) for k in range(len(self._depends.timing(node).processes))]

    def _constraint(self, each: Dependence) -> _Constraint:
        before, after = self._end(each.before), self._end(each.after)
        return each.before.process, each.after.process, _separation(before, after, each.back) + each.lag

    def _depth(self, value: Value) -> int:
        made, taken = self._depends.made(value), self._depends.taken(value)
        between = self.starts[made.process] - self.starts[taken.process]
        return _backlog(self._end(made), self._end(taken), between)

    def _end(self, side: Side) -> _QueueEnd:
        """Return a side of a dependence with the cycles of its process, or of that which this follows."""
        node, number = side.process
        if node is None:
            return replace(self._end(self._depends.made(self._graph.outputs[number].value)), follows=True)
        follows = hardware(node.op).follows
        if follows is Neighbour.EITHER:
            follows = self._neighbour_of_relay(node)
        if follows is Neighbour.PRODUCER:
            return replace(self._end(self._depends.made(node.inputs[0])), follows=True)
        if follows is Neighbour.CONSUMER and node.outputs[0] in self._depends.consumers:
            return replace(self._end(self._depends.taken(node.outputs[0])), follows=True)
        steps, share = self._depends.timing(node).processes[number].steps, self._shares.get(node)
        if share is None:
            return _QueueEnd(EvenSteps(self.period, steps), side.steps)
        slower = max(steps, min(self.period, ceil(steps / share)))
        return _QueueEnd(EvenSteps(self.period, slower, taken=steps), side.steps)

    def _neighbour_of_relay(self, relay: Node) -> Neighbour | None:
        """Return whose steps a relay follows: the consumer's where it has what a frame synchroniser makes, alone."""
        source = relay
        while hardware(source.op).follows is Neighbour.EITHER:
            source, _ = self._depends.producers[source.inputs[0]]
        if hardware(source.op).follows is Neighbour.CONSUMER:
            return Neighbour.CONSUMER
        return Neighbour.PRODUCER if self._relays_follow else None


def least_starts(processes: Sequence[Numbered], constraints: Sequence[_Constraint]) -> dict[Numbered, int] | None:
    """Return the least starts from 0 on that satisfy all constraints, or None if there are none (Bellman-Ford)."""
    starts = dict.fromkeys(processes, 0)
    for _ in range(len(processes) + 1):  # no path is longer unless there is a positive cycle
        moved = False
        for first, second, distance in constraints:
            if starts[first] + distance > starts[second]:
                starts[second] = starts[first] + distance
                moved = True
        if not moved:
            return starts
    return None


def _in_frames(numbers: Steps, count: int) -> tuple[Steps | int, Steps]:
    """Split ascending numbers into the frame of ``count`` and the number in it; fast where all are of one frame."""
    first, last = int(numbers[0]) // count, int(numbers[-1]) // count
    if first == last:
        return first, numbers - first * count
    return np.divmod(numbers, count)


def _separation(first: _QueueEnd, second: _QueueEnd, back: int = 0) -> int:
    """Return the maximum cycles by which beat b - ``back`` of ``first`` is later than beat b of ``second`` if both
    processes start at once; where both repeat in a frame, a bound of it, from the first part."""
    times = gcd(first.times, second.times)
    if times > 1 and back <= len(second.steps):
        return _separation_of_parts(first, second, back, times)
    return max(int((first.cycles(beats - back) - second.cycles(beats)).max()) for beats in _chunks(len(second.steps)))


def _separation_of_parts(first: _QueueEnd, second: _QueueEnd, back: int, times: int) -> int:
    """Do the same for ends that repeat ``times`` times in a frame. The difference of two cycles that are rounded down
    is at most their own difference rounded up. From part to part that moves by what the rates' last bits make; what is
    left of a frame behind its parts comes between a beat of the frame before and one of this frame."""
    part = len(second.steps) // times
    later = max(int((first.exact(beats - back) - second.exact(beats)).max()) for beats in _chunks(part))
    moves = (times - 1) * max(0, first.of_part(times) - second.of_part(times))
    spacing = first.spacing
    rest = (spacing.period << spacing.shift) - times * first.of_part(times) if back else 0
    return -(-(later + moves + rest) >> spacing.shift)


def _backlog(produced: _QueueEnd, consumed: _QueueEnd, between: int) -> int:
    """Return the most beats that are in a queue at once, whose producer starts ``between`` cycles after its consumer;
    where both repeat in a frame, a bound of them, from the first part: in later ones the consumer is later by what the
    rates' last bits make, and by up to two cycles that are rounded down, or left of a frame behind its parts."""
    times = gcd(produced.times, consumed.times)
    if times > 1:
        moves = (times - 1) * max(0, consumed.of_part(times) - produced.of_part(times))
        between -= 2 - (-moves >> produced.spacing.shift)
    return max(
        1,
        *(
            int((beats + 1 - consumed.done(produced.cycles(beats) + between - 1)).max())
            for beats in _chunks(len(produced.steps) // times)
        ),
    )


def _chunks(count: int) -> Iterator[Steps]:
    """Yield the beat numbers below ``count``, :data:`_CHUNK` at a time."""
    for begin in range(0, count, _CHUNK):
        yield np.arange(begin, min(count, begin + _CHUNK))
