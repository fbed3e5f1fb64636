"""Whether queues keep an interval: the verdict of schedules that repeat against networks simulated cycle by cycle."""

from __future__ import annotations

import random
from math import ceil

import pytest

from hwflow.ir.graph import Graph
from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.throughput import steady as subject
from hwflow.schedule.throughput.events import Channel
from hwflow.schedule.throughput.steady import Steady
from tests.schedule.cycles import random_network, simulate, tightened

pytestmark = pytest.mark.usefixtures("timings_from_attributes")


@pytest.fixture(params=["as used", "by groups"])
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What these networks are too small for: nothing but looks at all processes together tells that sweeps go on for
    ever."""
    if request.param == "by groups":
        for name, value in {"_PASSES": 1, "_VISITS": 1 << 40, "_FEW": 0, "_MOST_VISITS": 10}.items():
            monkeypatch.setattr(subject, name, value)

DEEP = 1 << 20  # beats: a queue that never gets full
FRAMES, CYCLE = 36, 24  # all that happens repeats itself after a few frames, of a number that divides 24
SEEDS = range(40)


def pace(graph: Graph) -> float:
    """Cycles a frame in the long run; infinite if the network stands still."""
    found = simulate(graph, FRAMES)
    if found is None:
        return float("inf")
    ends = [beats[len(beats) // FRAMES - 1 :: len(beats) // FRAMES] for beats in found]
    return max((end[-1] - end[-1 - CYCLE]) / CYCLE for end in ends)


def roomy(seed: int) -> Graph:
    """A random network with queues as deep as they like."""
    graph = random_network(seed)
    for node in graph.nodes:
        node.attributes["depths"] = [DEEP] * len(node.outputs)
    return graph


def moving(seed: int) -> tuple[Graph, int]:
    """The same, of those that do not stand still, and an interval that it can keep."""
    while (rate := pace(graph := roomy(seed))) == float("inf"):
        seed += 1000
    return graph, max(slowest(graph), ceil(rate))


def slowest(graph: Graph) -> int:
    steps: int = max(process.steps for node in graph.nodes for process in node.attributes["timing"].processes)
    return steps


def give(channel: Channel, depth: int) -> int:
    """A queue this depth, for the simulation; what it was."""
    depths = channel.node.attributes["depths"]
    before, depths[channel.index] = depths[channel.index], depth
    return int(before)


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("seed", SEEDS)
def test_queues_as_deep_as_they_like(seed: int) -> None:
    """A core's processes may still hold each other up."""
    graph = roomy(seed)
    rate = pace(graph)
    for period in range(slowest(graph), slowest(graph) + 4):
        assert Steady(graph, period).settle() == (rate <= period)


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("seed", SEEDS)
def test_one_queue_after_the_other(seed: int) -> None:
    """Depths drawn at random: those that cost interval are refused, all others are not, and the bound says nothing
    else."""
    rng, (graph, least) = random.Random(seed), moving(seed)
    period = least + rng.choice([0, 0, 1, 3])
    steady = Steady(graph, period)
    assert steady.settle()
    for _ in range(2):
        for channel in rng.sample(steady.events.channels, len(steady.events.channels)):
            depth = rng.randrange(1, 2 + min(2 * channel.beats, steady.backlog(channel)))
            before = give(channel, depth)
            keeps = pace(graph) <= period
            assert steady.shrink(channel, depth) == keeps
            assert not keeps or depth >= steady.least(channel)
            assert steady.depths.get(channel, DEEP) == (depth if keeps else before)
            if not keeps:
                give(channel, before)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_schedule_needs_is_enough(seed: int) -> None:
    """Every queue at its backlog, all at once."""
    graph, period = moving(seed)
    steady = Steady(graph, period)
    assert steady.settle()
    needed = {channel: steady.backlog(channel) for channel in steady.events.channels}
    for channel, depth in needed.items():
        assert steady.shrink(channel, depth)
        assert steady.backlog(channel) <= depth
        give(channel, depth)
    assert pace(graph) <= period


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_depth(seed: int) -> None:
    """It keeps the interval and an entry less does not, wherever it is looked for first."""
    rng, (graph, least) = random.Random(seed), moving(seed)
    period = least + rng.choice([0, 0, 2])
    steady = Steady(graph, period)
    assert steady.settle()
    for channel in rng.sample(steady.events.channels, len(steady.events.channels)):
        low = steady.least(channel)
        shrink_queue(steady, channel, low, rng.choice([None, rng.randrange(1, 2 * steady.backlog(channel) + 1)]))
        depth = steady.depths[channel]
        assert depth >= low
        if depth > 1:
            give(channel, depth - 1)
            assert pace(graph) > period
        give(channel, depth)
        assert pace(graph) <= period


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("seed", SEEDS)
def test_less_room_inside_a_core(seed: int) -> None:
    """What is taken over keeps the interval; what is not leaves things as they were."""
    rng, (graph, least) = random.Random(seed), moving(seed)
    period = least + rng.choice([0, 2])
    steady = Steady(graph, period)
    assert steady.settle()
    for node in graph.nodes:
        before = node.attributes["timing"]
        node.attributes["timing"] = tightened(rng, before)
        if not steady.refit(node):
            node.attributes["timing"] = before
        assert pace(graph) <= period
        assert steady.settle()


def test_the_networks_are_worth_something() -> None:
    """A queue of two entries among deep ones costs interval in many and does not in many others."""
    kept = []
    for seed in SEEDS[:20]:
        graph, period = moving(seed)
        for channel in Steady(graph, period).events.channels:
            before = give(channel, 2)
            kept.append(pace(graph) <= period)
            give(channel, before)
    assert 10 <= sum(kept) <= len(kept) - 10
