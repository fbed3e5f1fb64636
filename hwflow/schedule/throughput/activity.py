"""What cores and queues do while one frame passes a full pipeline, cycle by cycle, from the exact schedule.

Between two events a process takes its steps in consecutive cycles, as early as it can, and then waits for the second
one: what it waits for follows from which of the event's dependences came last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwflow.cores.timing import Steps
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.evaluate import Run, evaluate
from hwflow.schedule.throughput.events import Actor, Arc, Channel, event_graph
from hwflow.schedule.throughput.firing import NEVER, Cycles

MOST_EVENTS = 1 << 21  # of a frame: more take longer than a picture is worth
BINS = 160  # of a time line; queues have half as many


@dataclass(frozen=True)
class CoreActivity:
    """Of a core's longest process, in one frame: cycles of its first and last step, counted from the frame's first
    input beat (negative: before it came), steps, and cycles in between that it waited for a beat (``starved``), for
    room in the queue behind it (``blocked``), or for another process of its own (the rest). ``busy``: steps in each bin
    of the window."""

    node: Node
    start: int
    end: int
    steps: int
    starved: int
    blocked: int
    busy: npt.NDArray[np.float64]


@dataclass(frozen=True)
class QueueActivity:
    """Of a queue, over one interval of a full pipeline: the most beats in it and on their way to it, at any time in
    each bin."""

    value: Value
    depth: int
    fill: Steps


@dataclass(frozen=True)
class Activity:
    """Of one frame: its last output beat comes ``cycles`` after its first input beat. Cores' bins divide the window
    from the first step of a core to that beat, ``begin`` to ``cycles``; queues' bins divide one ``interval``, beginning
    with a frame's first input beat; none where intervals between frames differ."""

    begin: int
    cycles: int
    interval: int
    cores: tuple[CoreActivity, ...]
    queues: tuple[QueueActivity, ...]


