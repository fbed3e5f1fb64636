"""Multiply-add-shift forms whose addends are multiples: against the functions themselves, input by input."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.numerics.requantizers.multiply_add_shift import (
    MORE_BITS,
    MORE_SHIFT,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
    with_multiple_addends,
)
from hwflow.numerics.requantizers.step_function import StepFunction


def line(lo: int, hi: int, slope: float, start: float) -> StepFunction:
    """A line rounded down, within -20..20."""
    return StepFunction.of_table(lo, np.floor(slope * np.arange(lo, hi + 1) + start).clip(-20, 20).astype(np.int64))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("offset", "bits"), [(0, 6), (-43, 10), (170, 12), (2730, 14)])
def test_the_same_functions_with_multiples(seed: int, offset: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    steps = [line(-200 - c, 300, rng.uniform(-0.3, 0.3), rng.uniform(-9, 9)) for c in range(4)]
    steps.append(line(-50, 60, 0, 3.5))  # always the same
    steps.append(line(-3, 2, 50, 3))  # one threshold
    form = find_multiply_add_shift(steps)
    assert form is not None
    found = with_multiple_addends(form, steps, offset, bits)
    assert found is not None
    assert (found.low, found.high, found.rounding) == (form.low, form.high, "floor")
    more = max(MORE_SHIFT, bits + MORE_BITS - form.multiplier_bits)
    assert max(bits, form.shift) <= found.shift <= form.shift + more
    for multiplier, addend, step in zip(found.multipliers, found.addends, steps, strict=True):
        assert (addend + multiplier * offset) % (1 << bits) == 0
        x = np.arange(step.lo, step.hi + 1)
        y = np.array([(multiplier * int(v) + addend) >> found.shift for v in x]).clip(found.low, found.high)
        assert (y == step.evaluate(x)).all()


def test_ties_are_left_alone() -> None:
    steps = [StepFunction.of_table(-40, np.rint(np.arange(-40, 41) / 4).astype(np.int64))]
    form = find_rounding_multiply_add_shift(steps)
    assert form is not None and form.rounding == "half_even"
    assert with_multiple_addends(form, steps, 0, 4) is None
