"""The scheduler's timing against a second implementation: processes and queues, simulated cycle by cycle."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from hwflow.errors import InternalError
from hwflow.ir.graph import Graph, Node, Port, Stage, Value, identity_order
from hwflow.ops.timing import Process, Timing, Wait
from hwflow.schedule import evaluate as subject
from hwflow.schedule import events
from hwflow.types import Interval, IntType, TensorType

ANY = TensorType((1, 1), IntType(1, False), Interval(0, 1))


class _Operator:
    """An operator whose nodes carry their timing as an attribute."""

    @staticmethod
    def timing(node: Node, folding: object) -> Timing:
        timing: Timing = node.attributes["timing"]
        return timing


@pytest.fixture(autouse=True)
def timings_from_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "hardware", lambda op: _Operator)


# --- the second implementation ------------------------------------------------------------------------------------


@dataclass
class Queue:
    """Beats between two steps: when each was produced (with latency: when it can be seen) and when it was taken."""

    depth: int
    latency: int
    seen: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    def has_room(self, cycle: int) -> bool:
        freed = len(self.seen) - self.depth  # this beat's credit is the one that beat gave back
        return freed < 0 or (freed < len(self.taken) and self.taken[freed] + 1 <= cycle)

    def has_beat(self, cycle: int) -> bool:
        return len(self.taken) < len(self.seen) and self.seen[len(self.taken)] <= cycle


def simulate(graph: Graph, frames: int) -> list[list[int]] | None:
    """Cycles of every output's beats, or None when everything stands still."""
    queues = {
        v: Queue(n.attributes["depths"][o], n.attributes["timing"].latency[o])
        for n in graph.nodes
        for o, v in enumerate(n.outputs)
    }
    done: dict[tuple[Node, int], list[int]] = {
        (n, k): [] for n in graph.nodes for k in range(len(n.attributes["timing"].processes))
    }
    sinks: dict[Value, list[int]] = {p.value: [] for p in graph.outputs}
    beats = {
        v: sum(len(p.produces.get(o, ())) for p in n.attributes["timing"].processes)
        for n in graph.nodes
        for o, v in enumerate(n.outputs)
    }
    quiet, cycle = 0, 0
    while any(len(taken) < beats[v] * frames for v, taken in sinks.items()):
        moved = []
        for (node, k), steps in done.items():
            process: Process = node.attributes["timing"].processes[k]
            frame, step = divmod(len(steps), process.steps)
            if frame < frames and _may_step(node, process, frame, step, cycle, queues, done):
                moved.append((node, k, step))
        drained = [v for v in sinks if queues[v].has_beat(cycle)]
        for node, k, step in moved:  # everything of one cycle at once
            process = node.attributes["timing"].processes[k]
            done[node, k].append(cycle)
            for index, value in enumerate(node.inputs):
                if value in queues and step in process.consumes.get(index, ()):
                    queues[value].taken.append(cycle)
            for output, value in enumerate(node.outputs):
                if step in process.produces.get(output, ()):
                    queues[value].seen.append(cycle + queues[value].latency)
        for value in drained:
            queues[value].taken.append(cycle)
            sinks[value].append(cycle)
        quiet = 0 if moved or drained else quiet + 1
        if quiet > 20:  # more than any latency or lag
            return None
        cycle += 1
    return [sinks[p.value] for p in graph.outputs]


def _may_step(node, process, frame, step, cycle, queues, done) -> bool:
    for index, value in enumerate(node.inputs):
        if value in queues and step in process.consumes.get(index, ()) and not queues[value].has_beat(cycle):
            return False
    for output, value in enumerate(node.outputs):
        if step in process.produces.get(output, ()) and not queues[value].has_room(cycle):
            return False
    for wait in process.waits:
        other = node.attributes["timing"].processes[wait.process]
        needed = int(wait.need[step]) + frame * other.steps
        times = done[node, wait.process]
        if needed >= 0 and not (needed < len(times) and times[needed] + wait.lag <= cycle):
            return False
    return True


# --- random networks ----------------------------------------------------------------------------------------------


def steps_of(rng: random.Random, count: int, steps: int) -> np.ndarray:
    return np.array(sorted(rng.sample(range(steps), count)), dtype=np.int64)


