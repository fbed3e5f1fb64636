"""Simulate self-timed execution: compute the exact cycle of every event, frame after frame, from the first one on.

A design is a timed event graph with finite buffers (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity,
1992, section 2.5): each event fires as soon as its dependences allow. Once everything that a frame depends on is a
constant number of cycles later than for the frame before, the run repeats. Only steps with dependences are visited: the
cost grows with beats, not with cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps
from hwflow.errors import InternalError
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.events import Actor, EventGraph, event_graph
from hwflow.schedule.throughput.firing import NEVER, Cycles, Firing

Observe = Callable[[Sequence[Cycles]], None]
"""Takes the cycles of each actor's events in a frame, views of what the next frame overwrites."""


@dataclass(frozen=True)
class Run:
    """The output cycles of a full-rate run: source and sink are always ready from cycle 0 on, that of the first input
    beat.

    ``outputs``: for each graph output the cycle of every beat's handshake, [frames, beats]. Unless ``exact``, the
    cycles are upper bounds and the interval is that of the steady state. ``before``: cycles between reset and the first
    input beat in which hardware does what does not depend on inputs: with state, reading it and what follows.
    ``cyclic``: the number of frames after which the intervals between them repeat, once they do: more than one where a
    circuit of so many frames limits them.
    """

    outputs: tuple[Steps, ...]
    exact: bool = True
    before: int = 0
    cyclic: int = 1

    @property
    def first_output(self) -> tuple[int, ...]:
        """Return the cycle of each frame's first beat on any output."""
        return tuple(int(c) for c in np.min([o[:, 0] for o in self.outputs], axis=0))

    @property
    def last_output(self) -> tuple[int, ...]:
        """Return the cycle by which each frame's last beat has left every output."""
        return tuple(int(c) for c in np.max([o[:, -1] for o in self.outputs], axis=0))

    @property
    def latency(self) -> int:
        """Return the cycles from the first input beat to the first output beat of the first frame."""
        return self.first_output[0]

    @property
    def initiation_interval(self) -> int:
        """Return the cycles between the last beats of the last two frames; where intervals differ, their mean, rounded
        up."""
        last = self.last_output
        return -((last[-1 - self.cyclic] - last[-1]) // self.cyclic)


def evaluate(
    plan: Plan, frames: int, graph: EventGraph | None = None, cyclic: int = 1, observe: Observe | None = None
) -> Run:
    """Run ``frames`` frames of a plan. ``graph``: its event graph, if already built; ``cyclic``: as of a :class:`Run`.
    ``observe``: called after each frame until they repeat.

    Raises :class:`InternalError` naming the cores if they deadlock.
    """
    graph = graph or event_graph(plan)
    depths = {channel: plan[channel.node].depths[channel.index] for channel in graph.channels}
    # A queue that holds all frames never fills.
    firing = Firing(graph, {channel: depth for channel, depth in depths.items() if depth < frames * channel.beats})
    number = {actor: n for n, actor in enumerate(graph.actors)}
    consumers = {channel.value: (number[channel.consumer], channel.consumes) for channel in graph.channels}
    outputs = [consumers[port.value] for port in plan.graph.outputs if port.value in consumers]
    found: list[list[Steps]] = [[] for _ in outputs]
    for history in firing.history:
        history[:] = NEVER
    for source in graph.sources:  # what needs neither inputs nor outputs is done before the first beat
        firing.cycles[number[source.consumer]][source.consumes] = 0
    for consumer, _ in outputs:
        firing.cycles[consumer][:] = 0
    before = 0
    for frame in range(frames):
        _, stuck = firing.fire(range(len(graph.actors)))
        if stuck:
            raise _deadlock([graph.actors[n] for n in stuck])
        if observe is not None:
            observe(firing.cycles)
        before = max([before, *(_before(cycles) for cycles in firing.cycles)])
        for (consumer, consumes), beats in zip(outputs, found, strict=True):
            beats.append(firing.cycles[consumer][consumes])
        delay = _repeats(firing, frame)
        if delay is not None:
            for beats in found:
                beats += [beats[-1] + later * delay for later in range(1, frames - frame)]
            break
        for history, cycles in zip(firing.history, firing.cycles, strict=True):
            history[: -len(cycles)] = history[len(cycles) :].copy()
            cycles[:] = NEVER
    if before:  # until what comes of the last event is there
        before += max(arc.lag for arc in [*graph.waits, *(channel.arrivals() for channel in graph.channels)])
    return Run(tuple(np.array(beats) for beats in found), before=before, cyclic=cyclic)


def _before(cycles: Steps) -> int:
    """Return how many cycles after the start an actor's last event without any input is, 0 if there is none."""
    if cycles[0] > NEVER // 2:
        return 0
    return int(cycles[np.searchsorted(cycles, NEVER // 2) - 1]) - NEVER


def _repeats(firing: Firing, frame: int) -> int | None:
    """Return by how many cycles every event that the next frame can depend on is later than one frame before, or None
    unless that is the same for all. From then on every frame is later by that much. ``frame``: the number of the
    present frame."""
    delays = set()
    for history, cycles in zip(firing.history, firing.cycles, strict=True):
        delays.add(int(history[-1] - history[-1 - len(cycles)]))
        if len(delays) > 1 or (frame + 1) * len(cycles) < len(history):
            return None
    (delay,) = delays
    pairs = zip(firing.history, firing.cycles, strict=True)
    same = all((history[len(now) :] == history[: -len(now)] + delay).all() for history, now in pairs)
    return delay if same else None


def _deadlock(stuck: list[Actor]) -> InternalError:
    owners = dict.fromkeys(repr(actor.owner) for actor in stuck if actor.owner)
    return InternalError.of(
        "no-deadlock",
        f"cores {', '.join(owners)}",
        "FIFO depths must let every beat move on, not deadlock the cores",
        "report this model as a defect of hwflow",
    )
