"""A chain of quantizers as one staircase: each stage dequantizes, applies functions, quantizes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hwflow.numerics.elementwise import Elementwise
from hwflow.numerics.staircase import Staircase, quantizer_staircase


@dataclass(frozen=True)
class QuantizerStage:
    """saturate(round_half_even(functions(scale * (q - zero_point)) / out_scale) + out_zero_point) in [low, high]."""

    scale: Fraction
    zero_point: Fraction
    functions: tuple[Elementwise, ...]
    out_scale: Fraction
    out_zero_point: int
    low: int
    high: int

    def staircase(self, lo: int, hi: int) -> Staircase:
        """Over the integers ``lo`` to ``hi``."""
        return quantizer_staircase(
            lo, hi, self.scale, self.zero_point, self.functions,
            self.out_scale, self.out_zero_point, self.low, self.high,
        )

    def unrounded(self, q: int) -> Fraction:
        """What is rounded, exactly: functions(...) / out_scale, before the zero point is added."""
        x = self.scale * (q - self.zero_point)
        for function in self.functions:
            x = function(x)
        return x / self.out_scale


def compose(outer: Staircase, inner: Staircase) -> Staircase:
    """outer(inner(x)) over inner's interval; outer must be defined on [inner.low, inner.high].

    outer rises at T exactly where inner first reaches T, so each threshold of outer is replaced by one of inner.
    """
    start = outer(inner.low)
    kept = [t for t in outer.thresholds if inner.low < t <= inner.high]
    return Staircase(inner.lo, inner.hi, start, tuple(inner.thresholds[t - inner.low - 1] for t in kept))


def chain(stages: Sequence[QuantizerStage], lo: int, hi: int) -> Staircase:
    """The staircase of ``stages`` one after the other over [lo, hi]."""
    result = stages[0].staircase(lo, hi)
    for stage in stages[1:]:
        result = compose(stage.staircase(result.low, result.high), result)
    return result
