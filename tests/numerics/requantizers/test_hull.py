"""The thresholds that bind lines: limits over them against limits over all thresholds, and what they cost."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction as F
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.numerics.requantizers import hull
from hwflow.numerics.requantizers.hull import REDUCED_FROM, binding, vertices
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift, find_multiply_add_shift
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.step_function import StepFunction

gaps = st.lists(st.sampled_from([0, 0, 1, 1, 1, 2, 2, 3, 50, 2**40]), min_size=1, max_size=60)


@given(gaps, st.integers(0, 2**20), st.integers(1, 2**20), st.sampled_from(list(ShiftRounding)))
def test_limits_of_all_thresholds_are_those_of_few(
    steps: list[int], m: int, a: int, rounding: ShiftRounding
) -> None:
    thresholds = [sum(steps[: k + 1]) for k in range(len(steps))]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hull, "REDUCED_FROM", 0)
        above, below = binding(np.array(thresholds))
    down = {ShiftRounding.FLOOR: (0, 0), ShiftRounding.HALF_EVEN: (0, 1), ShiftRounding.HALF_ODD: (1, 0)}[rounding]
    values = [a * k + down[k % 2] - m * t for k, t in enumerate(thresholds)]
    assert max(values[k] for k in above) == max(values)
    assert min(values[k] for k in below) == min(values)


def test_vertices_by_hand() -> None:
    x, y = np.array([0, 1, 3, 4, 9, 10]), np.array([0, 2, 3, 7, 8, 10])
    assert vertices(x, y, above=True).tolist() == [0, 1, 3, 5]  # slopes 2, 5/3, 1/2
    assert vertices(x, y, above=False).tolist() == [0, 4, 5]  # slopes 8/9, 2


def wide_steps(scale: F, zero_point: int = 0, levels: int = 65536) -> StepFunction:
    """A quantizer of ``levels`` that the sums of a layer with 16-bit operands reach all."""
    return QuantizerStage(scale, F(zero_point), (), F(1), levels // 2, 0, levels - 1).steps(-(2**31), 2**31)


def test_proof_of_few_is_that_of_all() -> None:
    levels = 4 * REDUCED_FROM
    steps = wide_steps(F(997, 2**28 - 3), 12345, levels)
    found = find_multiply_add_shift([steps])
    assert found is not None
    breaks = np.append(steps.break_array, steps.break_array - 1)
    verdicts = set()
    for more in range(3):
        shift = found.shift + more
        (m,), (b,) = found.multipliers, found.addends
        room = 1 << found.shift >> 9  # addends around those that suit
        for dm in (-1, 0, 1):
            for db in range(-2 * room, 2 * room + 1, room):
                form = MultiplyAddShift(((m << more) + dm,), ((b << more) + db,), shift, 0, levels - 1)
                equal = bool((form.evaluate(breaks) == steps.evaluate(breaks)).all())
                assert form.proves([steps]) == equal, form
                verdicts.add((more, equal))
    assert {(0, True), (0, False), (2, True), (2, False)} <= verdicts


def test_sixteen_bits_take_little_memory() -> None:
    """All thresholds of 32 channels at once were 64 MB, as integers of any length 600 MB."""
    steps = [wide_steps(F(997 + k, 2**26 - 3), 1000 * k) for k in range(32)]
    assert all(a != b for a, b in pairwise(steps))
    tracemalloc.start()
    try:
        found = find_multiply_add_shift(steps)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None
    assert peak < 12e6


def test_long_results_share_their_values() -> None:
    first, second = wide_steps(F(1, 2**15)), wide_steps(F(3, 2**16), 5)
    assert np.shares_memory(first._values, second._values)
    assert first._breaks is first.staircase()._thresholds
    assert first(0) == 32768 and first.values == tuple(range(65536))
