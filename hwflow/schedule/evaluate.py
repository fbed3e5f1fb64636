"""Exact cycle of every step of every core: the static schedules of :mod:`hwflow.ops.timing` run against each other.

Each process is a recurrence ``t[n] = max(t[n-1] + 1, dependencies)``; dependencies are beats that must have arrived,
credits that must have come back and steps of a core's other process (a timed event graph with finite buffers). Only
steps that others depend on, or that depend on others, are visited: the cost grows with beats, not with cycles.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Graph, Node, Value
from hwflow.ops.registry import hardware
from hwflow.ops.timing import Process, Steps, Timing, every


@dataclass(eq=False)
class _Queue:
    """``seen``: the cycle from which each beat made so far can be taken; ``taken``: when it was."""

    latency: int
    depth: int
    seen: array[int] = field(default_factory=lambda: array("q"))
    taken: array[int] = field(default_factory=lambda: array("q"))

    def least_depth(self) -> int:
        """Credits with which every beat so far could have been made when it was: a credit comes back the cycle after
        its beat was taken."""
        made, taken = np.array(self.seen) - self.latency, np.array(self.taken)
        back = np.searchsorted(taken, made - 1, side="right")
        return int((np.arange(len(made)) + 1 - back).max(initial=1))


@dataclass(eq=False)
class _Marks:
    """Cycles of the steps of a process that another one waits for: ``steps`` of the ``of`` of each frame."""

    steps: tuple[int, ...]
    of: int
    cycles: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True)
class _Wait:
    """In frame f: entry ``place + f * len(marks.steps)`` must be there, ``lag`` cycles old."""

    marks: _Marks
    place: int
    lag: int


@dataclass(frozen=True)
class _Event:
    """A step, ``gap`` cycles after the event before it at the earliest."""

    gap: int
    takes: tuple[_Queue, ...]
    makes: tuple[_Queue, ...]
    waits: tuple[_Wait, ...]
    marks: tuple[_Marks, ...]


@dataclass
class _Runner:
    """A process on its way through the frames."""

    owner: str
    events: list[_Event]
    frame: int = 0
    index: int = 0
    cycle: int = -1

    def advance(self, frames: int) -> bool:
        """Go on until something is missing; whether there was any progress."""
        events, frame, index, cycle = self.events, self.frame, self.index, self.cycle
        while frame < frames:
            event = events[index]
            at = _earliest(event, frame, cycle + event.gap)
            if at is None:
                break
            cycle = at
            for queue in event.takes:
                queue.taken.append(cycle)
            for queue in event.makes:
                queue.seen.append(cycle + queue.latency)
            for marks in event.marks:
                marks.cycles.append(cycle)
            index += 1
            if index == len(events):
                frame, index = frame + 1, 0
        moved = (frame, index) != (self.frame, self.index)
        self.frame, self.index, self.cycle = frame, index, cycle
        return moved


def _earliest(event: _Event, frame: int, cycle: int) -> int | None:
    """The first cycle from ``cycle`` on in which the step can be taken; None if that is not known yet."""
    for queue in event.takes:
        beat = len(queue.taken)
        if beat == len(queue.seen):
            return None
        cycle = max(cycle, queue.seen[beat])
    for queue in event.makes:
        freed = len(queue.seen) - queue.depth
        if freed >= 0:
            if freed >= len(queue.taken):
                return None
            cycle = max(cycle, queue.taken[freed] + 1)
    for wait in event.waits:
        place = wait.place + frame * len(wait.marks.steps)
        if place >= 0:
            if place >= len(wait.marks.cycles):
                return None
            cycle = max(cycle, wait.marks.cycles[place] + wait.lag)
    return cycle


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


def evaluate(graph: Graph, frames: int) -> Run:
    """Run ``frames`` frames of a scheduled graph. Raises :class:`InternalError` naming the cores if it deadlocks."""
    network = _Network(graph)
    network.run(frames)
    return network.result(frames)


def evaluate_paced(graph: Graph, frames: int, pace: int) -> tuple[Run, dict[Value, int]]:
    """Run it with sources that offer a frame every ``pace`` cycles, its beats spread evenly; with it, for each value
    the least depth of its queue with which this run would be the same.

    With these depths and sources always willing no beat comes later than here (a timed event graph is monotone): where
    the interval is kept here, it is kept there.
    """
    network = _Network(graph, (frames, pace))
    network.run(frames)
    return network.result(frames), {value: queue.least_depth() for value, queue in network.queues.items()}


class _Network:
    """The processes of a graph, a sink for each output, and the queues between them."""

    def __init__(self, graph: Graph, paced: tuple[int, int] | None = None) -> None:
        """``paced``: frames and cycles a frame of sources that are not always willing."""
        self.runners: list[_Runner] = []
        self.queues: dict[Value, _Queue] = {}
        beats: dict[Value, int] = {}
        timings = {n: hardware(n.op).timing(n, n.attributes["folding"]) for n in graph.nodes}
        for node, timing in timings.items():
            for index, value in enumerate(node.outputs):
                self.queues[value] = _Queue(timing.latency[index], node.attributes["depths"][index])
                beats[value] = sum(len(p.produces[index]) for p in timing.processes if index in p.produces)
        for node, timing in timings.items():
            self._add(node, timing, paced)
        self.outputs = [self.queues[port.value] for port in graph.outputs if port.value in self.queues]
        for port in graph.outputs:
            if port.value in self.queues:
                sink = Process(beats[port.value], {0: every(beats[port.value])})
                self.runners.append(_Runner("", _events(sink, {0: self.queues[port.value]}, {}, [], _Marks((), 1))))

    def run(self, frames: int) -> None:
        """Run ``frames`` frames; raises :class:`InternalError` naming the cores if they deadlock."""
        moving = True
        while moving:
            moving = False
            for runner in self.runners:
                moving |= runner.advance(frames)
        stuck = dict.fromkeys(repr(r.owner) for r in self.runners if r.frame < frames and r.owner)
        if stuck:
            raise InternalError(
                Finding(
                    "no-deadlock",
                    f"cores {', '.join(stuck)}",
                    "queues must be deep enough for every beat to move on, "
                    "not so small that the cores wait for each other",
                    "report this model as a defect of hwflow",
                )
            )

    def result(self, frames: int) -> Run:
        return Run(tuple(np.array(q.taken, dtype=np.int64).reshape(frames, -1) for q in self.outputs))

    def _add(self, node: Node, timing: Timing, paced: tuple[int, int] | None) -> None:
        takes = {i: self.queues[v] for i, v in enumerate(node.inputs) if v in self.queues}
        for index in range(len(node.inputs)):
            if index not in takes and paced is not None:  # else a source is always willing
                count = sum(len(p.consumes[index]) for p in timing.processes if index in p.consumes)
                takes[index] = _source(count, *paced)
        makes = {o: self.queues[v] for o, v in enumerate(node.outputs)}
        marks = [_marks(timing, index) for index in range(len(timing.processes))]
        for process, own in zip(timing.processes, marks, strict=True):
            self.runners.append(_Runner(node.name, _events(process, takes, makes, marks, own)))


def _source(beats: int, frames: int, pace: int) -> _Queue:
    """All beats of a graph input, ``pace`` cycles a frame."""
    begins = np.arange(frames)[:, None] * pace + np.arange(beats) * pace // beats
    return _Queue(0, beats * frames, array("q", begins.reshape(-1).tolist()))


def _marks(timing: Timing, index: int) -> _Marks:
    """The steps of process ``index`` that the others wait for."""
    count = timing.processes[index].steps
    waits = [w for p in timing.processes for w in p.waits if w.process == index]
    return _Marks(tuple(sorted({int(s) for w in waits for s in np.unique(w.need % count)})), count)


def _events(
    process: Process, takes: dict[int, _Queue], makes: dict[int, _Queue], marks: list[_Marks], own: _Marks
) -> list[_Event]:
    """The steps of a frame that matter. A wait for what the step before waited for already is none."""
    taking: dict[int, list[_Queue]] = {}
    making: dict[int, list[_Queue]] = {}
    waiting: dict[int, list[_Wait]] = {}
    for table, queues, steps_of in ((taking, takes, process.consumes), (making, makes, process.produces)):
        for index, steps in steps_of.items():
            if index in queues:
                for step in steps.tolist():
                    table.setdefault(step, []).append(queues[index])
    for wait in process.waits:
        target = marks[wait.process]
        count = len(target.steps)
        for step in np.flatnonzero(np.diff(wait.need, prepend=wait.need[0] - 1)).tolist():
            frame, need = divmod(int(wait.need[step]), target.of)
            place = frame * count + bisect_left(target.steps, need)
            waiting.setdefault(step, []).append(_Wait(target, place, wait.lag))
    marked = set(own.steps)
    visited = sorted({*taking, *making, *waiting, *marked, process.steps - 1})
    before = [-1, *visited]
    return [
        _Event(
            step - last,
            tuple(taking.get(step, ())),
            tuple(making.get(step, ())),
            tuple(waiting.get(step, ())),
            (own,) if step in marked else (),
        )
        for last, step in zip(before, visited, strict=False)
    ]
