"""Staircases of quantizers for tests of what is made of staircases."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.requantizers.stages import QuantizerStage
from hwflow.numerics.requantizers.staircase import Staircase
from hwflow.numerics.requantizers.step_function import StepFunction


def quantizer_staircase(
    lo: int, hi: int, scale: Fraction, zero_point: Fraction | int, functions: Sequence[Elementwise],
    out_scale: Fraction, out_zero_point: int, low: int, high: int,
) -> Staircase:  # fmt: skip
    """Dequantize, apply functions, quantize."""
    zero_point = Fraction(zero_point)
    stage = QuantizerStage(scale, zero_point, tuple(functions), out_scale, out_zero_point, low, high)
    return stage.steps(lo, hi).staircase()


def steps_of(stairs: Sequence[Staircase]) -> list[StepFunction]:
    """The same functions, each by its breaks and values."""
    return [
        StepFunction.of_arrays(s.lo, s.hi, np.append(s.lo, s.array), np.arange(s.low, s.high + 1)) for s in stairs
    ]
