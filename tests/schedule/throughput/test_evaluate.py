"""The scheduler's timing against a second implementation: processes and queues, simulated cycle by cycle."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.cores.operator import Decision
from hwflow.cores.timing import Process, Timing
from hwflow.errors import InternalError
from hwflow.ir.graph import Graph, Node, Port, Stage, Value, identity_order
from hwflow.schedule.plan import Plan
from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.throughput import evaluate as subject
from hwflow.schedule.throughput.circuits import circuit_interval
from hwflow.schedule.throughput.events import event_graph
from hwflow.schedule.throughput.periodic import PeriodicSchedule
from tests.schedule.cycles import ANY, LANE, Timed, random_circuit, random_network, simulate
from tests.schedule.throughput.test_periodic import give, moving

pytestmark = pytest.mark.usefixtures("timings_from_attributes")


@pytest.mark.parametrize("seed", range(150))
def test_random_networks(seed: int) -> None:
    plan, frames = random_network(seed), 4
    expected = simulate(plan, frames)
    if expected is None:
        with pytest.raises(InternalError, match="FIFO depths must let every beat move on"):
            subject.evaluate(plan, frames)
        return
    run = subject.evaluate(plan, frames)
    found = [o.reshape(-1).tolist() for o in run.outputs]
    assert found == expected


@pytest.mark.parametrize("seed", range(60))
def test_random_circuits(seed: int) -> None:
    """With state, what needs no input is done before the first beat comes: in so many cycles at the most."""
    plan, frames = random_circuit(seed), 7
    expected = simulate(plan, frames)
    if expected is None:
        with pytest.raises(InternalError, match="FIFO depths must let every beat move on"):
            subject.evaluate(plan, frames)
        return
    run = subject.evaluate(plan, frames)
    assert [o.reshape(-1).tolist() for o in run.outputs] == expected
    assert simulate(plan, frames, run.before) == expected


def test_the_circuits_are_worth_something() -> None:
    """In some of them the circuit is slower than every core, with unbounded queues: as slow as the bound says."""
    bound = 0
    for seed in range(20):
        plan = random_circuit(seed, (99,))
        found = simulate(plan, 60)
        slowest = max(process.steps for node in plan.graph.nodes for process in node.attributes.timing.processes)
        if found is None:
            continue
        beats = len(found[0]) // 60
        last = found[0][beats - 1 :: beats]
        held = len(plan.graph.nodes[0].attributes.timing.processes[1].waits[0].need)
        span = 12  # frames: a multiple of the one to three that a delay holds
        assert held and circuit_interval(plan, 12) == -(-(last[-1] - last[-1 - span]) // span)
        bound += circuit_interval(plan, 12) > slowest
    assert 4 < bound < 20


@pytest.mark.parametrize("seed", range(40))
def test_with_the_least_depths(seed: int) -> None:
    """With queues as short as a schedule of one frame per period needs, where beats wait for credits all the time."""
    frames, (plan, period) = 7, moving(seed)
    schedule = PeriodicSchedule(event_graph(plan), period)
    assert schedule.settle({})
    for channel in schedule.graph.channels:
        shrink_queue(schedule, channel, range(schedule.least(channel), 1 + schedule.backlog(channel)))
        give(plan, channel, schedule.depths[channel])
    run = subject.evaluate(plan, frames, schedule.graph)
    expected = simulate(plan, frames)
    assert expected is not None
    found = [o.reshape(-1).tolist() for o in run.outputs]
    assert found == expected


def test_the_networks_are_worth_something() -> None:
    """Among the seeds: networks that stand still, with several outputs, with joins."""
    plans = [random_network(seed) for seed in range(150)]
    still = sum(simulate(plan, 4) is None for plan in plans)
    graphs = [plan.graph for plan in plans]
    assert 5 <= still <= 100
    assert sum(len(g.outputs) > 1 for g in graphs) >= 30
    assert sum(any(len(n.inputs) > 1 for n in g.nodes) for g in graphs) >= 30


# --- by hand ------------------------------------------------------------------------------------------------------


def planned(inputs: list[Value], outputs: list[Value], depths: dict[Node, tuple[int, ...]]) -> Plan:
    """A plan of nodes with queues of these depths."""
    ports = [[Port(v.name, v, (1,), identity_order((1,))) for v in values] for values in (inputs, outputs)]
    decisions = {node: Decision(LANE, own) for node, own in depths.items()}
    return Plan(Graph("g", Stage.SCHEDULED, *ports, list(depths)), decisions)


def every_step(count: int, latency: int) -> Timing:
    return Timing((Process(count, {0: np.arange(count)}, {0: np.arange(count)}),), (latency,))


def test_one_credit_costs_a_round_trip() -> None:
    """Latency 3: steps at 0, 4, 8: a beat is seen and taken 3 cycles after its step, its credit is back one later."""
    x, y = Value("x", ANY), Value("y", ANY)
    core = Node("core", [x], [y], Timed(every_step(3, 3)))
    run = subject.evaluate(planned([x], [y], {core: (1,)}), 2)
    assert run.outputs[0].tolist() == [[3, 7, 11], [15, 19, 23]]
    assert (run.latency, run.initiation_interval) == (3, 12)


def test_two_outputs_count_the_first_and_the_last_beat_of_all() -> None:
    """One output leaves early, one late: latency is to the first beat of any, a frame ends with the last of all."""
    source, early, late = (Value(n, ANY) for n in ("x", "early", "late"))
    process = Process(4, {0: np.arange(4)}, {0: np.array([0]), 1: np.array([3])})
    node = Node("n", [source], [early, late], Timed(Timing((process,), (1, 5))))
    run = subject.evaluate(planned([source], [early, late], {node: (2, 2)}), 2)
    assert run.latency == 1
    assert run.last_output == (8, 12)
    assert run.initiation_interval == 4


def fork_and_join(first: int, second: int) -> Plan:
    """A join takes 4 beats of its first input, then 4 of its second; the fork makes both beat by beat, into queues of
    these depths."""
    x, a, b, y = (Value(n, ANY) for n in "xaby")
    beats = np.arange(4)
    fork = Timing((Process(4, {0: beats}, {0: beats, 1: beats}),), (1, 1))
    join = Timing((Process(8, {0: beats, 1: beats + 4}, {0: beats + 4}),), (2,))
    depths = {
        Node("the fork", [x], [a, b], Timed(fork)): (first, second),
        Node("the join", [a, b], [y], Timed(join)): (4,),
    }
    return planned([x], [y], depths)


def test_a_fork_whose_branches_need_each_other_stands_still_without_room() -> None:
    """The second branch must hold the 4 beats that come before the first one that is taken."""
    with pytest.raises(InternalError) as raised:
        subject.evaluate(fork_and_join(2, 3), 2)
    (finding,) = raised.value.findings
    assert finding.rule == "no-deadlock"
    assert finding.where == "cores 'the fork', 'the join'"
    assert (
        finding.message
        == "FIFO depths must let every beat move on, not deadlock the cores"
    )
    assert finding.remedy == "report this model as a defect of hwflow"
    assert subject.evaluate(fork_and_join(2, 4), 2).outputs[0].tolist() == [[7, 8, 9, 10], [15, 16, 17, 18]]
