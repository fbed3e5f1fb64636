"""Exact cycle of every step of every core: the static schedules of :mod:`hwflow.ops.timing` run against each other.

Each process is a recurrence ``t[n] = max(t[n-1] + 1, dependencies)``; dependencies are beats that must have arrived,
credits that must have come back and steps of a core's other process (a timed event graph with finite buffers). It is
evaluated in runs of steps whose dependencies are known, each run a cumulative maximum, so the cost grows with beats
divided by queue depth, not with cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Graph, Node, Value
from hwflow.ops.registry import hardware
from hwflow.ops.timing import Steps, Timing, every


@dataclass
class _Constraint:
    """Beat k of this process's steps ``at`` waits for step ``steps[k - shift]`` of process ``source`` plus ``lag``."""

    at: Steps
    source: int
    steps: Steps
    shift: int
    lag: int


@dataclass
class _Ordered:
    """Step n waits for step ``need[n]`` (frame-relative) of process ``source`` plus ``lag``."""

    source: int
    need: Steps
    lag: int


@dataclass
class _Process:
    steps: int
    beats: list[_Constraint] = field(default_factory=list)
    orders: list[_Ordered] = field(default_factory=list)
    times: Steps = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    done: int = 0


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
    network = _Network(graph, frames)
    network.run()
    return network.result()


class _Network:
    def __init__(self, graph: Graph, frames: int) -> None:
        self.graph, self.frames = graph, frames
        self.processes: list[_Process] = []
        self.owners: list[str] = []
        self.timings: dict[Node, Timing] = {}
        first: dict[Node, int] = {}
        for node in graph.nodes:
            timing = hardware(node.op).timing(node, node.attributes["folding"])
            self.timings[node] = timing
            first[node] = len(self.processes)
            for process in timing.processes:
                self.processes.append(_Process(process.steps))
                self.owners.append(node.name)
            for index, process in enumerate(timing.processes):
                for wait in process.waits:
                    order = _Ordered(first[node] + wait.process, wait.need, wait.lag)
                    self.processes[first[node] + index].orders.append(order)
        self.sinks = [self._sink(port.value, first) for port in graph.outputs]
        for node in graph.nodes:
            for index, value in enumerate(node.inputs):
                self._connect(value, node, index, first)

    def _producer(self, value: Value, first: dict[Node, int]) -> tuple[int, Steps, int, int] | None:
        """(process, its steps that produce the value's beats, latency, queue depth), or None for a graph input."""
        for node in self.graph.nodes:
            for output, produced in enumerate(node.outputs):
                if produced is value:
                    for index, process in enumerate(self.timings[node].processes):
                        if output in process.produces:
                            latency = self.timings[node].latency[output]
                            return first[node] + index, process.produces[output], latency, node.attributes["depths"][output]
        return None

    def _link(self, consumer: int, at: Steps, value: Value, first: dict[Node, int]) -> None:
        producer = self._producer(value, first)
        if producer is None:
            return  # the source is always willing
        index, steps, latency, depth = producer
        self.processes[consumer].beats.append(_Constraint(at, index, steps, 0, latency))
        self.processes[index].beats.append(_Constraint(steps, consumer, at, depth, 1))

    def _sink(self, value: Value, first: dict[Node, int]) -> int:
        producer = self._producer(value, first)
        count = len(producer[1]) if producer else 1
        self.processes.append(_Process(count))
        self.owners.append("output")
        index = len(self.processes) - 1
        self._link(index, every(count), value, first)
        return index

    def _connect(self, value: Value, node: Node, index: int, first: dict[Node, int]) -> None:
        for offset, process in enumerate(self.timings[node].processes):
            if index in process.consumes:
                self._link(first[node] + offset, process.consumes[index], value, first)

    def run(self) -> None:
        for process in self.processes:
            process.times = np.empty(process.steps * self.frames, dtype=np.int64)
        moving = True
        while moving:
            moving = False
            for process in self.processes:
                moving |= self._advance(process)
        stuck = [self.owners[i] for i, p in enumerate(self.processes) if p.done < len(p.times) and i not in self.sinks]
        if stuck:
            raise InternalError(
                Finding(
                    "no-deadlock", f"cores {', '.join(dict.fromkeys(repr(s) for s in stuck))}",
                    "queues must be deep enough for every beat to move on, not so small that the cores wait for each other",
                    "report this model as a defect of hwflow",
                )
            )

    def _advance(self, process: _Process) -> bool:
        begin, end = process.done, len(process.times)
        for beat in process.beats:
            end = min(end, self._beat_limit(process, beat))
        for order in process.orders:
            end = min(end, self._order_limit(process, order, begin, end))
        if end <= begin:
            return False
        earliest = np.full(end - begin, -1, dtype=np.int64)
        for beat in process.beats:
            self._apply_beats(process, beat, begin, end, earliest)
        for order in process.orders:
            source = self.processes[order.source]
            frame, step = np.divmod(np.arange(begin, end), process.steps)
            need = order.need[step] + frame * source.steps
            known = need >= 0
            earliest[known] = np.maximum(earliest[known], source.times[need[known]] + order.lag)
        offsets = np.arange(begin, end)
        slack = earliest - offsets
        slack[0] = max(slack[0], (process.times[begin - 1] + 1 if begin else 0) - begin)
        process.times[begin:end] = np.maximum.accumulate(slack) + offsets
        process.done = end
        return True

    def _beat_limit(self, process: _Process, beat: _Constraint) -> int:
        """The first step whose beat the source has not made possible yet."""
        source = self.processes[beat.source]
        count = len(beat.at)
        frames, rest = divmod(source.done, source.steps)
        ready = frames * count + int(np.searchsorted(beat.steps, rest)) + beat.shift
        frame, index = divmod(ready, count)
        return frame * process.steps + int(beat.at[index])

    def _order_limit(self, process: _Process, order: _Ordered, begin: int, end: int) -> int:
        source = self.processes[order.source]
        frame = begin // process.steps
        while frame * process.steps < end:
            index = int(np.searchsorted(order.need, source.done - frame * source.steps))
            if index < process.steps:
                return frame * process.steps + index
            frame += 1
        return end

    def _apply_beats(self, process: _Process, beat: _Constraint, begin: int, end: int, earliest: Steps) -> None:
        source, count = self.processes[beat.source], len(beat.at)
        bounds = []
        for step in (begin, end):
            frame, rest = divmod(step, process.steps)
            bounds.append(frame * count + int(np.searchsorted(beat.at, rest)))
        beats = np.arange(bounds[0], bounds[1])
        frame, index = np.divmod(beats, count)
        position = frame * process.steps + beat.at[index] - begin
        wanted = beats - beat.shift
        known = wanted >= 0
        if not known.all():
            position, wanted = position[known], wanted[known]
        frame, index = np.divmod(wanted, count)
        times = source.times[frame * source.steps + beat.steps[index]] + beat.lag
        earliest[position] = np.maximum(earliest[position], times)

    def result(self) -> Run:
        origin = min(int(p.times[0]) for p in self.processes)
        sinks = [self.processes[i] for i in self.sinks]
        return Run(tuple(s.times.reshape(self.frames, s.steps) - origin for s in sinks))
