"""Step functions of a requantizer's channels."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hwflow.cores.registry import OPERATORS
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.power import Reciprocal
from hwflow.numerics.requantizers.stages import NoSteps, QuantizerStage, Stage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.types import Interval, TensorType

REQUANTIZE = OPERATORS["requantize"]


def stage(*functions: object, scale: int = 1) -> tuple[Stage, ...]:
    return (QuantizerStage(Fraction(scale), Fraction(0), functions, Fraction(10), 0, 0, 255),)  # type: ignore[arg-type]


def derived(
    stages: tuple[tuple[Stage, ...], ...], *intervals: tuple[int, int]
) -> tuple[RequantizeAttributes, TensorType]:
    source = TensorType.of((len(intervals), 2), tuple(Interval(*i) for i in intervals), 0)
    made = REQUANTIZE.derive(RequantizeAttributes(0, stages), [source])
    (result,) = REQUANTIZE.infer(made, [source])
    return made, result


def test_one_quantizer_has_one_step_function_whatever_channels_reach() -> None:
    """Two channels, 0 to 20 and 100 to 4,000 in tenths: the function of both, and each channel's own results."""
    made, result = derived((stage(),), (0, 20), (100, 4000))
    assert made.steps[0] is made.steps[1]
    assert (made.steps[0].lo, made.steps[0].hi) == (0, 4000)
    assert result.channel_intervals(0) == (Interval(0, 2), Interval(10, 255))


def test_other_quantizers_share_nothing() -> None:
    made, result = derived((stage(), stage(scale=2), stage()), (0, 20), (0, 20), (-50, 10))
    assert made.steps[0] is made.steps[2] is not made.steps[1]
    assert result.channel_intervals(0) == (Interval(0, 2), Interval(0, 4), Interval(0, 1))


def test_channels_keep_their_own_where_none_is_defined_between_them() -> None:
    """1 / x on both sides of 0, which no channel reaches."""
    made, _ = derived((stage(Reciprocal()),), (-5, -1), (1, 5))
    assert [(step.lo, step.hi) for step in made.steps] == [(-5, -1), (1, 5)]
    with pytest.raises(NoSteps):
        derived((stage(Reciprocal()),), (-5, 5))


def test_what_a_step_function_reaches_by_hand() -> None:
    steps = StepFunction(-10, 10, [-4, 0, 5], [3, 1, 7, 2])
    assert steps.reach(-10, 10) == (1, 7)
    assert steps.reach(-10, -5) == (3, 3)
    assert steps.reach(-5, -4) == (1, 3)
    assert steps.reach(5, 10) == (2, 2)
    assert steps.reach(4, 5) == (2, 7)
