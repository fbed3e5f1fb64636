"""Piecewise affine functions, and staircases: their values and steps are rational."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf

import numpy as np

from hwflow.numerics.functions.float_interval import FloatIntervals, outwards
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.real_steps import Cut, Levels, join
from hwflow.numerics.interval import End, Interval
from hwflow.numerics.rounding import Rounding

ZERO, ONE = Fraction(0), Fraction(1)
Piece = tuple[Fraction, Fraction]  # multiplier and addend


class Rational(Elementwise):
    """A function with rational values and rational steps at rational numbers; defined everywhere."""

    @abstractmethod
    def __call__(self, x: Fraction) -> Fraction:
        """Return the value at ``x``."""

    @abstractmethod
    def pull(self, levels: Levels) -> Levels:
        """Pull ``levels`` of this function's value back to levels of its argument."""


class Piecewise(Rational):
    """Affine on each of finitely many intervals."""

    @abstractmethod
    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        """Return the pieces from left to right, and the cuts between them (one fewer)."""

    @property
    def rising(self) -> bool:
        return all(multiplier >= 0 for multiplier, _ in self.pieces()[0]) and all(j >= 0 for j in self.jumps())

    def __call__(self, x: Fraction) -> Fraction:
        pieces, cuts = self.pieces()
        multiplier, addend = pieces[sum(x > v if strict else x >= v for v, strict in cuts)]
        return multiplier * x + addend

    def pull(self, levels: Levels) -> Levels:
        pieces, cuts = self.pieces()
        return join([levels.affine(*piece) for piece in pieces], cuts)

    def enclose(self, x: Interval, bits: int) -> Interval:
        pieces, cuts = self.pieces()
        parts = []
        for piece, begin, end in zip(pieces, (None, *cuts), (*cuts, None), strict=True):
            domain = Interval(
                -inf if begin is None else begin[0], inf if end is None else end[0], begin is not None and begin[1],
                end is not None and not end[1],
            )
            if (part := x.intersection(domain)) is not None:
                parts.append(part.affine(*piece))
        result = parts[0]
        for part in parts[1:]:
            result = result.hull(part)
        return result

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        pieces, cuts = self.pieces()
        ends = [outwards(v) for v, _ in cuts]
        # a cut that is itself a float belongs to one side only
        left = [below == above and strict for (below, above), (_, strict) in zip(ends, cuts, strict=True)]
        right = [below == above and not strict for (below, above), (_, strict) in zip(ends, cuts, strict=True)]
        lo, hi = np.full(x.lo.shape, inf), np.full(x.hi.shape, -inf)
        for k, piece in enumerate(pieces):
            begin = ends[k - 1][0] if k else -inf
            end = ends[k][1] if k < len(ends) else inf
            inside = (x.hi > begin if k and left[k - 1] else x.hi >= begin) & (
                x.lo < end if k < len(ends) and right[k] else x.lo <= end
            )
            part = x.within(begin, end).affine(*piece)
            lo = np.where(inside, np.minimum(lo, part.lo), lo)
            hi = np.where(inside, np.maximum(hi, part.hi), hi)
        return x.bounded(lo, hi)

    def jumps(self) -> list[Fraction]:
        """Return the jump of the value at each cut."""
        pieces, cuts = self.pieces()
        steps = zip(pairwise(pieces), cuts, strict=True)
        return [(right[0] - left[0]) * v + right[1] - left[1] for (left, right), (v, _) in steps]


@dataclass(frozen=True)
class Affine(Piecewise):
    """``multiplier * x + addend``; the multiplier may be negative, or 0 (as a BatchNormalization may have)."""

    multiplier: Fraction
    addend: Fraction

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        return ((Fraction(self.multiplier), Fraction(self.addend)),), ()


@dataclass(frozen=True)
class Clip(Piecewise):
    """``min(max(x, low), high)``, as ONNX defines Clip (``low > high`` gives ``high`` everywhere); None: no limit."""

    low: Fraction | None
    high: Fraction | None

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        if self.low is not None and self.high is not None and self.low > self.high:
            return ((ZERO, Fraction(self.high)),), ()
        pieces: list[Piece] = [(ONE, ZERO)]
        cuts: list[Cut] = []
        if self.low is not None:
            pieces.insert(0, (ZERO, Fraction(self.low)))
            cuts.append((Fraction(self.low), False))
        if self.high is not None:
            pieces.append((ZERO, Fraction(self.high)))
            cuts.append((Fraction(self.high), True))
        return tuple(pieces), tuple(cuts)


@dataclass(frozen=True)
class Relu(Piecewise):
    """``max(x, 0)``."""

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        return ((ZERO, ZERO), (ONE, ZERO)), ((ZERO, False),)


@dataclass(frozen=True)
class LeakyRelu(Piecewise):
    """``alpha * x`` for negative x, else x; any ``alpha``."""

    alpha: Fraction

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        return ((Fraction(self.alpha), ZERO), (ONE, ZERO)), ((ZERO, False),)


@dataclass(frozen=True)
class ThresholdedRelu(Piecewise):
    """``x`` where ``x > alpha``, else 0."""

    alpha: Fraction

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        return ((ZERO, ZERO), (ONE, ZERO)), ((Fraction(self.alpha), True),)


