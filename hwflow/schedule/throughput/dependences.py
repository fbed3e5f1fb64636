"""What processes of a plan wait for: for each other in a core, for beats, and for room in the queues between cores.

It is stated here for all schedules. An event graph (:mod:`hwflow.schedule.throughput.events`) has an arc for each
dependence, and an even schedule (:mod:`hwflow.schedule.throughput.even`) a distance of two starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

import numpy as np

from hwflow.cores.timing import Beats, Process, spaced
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan

Numbered = tuple[Node | None, int]
"""A process of a core and its number; None: what takes the beats of the graph output of this number as they come."""

ROOM = 1
"""Cycles from a beat's consumption until another one may be produced in its place."""


@dataclass(frozen=True, eq=False)
class Side:
    """``steps`` of a process, ascending; negative ones are of earlier frames."""

    process: Numbered
    steps: Beats


@dataclass(frozen=True, eq=False)
class Dependence:
    """Step k of ``after`` is at least ``lag`` cycles later than step k - ``back`` of ``before``, where that is negative
    of an earlier frame."""

    before: Side
    after: Side
    lag: int
    back: int = 0


class Dependences:
    """Those of a ``plan``. ``kept``: timings in memory at once (None: all); ``timing``: returns that of a core."""

    def __init__(self, plan: Plan, kept: int | None = None) -> None:
        nodes, outputs = plan.graph.nodes, plan.graph.outputs
        self.timing = lru_cache(kept)(plan.timing)
        self.producers = {value: (node, index) for node in nodes for index, value in enumerate(node.outputs)}
        self.consumers = {value: (node, index) for node in nodes for index, value in enumerate(node.inputs)}
        self.ends = {port.value: (None, k) for k, port in enumerate(outputs) if port.value in self.producers}

    def queues(self, node: Node) -> list[Value]:
        """Return the values whose queues are in front of a core, or between it and outputs of the graph."""
        return [v for v in node.inputs if v in self.producers] + [v for v in node.outputs if v in self.ends]

    def of_core(self, node: Node) -> Iterator[Dependence]:
        """Yield those between the processes of a core, for steps that wait for another one than their predecessor."""
        for number, process in enumerate(self.timing(node).processes):
            for wait in process.waits:
                places = np.flatnonzero(np.diff(wait.need, prepend=wait.need[0] - 1))
                awaited = Side((node, wait.process), wait.need[places])
                yield Dependence(awaited, Side((node, number), places * wait.steps), wait.lag)

    def of_queue(self, value: Value, depth: int | None = None) -> Iterator[Dependence]:
        """Yield that of each beat on its arrival, and where there is a ``depth`` that of each on room in the queue."""
        made, taken = self.made(value), self.taken(value)
        node, index = self.producers[value]
        yield Dependence(made, taken, self.timing(node).latency[index])
        if depth is not None:
            yield Dependence(taken, made, ROOM, depth)

    def made(self, value: Value) -> Side:
        """Return the steps that produce a value's beats."""
        return self._side(*self.producers[value], attrgetter("produces"))

    def taken(self, value: Value) -> Side:
        """Return the steps that consume a value's beats."""
        if value in self.ends:
            return Side(self.ends[value], spaced(len(self.made(value).steps)))
        return self._side(*self.consumers[value], attrgetter("consumes"))

    def _side(self, node: Node, index: int, beats_of: Callable[[Process], Mapping[int, Beats]]) -> Side:
        found = enumerate(map(beats_of, self.timing(node).processes))
        return next(Side((node, number), beats[index]) for number, beats in found if index in beats)
