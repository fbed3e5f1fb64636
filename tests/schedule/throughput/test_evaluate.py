"""The scheduler's timing against a second implementation: processes and queues, simulated cycle by cycle."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.cores.timing import Process, Timing
from hwflow.errors import InternalError
from hwflow.ir.graph import Graph, Node, Port, Stage, Value, identity_order
from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.throughput import evaluate as subject
from hwflow.schedule.throughput import event_order
from hwflow.schedule.throughput.groups import Wait
from hwflow.schedule.throughput.steady import Steady
from tests.schedule.cycles import ANY, random_network, simulate
from tests.schedule.throughput.test_steady import moving

pytestmark = pytest.mark.usefixtures("timings_from_attributes")


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


@pytest.mark.parametrize("events", [1, 7, 1 << 11])
@pytest.mark.parametrize("seed", range(40))
def test_by_windows(seed: int, events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With queues as short as a schedule of one frame a period needs, in windows of any size."""
    frames, (graph, period) = 7, moving(seed)
    steady = Steady(graph, period)
    assert steady.settle()
    for channel in steady.events.channels:
        shrink_queue(steady, channel, steady.least(channel), None)
        channel.node.attributes["depths"][channel.index] = steady.depths[channel]
    monkeypatch.setattr(subject, "_SOME_PATIENCE", 0)
    monkeypatch.setattr(subject, "_LITTLE_PATIENCE", 0)
    monkeypatch.setattr(event_order, "_EVENTS", events)
    monkeypatch.delattr(subject.Network, "_by_steps")
    run = subject.evaluate(graph, frames, steady.events, steady.cycles())
    expected = simulate(graph, frames)
    assert expected is not None
    found = [o.reshape(-1).tolist() for o in run.outputs]
    first = min(min(o) for o in found) - min(min(o) for o in expected)
    assert [[c - first for c in o] for o in found] == expected


def test_windows_need_a_schedule_that_is_possible() -> None:
    """Two events that wait for each other."""
    at, step = [np.array([0])] * 2, [np.array([0])] * 2
    waits = [Wait(a, 1 - a, np.array([0]), np.array([0]), np.array([1])) for a in (0, 1)]
    with pytest.raises(ValueError, match="must be those of a schedule that the waits allow"):
        event_order.Windows(at, step, waits).solve(at)


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
