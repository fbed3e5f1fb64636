"""Whether depths sustain an interval: the verdict of periodic schedules against networks simulated cycle by cycle."""

from __future__ import annotations

import random
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.cores.operator import Decision
from hwflow.cores.timing import Process, Timing
from hwflow.ir.graph import Graph, Node, Port, Stage, Value, identity_order
from hwflow.schedule.plan import Plan
from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.throughput.events import Arc, Channel, event_graph
from hwflow.schedule.throughput.firing import Cycles, Firing
from hwflow.schedule.throughput.periodic import PeriodicSchedule
from tests.schedule.cycles import ANY, LANE, Timed, random_chain, random_network, simulate

pytestmark = pytest.mark.usefixtures("timings_from_attributes")


DEEP = 1 << 20  # beats: a queue that never gets full
FRAMES, CYCLE = 36, 24  # all that happens repeats itself after a few frames, of a number that divides 24
SEEDS = range(40)


def pace(plan: Plan) -> float:
    """Cycles per frame in the long run; infinite if the network stands still."""
    found = simulate(plan, FRAMES)
    if found is None:
        return float("inf")
    ends = [beats[len(beats) // FRAMES - 1 :: len(beats) // FRAMES] for beats in found]
    return max((end[-1] - end[-1 - CYCLE]) / CYCLE for end in ends)


def roomy(seed: int) -> Plan:
    """A random network with queues as deep as they like."""
    plan = random_network(seed)
    for node in plan.graph.nodes:
        plan[node] = replace(plan[node], depths=(DEEP,) * len(node.outputs))
    return plan


def moving(seed: int) -> tuple[Plan, int]:
    """The same, of those that do not stand still, and an interval that it can keep."""
    while (rate := pace(plan := roomy(seed))) == float("inf"):
        seed += 1000
    return plan, max(slowest(plan), ceil(rate))


def slowest(plan: Plan) -> int:
    steps: int = max(process.steps for node in plan.graph.nodes for process in node.attributes.timing.processes)
    return steps


def give(plan: Plan, channel: Channel, depth: int) -> int:
    """A queue this depth, for the simulation; what it was."""
    depths = list(plan[channel.node].depths)
    before, depths[channel.index] = depths[channel.index], depth
    plan[channel.node] = replace(plan[channel.node], depths=tuple(depths))
    return before


@pytest.mark.parametrize("seed", SEEDS)
def test_queues_as_deep_as_they_like(seed: int) -> None:
    """A core's processes may still hold each other up."""
    plan = roomy(seed)
    rate = pace(plan)
    for period in range(slowest(plan), slowest(plan) + 4):
        assert PeriodicSchedule(event_graph(plan), period).settle({}) == (rate <= period)


def verdicts(seed: int) -> list[tuple[bool, bool]]:
    """Of depths drawn at random, for one queue after the other: whether they are taken, and whether hardware keeps the
    interval with them."""
    rng, (plan, least) = random.Random(seed), moving(seed)
    period = least + rng.choice([0, 0, 1, 3])
    schedule = PeriodicSchedule(event_graph(plan), period)
    assert schedule.settle({})
    found = []
    for _ in range(2):
        for channel in rng.sample(schedule.graph.channels, len(schedule.graph.channels)):
            depth = rng.randrange(1, 2 + min(2 * channel.beats, schedule.backlog(channel)))
            before = give(plan, channel, depth)
            keeps = pace(plan) <= period
            found.append((schedule.shrink(channel, depth), keeps))
            assert not keeps or depth >= schedule.least(channel)
            if found[-1] == (keeps, keeps):
                assert schedule.depths.get(channel, DEEP) == (depth if keeps else before)
            if not keeps:
                give(plan, channel, before)
    return found


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(0, 1 << 32))
def test_one_queue_after_the_other(seed: int) -> None:
    """Depths that cost interval are refused, all others are not."""
    assert all(taken == keeps for taken, keeps in verdicts(seed))


def _credits_at_once(channel: Channel, depth: int) -> Arc:
    return replace(_CREDITS(channel, depth), lag=0)


def _frames_before_unchanged(schedule: PeriodicSchedule, number: int, cycles: Cycles) -> None:
    schedule._firing.cycles[number][:] = cycles


_CREDITS = Channel.credits


@pytest.mark.parametrize(
    ("subject", "name", "broken"),
    [(Channel, "credits", _credits_at_once), (PeriodicSchedule, "_put", _frames_before_unchanged)],
)
def test_a_broken_twin_is_refuted(subject: type, name: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credits that are back in the cycle in which a beat is taken; frames that do not follow each other."""
    monkeypatch.setattr(subject, name, broken)
    assert any(taken > keeps for seed in range(20) for taken, keeps in verdicts(seed))


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 3))
def test_all_depths_at_once(seed: int, slack: int) -> None:
    """As they are drawn with the network."""
    plan = random_network(seed)
    period = slowest(plan) + slack
    schedule = PeriodicSchedule(event_graph(plan), period)
    depths = {channel: plan[channel.node].depths[channel.index] for channel in schedule.graph.channels}
    assert schedule.settle(depths) == (pace(plan) <= period)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_schedule_needs_is_enough(seed: int) -> None:
    """Every queue at its backlog, all at once."""
    plan, period = moving(seed)
    schedule = PeriodicSchedule(event_graph(plan), period)
    assert schedule.settle({})
    needed = {channel: schedule.backlog(channel) for channel in schedule.graph.channels}
    for channel, depth in needed.items():
        assert schedule.shrink(channel, depth)
        assert schedule.backlog(channel) <= depth
        give(plan, channel, depth)
    assert pace(plan) <= period


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_depth(seed: int) -> None:
    """It keeps the interval and an entry less does not."""
    rng, (plan, least) = random.Random(seed), moving(seed)
    period = least + rng.choice([0, 0, 2])
    schedule = PeriodicSchedule(event_graph(plan), period)
    assert schedule.settle({})
    for channel in rng.sample(schedule.graph.channels, len(schedule.graph.channels)):
        low = schedule.least(channel)
        shrink_queue(schedule, channel, range(low, 1 + schedule.backlog(channel)))
        depth = schedule.depths[channel]
        assert depth >= low
        if depth > 1:
            give(plan, channel, depth - 1)
            assert pace(plan) > period
        give(plan, channel, depth)
        assert pace(plan) <= period


def test_the_networks_are_worth_something() -> None:
    """A queue of two entries among deep ones costs interval in many and does not in many others."""
    kept = []
    for seed in SEEDS[:20]:
        plan, period = moving(seed)
        for channel in event_graph(plan).channels:
            before = give(plan, channel, 2)
            kept.append(pace(plan) <= period)
            give(plan, channel, before)
    assert 10 <= sum(kept) <= len(kept) - 10


# --- long chains ---------------------------------------------------------------------------------------------------


def settled(plan: Plan, period: int, depths: dict[str, int]) -> PeriodicSchedule | None:
    """The schedule with these depths, by the values' names, found in one go."""
    schedule = PeriodicSchedule(event_graph(plan), period)
    found = {channel: depths[channel.value.name] for channel in schedule.graph.channels if channel.value.name in depths}
    return schedule if schedule.settle(found) else None


def cycles_of(schedule: PeriodicSchedule) -> list[list[int]]:
    return [schedule._cycles(actor).tolist() for actor in schedule.graph.actors]


def least_period(plan: Plan) -> int:
    """Of a network that does not stand still."""
    period = slowest(plan)
    while settled(plan, period, {}) is None:
        period += 1
    return period


def stays_earliest(seed: int, plan: Plan, period: int) -> bool:
    """Shrink some queues in any order; whether the schedule is the one that is found in one go for their depths."""
    rng, schedule = random.Random(seed), settled(plan, period, {})
    assert schedule is not None
    for channel in rng.choices(schedule.graph.channels, k=6):
        schedule.shrink(channel, rng.randrange(1, 1 + schedule.backlog(channel)))
    earliest = settled(plan, period, {each.value.name: depth for each, depth in schedule.depths.items()})
    assert earliest is not None
    return cycles_of(schedule) == cycles_of(earliest)


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_what_moves_as_a_whole(seed: int) -> None:
    """It is where it would have been fired."""
    plan = random_chain(seed, 6)
    assert stays_earliest(seed, plan, least_period(plan) + seed % 3)
    assert stays_earliest(seed, *moving(seed))


def diamond() -> Plan:
    """Two ways of busy nodes, the second one longer: a, then b, then their sum."""
    x, y, z, a, b, out = (Value(name, ANY) for name in ("x", "y", "z", "a", "b", "out"))

    def node(name: str, inputs: list[Value], outputs: list[Value], latency: int) -> Node:
        consumes, produces = (dict.fromkeys(range(len(values)), np.arange(4)) for values in (inputs, outputs))
        return Node(name, inputs, outputs, Timed(Timing((Process(4, consumes, produces),), (latency,) * len(outputs))))

    nodes = [node("fork", [x], [y, z], 1), node("a", [y], [a], 1), node("b", [z], [b], 9)]
    nodes.append(node("sum", [a, b], [out], 1))
    ends = ([Port(value.name, value, (1,), identity_order((1,)))] for value in (x, out))
    decisions = {each: Decision(LANE, (DEEP,) * len(each.outputs)) for each in nodes}
    return Plan(Graph("diamond", Stage.SCHEDULED, *ends, nodes), decisions)


def shrunk_diamond() -> list[int] | None:
    """The first cycles after the queue of a has lost half of its beats; None if that is refused."""
    schedule = settled(diamond(), 4, {})
    assert schedule is not None
    (channel,) = (each for each in schedule.graph.channels if each.value.name == "a")
    assert schedule.backlog(channel) == 10  # of cycles 1 to 10
    return [cycles[0] for cycles in cycles_of(schedule)] if schedule.shrink(channel, 5) else None


def test_one_way_moves_and_the_other_stays() -> None:
    assert shrunk_diamond() == [0, 6, 1, 10, 11]


def test_a_gate_that_ways_pass_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every actor is taken for a gate: the sum flees from what it waits for."""
    monkeypatch.setattr(PeriodicSchedule, "_found_gates", lambda self: set(range(len(self.graph.actors))))
    assert shrunk_diamond() is None


def test_work_of_long_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Firings are counted: of twice as many cores twice as many."""
    fired: list[int] = []
    original = Firing.fire

    def counting(self: Firing, actors: list[int]) -> tuple[list[int], list[int]]:
        fired[-1] += len(actors)
        return original(self, actors)

    monkeypatch.setattr(Firing, "fire", counting)
    for length in (30, 60):
        fired.append(0)
        plan = random_chain(5, length)
        schedule = settled(plan, least_period(plan), {})
        assert schedule is not None
        fired[-1] = 0
        for channel in schedule.graph.channels:
            shrink_queue(schedule, channel, range(schedule.least(channel), 1 + schedule.backlog(channel)))
    assert fired[1] < 2.5 * fired[0]
