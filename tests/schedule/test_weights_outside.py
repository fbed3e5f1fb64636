"""The choice of layers whose weights lie outside: the least words of all that fit, found by trying all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hwflow.schedule.weights_outside import _fewest_words, _Option


@pytest.mark.parametrize("seed", range(12))
def test_the_fewest_words_of_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = [
        [_Option(group, int(size), int(words)) for group, (size, words) in enumerate(rng.integers(0, 12, (count, 2)))]
        for count in rng.integers(1, 5, 5)
    ]
    for room in (0, 5, 11, 20, 60):
        fitting = [each for each in product(*options) if sum(option.size for option in each) <= room]
        chosen = _fewest_words(options, room)
        if not fitting:
            assert chosen is None
            continue
        assert chosen is not None
        assert sum(option.size for option in chosen) <= room
        least = min(sum(option.words for option in each) for each in fitting)
        assert sum(option.words for option in chosen) == least
