"""The exact step function of a quantizer after any chain of functions of ``scale * (q - zero_point)``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from hwflow.numerics.function import Elementwise
from hwflow.numerics.levels import Levels
from hwflow.numerics.piecewise import Affine, Rational
from hwflow.numerics.rounding import Quantizer
from hwflow.numerics.step_function import StepFunction
from hwflow.numerics.subdivision import subdivided


def quantizer_steps(
    lo: int, hi: int, scale: Fraction, zero_point: Fraction | int, functions: Sequence[Elementwise], quantizer: Quantizer
) -> StepFunction:
    """``quantizer(functions(scale * (q - zero_point)))`` for the integers q from ``lo`` to ``hi``.

    ``scale`` may have any sign or be 0, ``zero_point`` any rational (a float bias is absorbed there). Exact. If all
    functions are rational the quantizer's levels are pulled back through them, else see
    :mod:`hwflow.numerics.subdivision`. Raises :class:`~hwflow.numerics.interval.NoSteps` where that says so.
    """
    scale, addend = Fraction(scale), -Fraction(scale) * Fraction(zero_point)
    functions = tuple(functions)
    while functions and isinstance(functions[0], Affine):  # channels that differ only there share all that follows
        multiplier = Fraction(functions[0].multiplier)
        scale, addend = scale * multiplier, addend * multiplier + functions[0].addend
        functions = functions[1:]
    if scale < 0:
        return _steps(-hi, -lo, -scale, addend, functions, quantizer).mirrored()
    if scale == 0:
        lowest = _steps(0, 0, Fraction(1), addend, functions, quantizer)
        return StepFunction(lo, hi, (), lowest.values)
    return _steps(lo, hi, scale, addend, functions, quantizer)


def _steps(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    rational = tuple(f for f in functions if isinstance(f, Rational))
    if len(rational) == len(functions):
        return _rounded_up(lo, hi, _pulled(rational, quantizer).affine(scale, addend))
    return subdivided(lo, hi, scale, addend, functions, quantizer)


@lru_cache(maxsize=64)
def _pulled(functions: tuple[Rational, ...], quantizer: Quantizer) -> Levels:
    """The levels, pulled back through ``functions``."""
    levels = quantizer.levels
    for function in reversed(functions):
        levels = function.pull(levels)
    return levels


def _rounded_up(lo: int, hi: int, levels: Levels) -> StepFunction:
    """The step function of the integers: each cut becomes the least integer at it or after it."""
    numerators, strict, denominator = levels.numerators, levels.strict, levels.denominator

    def place(k: int) -> int:
        return (numerators[k] - (not strict[k])) // denominator + 1

    first = bisect_right(range(len(numerators)), lo, key=place)
    last = bisect_right(range(len(numerators)), hi, lo=first, key=place)
    places = [
        (n - (not s)) // denominator + 1 for n, s in zip(numerators[first:last], strict[first:last], strict=True)
    ]
    values = levels.values[first : last + 1]
    return StepFunction.of(lo, hi, zip([lo, *places], values, strict=True))
