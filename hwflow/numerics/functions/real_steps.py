"""Step functions of the reals with rational cuts.

The levels of a quantizer are one, and so is what a piecewise affine function or another quantizer makes of it: pulling
the cuts back through a chain of functions gives exact thresholds without a search.
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
class Levels:
    """``values[k]`` at x, with k the number of cuts at or below x: ``x >= numerators[k] * unit + offset``, or greater
    if ``strict[k]``.

    Cuts rise (of two at one number the strict one is later); ``unit`` is positive. So an affine pull-back changes two
    numbers, however many cuts there are.
    """

    values: IntArray
    numerators: Integers
    strict: BoolArray
    unit: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    @classmethod
    def constant(cls, value: int) -> Levels:
        """Without a cut."""
        return cls(np.array([value]), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_))

    @classmethod
    def of(cls, first: int, cuts: Iterable[tuple[Cut, int]]) -> Levels:
        """``first``, then from each cut in rising order the value with it; of equal cuts the last counts, and
        neighbours of equal value are joined."""
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
        return cls(np.array(values, dtype=np.int64), numerators, strict, Fraction(1, denominator))

    def __len__(self) -> int:
        """How many cuts there are."""
        return len(self.numerators)

    def cuts(self) -> list[tuple[Cut, int]]:
        """Every cut with the value that begins there."""
        places = [n * self.unit + self.offset for n in self.numerators.tolist()]
        return list(zip(zip(places, self.strict.tolist(), strict=True), self.values[1:].tolist(), strict=True))

    def before(self, cut: Cut) -> int:
        """How many cuts lie before ``cut``."""
        left, right = self._around(cut[0])
        return left + (int(np.count_nonzero(~self.strict[left:right])) if cut[1] else 0)

    def until(self, cut: Cut) -> int:
        """How many cuts lie before ``cut`` or at it."""
        left, right = self._around(cut[0])
        return right if cut[1] else left + int(np.count_nonzero(~self.strict[left:right]))

    def _around(self, value: Fraction) -> tuple[int, int]:
        """How many cuts lie below ``value``, and how many at or below it."""
        if not len(self):
            return 0, 0
        numerator = (value - self.offset) / self.unit
        below = min(max(floor(numerator), int(self.numerators[0]) - 1), int(self.numerators[-1]) + 1)
        right = int(np.searchsorted(self.numerators, below, side="right"))
        left = int(np.searchsorted(self.numerators, below, side="left")) if below == numerator else right
        return left, right

    def __call__(self, x: Fraction) -> int:
        """The value at ``x``."""
        return int(self.values[self.until((x, False))])

    def affine(self, multiplier: Fraction, addend: Fraction) -> Levels:
        """As a function of x, with these the levels of ``multiplier * x + addend``."""
        if multiplier == 0:
            return Levels.constant(self(addend))
        unit, offset = self.unit / abs(multiplier), (self.offset - addend) / multiplier
        if multiplier > 0:
            return Levels(self.values, self.numerators, self.strict, unit, offset)
        return Levels(self.values[::-1], -self.numerators[::-1], ~self.strict[::-1], unit, offset)

    def least_integers(self, lo: int, hi: int) -> tuple[int, IntArray]:
        """For each cut that begins after ``lo`` and not after ``hi`` the least integer at or behind it; and how many
        cuts begin at ``lo`` or before it."""
        first, last = self.until((Fraction(lo), False)), self.until((Fraction(hi), False))
        return first, least_integers(self.numerators[first:last], self.strict[first:last], self.unit, self.offset)


def integers(numbers: Sequence[int]) -> Integers:
    """As int64, or as Python ints where one is too large."""
    large = any(abs(n) >= SAFE for n in numbers)
    result = np.empty(len(numbers), dtype=object if large else np.int64)
    result[:] = numbers
    return result


def least_integers(numerators: Integers, strict: BoolArray, unit: Fraction, offset: Fraction) -> IntArray:
    """The least integer at or behind each cut (see Levels): exact, in int64 where that suffices, else estimated in
    float64 and computed anew where the estimate does not tell."""
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
    error = (np.abs(products) + abs(float(offset))) * 2.0**-50  # twice what three roundings and one sum come to
    low, high = np.ceil(estimates - error), np.ceil(estimates + error)
    result = low.astype(np.int64)
    unclear = np.flatnonzero((low != high) | (np.abs(estimates) > EXACT_FLOAT))
    result[unclear] = exact(unclear)
    return result


def join(pieces: Sequence[Levels], cuts: Sequence[Cut]) -> Levels:
    """``pieces[0]`` before ``cuts[0]``, ``pieces[1]`` from there to ``cuts[1]`` and so on."""
    parts: list[Levels] = []  # each begins with a cut, but the first
    for k, piece in enumerate(pieces):
        first = piece.until(cuts[k - 1]) if k else 0
        last = max(first, piece.before(cuts[k])) if k < len(cuts) else len(piece)
        if k and piece.values[first] != parts[-1].values[-1]:
            place, above = cuts[k - 1]
            zero = np.zeros(1, dtype=np.int64)
            parts.append(Levels(piece.values[first : first + 1], zero, np.array([above]), offset=place))
        own = slice(first, last)
        values = piece.values[first + bool(k) : last + 1]
        if len(values):
            parts.append(Levels(values, piece.numerators[own], piece.strict[own], piece.unit, piece.offset))
    cutting = [part for part in parts if len(part)]
    values, strict = np.concatenate([p.values for p in parts]), np.concatenate([p.strict for p in parts])
    if len(cutting) <= 1:
        one = (cutting or parts)[0]
        return Levels(values, one.numerators, strict, one.unit, one.offset)
    common = lcm(*(v.denominator for part in cutting for v in (part.unit, part.offset)))
    numerators = [_times(part.numerators, int(part.unit * common), int(part.offset * common)) for part in cutting]
    return Levels(values, np.concatenate(numerators), strict, Fraction(1, common))


def _times(numbers: Integers, factor: int, addend: int) -> Integers:
    most = max(abs(int(numbers[0])), abs(int(numbers[-1])))
    kind: Any = np.int64 if max(most, 1) * factor + abs(addend) < SAFE else object
    return np.asarray(numbers.astype(kind) * factor + addend)
