"""Whether depths sustain an interval: the verdict of periodic schedules against networks simulated cycle by cycle."""

from __future__ import annotations

import random
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.schedule.plan import Plan
from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.throughput.events import Arc, Channel, event_graph
from hwflow.schedule.throughput.firing import Cycles
from hwflow.schedule.throughput.periodic import PeriodicSchedule
from tests.schedule.cycles import random_network, simulate

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


@settings(max_examples=60, derandomize=True, deadline=None)
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


@settings(max_examples=100, derandomize=True, deadline=None)
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
