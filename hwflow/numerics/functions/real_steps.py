"""Step functions of the reals with rational cuts.

The levels of a quantizer are such a function, and so is its composition with a piecewise affine function or another
quantizer: pulling the cuts back through a chain of functions gives exact thresholds without a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Integers = npt.NDArray[Any]  # int64, or object holding Python ints

Cut = tuple[Fraction, bool]  # (v, strict): where x > v begins if strict, else where x >= v begins

SAFE = 1 << 62
EXACT_FLOAT = 1 << 53  # every integer up to it is a float64


@dataclass(frozen=True, eq=False)
class Cuts:
    """Rising cuts at ``numerators[k] * unit + offset``: ``x >`` that if ``strict[k]``, else ``x >=`` that; ``unit`` is
    positive. An affine pull-back changes two numbers, however many cuts there are."""

    numerators: Integers
    strict: BoolArray
    unit: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def __len__(self) -> int:
        return len(self.numerators)

    def at(self, some: slice) -> Cuts:
        """Return a slice of the cuts."""
        return Cuts(self.numerators[some], self.strict[some], self.unit, self.offset)

    def listed(self) -> list[Cut]:
        places = [n * self.unit + self.offset for n in self.numerators.tolist()]
        return list(zip(places, self.strict.tolist(), strict=True))

    def before(self, cut: Cut, *, also_at: bool) -> int:
        """Count the cuts before ``cut`` (``also_at``: or at it)."""
        if not len(self):
            return 0
        value, strict = cut
        numerator = (value - self.offset) / self.unit
        below = min(max(floor(numerator), int(self.numerators[0]) - 1), int(self.numerators[-1]) + 1)
        right = int(np.searchsorted(self.numerators, below, side="right"))
        left = int(np.searchsorted(self.numerators, below, side="left")) if below == numerator else right
        if strict and also_at:
            return right
        return left + (int(np.count_nonzero(~self.strict[left:right])) if strict or also_at else 0)

    def affine(self, multiplier: Fraction, addend: Fraction) -> Cuts:
        """Pull the cuts back through ``multiplier * x + addend``; the multiplier must not be 0."""
        unit, offset = self.unit / abs(multiplier), (self.offset - addend) / multiplier
        if multiplier > 0:
            return Cuts(self.numerators, self.strict, unit, offset)
        return Cuts(-self.numerators[::-1], ~self.strict[::-1], unit, offset)

    def least_integers(self) -> IntArray:
        """Return the smallest integer at or after each cut."""
        return least_integers(self.numerators, self.strict, self.unit, self.offset)


@dataclass(frozen=True, eq=False)
class Levels:
    """``values[k]`` at x, with k the number of cuts at or before x; the cuts are consecutive ``runs`` (of two cuts at
    one number the strict one is later)."""

    values: IntArray
    runs: tuple[Cuts, ...]

    @classmethod
    def constant(cls, value: int) -> Levels:
        """Return a constant function."""
        return cls(np.array([value]), ())

    @classmethod
    def of(cls, first: int, cuts: Iterable[tuple[Cut, int]]) -> Levels:
        """Return ``first``, then from each cut, in rising order, its value; the last of equal cuts counts, and equal
        neighbours are merged."""
        values, kept = [first], list[Cut]()
        for cut, value in cuts:
            if kept and kept[-1] == cut:
                kept.pop()
                values.pop()
            if values[-1] != value:
                kept.append(cut)
                values.append(value)
        denominator = lcm(*(v.denominator for v, _ in kept))
        numerators = integers([v.numerator * (denominator // v.denominator) for v, _ in kept])
        strict = np.array([s for _, s in kept], dtype=np.bool_)
        return cls(np.array(values, dtype=np.int64), (Cuts(numerators, strict, Fraction(1, denominator)),))

    def __len__(self) -> int:
        """Return the number of cuts."""
        return len(self.values) - 1

    def cuts(self) -> list[tuple[Cut, int]]:
        """Return every cut with the value that begins there."""
        return list(zip([c for run in self.runs for c in run.listed()], self.values[1:].tolist(), strict=True))

    def before(self, cut: Cut) -> int:
        """Count the cuts before ``cut``."""
        return sum(run.before(cut, also_at=False) for run in self.runs)

    def until(self, cut: Cut) -> int:
        """Count the cuts before or at ``cut``."""
        return sum(run.before(cut, also_at=True) for run in self.runs)

    def between(self, first: int, last: int) -> tuple[Cuts, ...]:
        """Return the cuts with numbers ``first`` to ``last``, exclusive."""
        found, place = [], 0
        for run in self.runs:
            part = run.at(slice(max(0, first - place), max(0, last - place)))
            if len(part):
                found.append(part)
            place += len(run)
        return tuple(found)

    def __call__(self, x: Fraction) -> int:
        """Return the value at ``x``."""
        return int(self.values[self.until((x, False))])

    def affine(self, multiplier: Fraction, addend: Fraction) -> Levels:
        """Pull the levels back through ``multiplier * x + addend``."""
        if multiplier == 0:
            return Levels.constant(self(addend))
        runs = tuple(run.affine(multiplier, addend) for run in self.runs)
        return Levels(self.values, runs) if multiplier > 0 else Levels(self.values[::-1], runs[::-1])

    def least_integers(self, lo: int, hi: int) -> tuple[int, IntArray]:
        """Return how many cuts are passed at ``lo``, and for each further one up to ``hi`` the smallest integer at or
        after it."""
        first, last = self.until((Fraction(lo), False)), self.until((Fraction(hi), False))
        found = [run.least_integers() for run in self.between(first, last)]
        return first, found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *found])


def integers(numbers: Sequence[int]) -> Integers:
    """Return an array of int64, or of Python ints where one is too large."""
    large = any(abs(n) >= SAFE for n in numbers)
    result = np.empty(len(numbers), dtype=object if large else np.int64)
    result[:] = numbers
    return result


def least_integers(numerators: Integers, strict: BoolArray, unit: Fraction, offset: Fraction) -> IntArray:
    """Return the smallest integer at or after each cut (see Cuts). Exact: in int64 where that suffices, else estimated
    in float64 and recomputed where the estimate is inconclusive."""
    if not len(numerators):
        return np.empty(0, dtype=np.int64)
    denominator = lcm(unit.denominator, offset.denominator)
    factor = unit.numerator * (denominator // unit.denominator)
    addend = offset.numerator * (denominator // offset.denominator)
    most = max(abs(int(numerators[0])), abs(int(numerators[-1])))
    if max(max(most, 1) * factor + abs(addend), denominator) < SAFE:
        return np.asarray((numerators.astype(np.int64) * factor + addend - ~strict) // denominator + 1)

    def exact(places: Any) -> IntArray:
        cuts = zip(numerators[places].tolist(), strict[places].tolist(), strict=True)
        return np.array([(n * factor + addend - (not s)) // denominator + 1 for n, s in cuts], dtype=np.int64)

    if most >= EXACT_FLOAT or unit > EXACT_FLOAT or unit < Fraction(1, EXACT_FLOAT) or abs(offset) > SAFE:
        return exact(slice(None))
    products = numerators.astype(np.float64) * float(unit)
    estimates = products + float(offset)
    error = (np.abs(products) + abs(float(offset))) * 2.0**-50  # twice the error of three roundings and one sum
    low, high = np.ceil(estimates - error), np.ceil(estimates + error)
    result = low.astype(np.int64)
    unclear = np.flatnonzero((low != high) | (np.abs(estimates) > EXACT_FLOAT))
    result[unclear] = exact(unclear)
    return result


def join(pieces: Sequence[Levels], cuts: Sequence[Cut]) -> Levels:
    """Join ``pieces[0]`` before ``cuts[0]``, ``pieces[1]`` from there to ``cuts[1]``, and so on."""
    values: list[IntArray] = []
    runs: list[Cuts] = []
    for k, piece in enumerate(pieces):
        first = piece.until(cuts[k - 1]) if k else 0
        last = max(first, piece.before(cuts[k])) if k < len(cuts) else len(piece)
        if k and piece.values[first] != values[-1][-1]:
            place, above = cuts[k - 1]
            values.append(piece.values[first : first + 1])
            runs.append(Cuts(np.zeros(1, dtype=np.int64), np.array([above]), offset=place))
        if not k or last > first:
            values.append(piece.values[first + bool(k) : last + 1])
        runs += piece.between(first, last)
    return Levels(np.concatenate(values), tuple(runs))
