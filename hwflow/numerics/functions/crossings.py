"""Find where functions that are monotone on a part of the reals cross the boundaries of a quantizer's levels.

On such a part each level begins at one place. Cubic interpolation estimates it, and two points on either side of the
estimate bracket it. The bracket is then short enough for the secant, whose error is quadratic in its length, so the
brackets shrink fast. Where estimates mislead (a kink), or float64 cannot tell the sides apart, the bracket is cut into
thirds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hwflow.numerics.functions.float_interval import BoolArray, FloatArray, FloatIntervals
from hwflow.numerics.functions.function import Elementwise, floats
from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.rounding import Quantizer

CUBIC_REACH, CHORD_REACH = 2.0**-22, 2.0**-6  # assumed error of an estimate at first, as a share of the bracket
WIDER = 1 << 10  # factor on that where the error was greater
THIRD = 1 / 3


class _Known(NamedTuple):
    """What float64 proves at each place: the lowest and the highest possible level; and the approximate value."""

    low: IntArray
    high: IntArray
    value: FloatArray

    def at(self, places: Any) -> _Known:
        return _Known(*(column[places] for column in self))


class _Brackets(NamedTuple):
    """The place where each of ``cuts``, levels that begin or end there, is bracketed by ``below``, certainly below the
    level, and ``above``, certainly at it or above (either may come first); ``under`` and ``over``: values there. Where
    no such place exists, the interval's end takes it. ``guess``: the estimate, as a share of the bracket."""

    cuts: IntArray
    below: IntArray
    above: IntArray
    under: FloatArray
    over: FloatArray
    guess: FloatArray

    def at(self, places: Any) -> _Brackets:
        return _Brackets(*(column[places] for column in self))

    def chord(self, targets: FloatArray) -> FloatArray:
        """Return where the secant has these values, as a share of the bracket."""
        with np.errstate(all="ignore"):
            share = (targets - self.under) / (self.over - self.under)
        return np.where(np.isnan(share), 0.5, np.clip(share, 0.0, 1.0))


Columns = TypeVar("Columns", _Known, _Brackets)


