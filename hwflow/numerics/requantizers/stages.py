"""The stages of a requantizer: each maps integers to integers and has an exact step function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from hwflow.numerics.functions.function import Elementwise, enclose
from hwflow.numerics.functions.quantizer_steps import quantizer_steps
from hwflow.numerics.interval import Interval, NoSteps
from hwflow.numerics.requantizers.step_function import StepFunction, compose
from hwflow.numerics.rounding import Quantizer, Rounding

__all__ = ["NoSteps", "QuantizerStage", "Stage", "StepStage", "chain"]


class Stage(ABC):
    """One stage; subclasses are frozen dataclasses (hashable, comparable)."""

    @abstractmethod
    def steps(self, lo: int, hi: int) -> StepFunction:
        """Return the step function over the integers ``lo`` to ``hi``. Raises NoSteps if there is none."""


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

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, cached because hashing fractions is slow and each channel's stage is looked up repeatedly."""
        return hash(tuple([getattr(self, field.name) for field in fields(self)]))

    @property
    def quantizer(self) -> Quantizer:
        return Quantizer(
            self.out_scale, self.out_zero_point, self.low, self.high, self.rounding, self.zero_point_inside
        )

    def steps(self, lo: int, hi: int) -> StepFunction:
        return quantizer_steps(lo, hi, self.scale, self.zero_point, self.functions, self.quantizer)

    def enclosure(self, q: int, bits: int = 80) -> tuple[Fraction, Fraction]:
        """Enclose the exact quotient ``functions(...) / out_scale`` (before rounding, and before the zero point is
        added) by two numbers, equal if it is known to be rational.

        ``bits`` is the relative precision of each irrational function. Raises NoSteps if a function is undefined there,
        or the quotient has no bound (it exceeds ``2**16384``).
        """
        x = Fraction(self.scale) * (q - Fraction(self.zero_point))
        y = enclose(self.functions, Interval.point(x), bits)
        if not (isinstance(y.lo, Fraction) and isinstance(y.hi, Fraction)):
            raise NoSteps("be at most 2**16384 in magnitude, but a value is not")
        return y.lo / self.out_scale, y.hi / self.out_scale


@dataclass(frozen=True)
class UnclampedStage(QuantizerStage):
    """A quantizer stage without clamping: ``low`` and ``high`` are levels that must not be reached. Raises NoSteps if
    one is."""

    __hash__ = QuantizerStage.__hash__

    def steps(self, lo: int, hi: int) -> StepFunction:
        steps = super().steps(lo, hi)
        for level in (self.low, self.high):
            if level in (steps.low, steps.high):
                raise NoSteps(f"stay between the levels {self.low} and {self.high}, but it reaches {level}")
        return steps


@dataclass(frozen=True)
class StepStage(Stage):
    """An explicit step function; beyond its last integer it is what it is there. ``extended``: below its first one,
    too, for integers that a type holds and that never come."""

    function: StepFunction
    extended: bool = False

    def steps(self, lo: int, hi: int) -> StepFunction:
        f = self.function
        if not self.extended and not f.lo <= lo <= f.hi:
            raise NoSteps(f"have integers within [{f.lo}, {f.hi}], not [{lo}, {hi}]")
        inside = (f.break_array > lo) & (f.break_array <= hi)
        first = f(min(max(lo, f.lo), f.hi))
        return StepFunction(lo, hi, f.break_array[inside], np.append(first, f.value_array[1:][inside]))


@lru_cache(maxsize=1 << 13)  # a network's channels: every pass that infers types repeats them
def chain(stages: tuple[Stage, ...], lo: int, hi: int) -> StepFunction:
    """Return the step function of the composed ``stages``, the first applied first, over [lo, hi]."""
    result = stages[0].steps(lo, hi)
    for stage in stages[1:]:
        result = compose(stage.steps(result.low, result.high), result)
    return result
