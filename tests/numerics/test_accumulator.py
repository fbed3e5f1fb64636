"""Accumulator bounds against brute force over the corner points."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.numerics.accumulator_bounds import bounds, width_of


@given(st.data())
def test_bounds_are_the_extremes_over_the_corners(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    big = data.draw(st.sampled_from([9, 1 << 40]))
    ints = st.integers(-big, big)
    w = data.draw(st.lists(st.lists(ints, min_size=k, max_size=k), min_size=1, max_size=3))
    pairs = data.draw(st.lists(st.tuples(ints, ints).map(sorted), min_size=k, max_size=k))
    lo, hi = bounds(w, [p[0] for p in pairs], [p[1] for p in pairs])
    for row, least, greatest in zip(w, lo, hi, strict=True):
        corners = [sum(a * b for a, b in zip(row, corner, strict=True)) for corner in product(*pairs)]
        assert (least, greatest) == (min(corners), max(corners))


def test_by_hand() -> None:
    assert bounds(np.array([[1, -2, 3]], dtype=np.int8), 0, 255) == ((-510,), (1020,))
    assert bounds([[127] * 1000], -128, 127) == ((-128 * 127 * 1000,), (127 * 127 * 1000,))
    assert bounds(np.zeros((2, 0), dtype=int), 0, 1) == ((0, 0), (0, 0))


@pytest.mark.parametrize(("weight_bits", "input_bits"), [(40, 16), (48, 20), (62, 12), (64, 8), (90, 8), (40, 60)])
def test_weights_too_wide_for_64_bits(weight_bits: int, input_bits: int) -> None:
    """Against Python's integers, with weights and inputs at their extremes among them."""
    rng = random.Random(weight_bits)
    ends = [-(1 << weight_bits - 1), (1 << weight_bits - 1) - 1]
    w = [[rng.choice([*ends, rng.randrange(*ends)]) for _ in range(50)] for _ in range(3)]
    low, high = -(1 << input_bits - 1), (1 << input_bits - 1) - 1
    los = [rng.choice([low, 0]) for _ in range(50)]
    least, greatest = bounds(w, los, high)
    for row, a, b in zip(w, least, greatest, strict=True):
        pairs = [(v * x, v * high) for v, x in zip(row, los, strict=True)]
        assert (a, b) == (sum(map(min, pairs)), sum(map(max, pairs)))


def test_widths() -> None:
    table = {(0, 0): (1, False), (0, 1): (1, False), (0, 255): (8, False), (3, 256): (9, False), (-1, 0): (1, True),
             (-1, -1): (1, True), (-128, 127): (8, True), (-129, 0): (9, True), (-1, 128): (9, True)}  # fmt: skip
    for (lo, hi), expected in table.items():
        assert width_of(lo, hi) == expected
    for lo in range(-20, 20):
        for hi in range(lo, 20):
            bits, signed = width_of(lo, hi)
            least, greatest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            assert least <= lo and hi <= greatest and signed == (lo < 0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"weights must have two axes \[M, K\], not shape \[3\]"):
        bounds([1, 2, 3], 0, 1)
    with pytest.raises(ValueError, match="input intervals must not be empty"):
        bounds([[1]], 1, 0)
    with pytest.raises(ValueError, match="values must be integers, not float64"):
        bounds([[1.5]], 0, 1)
    with pytest.raises(ValueError, match=r"interval must not be empty, not \[1, 0\]"):
        width_of(1, 0)
