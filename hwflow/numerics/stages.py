"""What a requantizer does, stage by stage: each stage maps integers to integers and gives its exact step function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hwflow.numerics.elementwise import Elementwise
from hwflow.numerics.rounding import Quantizer, Rounding
from hwflow.numerics.staircase import quantizer_staircase
from hwflow.numerics.step_function import StepFunction, compose


class NoSteps(ValueError):
    """There is no step function on the interval: a value is not defined (the root of a negative number, a division by
    0), or not decided. ``reason`` completes "the function must": "have a value everywhere, but sqrt(-1/2) is none"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Stage(ABC):
    """One stage; subclasses are frozen dataclasses (hashable, comparable)."""

    @abstractmethod
    def steps(self, lo: int, hi: int) -> StepFunction:
        """Over the integers ``lo`` to ``hi``. Raises NoSteps if there is none."""


@dataclass(frozen=True)
class QuantizerStage(Stage):
    """``Quantizer(functions(scale * (q - zero_point)))``; see :class:`hwflow.numerics.rounding.Quantizer` for the
    quantizer's fields. ``scale`` may have any sign, or be 0."""

    scale: Fraction
    zero_point: Fraction
    functions: tuple[Elementwise, ...]
    out_scale: Fraction
    out_zero_point: Fraction | int
    low: int
    high: int
    rounding: Rounding = Rounding.ROUND
    zero_point_inside: bool = False

    @property
    def quantizer(self) -> Quantizer:
        return Quantizer(
            self.out_scale, self.out_zero_point, self.low, self.high, self.rounding, self.zero_point_inside
        )

    def steps(self, lo: int, hi: int) -> StepFunction:
        return StepFunction.of_staircase(
            quantizer_staircase(
                lo, hi, self.scale, self.zero_point, self.functions, self.out_scale, self.out_zero_point, self.low,
                self.high, rounding=self.rounding, zero_point_inside=self.zero_point_inside,
            )
        )

    def unrounded(self, q: int) -> Fraction:
        """What is rounded, exactly: functions(...) / out_scale, before the zero point is added."""
        x = self.scale * (q - self.zero_point)
        for function in self.functions:
            x = function(x)
        return x / self.out_scale


@dataclass(frozen=True)
class StepStage(Stage):
    """A step function as it is given; it must be defined on the whole input."""

    function: StepFunction

    def steps(self, lo: int, hi: int) -> StepFunction:
        f = self.function
        starts = [(lo, f(lo)), *((b, f(b)) for b in f.breaks if lo < b <= hi)]
        return StepFunction.of(lo, hi, starts)


def chain(stages: Sequence[Stage], lo: int, hi: int) -> StepFunction:
    """The step function of ``stages`` one after the other over [lo, hi]."""
    result = stages[0].steps(lo, hi)
    for stage in stages[1:]:
        result = compose(stage.steps(result.low, result.high), result)
    return result
