"""Groups of processes that wait for each other against events moved one by one."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from hwflow.schedule.throughput import groups, rounds
from hwflow.schedule.throughput.groups import Wait, rest_of

SEEDS = range(600)


def random_group(seed: int, most: int) -> tuple[list[Wait], list[int], list[int]]:
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


def rest(seed: int, most: int = 7) -> tuple[list[int] | None, list[int] | None]:
    """What is found, and what is expected."""
    waits, sizes, spares = random_group(seed, most)
    found = rest_of(waits, [np.zeros(size, dtype=np.int64) for size in sizes], spares)
    assert found is None or [len(base) for base in found] == sizes
    return None if found is None else np.concatenate(found).tolist(), least(waits, sizes, spares)


@pytest.mark.parametrize("fewer", [0.0, 0.8, 0.999], ids=["never fewer", "as used", "whenever there are fewer"])
def test_where_groups_come_to_rest(fewer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cycles as one by one, and the same groups never do."""
    monkeypatch.setattr(groups, "_PATIENCE", 1000)
    monkeypatch.setattr(rounds, "_FEWER", fewer)
    resting = 0
    for seed in SEEDS:
        found, expected = rest(seed)
        assert found == expected, seed
        resting += found is not None
    assert 120 < resting < 480


def test_where_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is later than it must be, and nothing that rests is said not to."""
    monkeypatch.setattr(groups, "_PATIENCE", 1)
    early = 0
    for seed in SEEDS:
        found, expected = rest(seed, 40)
        if expected is None:
            continue
        assert found is not None, seed
        assert all(a <= b for a, b in zip(found, expected, strict=True)), seed
        early += found != expected
    assert early > 5
