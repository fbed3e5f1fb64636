"""The exact step function of a quantizer after any chain of functions of ``scale * (q - zero_point)``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Affine, Rational
from hwflow.numerics.functions.power import RootMultiply
from hwflow.numerics.functions.real_steps import Levels
from hwflow.numerics.functions.subdivision import LONG, of_few, subdivided
from hwflow.numerics.interval import NoSteps
from hwflow.numerics.requantizers.staircase import MAX_LEVELS, IntArray
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.rounding import Quantizer


def quantizer_steps(
    lo: int, hi: int, scale: Fraction, zero_point: Fraction | int, functions: Sequence[Elementwise],
    quantizer: Quantizer,
) -> StepFunction:
    """Return the step function ``quantizer(functions(scale * (q - zero_point)))`` over the integers ``lo`` to ``hi``.

    The result is exact. ``scale`` may have any sign or be 0; ``zero_point`` is any rational (it absorbs a float bias).
    If all functions are rational, the quantizer's levels are pulled back through them, else see
    :mod:`hwflow.numerics.functions.subdivision`. Raises :class:`~hwflow.numerics.interval.NoSteps` if that does, and
    ValueError if the quantizer has more than MAX_LEVELS levels.
    """
    if quantizer.high - quantizer.low >= MAX_LEVELS:
        raise ValueError(
            f"output range must have at most {MAX_LEVELS} levels, not [{quantizer.low}, {quantizer.high}]"
        )
    scale, addend = Fraction(scale), -Fraction(scale) * Fraction(zero_point)
    line, rest = _leading_affine(tuple(functions))
    scale, addend = line.multiplier * scale, line.multiplier * addend + line.addend
    if rest and isinstance(rest[0], RootMultiply):
        steps = _behind_a_root(lo, hi, scale, addend, rest[0], rest[1:], quantizer)
        if steps is not None:
            return steps
    return _directed(lo, hi, scale, addend, rest, quantizer)


def _leading_affine(functions: tuple[Elementwise, ...]) -> tuple[Affine, tuple[Elementwise, ...]]:
    """Merge the leading affine functions into one; return it and the rest, which channels that differ only in scale and
    offset share."""
    line = Affine(Fraction(1), Fraction(0))
    while functions and isinstance(functions[0], Affine):
        multiplier = Fraction(functions[0].multiplier)
        line = Affine(multiplier * line.multiplier, multiplier * line.addend + functions[0].addend)
        functions = functions[1:]
    return line, functions


def _behind_a_root(
    lo: int, hi: int, scale: Fraction, addend: Fraction, root: RootMultiply, functions: tuple[Elementwise, ...],
    quantizer: Quantizer,
) -> StepFunction | None:
    """Return the steps if all functions after ``root`` are rational, else None.

    With a bound in place of the root the functions are rational. Each cut is passed at some integer, which is monotone
    in the root: if all of these integers agree for both bounds, they are the root's, too.
    """
    line, rest = _leading_affine(functions)
    rational = tuple(f for f in rest if isinstance(f, Rational))
    if len(rational) != len(rest):
        return None
    levels = _pulled(rational, quantizer)
    bits = LEAST_ROOT_BITS
    while bits <= MOST_ROOT_BITS:
        below, above = (
            _sloped(lo, hi, scale * slope, addend * slope + line.addend, levels)
            for slope in (line.multiplier * bound for bound in root.root(bits))
        )
        if below.alike(above):
            return below.steps()
        bits *= 2
    return None


MOST_UNDECIDED = 8
"""Up to so many integers of a long chain of rational functions are evaluated one by one: pulling the levels back costs
as much as some evaluations."""

LEAST_ROOT_BITS, MOST_ROOT_BITS = 128, 1024
"""Bits of the root's bounds: doubled from the first while at most the last."""


def _directed(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    if scale < 0:
        return _steps(-hi, -lo, -scale, addend, functions, quantizer).mirrored()
    if scale == 0:
        constant = _steps(0, 0, Fraction(1), addend, functions, quantizer)
        return StepFunction(lo, hi, (), [constant.first])
    return _steps(lo, hi, scale, addend, functions, quantizer)


def _steps(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    rational = tuple(f for f in functions if isinstance(f, Rational))
    few = 4 * (hi - lo + 1) <= quantizer.high - quantizer.low
    if len(rational) == len(functions) and not few:
        if len(functions) > LONG:
            with suppress(NoSteps):  # exact values are too long; those of the cuts may not be
                found = of_few(lo, hi, scale, addend, functions, quantizer, MOST_UNDECIDED)
                if found is not None:
                    return found
        return _sloped(lo, hi, scale, addend, _pulled(rational, quantizer)).steps()
    return subdivided(lo, hi, scale, addend, functions, quantizer)


@lru_cache(maxsize=64)
def _pulled(functions: tuple[Rational, ...], quantizer: Quantizer) -> Levels:
    """Pull the quantizer's levels back through ``functions``."""
    levels = quantizer.levels
    for function in reversed(functions):
        levels = function.pull(levels)
    return levels


@dataclass(frozen=True, eq=False)
class _Places:
    """The integers from ``lo`` to ``hi`` at which levels begin: cut ``first + k`` at ``places[k]``; several may
    coincide. ``mirrored``: of the negated integers."""

    lo: int
    hi: int
    first: int
    places: IntArray
    values: IntArray
    mirrored: bool

    def alike(self, other: _Places) -> bool:
        """Tell whether ``other``, of the same levels and integers, has the same places."""
        same = (self.first, self.mirrored) == (other.first, other.mirrored)
        return same and np.array_equal(self.places, other.places)

    def steps(self) -> StepFunction:
        result = StepFunction.of_arrays(self.lo, self.hi, np.append(self.lo, self.places), self.values)
        return result.mirrored() if self.mirrored else result


def _sloped(lo: int, hi: int, slope: Fraction, offset: Fraction, levels: Levels) -> _Places:
    """Return ``levels(slope * q + offset)``: each cut becomes the smallest integer at or after it."""
    mirrored = slope < 0
    if mirrored:
        lo, hi = -hi, -lo
    moved = levels.affine(abs(slope), offset)
    first, places = moved.least_integers(lo, hi)
    return _Places(lo, hi, first, places, moved.values[first : first + len(places) + 1], mirrored)
