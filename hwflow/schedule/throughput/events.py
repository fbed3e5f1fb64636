"""What the timings of a scheduled graph's cores say about each other: the events of every process, and which wait for
which.

Only steps that others depend on, or that depend on others, matter: these are a process's *events*, the last step of a
frame always among them. Whatever is computed about a schedule costs as many operations as there are events, not cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwflow.cores.registry import hardware
from hwflow.cores.timing import Steps, Timing, Wait, compact, every
from hwflow.ir.graph import Graph, Node, Value

ROUND_TRIPS = 3  # sweeps of a process after which the loops through its queues are looked at by themselves


@dataclass(eq=False)
class Track:
    """A process: ``of`` steps a frame, of which those in ``steps`` (ascending) are events. ``node`` is None for what
    takes the beats of an output."""

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
        """Which events these steps are."""
        if self.events == self.of:
            return steps
        found: Steps = np.searchsorted(self.steps, steps)
        return found


@dataclass(eq=False)
class Order:
    """Event ``targets[k]`` of a process is not before event ``events[k]`` of ``source`` was ``lag`` cycles ago.

    Both ascend. ``events`` are relative to the frame: negative ones are of frames before.
    """

    source: Track
    events: Steps
    target: Track
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
    maker: Track
    makes: Steps
    taker: Track
    takes: Steps

    @property
    def beats(self) -> int:
        return len(self.makes)

    @property
    def depth(self) -> int:
        return int(self.node.attributes["depths"][self.index])

    def arrivals(self) -> Order:
        return Order(self.maker, self.makes, self.taker, self.takes, self.latency)

    def credits(self, depth: int) -> Order:
        """A queue of ``depth`` beats: one more is made the cycle after its oldest was taken at the earliest."""
        frame, beat = np.divmod(np.arange(self.beats) - depth, self.beats)
        return Order(self.taker, frame * self.taker.events + self.takes[beat], self.maker, self.makes, 1)


@dataclass(eq=False)
class Source:
    """A graph input: event ``takes[b]`` of ``taker`` takes beat b of a frame."""

    taker: Track
    takes: Steps


@dataclass
class Events:
    """Everything that a scheduled graph's timing consists of."""

    tracks: list[Track]
    waits: list[Order]
    channels: list[Channel]
    sources: list[Source]


def events_of(graph: Graph) -> Events:
    """The events of a graph whose nodes have a folding."""
    timings = {n: hardware(n.op).timing(n, n.attributes["folding"]) for n in graph.nodes}
    result = Events([], [], [], [])
    makes: dict[Value, tuple[Track, Steps]] = {}
    takes: dict[Value, tuple[Track, Steps]] = {}
    for node, timing in timings.items():
        core = tracks_of(node, timing)
        for track, process in zip(core, timing.processes, strict=True):
            for index, steps in process.consumes.items():
                takes[node.inputs[index]] = (track, compact(track.events_at(steps)))
            for index, steps in process.produces.items():
                makes[node.outputs[index]] = (track, compact(track.events_at(steps)))
        result.tracks += core
        result.waits += waits_of(timing, core)
    for port in graph.outputs:
        if port.value in makes:
            beats = compact(every(len(makes[port.value][1])))
            takes[port.value] = (Track(None, len(beats), beats), beats)
            result.tracks.append(takes[port.value][0])
    for node, timing in timings.items():
        for index, value in enumerate(node.outputs):
            latency = timing.latency[index]
            result.channels.append(Channel(value, node, index, latency, *makes[value], *takes[value]))
    result.sources = [Source(*taken) for value, taken in takes.items() if value not in makes]
    return result


def tracks_of(node: Node, timing: Timing) -> list[Track]:
    """The processes of a core."""
    return [Track(node, process.steps, _visited(timing, index)) for index, process in enumerate(timing.processes)]


def waits_of(timing: Timing, core: list[Track]) -> list[Order]:
    """How the processes of a core wait for each other."""
    orders = []
    for track, process in zip(core, timing.processes, strict=True):
        for wait in process.waits:
            steps, needs = new_waits(wait)
            source = core[wait.process]
            frame, step = np.divmod(needs, source.of)
            events = frame * source.events + source.events_at(step)
            orders.append(Order(source, compact(events), track, compact(track.events_at(steps)), wait.lag))
    return orders


def _visited(timing: Timing, index: int) -> Steps:
    """The steps of process ``index`` that depend on others or that others depend on, and the last one."""
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
    """Steps that wait for another step than the one before them did, and for which."""
    places = np.flatnonzero(np.diff(wait.need, prepend=wait.need[0] - 1))
    return places * wait.steps, wait.need[places]
