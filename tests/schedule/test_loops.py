"""Groups of processes that wait for each other against events moved one by one, and what they rule out."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from hwflow.schedule import circuits
from hwflow.schedule import sweeps as module
from hwflow.schedule.lines import Arc, Line, LoopMoves
from hwflow.schedule.loops import Wait, rest_of
from hwflow.schedule.places import Places
from hwflow.schedule.queues import shrink_queue
from hwflow.schedule.steady import Steady
from hwflow.schedule.sweeps import Sweeps
from tests.schedule.test_steady import DEEP, give, moving, pace

SEEDS = range(60)
MOST = 1 << 40  # visits: sweeps without end, if need be


def random_group(seed: int, most: int = 7) -> tuple[list[Wait], list[int], list[int]]:
    """Waits between processes, their numbers of events, and spare cycles."""
    rng = random.Random(seed)
    sizes = [rng.randrange(1, most + 1) for _ in range(rng.randrange(1, 5))]
    waits = []
    for _ in range(rng.randrange(1, 3 * len(sizes))):
        source, target = rng.randrange(len(sizes)), rng.randrange(len(sizes))
        targets = sorted(rng.sample(range(sizes[target]), rng.randrange(1, sizes[target] + 1)))
        events = sorted(rng.randrange(sizes[source]) for _ in targets)
        offsets = [rng.randrange(-9, 4) for _ in targets]
        waits.append(Wait(source, target, np.array(events), np.array(targets), np.array(offsets)))
    return waits, sizes, [rng.randrange(6) for _ in sizes]


def least(waits: list[Wait], sizes: list[int], spares: list[int]) -> list[int] | None:
    """The least cycles less steps from 0 on, event by event (Bellman and Ford's algorithm); None if there are none."""
    begins = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    arcs = [(end - 1, begin, -spare) for (begin, end), spare in zip(pairwise(begins), spares, strict=True)]
    arcs += [(n, n + 1, 0) for begin, end in pairwise(begins) for n in range(begin, end - 1)]
    for w in waits:
        for event, target, offset in zip(w.events, w.targets, w.offsets, strict=True):
            arcs.append((begins[w.source] + int(event), begins[w.target] + int(target), int(offset)))
    cycles = [0] * begins[-1]
    for _ in range(len(cycles) + 1):
        before = list(cycles)
        for source, target, weight in arcs:
            cycles[target] = max(cycles[target], cycles[source] + weight)
        if cycles == before:
            return cycles
    return None


def swept(waits: list[Wait], sizes: list[int], spares: list[int]) -> tuple[Sweeps, bool]:
    """The same waits by sweeps, and whether these come to rest."""
    lines = [Line(spare, np.zeros(size, dtype=np.int64)) for size, spare in zip(sizes, spares, strict=True)]
    sweeps = Sweeps(lines)
    for w in waits:
        sweeps.add(Arc(lines[w.source], lines[w.target], Places(w.events), Places(w.targets), w.offsets))
    return sweeps, sweeps.settle(sweeps.all, MOST, MOST)


def test_where_groups_come_to_rest() -> None:
    """By all rounds at once and by sweeps, which look at groups too: the same cycles, and the same groups never do."""
    verdicts = []
    for seed in range(600):
        waits, sizes, spares = random_group(seed)
        expected = least(waits, sizes, spares)
        verdicts.append(expected is not None)
        found = rest_of(waits, [np.zeros(size, dtype=np.int64) for size in sizes], spares)
        sweeps, good = swept(waits, sizes, spares)
        assert good == verdicts[-1], seed
        assert (found is not None) == verdicts[-1], seed
        if found is not None:
            assert found.final
            assert found.base.tolist() == expected, seed
            assert np.concatenate([line.base for line in sweeps.lines]).tolist() == expected, seed
    assert 120 < sum(verdicts) < 480


def test_what_events_are_later_for() -> None:
    """An event that moved is as much later than where its root began as some way from there takes; one that did not
    is its own root."""
    moved = 0
    for seed in range(300):
        waits, sizes, spares = random_group(seed)
        found = rest_of(waits, [np.zeros(size, dtype=np.int64) for size in sizes], spares)
        if found is None:
            continue
        for event, (cycle, root) in enumerate(zip(found.base, found.roots, strict=True)):
            assert cycle >= 0
            if cycle == 0:
                assert root == event
            else:
                moved += 1
                assert cycle == longest(waits, sizes, spares, int(root), event), seed
    assert moved > 300


def test_roots_by_line() -> None:
    """Events are counted through all lines of a group."""
    lines = tuple(Line(0, np.zeros(size, dtype=np.int64)) for size in (3, 2))
    moves = LoopMoves((), lines, [0, 3, 5], np.array([4, 1, 2, 0, 3]))
    assert [moves.root(place) for place in range(5)] == [
        (lines[1], 1), (lines[0], 1), (lines[0], 2), (lines[0], 0), (lines[1], 0),
    ]


def longest(waits: list[Wait], sizes: list[int], spares: list[int], start: int, end: int) -> int:
    """Of the ways from an event to another one, in a group that comes to rest."""
    far = -(1 << 30)
    begins = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    cycles = np.full(begins[-1], far)
    cycles[start] = 0
    for _ in range(len(cycles)):
        for begin, stop, spare in zip(begins, begins[1:], spares, strict=False):
            cycles[begin] = max(cycles[begin], cycles[stop - 1] - spare)
            cycles[begin:stop] = np.maximum.accumulate(cycles[begin:stop])
        for w in waits:
            places = begins[w.target] + w.targets
            cycles[places] = np.maximum(cycles[places], cycles[begins[w.source] + w.events] + w.offsets)
    return int(cycles[end])


@pytest.mark.parametrize("largest", [0, 1 << 17], ids=["apart", "together"])
def test_long_frames_by_sweeps(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rounds until a group comes to rest or does not: loops, each apart or as one group, are looked at whenever
    anything was swept, and sweeps go on from there."""
    monkeypatch.setattr(circuits, "_OFTEN", 1)
    monkeypatch.setattr(circuits, "_LARGEST", largest)
    monkeypatch.setattr(module, "_PASSES", 1)
    monkeypatch.setattr(module, "_VISITS", 0)
    verdicts = []
    for seed in range(150):
        waits, sizes, spares = random_group(seed, 60)
        waits = [
            Wait(w.source, w.target, w.events, w.targets, np.where(w.events < w.targets, w.offsets + 6, w.offsets - 60))
            for w in waits
        ]
        spares = [20 * spare for spare in spares]
        expected = least(waits, sizes, spares)
        verdicts.append(expected is not None)
        sweeps, good = swept(waits, sizes, spares)
        assert good == verdicts[-1], seed
        if expected is not None:
            assert np.concatenate([line.base for line in sweeps.lines]).tolist() == expected, seed
    assert 30 < sum(verdicts) < 120


def ring(depth: int, spare: int, rounds: int = 400) -> tuple[list[Wait], list[int], list[int]]:
    """Three processes, of which each waits for the one before, and the first one for what the last one did ``depth``
    events ago, or, at first, in the frame before: what is late at first goes round hundreds of times, a bit later each
    time, if events take a cycle each and ``depth`` is less than the ways take."""
    events = rounds * depth
    all_of_them = np.arange(events)
    period = events + spare
    back = all_of_them - depth
    offsets = back // events * period + 2 + back % events - all_of_them
    forward = [Wait(n, n + 1, all_of_them, all_of_them, np.full(events, 2)) for n in range(2)]
    return [*forward, Wait(2, 0, back % events, all_of_them, offsets)], [events] * 3, [spare] * 3


@pytest.mark.parametrize("depth", [4, 5, 6, 7])
def test_a_loop_that_goes_round_hundreds_of_times(depth: int) -> None:
    """Six cycles a round: with fewer events than that a round, a frame takes ``6 - depth`` cycles longer each of 400
    rounds, which there must be room for."""
    needed = 400 * max(0, 6 - depth)
    for spare in (needed - 1, needed, needed + 1):
        if spare < 0:
            continue
        group = ring(depth, spare)
        assert swept(*group)[1] == (spare >= needed)
        found = rest_of(group[0], [np.zeros(size, dtype=np.int64) for size in group[1]], group[2])
        assert (found is not None) == (spare >= needed)
        if found is not None:
            assert np.concatenate([line.base for line in swept(*group)[0].lines]).tolist() == found.base.tolist()


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
    again = Steady(graph, period, first)
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
