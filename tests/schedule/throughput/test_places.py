"""Places in arrays: whatever their spacing, what is there and where they are."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.schedule.throughput.strided import Places

ARRAY = np.arange(40) ** 2


@pytest.mark.parametrize(
    ("at", "even"),
    [
        ([7], True),
        ([3, 4, 5, 6], True),
        ([1, 5, 9, 13, 17], True),
        ([1, 5, 9, 14], False),
        ([0, 1, 2, 4, 8, 9], False),
        ([30, 31, 32, 0, 1, 2, 3], False),  # the credits of the frame before, then those of this one
        ([30, 33, 36, 0], False),
        ([8, 4], False),
        ([2, 2, 5], False),
    ],
)
def test_places(at: list[int], even: bool) -> None:
    places = Places(np.array(at))
    for first in range(len(at)):
        assert places.take(ARRAY, first).tolist() == [n * n for n in at[first:]]
        run = places.run(first)
        assert (run is not None) == even
        if run:
            assert ARRAY[run].tolist() == [n * n for n in at[first:]]
    assert [places[k] for k in range(len(at))] == at
    if at == sorted(set(at)):
        assert [places.index(place) for place in at] == list(range(len(at)))
