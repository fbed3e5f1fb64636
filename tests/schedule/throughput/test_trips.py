"""Round trips of a queue's credits, against one beat after the other."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.schedule.throughput.trips import RoundTrips


def one_by_one(cycles: list[int], depth: int, trip: int) -> list[int]:
    for beat in range(depth, len(cycles)):
        cycles[beat] = max(cycles[beat], cycles[beat - depth] + trip)
    return cycles


@pytest.mark.parametrize("seed", range(200))
def test_all_trips_at_once(seed: int) -> None:
    """Of a process that now and then stands still, from any of its events on."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    steps = np.cumsum(rng.integers(1, 4, count))
    base = np.cumsum(rng.integers(0, 2, count) * rng.integers(0, 6, count))
    depth, trip = int(rng.integers(1, count + 1)), int(rng.integers(1, 12))
    trips = RoundTrips(steps, depth, trip)
    first = int(rng.integers(count))
    cycles = base + steps
    for before, found, less in (
        (cycles, trips.later(base), steps),
        (cycles[first:], trips.later_cycles(cycles[first:]), 0 * steps[first:]),
    ):
        least = one_by_one(before.tolist(), depth, trip)
        if found is None:
            assert least == before.tolist()
            continue
        place, after = found
        assert [*before[:place].tolist(), *(after + less[place:]).tolist()] == least
        assert least != before.tolist()


def test_steps_that_are_far_enough_apart() -> None:
    """Two beats a trip of six cycles: a beat every three steps always keeps that, a beat every two steps does not."""
    for apart in (2, 3):
        found = RoundTrips(np.arange(8) * apart, 2, 6).later(np.zeros(8, dtype=np.int64))
        if apart == 3:
            assert found is None
        else:
            assert found is not None
            assert [*[0] * found[0], *found[1].tolist()] == [0, 0, 2, 2, 4, 4, 6, 6]