def random_timing(rng: random.Random, inputs: list[int], outputs: list[int]) -> Timing:
    """Beats a frame of each input and output -> one process, or a writer and a reader that wait for each other."""
    latency = tuple(rng.randrange(1, 8) for _ in outputs)
    if rng.random() < 0.6:
        steps = max([*inputs, *outputs]) + rng.randrange(0, 4)
        consumes = {i: steps_of(rng, n, steps) for i, n in enumerate(inputs)}
        produces = {o: steps_of(rng, n, steps) for o, n in enumerate(outputs)}
        return Timing((Process(steps, consumes, produces),), latency)
    writes, reads = max(inputs) + rng.randrange(0, 3), max(outputs) + rng.randrange(0, 3)
    # The reader follows the writer; the writer is at most `ahead` frames' worth of its own steps in front of it.
    reach = [min(writes - 1, (n + 1) * writes // reads) for n in range(reads)]
    room = rng.randrange(1, writes + 1)
    back = []
    for n in range(writes):
        frame, target = divmod(n - room, writes)
        free = next(r for r in range(reads) if reach[r] > target or r == reads - 1)
        back.append(frame * reads + max(0, free - 1) - rng.randrange(0, 2))
    writer = Process(
        writes,
        {i: steps_of(rng, n, writes) for i, n in enumerate(inputs)},
        {},
        (Wait(1, np.maximum.accumulate(np.array(back, dtype=np.int64)), rng.randrange(1, 3)),),
    )
    reader = Process(
        reads,
        {},
        {o: steps_of(rng, n, reads) for o, n in enumerate(outputs)},
        (Wait(0, np.array(reach, dtype=np.int64), rng.randrange(1, 3)),),
    )
    return Timing((writer, reader), latency)


def random_network(seed: int) -> Graph:
    """Two to five nodes; values that are left over become outputs. Some have forks and joins, some stand still."""
    rng = random.Random(seed)
    source = Value("x", ANY)
    free: list[tuple[Value, int]] = [(source, rng.randrange(1, 7))]
    nodes = []
    for index in range(rng.randrange(2, 6)):
        rng.shuffle(free)
        taken = [free.pop() for _ in range(2 if len(free) > 1 and rng.random() < 0.4 else 1)]
        made = [(Value(f"v{index}_{o}", ANY), rng.randrange(1, 7)) for o in range(rng.choice([1, 1, 2]))]
        timing = random_timing(rng, [n for _, n in taken], [n for _, n in made])
        depths = [rng.choice([1, 2, 3, 8]) for _ in made]
        attributes = {"timing": timing, "depths": depths, "folding": None}
        nodes.append(Node(f"n{index}", "any", [v for v, _ in taken], [v for v, _ in made], attributes))
        free += made
    ports = [Port(v.name, v, (1,), identity_order((1,))) for v, _ in free]
    return Graph("random", Stage.SCHEDULED, [Port("x", source, (1,), identity_order((1,)))], ports, nodes)


@pytest.mark.parametrize("seed", range(150))
def test_random_networks(seed: int) -> None:
    graph, frames = random_network(seed), 4
    expected = simulate(graph, frames)
    if expected is None:
        with pytest.raises(InternalError, match="queues must be deep enough for every beat to move on"):
            subject.evaluate(graph, frames)
        return
    run = subject.evaluate(graph, frames)
    found = [o.reshape(-1).tolist() for o in run.outputs]
    first = min(n for n in found for n in n) - min(
        n for n in expected for n in n
    )  # evaluate counts from the first step
    assert [[c - first for c in o] for o in found] == expected


@pytest.mark.parametrize("patience", [0, 1 << 40], ids=["by steps", "by sweeps"])
@pytest.mark.parametrize("seed", range(60))
def test_each_way_by_itself(seed: int, patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the frames are evaluated by, every cycle is the same."""
    graph, frames = random_network(seed), 7
    expected = simulate(graph, frames)
    if expected is None:
        return  # sweeps would go on for ever
    monkeypatch.setattr(subject, "_PATIENCE", patience)
    monkeypatch.setattr(subject, "_LITTLE_PATIENCE", patience)
    found = [o.reshape(-1).tolist() for o in subject.evaluate(graph, frames).outputs]
    first = min(min(o) for o in found) - min(min(o) for o in expected)
    assert [[c - first for c in o] for o in found] == expected


def test_the_networks_are_worth_something() -> None:
    """Among the seeds: networks that stand still, with several outputs, with joins."""
    graphs = [random_network(seed) for seed in range(150)]
    still = sum(simulate(g, 4) is None for g in graphs)
    assert 5 <= still <= 100
    assert sum(len(g.outputs) > 1 for g in graphs) >= 30
    assert sum(any(len(n.inputs) > 1 for n in g.nodes) for g in graphs) >= 30


# --- by hand ------------------------------------------------------------------------------------------------------


def chain(*nodes: tuple[str, Timing, list[int]]) -> Graph:
    values = [Value(f"v{k}", ANY) for k in range(len(nodes) + 1)]
    made = [
        Node(name, "any", [values[k]], [values[k + 1]], {"timing": timing, "depths": depths, "folding": None})
        for k, (name, timing, depths) in enumerate(nodes)
    ]
    ports = [Port(v.name, v, (1,), identity_order((1,))) for v in (values[0], values[-1])]
    return Graph("chain", Stage.SCHEDULED, ports[:1], ports[1:], made)


def every_step(count: int, latency: int) -> Timing:
    return Timing((Process(count, {0: np.arange(count)}, {0: np.arange(count)}),), (latency,))


def test_one_credit_costs_a_round_trip() -> None:
    """Latency 3: steps at 0, 4, 8: a beat is seen and taken 3 cycles after its step, its credit is back one later."""
    run = subject.evaluate(chain(("core", every_step(3, 3), [1])), 2)
    assert run.outputs[0].tolist() == [[3, 7, 11], [15, 19, 23]]
    assert (run.latency, run.initiation_interval) == (3, 12)


def test_two_outputs_count_the_first_and_the_last_beat_of_all() -> None:
    """One output leaves early, one late: latency is to the first beat of any, a frame ends with the last of all."""
    source, early, late = (Value(n, ANY) for n in ("x", "early", "late"))
    process = Process(4, {0: np.arange(4)}, {0: np.array([0]), 1: np.array([3])})
    node = Node(
        "n", "any", [source], [early, late], {"timing": Timing((process,), (1, 5)), "depths": [2, 2], "folding": None}
    )
    ports = [Port(v.name, v, (1,), identity_order((1,))) for v in (source, early, late)]
    run = subject.evaluate(Graph("g", Stage.SCHEDULED, ports[:1], ports[1:], [node]), 2)
    assert run.latency == 1
    assert run.last_output == (8, 12)
    assert run.initiation_interval == 4


def fork_and_join(first: int, second: int) -> Graph:
    """A join takes 4 beats of its first input, then 4 of its second; the fork makes both beat by beat, into queues of
    these depths."""
    x, a, b, y = (Value(n, ANY) for n in "xaby")
    beats = np.arange(4)
    fork = Timing((Process(4, {0: beats}, {0: beats, 1: beats}),), (1, 1))
    join = Timing((Process(8, {0: beats, 1: beats + 4}, {0: beats + 4}),), (2,))
    nodes = [
        Node("the fork", "any", [x], [a, b], {"timing": fork, "depths": [first, second], "folding": None}),
        Node("the join", "any", [a, b], [y], {"timing": join, "depths": [4], "folding": None}),
    ]
    ports = [Port(v.name, v, (1,), identity_order((1,))) for v in (x, y)]
    return Graph("g", Stage.SCHEDULED, ports[:1], ports[1:], nodes)


def test_a_fork_whose_branches_need_each_other_stands_still_without_room() -> None:
    """The second branch must hold the 4 beats that come before the first one that is taken."""
    with pytest.raises(InternalError) as raised:
        subject.evaluate(fork_and_join(2, 3), 2)
    (finding,) = raised.value.findings
    assert finding.rule == "no-deadlock"
    assert finding.where == "cores 'the fork', 'the join'"
    assert (
        finding.message
        == "queues must be deep enough for every beat to move on, not so small that the cores wait for each other"
    )
    assert finding.remedy == "report this model as a defect of hwflow"
    assert subject.evaluate(fork_and_join(2, 4), 2).outputs[0].tolist() == [[7, 8, 9, 10], [15, 16, 17, 18]]
