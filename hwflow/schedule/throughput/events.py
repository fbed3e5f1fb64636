"""The event graph of a plan: the events of every actor and the arcs between them.

Only steps with dependences matter: these are an actor's *events*, and the last step of a frame always is one. The cost
of any analysis of a schedule is in events, not cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps, Timing, Wait, compact, every
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan


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
        """Return the event numbers of these steps."""
        if self.events == self.of:
            return steps
        found: Steps = np.searchsorted(self.steps, steps)
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
        """Return the arc of the credits of a queue of ``depth`` beats: a beat is produced at least one cycle after the
        beat ``depth`` before it was consumed."""
        events = np.empty(self.beats, dtype=np.int32)
        self.fill_credits(depth, events)
        return Arc(self.consumer, events, self.producer, self.produces, 1)

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
    timings = {node: plan.timing(node) for node in plan.graph.nodes}
    result = EventGraph([], [], [], [])
    produces: dict[Value, tuple[Actor, Steps]] = {}
    consumes: dict[Value, tuple[Actor, Steps]] = {}
    for node, timing in timings.items():
        core = _actors(node, timing)
        for actor, process in zip(core, timing.processes, strict=True):
            for index, steps in process.consumes.items():
                consumes[node.inputs[index]] = (actor, compact(actor.events_at(np.asarray(steps))))
            for index, steps in process.produces.items():
                produces[node.outputs[index]] = (actor, compact(actor.events_at(np.asarray(steps))))
        result.actors += core
        result.waits += _waits(timing, core)
    for port in plan.graph.outputs:
        if port.value in produces:
            beats = compact(every(len(produces[port.value][1])))
            consumes[port.value] = (Actor(None, len(beats), beats), beats)
            result.actors.append(consumes[port.value][0])
    for node, timing in timings.items():
        for index, value in enumerate(node.outputs):
            latency = timing.latency[index]
            result.channels.append(Channel(value, node, index, latency, *produces[value], *consumes[value]))
    result.sources = [Source(*taken) for value, taken in consumes.items() if value not in produces]
    return result


def _actors(node: Node, timing: Timing) -> list[Actor]:
    """Return the actors of a core, one for each process."""
    return [Actor(node, process.steps, _visited(timing, index)) for index, process in enumerate(timing.processes)]


def _waits(timing: Timing, core: list[Actor]) -> list[Arc]:
    """Return the arcs between the actors of a core."""
    arcs = []
    for actor, process in zip(core, timing.processes, strict=True):
        for wait in process.waits:
            steps, needs = distinct_waits(wait)
            source = core[wait.process]
            frame, step = np.divmod(needs, source.of)
            events = frame * source.events + source.events_at(step)
            arcs.append(Arc(source, compact(events), actor, compact(actor.events_at(steps)), wait.lag))
    return arcs


def _visited(timing: Timing, index: int) -> Steps:
    """Return the steps of process ``index`` that have dependences, and the last one."""
    process = timing.processes[index]
    matters = np.zeros(process.steps, dtype=np.bool_)
    matters[-1] = True
    for steps in (*process.consumes.values(), *process.produces.values()):
        matters[np.asarray(steps)] = True
    for wait in process.waits:
        matters[distinct_waits(wait)[0]] = True
    for other in timing.processes:
        for wait in other.waits:
            if wait.process == index:
                matters[wait.need % process.steps] = True
    return compact(np.flatnonzero(matters))


def distinct_waits(wait: Wait) -> tuple[Steps, Steps]:
    """Return the steps that wait for another step than their predecessor does, and the steps waited for."""
    places = np.flatnonzero(np.diff(wait.need, prepend=wait.need[0] - 1))
    return places * wait.steps, wait.need[places]
