"""Scales behind approximations: rounded by no more than their share of epsilon, and short; limits keep theirs."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.numerics.functions.piecewise import Clip, Relu
from hwflow.numerics.functions.smooth import Sigmoid
from hwflow.numerics.requantizers.multiply_add_shift import find_multiply_add_shift
from hwflow.numerics.requantizers.short_scales import shortened
from hwflow.numerics.requantizers.stages import QuantizerStage

SHARE = Fraction(1, 1 << 27)
FRACTIONS = st.builds(Fraction, st.integers(-(10**9), 10**9), st.integers(1, 10**9))


def stage(scale: Fraction, zero_point: Fraction, *functions: object) -> QuantizerStage:
    return QuantizerStage(scale, zero_point, functions, Fraction(1, 100), 3, -128, 127)  # type: ignore[arg-type]


@given(FRACTIONS, FRACTIONS, st.integers(0, 50), st.data())
def test_no_number_moves_by_more_than_its_share(
    scale: Fraction, zero_point: Fraction, size: int, data: st.DataObject
) -> None:
    before, most = stage(scale, zero_point), 1 << size
    q = data.draw(st.integers(-most, most))
    after, moved = shortened(before, most + abs(zero_point), SHARE)
    assert moved <= SHARE
    (old, _), (new, _) = before.enclosure(q), after.enclosure(q)
    assert abs(new - old) <= moved
    if after is not before:
        assert (2 * new).denominator != 1, "halfway between two levels"
        denominator = (after.scale / after.out_scale).denominator
        assert denominator & (denominator - 1) == 0, "no power of two"


def test_the_multiplier_is_short() -> None:
    """Of 41 bits and results of 16: levels, epsilon's share and the sign's bit."""
    exact = QuantizerStage(Fraction(0.0107) * 65535 / (1 << 41), Fraction(0), (), Fraction(0.0123), 0, -32768, 32767)
    short, _ = shortened(exact, Fraction(1 << 40), SHARE)
    bits = []
    for each in (exact, short):
        form = find_multiply_add_shift([each.steps(-(1 << 40), 1 << 40)])
        assert form is not None
        bits.append(form.multiplier_bits)
    assert bits[1] <= 16 + 27 < bits[0]


@pytest.mark.parametrize("function", [Relu(), Clip(Fraction(-1), None)])
def test_limits_are_computed_by_clamps(function: object) -> None:
    assert shortened(stage(Fraction(1, 3), Fraction(0), function), Fraction(1 << 30), SHARE)[1] > 0


def test_other_functions_keep_their_scales() -> None:
    before = stage(Fraction(1, 3), Fraction(0), Sigmoid())
    assert shortened(before, Fraction(1 << 30), SHARE) == (before, 0)
