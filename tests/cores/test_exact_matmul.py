"""Products of integer matrices against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.cores.operator import exact_matmul

LIMIT = (1 << 62) - 1


def by_hand(x: list[list[int]], weights: list[list[int]]) -> list[list[int]]:
    return [[sum(a * b for a, b in zip(v, row, strict=True)) for row in weights] for v in x]


@given(st.data())
def test_sums_that_fit(data: st.DataObject) -> None:
    """Any widths of inputs and weights, also weights that 64 bits do not hold, whose sums lie within 62 bits."""
    terms = data.draw(st.integers(1, 6))
    x_bits = data.draw(st.integers(1, 62))
    reach = LIMIT // ((1 << x_bits) * terms)
    xs = st.integers(-(1 << x_bits), 1 << x_bits)
    ws = st.integers(-reach, reach)
    x = data.draw(st.lists(st.lists(xs, min_size=terms, max_size=terms), min_size=1, max_size=3))
    weights = data.draw(st.lists(st.lists(ws, min_size=terms, max_size=terms), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from([np.int64, object]))
    found = exact_matmul(np.array(x, dtype=np.int64), np.array(weights, dtype=dtype))
    assert found.dtype == np.int64
    assert found.tolist() == by_hand(x, weights)


@pytest.mark.parametrize("bits", range(20, 62))
def test_weights_at_both_ends(bits: int) -> None:
    """The sums are small, though the products are not."""
    ends = [-(1 << bits), (1 << bits) - 1, (1 << bits) - 1, -(1 << bits)]
    weights = [[a, b, a, b] for a in ends for b in ends]
    x = [[3, 3, -3, -3], [1, -1, 0, 0], [1, 0, 0, 0]]
    assert exact_matmul(np.array(x), np.array(weights)).tolist() == by_hand(x, weights)


def test_weights_beyond_64_bits() -> None:
    weights = [[(1 << 70) + 5, -(1 << 70)], [-(1 << 90), -(1 << 90) + 7]]
    x = [[1, 1], [3, 3], [0, 0]]
    found = exact_matmul(np.array(x), np.array(weights, dtype=object))
    assert found[:, 0].tolist() == [5, 15, 0]
