"""Integers in the order of sums of integer multiples of several reals: their keys.

The reals ``a + r_1 * m_1 + .. + r_n * m_n``, with any integer a and integers m_i of known intervals, have no common
useful unit where the r_i are quotients of calibrated scales. But ``factor * a + w_1 * m_1 + .. + w_n * m_n``
with ``w_i`` near ``factor * r_i`` orders them alike if no difference of two of them, a number of the same kind, has
another sign than its key. Only differences whose keys are no further from 0 than the errors of the w_i make them can
have: :meth:`SumKeys.in_order` checks each of these exactly. Good factors are those at which all r_i are nearly
fractions: first coordinates of short vectors in a lattice (A. K. Lenstra, H. W. Lenstra, L. Lovasz: Factoring
polynomials with rational coefficients, 1982, section 1, with the simultaneous approximation at its end).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor, lcm, prod

import numpy as np
from flint import fmpz_mat

from hwflow.numerics.functions.float_interval import FloatIntervals, outwards
from hwflow.numerics.functions.piecewise import Rational
from hwflow.numerics.functions.real_steps import IntArray, Levels
from hwflow.numerics.interval import Interval

MOST_COMBINATIONS = 1 << 14
"""The limit of combinations of the m_i, without the one of the longest interval, that are enumerated."""

GREATEST_FACTOR = 1 << 40

_TOGETHER = 1 << 20  # numbers looked up at once
_SORTED = 128  # multiples that are sorted in the time of one search
_MOST_SORTED = 1 << 22  # keys, of multiples times GREATEST_FACTOR, then stay within 62 bits


@dataclass(frozen=True)
class Term:
    """``real * m`` with an integer m from ``low`` to ``high``; its key is ``weight * m``."""

    weight: int
    real: Fraction
    low: int
    high: int


@dataclass(frozen=True)
class SumKeys(Rational):
    """Map keys to their reals: a non-decreasing function.

    Between the keys of sums it is defined by its cuts: a quantizer's lie where a line of slope ``1 / factor`` has them,
    unless a key's real lies on the other side.
    """

    factor: int
    terms: tuple[Term, ...]

    @property
    def rising(self) -> bool:
        return True

    @property
    def error(self) -> Fraction:
        """Upper bound of the distance between a key and ``factor`` times its real."""
        return sum(
            (abs(t.weight - self.factor * t.real) * max(abs(t.low), abs(t.high)) for t in self.terms), Fraction(0)
        )

    def in_order(self) -> bool:
        """Decide whether keys preserve order: equal sums have equal keys, and a greater sum a greater key."""
        spans = ((t, t.high - t.low) for t in self.terms)
        differences = SumKeys(self.factor, tuple(Term(t.weight, t.real, -span, span) for t, span in spans))
        reach = ceil(differences.error)
        if 2 * reach + 1 >= self.factor:
            return False
        (near,) = differences.near([0], reach)
        return all((key > 0) == (real > 0) and (key < 0) == (real < 0) for key, real in near)

    def near(self, places: Sequence[int], reach: int) -> list[list[tuple[int, Fraction]]]:
        """Return for each of ``places`` the sums with keys at most ``reach`` away (less than half of ``factor``), as
        (key, real)."""
        longest, *others = sorted(self.terms, key=lambda t: t.low - t.high) or [Term(0, Fraction(0), 0, 0)]
        grid = list(product(*(range(t.low, t.high + 1) for t in others)))
        shifts = np.array([0], dtype=np.int64)
        for term in others:
            own = term.weight % self.factor * np.arange(term.low, term.high + 1) % self.factor
            shifts = (shifts[:, None] + own).reshape(-1) % self.factor
        rows = max(1, _TOGETHER // len(shifts))
        one_by_one = longest.high - longest.low > min(_SORTED * len(places) * len(shifts), _MOST_SORTED)
        sums = _OneBySearch(self.factor, longest) if one_by_one else _AllSorted(self.factor, longest)
        result: list[list[tuple[int, Fraction]]] = [[] for _ in places]
        for first in range(0, len(places), rows):
            begin = np.array([(p - reach) % self.factor for p in places[first : first + rows]], dtype=np.int64)
            for row, column, count in sums.within((begin[:, None] - shifts) % self.factor, 2 * reach):
                least = places[first + row] - reach
                result[first + row].append(self._sum((longest, *others), (count, *grid[column]), least))
        return result

    def _sum(self, terms: Sequence[Term], numbers: Sequence[int], least: int) -> tuple[int, Fraction]:
        """Return (key, real) of the sum with these m and the smallest key from ``least`` on."""
        pairs = list(zip(terms, numbers, strict=True))
        key = sum(t.weight * m for t, m in pairs)
        whole = -((key - least) // self.factor)
        return key + whole * self.factor, sum((t.real * m for t, m in pairs), Fraction(whole))

    def __call__(self, x: Fraction) -> Fraction:
        if x.denominator == 1:
            for _, real in self.near([int(x)], 0)[0]:
                return real
        return x / self.factor

    def pull(self, levels: Levels) -> Levels:
        cuts = levels.cuts()
        places = [floor(v * self.factor) + 1 if strict else ceil(v * self.factor) for (v, strict), _ in cuts]
        pulled = []
        for ((v, strict), value), place, near in zip(
            cuts, places, self.near(places, ceil(self.error) + 1), strict=True
        ):
            above = [key for key, real in near if (real > v if strict else real >= v)]
            below = [key for key, real in near if (real <= v if strict else real < v)]
            begin = min([max([place, *(key + 1 for key in below)]), *above])
            pulled.append(((Fraction(begin), False), value))
        return Levels.of(int(levels.values[0]), pulled)

    def enclose(self, x: Interval, bits: int) -> Interval:
        if x.exact is not None:
            return Interval.point(self(x.exact))
        margin = self.error / self.factor
        return x.affine(Fraction(1, self.factor), Fraction(0)) + Interval(-margin, margin)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        margin = np.full(x.lo.shape, outwards(self.error / self.factor)[1])
        return x.affine(Fraction(1, self.factor), Fraction(0)).widened(margin)


class _AllSorted:
    """The sorted keys of all multiples of a term, modulo ``factor``."""

    def __init__(self, factor: int, term: Term) -> None:
        self._low = term.low
        rests = term.weight % factor * np.arange(term.low, term.high + 1) % factor
        self._order = np.argsort(rests, kind="stable")
        self._rests = np.append(rests[self._order], rests[self._order] + factor)

    def within(self, begin: IntArray, width: int) -> Iterator[tuple[int, int, int]]:
        """Yield row and column of ``begin`` with each multiple whose key is at most ``width`` above, modulo the
        factor."""
        left = np.searchsorted(self._rests, begin)
        right = np.searchsorted(self._rests, begin + width, side="right")
        for row, column in zip(*np.nonzero(right != left), strict=True):
            for place in range(int(left[row, column]), int(right[row, column])):
                yield int(row), int(column), self._low + int(self._order[place % len(self._order)])


class _OneBySearch:
    """The same interface as :class:`_AllSorted`, for too many multiples to list."""

    def __init__(self, factor: int, term: Term) -> None:
        self._factor, self._term = factor, term

    def within(self, begin: IntArray, width: int) -> Iterator[tuple[int, int, int]]:
        for (row, column), start in np.ndenumerate(begin):
            count = self._term.low
            while count <= self._term.high:
                least = (int(start) - self._term.weight * count) % self._factor
                steps = _first_between(self._term.weight, self._factor, least, least + width)
                if steps is None or count + steps > self._term.high:
                    break
                yield row, column, count + steps
                count += steps + 1


def _first_between(weight: int, modulus: int, low: int, high: int) -> int | None:
    """Return the smallest n >= 0 with ``weight * n`` from ``low`` to ``high`` modulo ``modulus`` (0 <= low < modulus,
    and low <= high); None if there is none. By Euclid's algorithm: either a multiple of the weight lies there, or the
    number of times that the modulus is passed before solves the same problem with the weight as modulus."""
    if high >= modulus:
        return 0
    weight %= modulus
    if low == 0:
        return 0
    if weight == 0:
        return None
    if 2 * weight > modulus:
        weight, low, high = modulus - weight, modulus - high, modulus - low
    steps = -(-low // weight)
    if weight * steps <= high:
        return steps
    passes = _first_between(-modulus, weight, low % weight, high % weight)
    return None if passes is None else -(-(low + modulus * passes) // weight)


def find_keys(reals: Sequence[tuple[Fraction, int, int]]) -> SumKeys | None:
    """Find keys of sums of the multiples ``low`` to ``high`` of each of ``reals``; None if there are too many sums, or
    no factor up to GREATEST_FACTOR was found."""
    needed = [(real, low, high) for real, low, high in reals if real.denominator > 1 and high > low]
    if not needed:
        return SumKeys(1, ())
    spans = [2 * (high - low) + 1 for _, low, high in needed]
    if prod(spans) // max(spans) > MOST_COMBINATIONS:
        return None
    exact = lcm(*(real.denominator for real, _, _ in needed))
    if exact <= prod(spans):
        return _keys(exact, needed)
    stretch = prod(spans)
    while stretch <= GREATEST_FACTOR:
        for factor in _factors(needed, stretch):
            keys = _keys(factor, needed)
            if factor <= GREATEST_FACTOR and keys.in_order():
                return keys
        stretch *= 4
    return None


def _keys(factor: int, reals: Sequence[tuple[Fraction, int, int]]) -> SumKeys:
    return SumKeys(factor, tuple(Term(round(factor * real), real, low, high) for real, low, high in reals))


def _factors(reals: Sequence[tuple[Fraction, int, int]], stretch: int) -> list[int]:
    """Return factors f that balance f against ``stretch`` times the greatest error of ``f * real * (high - low)``."""
    weights = [stretch * (high - low) for _, low, high in reals]
    rows = [[1, *(round(w * (real % 1)) for w, (real, _, _) in zip(weights, reals, strict=True))]]
    rows += [[0, *(w if k == j else 0 for k in range(len(weights)))] for j, w in enumerate(weights)]
    return sorted({abs(int(row[0])) for row in fmpz_mat(rows).lll().tolist() if row[0]})