def activity(plan: Plan, run: Run, bins: int = BINS) -> Activity | None:
    """Return what happens while a frame passes the full pipeline of a plan whose run is known; None where that is only
    bounded, or a frame has more than :data:`MOST_EVENTS`."""
    if not run.exact:
        return None
    graph = event_graph(plan)
    if sum(actor.events for actor in graph.actors) > MOST_EVENTS:
        return None
    frames: list[list[Cycles]] = []

    def observe(cycles: Sequence[Cycles]) -> None:
        frames[:] = [*frames[-1:], [some.copy() for some in cycles]]  # the last two

    evaluate(plan, len(run.last_output), graph, run.cyclic, observe)
    cycles = dict(zip(graph.actors, frames[-1], strict=True))
    before = dict(zip(graph.actors, frames[0], strict=True))
    interval = run.initiation_interval
    firsts = [int(cycles[source.consumer][source.consumes[0]]) for source in graph.sources]
    zero = min((first for first in firsts if first > NEVER // 2), default=0)
    end = max(int(some[-1]) for actor, some in cycles.items() if actor.node is None)
    waits = _Waits(graph.channels, cycles, interval, {node: plan[node].depths for node in plan.graph.nodes})
    processes: dict[Node, list[Actor]] = {}
    for actor in graph.actors:
        if actor.node is not None:
            processes.setdefault(actor.node, []).append(actor)
    spans = {
        actor: _Span.of(actor, cycles[actor], int(before[actor][-1]) if len(frames) > 1 else None)
        for actors in processes.values() for actor in actors
    }
    begin = min((span.start for span in spans.values()), default=zero)
    begin = max(begin, zero - interval)  # what a core does for itself may be long before
    edges = np.linspace(begin, end + 1, bins + 1)
    cores = []
    for node, actors in processes.items():
        longest = max(actors, key=lambda actor: actor.of)
        span = spans[longest]
        starved, blocked = waits.of(longest)
        cores.append(CoreActivity(
            node, min(spans[actor].start for actor in actors) - zero, max(spans[actor].end for actor in actors) - zero,
            longest.of, starved, blocked, span.steps_in(edges),
        ))  # fmt: skip
    queues = () if run.cyclic > 1 else tuple(
        QueueActivity(
            channel.value, plan[channel.node].depths[channel.index],
            _fill(cycles[channel.producer][channel.produces], cycles[channel.consumer][channel.consumes], interval,
                  zero, min(max(1, bins // 2), interval)),
        )
        for channel in graph.channels
    )  # fmt: skip
    return Activity(begin - zero, end - zero, interval, tuple(cores), queues)


@dataclass(frozen=True)
class _Span:
    """The steps of a process over time: ``done[k]`` steps are done at the beginning of cycle ``at[k]``, and steadily
    more between."""

    at: npt.NDArray[np.float64]
    done: npt.NDArray[np.float64]
    start: int
    end: int

    @classmethod
    def of(cls, actor: Actor, cycles: Cycles, before: int | None) -> _Span:
        """Return the span of a process. ``before``: the cycle of the process's last event in the frame before, None
        in the first frame."""
        steps = actor.steps.astype(np.int64)
        lead = int(steps[0])  # steps before the first event: as soon as the frame before is done
        start = int(cycles[0]) - lead if before is None else min(before + 1, int(cycles[0]) - lead)
        ready = np.concatenate(([start + lead], cycles[:-1] + np.diff(steps)))
        at = np.stack((ready, cycles, cycles + 1), axis=1).reshape(-1)
        done = np.stack((steps, steps, steps + 1), axis=1).reshape(-1)
        return cls(
            np.concatenate(([start], at)).astype(np.float64), np.concatenate(([0], done)).astype(np.float64),
            start if lead else int(cycles[0]), int(cycles[-1]),
        )  # fmt: skip

    def steps_in(self, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return how many steps are taken between each two of the ``edges``, which are cycles."""
        result: npt.NDArray[np.float64] = np.diff(np.interp(edges, self.at, self.done))
        return result


class _Waits:
    """For each process the cycles in a frame that it waits for beats, and for room in queues."""

    def __init__(
        self, channels: Sequence[Channel], cycles: dict[Actor, Cycles], interval: int,
        depths: dict[Node, tuple[int, ...]],
    ) -> None:
        self._starved: dict[Actor, npt.NDArray[np.bool_]] = {}
        self._blocked: dict[Actor, npt.NDArray[np.bool_]] = {}
        self._cycles = cycles
        for channel in channels:
            self._note(self._starved, channel.arrivals(), interval)
            depth = depths[channel.node][channel.index]
            if depth > 0:
                self._note(self._blocked, channel.credits(depth), interval)

    def _note(self, table: dict[Actor, npt.NDArray[np.bool_]], arc: Arc, interval: int) -> None:
        """Note the events of an arc's target that come as soon as it lets them."""
        frames, events = np.divmod(arc.events, arc.source.events)
        late = self._cycles[arc.target][arc.targets] == self._cycles[arc.source][events] + frames * interval + arc.lag
        table.setdefault(arc.target, np.zeros(arc.target.events, dtype=np.bool_))[arc.targets[late]] = True

    def of(self, actor: Actor) -> tuple[int, int]:
        """Return the cycles that it is starved, and blocked, between its first and last event."""
        cycles = self._cycles[actor]
        waited = np.diff(cycles) - np.diff(actor.steps.astype(np.int64))
        none = np.zeros(actor.events, dtype=np.bool_)
        starved, blocked = self._starved.get(actor, none)[1:], self._blocked.get(actor, none)[1:]
        return int(waited[starved].sum()), int(waited[blocked & ~starved].sum())


def _fill(given: Cycles, taken: Cycles, interval: int, zero: int, bins: int) -> Steps:
    """Return the most beats at once in each bin of an interval that begins with cycle ``zero``, of a queue whose beats
    of every frame come and go in these cycles, ``interval`` later for each frame; a place is free a cycle after its
    beat has gone."""
    whole, rest = np.divmod(taken + 1 - given, interval)
    first = np.mod(given - zero, interval)
    wrapped = first + rest >= interval
    always = int(whole.sum()) + int(wrapped.sum())  # beats that wrap around are there at the beginning
    ends = np.where(wrapped, first + rest - interval, first + rest)
    changes = np.concatenate((first, ends))
    by = np.concatenate((np.ones(len(first), np.int64), -np.ones(len(ends), np.int64)))
    order = np.lexsort((by, changes))  # who leaves in a cycle is gone before who comes
    at, level = changes[order], always + np.cumsum(by[order])
    bounds = np.arange(bins + 1) * interval // bins
    held = np.concatenate(([always], level))  # held[k]: before change k
    most = held[np.searchsorted(at, bounds[:-1], side="right")]
    # of changes in the same cycle only the level after the last of them counts
    final = np.flatnonzero(np.append(at[1:] != at[:-1], True))
    np.maximum.at(most, np.searchsorted(bounds, at[final], side="right") - 1, level[final])
    return most
