"""Room for other step functions: what is found in it equals the function at every integer of its interval."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from hwflow.numerics.requantizers.held_form import MORE_SHIFT, HeldForm
from hwflow.numerics.requantizers.multiply_add_shift import find_multiply_add_shift
from hwflow.numerics.requantizers.step_function import StepFunction

LO, HI = -3000, 2500


def rounded(scale: Fraction, bias: Fraction) -> StepFunction:
    """The number of eight bits nearest to ``scale * x + bias``, ties upwards."""
    values = [min(255, max(0, floor(scale * x + bias + Fraction(1, 2)))) for x in range(LO, HI + 1)]
    return StepFunction.of_table(LO, values)


def test_other_functions_in_the_same_hardware() -> None:
    own = [rounded(Fraction(7, 100), Fraction(31, 3)), rounded(Fraction(1, 13), Fraction(100))]
    held = HeldForm.of(own, 0, 255)
    least = find_multiply_add_shift(own)
    assert held is not None and least is not None and held.shift == least.shift + MORE_SHIFT
    others = [rounded(Fraction(9, 71), Fraction(-20)), rounded(Fraction(1, 40), Fraction(1201, 7))]
    for steps in (own, others):
        found = held.find(steps)
        assert found is not None and (found.shift, found.low, found.high) == (held.shift, held.low, held.high)
        bits, signed = held.multiplier
        assert not signed and all(0 <= m < 1 << bits for m in found.multipliers)
        assert all(-1 << held.addend[0] - 1 <= b < 1 << held.addend[0] - 1 for b in found.addends)
        x = np.arange(LO, HI + 1)
        for channel, step in enumerate(steps):
            product = found.multipliers[channel] * x.astype(object) + found.addends[channel]
            assert [min(255, max(0, int(v) >> found.shift)) for v in product] == step.evaluate(x).tolist()


def test_a_scale_near_a_simple_fraction_leaves_room_for_others() -> None:
    """Sums as they are need no shift at all; others of their range need a fine multiplier."""
    own = StepFunction.of_table(0, list(range(256)))
    held = HeldForm.of([own], 0, 255, 8)
    assert held is not None
    for scale in (Fraction(1013, 1009), Fraction(811, 1009), Fraction(1931, 1009)):
        values = [min(255, floor(scale * x + Fraction(1, 2))) for x in range(256)]
        found = held.find([StepFunction.of_table(0, values)])
        assert found is not None
        (m,), (b,) = found.multipliers, found.addends
        assert [min(255, m * x + b >> found.shift) for x in range(256)] == values


def test_a_constant_may_be_any_other() -> None:
    held = HeldForm.of([StepFunction.of_table(0, [3] * 256)], 0, 255, 8)
    assert held is not None and held.find([StepFunction.of_table(0, [255] * 256)]) is not None


@pytest.mark.parametrize("other", [
    rounded(Fraction(7, 10), Fraction(0)),  # a multiplier ten times as large
    StepFunction.of_table(LO, [300] * (HI - LO + 1)),  # beyond the clamp
    StepFunction.of_table(LO, [int(x % 7 == 0) for x in range(LO, HI + 1)]),  # no line
])
def test_what_has_no_room(other: StepFunction) -> None:
    own = [rounded(Fraction(7, 100), Fraction(31, 3)), rounded(Fraction(7, 90), Fraction(31, 3))]
    held = HeldForm.of(own, 0, 255)
    assert held is not None and held.find([own[0], other]) is None


def test_none_for_what_is_no_line() -> None:
    assert HeldForm.of([StepFunction.of_table(0, [0, 3, 1, 2, 0, 5])], 0, 5) is None
