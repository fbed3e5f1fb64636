"""The event graph of a plan: the events of every actor, and the arcs by which they wait for each other.

Only steps that others depend on, or that depend on others, matter: these are an actor's *events*, the last step of a
frame always among them. Whatever is computed about a schedule costs as many operations as there are events, not cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwflow.cores.timing import Steps, Timing, Wait, compact, every
from hwflow.ir.graph import Node, Value
from hwflow.schedule.plan import Plan


@dataclass(eq=False)
class Actor:
    """A process of a core: ``of`` steps a frame, of which those in ``steps`` (ascending) are events. ``node`` is None
    for what takes the beats of an output."""

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
        """Return which events these steps are."""
        if self.events == self.of:
            return steps
        found: Steps = np.searchsorted(self.steps, steps)
        return found


@dataclass(eq=False)
class Arc:
    """Event ``targets[k]`` of an actor is not before event ``events[k]`` of ``source`` was ``lag`` cycles ago.

    Both ascend. ``events`` are relative to the frame: negative ones are of frames before.
    """

    source: Actor
    events: Steps
    target: Actor
    targets: Steps
    lag: int


@dataclass(eq=False)
class Channel:
    """The queue of a value: event ``makes[b]`` of ``maker`` makes beat b of a frame, which event ``takes[b]`` of
    ``taker`` may take ``latency`` cycles later. Output ``index`` of ``node``."""

    value: Value
    node: Node
    index: int
    latency: int
    maker: Actor
    makes: Steps
    taker: Actor
    takes: Steps

    @property
    def beats(self) -> int:
        return len(self.makes)

    def arrivals(self) -> Arc:
        """Return the arc of beats: each is taken when it is there."""
        return Arc(self.maker, self.makes, self.taker, self.takes, self.latency)

    def credits(self, depth: int) -> Arc:
        """Return the arc of the credits of a queue of ``depth`` beats: one more is made the cycle after its oldest was
        taken at the earliest."""
        events = np.empty(self.beats, dtype=np.int32)
        self.fill_credits(depth, events)
        return Arc(self.taker, events, self.maker, self.makes, 1)

    def fill_credits(self, depth: int, events: Steps) -> None:
        """Write the events that :meth:`credits` waits for."""
        frames, beats = divmod(depth, self.beats)
        events[:beats] = self.takes[self.beats - beats :] - np.int64((frames + 1) * self.taker.events)
        events[beats:] = self.takes[: self.beats - beats] - np.int64(frames * self.taker.events)


@dataclass(eq=False)
class Source:
    """A graph input: event ``takes[b]`` of ``taker`` takes beat b of a frame."""

    taker: Actor
    takes: Steps


@dataclass
class EventGraph:
    """Everything that the timing of a plan consists of. ``waits``: of a core's processes for each other."""

    actors: list[Actor]
    waits: list[Arc]
    channels: list[Channel]
    sources: list[Source]


def event_graph(plan: Plan) -> EventGraph:
    """Return the event graph of a plan whose depths may be open."""
    timings = {node: plan.timing(node) for node in plan.graph.nodes}
    result = EventGraph([], [], [], [])
    makes: dict[Value, tuple[Actor, Steps]] = {}
    takes: dict[Value, tuple[Actor, Steps]] = {}
    for node, timing in timings.items():
        core = _actors(node, timing)
        for actor, process in zip(core, timing.processes, strict=True):
            for index, steps in process.consumes.items():
                takes[node.inputs[index]] = (actor, compact(actor.events_at(steps)))
            for index, steps in process.produces.items():
                makes[node.outputs[index]] = (actor, compact(actor.events_at(steps)))
        result.actors += core
        result.waits += _waits(timing, core)
    for port in plan.graph.outputs:
        if port.value in makes:
            beats = compact(every(len(makes[port.value][1])))
            takes[port.value] = (Actor(None, len(beats), beats), beats)
            result.actors.append(takes[port.value][0])
    for node, timing in timings.items():
        for index, value in enumerate(node.outputs):
            latency = timing.latency[index]
            result.channels.append(Channel(value, node, index, latency, *makes[value], *takes[value]))
    result.sources = [Source(*taken) for value, taken in takes.items() if value not in makes]
    return result


def _actors(node: Node, timing: Timing) -> list[Actor]:
    """Return the actors of a core: its processes."""
    return [Actor(node, process.steps, _visited(timing, index)) for index, process in enumerate(timing.processes)]


def _waits(timing: Timing, core: list[Actor]) -> list[Arc]:
    """Return the arcs between the actors of a core."""
    arcs = []
    for actor, process in zip(core, timing.processes, strict=True):
        for wait in process.waits:
            steps, needs = new_waits(wait)
            source = core[wait.process]
            frame, step = np.divmod(needs, source.of)
            events = frame * source.events + source.events_at(step)
            arcs.append(Arc(source, compact(events), actor, compact(actor.events_at(steps)), wait.lag))
    return arcs


def _visited(timing: Timing, index: int) -> Steps:
    """Return the steps of process ``index`` that depend on others or that others depend on, and the last one."""
    process = timing.processes[index]
    matters = np.zeros(process.steps, dtype=np.bool_)
    matters[-1] = True
    for steps in (*process.consumes.values(), *process.produces.values(), *(new_waits(w)[0] for w in process.waits)):
        matters[steps] = True
    for other in timing.processes:
        for wait in other.waits:
            if wait.process == index:
                matters[wait.need % process.steps] = True
    return compact(np.flatnonzero(matters))


def new_waits(wait: Wait) -> tuple[Steps, Steps]:
    """Return the steps that wait for another step than the one before them did, and for which."""
    places = np.flatnonzero(np.diff(wait.need, prepend=wait.need[0] - 1))
    return places * wait.steps, wait.need[places]
