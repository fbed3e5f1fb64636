"""Compute the exact cycle of every event of a self-timed design, frame after frame, from its first one on.

A design is a timed event graph with finite buffers (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity,
1992, section 2.5): each event comes as soon as what it waits for allows. Once all that a frame depends on comes a
constant later than for the frame before, so does everything after it. Only steps that others depend on, or that depend
on others, are visited: the cost grows with beats, not with cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps
from hwflow.errors import Finding, InternalError
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.events import Actor, EventGraph, event_graph
from hwflow.schedule.throughput.firing import NEVER, Firing


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


def evaluate(plan: Plan, frames: int, graph: EventGraph | None = None) -> Run:
    """Run ``frames`` frames of a plan. ``graph``: its event graph, where that is known.

    Raises :class:`InternalError` naming the cores if it deadlocks."""
    graph = graph or event_graph(plan)
    depths = {channel: plan[channel.node].depths[channel.index] for channel in graph.channels}
    # A queue that holds all frames never gets full.
    firing = Firing(graph, {channel: depth for channel, depth in depths.items() if depth < frames * channel.beats})
    number = {actor: n for n, actor in enumerate(graph.actors)}
    takers = {channel.value: (number[channel.taker], channel.takes) for channel in graph.channels}
    outputs = [takers[port.value] for port in plan.graph.outputs if port.value in takers]
    found: list[list[Steps]] = [[] for _ in outputs]
    for actor, history, cycles in zip(graph.actors, firing.history, firing.cycles, strict=True):
        history[:], cycles[:] = NEVER, actor.steps
    for frame in range(frames):
        _, stuck = firing.fire(range(len(graph.actors)))
        if stuck:
            raise _deadlock([graph.actors[n] for n in stuck])
        for (taker, takes), beats in zip(outputs, found, strict=True):
            beats.append(firing.cycles[taker][takes])
        delay = _repeats(firing, frame)
        if delay is not None:
            for beats in found:
                beats += [beats[-1] + later * delay for later in range(1, frames - frame)]
            break
        for history, cycles in zip(firing.history, firing.cycles, strict=True):
            history[: -len(cycles)] = history[len(cycles) :].copy()
            cycles[:] = NEVER
    return Run(tuple(np.array(beats) for beats in found))


def _repeats(firing: Firing, frame: int) -> int | None:
    """Return by how many cycles all that the next frame can depend on is later than what the present one could depend
    on, if that is the same for all: so much later it is then, and all that follow. ``frame``: number of the present
    one."""
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
    return InternalError(
        Finding(
            "no-deadlock",
            f"cores {', '.join(owners)}",
            "queues must be deep enough for every beat to move on, not so small that the cores wait for each other",
            "report this model as a defect of hwflow",
        )
    )
