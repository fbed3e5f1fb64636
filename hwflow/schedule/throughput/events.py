"""The event graph of a plan: the events of every actor and the arcs between them.

Only steps with dependences matter: these are an actor's *events*, and the last step of a frame always is one. The cost
of any analysis of a schedule is in events, not cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps, compact, every
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.dependences import ROOM, Dependences, Numbered, Side


@dataclass(eq=False)
class Actor:
    """A process of a core with ``of`` steps per frame, of which those in ``steps`` (ascending) are events. ``node`` is
    None for the consumer of a graph output."""

    node: Node | None
    of: int
    steps: Steps

    @property
    def owner(self) -> str:
        return self.node.name if self.node else ""

    @property
    def events(self) -> int:
        return len(self.steps)

    def events_at(self, steps: Steps) -> Steps:
        """Return the event numbers of these steps; negative ones are of earlier frames."""
        if self.events == self.of:
            return steps
        frame, step = np.divmod(steps, self.of)
        found: Steps = frame * self.events + np.searchsorted(self.steps, step)
        return found


@dataclass(eq=False)
class Arc:
    """Event ``targets[k]`` of ``target`` fires at least ``lag`` cycles after event ``events[k]`` of ``source``.

    Both ascend. ``events`` are relative to the frame: negative ones are of earlier frames.
    """

    source: Actor
    events: Steps
    target: Actor
    targets: Steps
    lag: int


@dataclass(eq=False)
class Channel:
    """The queue of a value, output ``index`` of ``node``: event ``produces[b]`` of ``producer`` produces beat b of a
    frame, and event ``consumes[b]`` of ``consumer`` may consume it ``latency`` cycles later."""

    value: Value
    node: Node
    index: int
    latency: int
    producer: Actor
    produces: Steps
    consumer: Actor
    consumes: Steps

    @property
    def beats(self) -> int:
        return len(self.produces)

    def arrivals(self) -> Arc:
        """Return the arc of beats: each is consumed once it has arrived."""
        return Arc(self.producer, self.produces, self.consumer, self.consumes, self.latency)

    def credits(self, depth: int) -> Arc:
        """Return the arc of the credits of a queue: each beat takes the place of the one ``depth`` before it."""
        events = np.empty(self.beats, dtype=np.int32)
        self.fill_credits(depth, events)
        return Arc(self.consumer, events, self.producer, self.produces, ROOM)

    def fill_credits(self, depth: int, events: Steps) -> None:
        """Write the source events of :meth:`credits` to ``events``."""
        frames, beats = divmod(depth, self.beats)
        events[:beats] = self.consumes[self.beats - beats :] - np.int64((frames + 1) * self.consumer.events)
        events[beats:] = self.consumes[: self.beats - beats] - np.int64(frames * self.consumer.events)


@dataclass(eq=False)
class Source:
    """A graph input: event ``consumes[b]`` of ``consumer`` consumes beat b of a frame."""

    consumer: Actor
    consumes: Steps


@dataclass
class EventGraph:
    """All actors and dependences of a plan. ``waits``: the arcs between processes of one core."""

    actors: list[Actor]
    waits: list[Arc]
    channels: list[Channel]
    sources: list[Source]


def event_graph(plan: Plan) -> EventGraph:
    """Return the event graph of a plan, whose depths may be open."""
    depends = Dependences(plan)
    actors: dict[Numbered, Actor] = {}
    for node in plan.graph.nodes:
        actors |= _actors(node, depends)
    for value, process in depends.ends.items():
        beats = compact(every(len(depends.made(value).steps)))
        actors[process] = Actor(None, len(beats), beats)

    def events(side: Side) -> tuple[Actor, Steps]:
        actor = actors[side.process]
        return actor, compact(actor.events_at(np.asarray(side.steps)))

    waits = [
        Arc(*events(each.before), *events(each.after), each.lag)
        for node in plan.graph.nodes for each in depends.of_core(node)
    ]
    channels = [
        Channel(value, node, index, each.lag, *events(each.before), *events(each.after))
        for value, (node, index) in depends.producers.items() for each in depends.of_queue(value)
    ]
    inputs = [value for value in depends.consumers if value not in depends.producers]
    sources = [Source(*events(depends.taken(value))) for value in inputs]
    return EventGraph([*actors.values()], waits, channels, sources)


def _actors(node: Node, depends: Dependences) -> dict[Numbered, Actor]:
    """Return the actors of a core, one for each process. Their events are the steps that have dependences, and the last
    one."""
    processes = depends.timing(node).processes
    matters = [np.zeros(process.steps, dtype=np.bool_) for process in processes]
    for process, own in zip(processes, matters, strict=True):
        own[-1] = True
        for steps in (*process.consumes.values(), *process.produces.values()):
            own[np.asarray(steps)] = True
    for each in depends.of_core(node):
        for side in (each.before, each.after):
            own = matters[side.process[1]]
            own[np.asarray(side.steps) % len(own)] = True
    return {(node, k): Actor(node, len(own), compact(np.flatnonzero(own))) for k, own in enumerate(matters)}