@dataclass(frozen=True)
class HardSigmoid(Piecewise):
    """``max(0, min(1, alpha * x + beta))``; any ``alpha``."""

    alpha: Fraction
    beta: Fraction

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        alpha, beta = Fraction(self.alpha), Fraction(self.beta)
        if alpha == 0:
            return ((ZERO, max(ZERO, min(ONE, beta))),), ()
        zero, one = -beta / alpha, (1 - beta) / alpha
        if alpha > 0:
            return ((ZERO, ZERO), (alpha, beta), (ZERO, ONE)), ((zero, False), (one, True))
        return ((ZERO, ONE), (alpha, beta), (ZERO, ZERO)), ((one, False), (zero, True))


@dataclass(frozen=True)
class Abs(Piecewise):
    """``|x|``."""

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        return ((-ONE, ZERO), (ONE, ZERO)), ((ZERO, False),)


@dataclass(frozen=True)
class Sign(Piecewise):
    """-1, 0 or 1."""

    def pieces(self) -> tuple[tuple[Piece, ...], tuple[Cut, ...]]:
        return ((ZERO, -ONE), (ZERO, ZERO), (ZERO, ONE)), ((ZERO, False), (ZERO, True))


class Stairs(Rational):
    """A non-decreasing function that is constant between rational cuts."""

    @property
    def rising(self) -> bool:
        return True

    @abstractmethod
    def cut(self, bound: Cut) -> Cut | bool:
        """Return where the values at or above ``bound`` begin; True: all are, False: none is."""

    @abstractmethod
    def limit(self, end: End) -> End:
        """Return the value beyond all cuts, towards this infinity."""

    def pull(self, levels: Levels) -> Levels:
        first, pulled = int(levels.values[0]), []
        for bound, value in levels.cuts():
            cut = self.cut(bound)
            if cut is True:
                first = value
            elif cut is not False:
                pulled.append((cut, value))
        return Levels.of(first, pulled)

    def enclose(self, x: Interval, bits: int) -> Interval:
        lo, hi = (end if isinstance(end, Fraction) else None for end in (x.lo, x.hi))
        return Interval(
            self.limit(x.lo) if lo is None else self(lo), self.limit(x.hi) if hi is None else self(hi)
        )


@dataclass(frozen=True)
class Round(Stairs):
    """Round to an integer; Rounding.ROUND is ONNX's Round, FLOOR and CEIL its Floor and Ceil."""

    rounding: Rounding

    def __call__(self, x: Fraction) -> Fraction:
        return Fraction(self.rounding(x))

    def cut(self, bound: Cut) -> Cut | bool:
        value, strict = bound
        return self.rounding.bound(floor(value) + 1 if strict else ceil(value))

    def limit(self, end: End) -> End:
        return end

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        return x.rising(self.rounding.floats)


@dataclass(frozen=True)
class Steps(Stairs):
    """The number of ``thresholds`` (rising, duplicates counted) that are at most x."""

    thresholds: tuple[Fraction, ...]

    def __call__(self, x: Fraction) -> Fraction:
        return Fraction(bisect_right(self.thresholds, x))

    def cut(self, bound: Cut) -> Cut | bool:
        value, strict = bound
        count = floor(value) + 1 if strict else ceil(value)  # the smallest count within the bound
        if count <= 0:
            return True
        return count <= len(self.thresholds) and (self.thresholds[count - 1], False)

    def limit(self, end: End) -> End:
        return Fraction(len(self.thresholds) if end > 0 else 0)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        below, above = (np.array([outwards(t)[side] for t in self.thresholds]) for side in (0, 1))
        least = np.searchsorted(above, x.lo, side="right").astype(np.float64)
        most = np.searchsorted(below, x.hi, side="right").astype(np.float64)
        return x.bounded(least, most)


@dataclass(frozen=True)
class PassedCuts(Stairs):
    """The number of ``cuts`` at or before x; they rise, of two at one number the strict one is later."""

    cuts: tuple[Cut, ...]

    def __call__(self, x: Fraction) -> Fraction:
        return Fraction(bisect_right(self.cuts, (x, False)))

    def cut(self, bound: Cut) -> Cut | bool:
        value, strict = bound
        count = floor(value) + 1 if strict else ceil(value)  # the smallest count within the bound
        if count <= 0:
            return True
        return count <= len(self.cuts) and self.cuts[count - 1]

    def limit(self, end: End) -> End:
        return Fraction(len(self.cuts) if end > 0 else 0)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        below, above = (np.array([outwards(value)[side] for value, _ in self.cuts]) for side in (0, 1))
        least = np.searchsorted(above, x.lo, side="left").astype(np.float64)  # strict ones may not be passed at it
        most = np.searchsorted(below, x.hi, side="right").astype(np.float64)
        return x.bounded(least, most)


@dataclass(frozen=True)
class Ranked(Stairs):
    """``levels[k]`` from x = k on: the number of a rank among rising numbers; the first before 0, the last beyond the
    end."""

    levels: tuple[Fraction, ...]

    def __call__(self, x: Fraction) -> Fraction:
        return self.levels[min(max(floor(x), 0), len(self.levels) - 1)]

    def cut(self, bound: Cut) -> Cut | bool:
        value, strict = bound
        place = bisect_right(self.levels, value) if strict else bisect_left(self.levels, value)
        return place == 0 or (place < len(self.levels) and (Fraction(place), False))

    def limit(self, end: End) -> End:
        return self.levels[-1 if end > 0 else 0]

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        below, above = (np.array([outwards(level)[side] for level in self.levels]) for side in (0, 1))
        last = len(self.levels) - 1
        low, high = (np.clip(np.floor(end), 0, last).astype(np.int64) for end in (x.lo, x.hi))
        return x.bounded(below[low], above[high])
