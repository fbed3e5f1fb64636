"""Loops of processes against sweeps that go round them event by event, and what they rule out."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.throughput.loops import Hop, settles
from hwflow.schedule.throughput.steady import Steady
from tests.schedule.throughput.test_steady import DEEP, give, moving, pace

SEEDS = range(60)


def random_loop(seed: int) -> tuple[list[Hop], int]:
    """Hops, and how many events the loop enters its first process by."""
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 4))]
    hops = []
    for size, following in zip(sizes, [*sizes[1:], sizes[0]], strict=True):
        entered = sorted(rng.randrange(size + 1) for _ in range(following))
        offsets = [rng.randrange(-8, 4) for _ in range(following)]
        hops.append(Hop(np.array(entered), np.array(offsets), rng.randrange(6)))
    return hops, sizes[0]


def comes_to_rest(hops: list[Hop], events: int) -> bool:
    """Whether sweeps round the loop end: a circuit visits no event twice, so longer ways than there are events of all
    processes do not add anything unless one does."""
    base = [0] * events
    for _ in range(2 * (events + 1) * (1 + sum(len(hop.offsets) for hop in hops))):
        values = base
        for hop in hops:
            values = in_order(values, hop.spare)
            values = [values[n] + int(o) for n, o in zip(hop.entered, hop.offsets, strict=True)]
        after = [max(pair) for pair in zip(base, in_order(values, hops[0].spare)[1:], strict=True)]
        if after == base:
            return True
        base = after
    return False


def in_order(values: list[int], spare: int) -> list[int]:
    most = [max(values) - spare]
    for value in values:
        most.append(max(most[-1], value))
    return most


def test_loops_that_come_to_rest() -> None:
    verdicts = []
    for seed in range(400):
        hops, events = random_loop(seed)
        verdicts.append(comes_to_rest(hops, events))
        assert settles(hops, np.zeros(events, dtype=np.int64)) == verdicts[-1], seed
    assert 80 < sum(verdicts) < 320


@pytest.mark.usefixtures("timings_from_attributes")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_ruled_out_costs_interval(seed: int) -> None:
    """The greatest depth that a failed trial rules out, and all trials of one queue after the other in one pass."""
    graph, period = moving(seed)
    steady = Steady(graph, period)
    assert steady.settle()
    for channel in steady.events.channels:
        if steady.shrink(channel, 1):
            give(channel, 1)
        else:
            assert steady.too_small >= 1
            before = give(channel, steady.too_small)
            assert pace(graph) > period
            give(channel, before)


@pytest.mark.usefixtures("timings_from_attributes")
def test_what_is_refused_is_too_small_whatever_is_beside_the_circuit() -> None:
    """All other queues are as deep as they like; not every circuit leads through all queues."""
    partial = 0
    for seed in SEEDS:
        graph, period = moving(seed)
        steady = Steady(graph, period)
        assert steady.settle()
        for channel in steady.events.channels:
            shrink_queue(steady, channel, 1, None)
        for channel, (depth, circuit) in steady.refused.items():
            assert depth < steady.depths[channel]
            assert channel in circuit
            for other in steady.events.channels:
                give(other, steady.depths[other] if other in circuit else DEEP)
            give(channel, depth)
            assert pace(graph) > period, seed
            partial += len(circuit) < len(steady.events.channels)
    assert partial > 20


@pytest.mark.usefixtures("timings_from_attributes")
@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_that_begins_with_another(seed: int) -> None:
    """Takes the same depths, and refuses the same."""
    graph, period = moving(seed)
    first = Steady(graph, period)
    assert first.settle()
    depths = [first.backlog(channel) for channel in first.events.channels]
    again = Steady(graph, period, first.release())
    assert again.settle(dict(zip(again.events.channels, depths, strict=True)))
    for channel in again.events.channels:
        for depth in range(1, again.depths[channel]):
            before = give(channel, depth)
            others = [give(c, again.depths[c]) for c in again.events.channels if c is not channel]
            keeps = pace(graph) <= period
            for c, deep in zip((c for c in again.events.channels if c is not channel), others, strict=True):
                give(c, deep)
            give(channel, before)
            assert again.shrink(channel, depth) == keeps
            if keeps:
                break