class Crossings:
    """Crossings of ``functions`` and ``quantizer``; places are counted in cells, ``unit`` wide (a power of two)."""

    def __init__(self, functions: Sequence[Elementwise], quantizer: Quantizer, unit: float) -> None:
        self._functions, self._quantizer, self._unit = functions, quantizer, np.float64(unit)
        (cuts,) = quantizer.levels.runs
        self._bounds = cuts.numerators * float(cuts.unit) + float(cuts.offset)

    def parts(
        self, begins: IntArray, ends: IntArray, rising: BoolArray, finest: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return begins, ends and levels of the parts whose level is certain, in sorted intervals on each of which the
        functions are monotone.

        Between them, at a crossing, at most ``finest`` cells are left undecided where float64 is precise enough.
        """
        new = np.append(True, (begins[1:] != ends[:-1]) | (rising[1:] != rising[:-1]))[: len(begins)]
        firsts = np.flatnonzero(new).tolist()
        if not firsts:
            return begins, ends, begins
        runs = [
            (np.append(begins[i:j], ends[j - 1]), bool(rising[i]))
            for i, j in zip(firsts, [*firsts[1:], len(begins)], strict=True)
        ]
        known = _split(self._known(np.concatenate([places for places, _ in runs])), [len(places) for places, _ in runs])
        brackets = [self._brackets(places, k, rises) for (places, rises), k in zip(runs, known, strict=True)]
        together = _Brackets(*map(np.concatenate, zip(*(b for b, _ in brackets), strict=True)))
        self._narrow(together, finest)
        done = [
            _parts(places, b, first, rises)
            for (places, rises), (_, first), b in zip(
                runs, brackets, _split(together, [len(b.cuts) for b, _ in brackets]), strict=True
            )
        ]
        begins, ends, levels = (np.concatenate(column) for column in zip(*done, strict=True))
        return begins, ends, levels

    def _known(self, places: IntArray) -> _Known:
        x = np.asarray(places * self._unit)
        with np.errstate(all="ignore"):
            y = floats(self._functions, FloatIntervals.of(x, x))
            return _Known(*self._quantizer.floats(y), np.asarray((y.lo + y.hi) / 2))

    def _targets(self, cuts: IntArray) -> FloatArray:
        """Return the values at which levels begin."""
        return np.asarray(self._bounds[cuts - self._quantizer.low - 1])

    def _brackets(self, places: IntArray, known: _Known, rises: bool) -> tuple[_Brackets, int]:
        """Return the brackets of all levels that may begin or end in the interval of these places, from left to right,
        and its first level."""
        order = slice(None, None, 1 if rises else -1)
        places, known = places[order], known.at(order)
        low, high = np.maximum.accumulate(known.low), np.minimum.accumulate(known.high[::-1])[::-1]
        cuts = np.arange(low[0] + 1, high[-1] + 1)
        below = np.maximum(np.searchsorted(high, cuts) - 1, 0)
        above = np.minimum(np.searchsorted(low, cuts), len(places) - 1)
        begin, end = places[below], places[above]
        guess = _cubic(known.value, places.astype(np.float64), below, self._targets(cuts))
        share = (guess - begin) / (end - begin)
        brackets = _Brackets(cuts, begin, end, known.value[below], known.value[above], share)
        return brackets.at(order), int(low[0] if rises else high[-1])

    def _narrow(self, brackets: _Brackets, finest: int) -> None:
        """Narrow each bracket to at most ``finest`` cells."""
        targets, guess = self._targets(brackets.cuts), brackets.guess
        inside = (guess >= 0) & (guess <= 1)
        guess[~inside] = brackets.chord(targets)[~inside]
        reach = np.where(inside, CUBIC_REACH, CHORD_REACH)
        left = np.flatnonzero(np.abs(brackets.above - brackets.below) > finest)
        while left.size:
            b = brackets.at(left)
            near, far, thirds = _tried(b, reach[left], finest)
            tried = [(place, self._known(place)) for place in (near, far)]
            below, under, above, over = b.below, b.under, b.above, b.over
            for place, known in tried:
                passed = known.high < b.cuts
                below, under = np.where(passed, place, below), np.where(passed, known.value, under)
            for place, known in reversed(tried):
                passed = known.low >= b.cuts
                above, over = np.where(passed, place, above), np.where(passed, known.value, over)
            new = _Brackets(b.cuts, below, above, under, over, b.guess)
            new = new._replace(guess=new.chord(targets[left]))
            for column, changed in zip(brackets, new, strict=True):
                column[left] = changed
            hit = (below == near) & (above == far)
            trusted = np.where(hit, 4 * reach[left] ** 2, WIDER * reach[left])
            reach[left] = np.where(thirds, CHORD_REACH, trusted)
            stuck = thirds & (below == b.below) & (above == b.above)
            left = left[(np.abs(above - below) > finest) & ~stuck]


def _tried(b: _Brackets, reach: FloatArray, finest: int) -> tuple[IntArray, IntArray, BoolArray]:
    """Return two trial places in each bracket, the one towards ``below`` first, and which of them are thirds."""
    way = b.above - b.below
    reach = np.maximum(reach, 0.5 * finest / np.abs(way))
    thirds = reach >= 0.25
    near = np.where(thirds, THIRD, np.maximum(b.guess - reach, 0.0))
    far = np.where(thirds, 2 * THIRD, np.minimum(b.guess + reach, 1.0))
    near, far = (b.below + np.rint(part * way).astype(np.int64) for part in (near, far))
    return near, far, thirds


def _cubic(x: FloatArray, y: FloatArray, below: IntArray, at: FloatArray) -> FloatArray:
    """Return Newton's polynomial through (x, y), from the point before ``below`` on, at ``at``; NaN where there are
    fewer than four points."""
    if len(x) < 4:
        return np.full(len(at), np.nan)
    with np.errstate(all="ignore"):
        first = np.diff(y) / np.diff(x)
        second = np.diff(first) / (x[2:] - x[:-2])
        third = np.diff(second) / (x[3:] - x[:-3])
        k = np.clip(below - 1, 0, len(x) - 4)
        a, b, c = (at - x[k + j] for j in range(3))
        return np.asarray(y[k] + a * (first[k] + b * (second[k] + c * third[k])))


def _parts(places: IntArray, b: _Brackets, first: int, rises: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Return begins, ends and levels of the parts between the brackets of an interval."""
    # levels begin in order
    ends = np.append(np.maximum.accumulate(np.minimum(b.below, b.above)), places[-1])
    begins = np.append(places[0], np.minimum.accumulate(np.maximum(b.below, b.above)[::-1])[::-1])
    levels = np.append(first, b.cuts if rises else b.cuts - 1)
    some = begins < ends
    return begins[some], ends[some], levels[some]


def _split(columns: Columns, lengths: Sequence[int]) -> list[Columns]:
    """Split columns into consecutive groups of rows with these lengths."""
    ends = np.cumsum(lengths).tolist()
    return [columns.at(slice(end - length, end)) for end, length in zip(ends, lengths, strict=True)]
