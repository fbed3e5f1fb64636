"""Step functions of any function that can be enclosed: few integers one by one, else by subdividing the reals.

Few integers are evaluated in float64, all at once. Otherwise the reals are subdivided in float64, many intervals at
once: an interval whose values all round to one level is done, others are split in four, down to 2**-48 of the range.
All channels of a chain share the result. Slivers around the cuts, and flat parts that lie exactly on a rounding
boundary, stay undecided; usually few integers fall there. These are evaluated one by one: in float64, then with exact
rationals, and for irrational values with growing precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.function import Elementwise, enclose, floats
from hwflow.numerics.functions.real_steps import Cuts, Levels, least_integers
from hwflow.numerics.interval import Interval, NoSteps, Undefined
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.rounding import Quantizer

IntArray = NDArray[np.int64]

GRID_BITS = 48  # the range is cut into 2 * 2**48 cells at most
FIRST_BITS = 40  # log2 of the first intervals' width in cells
WIDTHS = tuple(1 << bits for bits in range(0, FIRST_BITS, 8))  # widths of the finest parts, in cells: few, to be shared
BESIDE_INTEGERS = 1 << 8  # finest parts per distance of two integers, at least: few integers stay undecided
MAX_PENDING = 1 << 15  # float intervals examined at once, plus eight per level
MAX_EXACT = 1 << 15  # exact evaluations per channel, plus four per level
LEAST_BITS, MOST_BITS = 96, 6144  # relative precision of an enclosure: doubled from the first while below the last
FEW_POINTS = 1 << 12  # integers evaluated one by one, plus one per level
SHORT = 4  # integers between two parts that are evaluated one by one
LARGEST_POINT = 1 << 53  # every integer up to it is a float64
LONG = 16  # functions in a chain: n times as long a chain gets an n-th of the intervals and evaluations


@dataclass(frozen=True)
class Parts:
    """The parts of the reals whose level is decided: from ``begins`` to ``ends`` (in cells, rising, both inclusive),
    with their ``levels``. The first is a sentinel that ends before the range."""

    begins: IntArray
    ends: IntArray
    levels: IntArray


def subdivided(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    """Return the step function ``quantizer(functions(scale * q + addend))`` over the integers ``lo`` to ``hi``;
    ``scale`` must be positive.

    Raises NoSteps if the functions are undefined at an integer, if MOST_BITS do not decide one, if the limit of exact
    evaluations (see MAX_EXACT) is reached, or if an exact value is too long.
    """
    if hi - lo < FEW_POINTS + quantizer.high - quantizer.low and max(-lo, hi) <= LARGEST_POINT:
        return pointwise(lo, hi, scale, addend, functions, quantizer)
    largest = max(abs(scale * lo + addend), abs(scale * hi + addend))
    exponent = max(largest.numerator.bit_length() - largest.denominator.bit_length() + 1, -512)
    if exponent > 1000:
        raise NoSteps("have arguments up to 2**1000, but they are greater")
    # a part begins at q = (begin * cell - addend) / scale
    unit, offset = Fraction(2) ** (exponent - GRID_BITS) / scale, -addend / scale
    finest = max((w for w in WIDTHS if w * unit * BESIDE_INTEGERS <= 1), default=1)
    parts = _parts(functions, quantizer, exponent, finest)
    cuts = Cuts(parts.begins[1:], np.zeros(len(parts.begins) - 1, np.bool_), unit, offset)
    first, places = Levels(parts.levels, (cuts,)).least_integers(lo, hi)
    begins: IntArray = np.append(lo, places)
    here = slice(first, first + len(begins))
    levels = parts.levels[here]
    starts, ends = _gaps(parts.ends[here], begins, hi, unit, offset)
    if starts.size:
        starts, between = _Decider(scale, addend, functions, quantizer).ranges(starts, ends)
        at = np.searchsorted(begins, starts, side="right")
        begins, levels = np.insert(begins, at, starts), np.insert(levels, at, between)
    return StepFunction.of_arrays(lo, hi, begins, levels)


def _gaps(ends: IntArray, begins: IntArray, hi: int, unit: Fraction, offset: Fraction) -> tuple[IntArray, IntArray]:
    """Return first and last integers of the gaps after parts that end at ``ends`` (in units) and begin, as integers, at
    ``begins``; gaps without an integer are left out."""
    last = np.append(begins[1:] - 1, hi)
    with np.errstate(all="ignore"):
        estimates = ends * float(unit) + float(offset)
        error = (np.abs(estimates[[0, -1]]).max() + abs(float(offset))) * 2.0**-48
        some = np.flatnonzero(~(last < estimates - error))
    starts = np.maximum(least_integers(ends[some], np.ones(len(some), np.bool_), unit, offset), begins[0])
    gap = starts <= last[some]
    return starts[gap], last[some][gap]


def pointwise(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    """Return the same as :func:`subdivided`, integer by integer; ``lo`` and ``hi`` within LARGEST_POINT, ``scale`` of
    any sign."""
    found = _by_floats(lo, hi, scale, addend, functions, quantizer, hi - lo + 1)
    assert found is not None, "no more than all can be undecided"
    return found


def of_few(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer,
    undecided: int,
) -> StepFunction | None:
    """Return the same as :func:`pointwise`; None where there are many integers, or float64 leaves more than
    ``undecided`` of them to exact rationals."""
    if hi - lo >= FEW_POINTS or max(-lo, hi) > LARGEST_POINT:
        return None
    return _by_floats(lo, hi, scale, addend, functions, quantizer, undecided)


def _by_floats(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer,
    most: int,
) -> StepFunction | None:
    with np.errstate(all="ignore"):
        y = _points(lo, hi, scale, addend).after(functions)
        levels, high = quantizer.floats(y)
    undecided = np.flatnonzero((levels != high) | y.partly)
    if undecided.size > most:
        return None
    _Decider(scale, addend, functions, quantizer).decide(np.arange(lo, hi + 1), levels, undecided)
    return StepFunction.of_table(lo, levels)


class _Points:
    """Values of functions of ``scale * q + addend`` for each integer q from ``lo`` to ``hi``. Caches those along the
    last chain, so that several quantizers along one chain evaluate each function once."""

    def __init__(self, lo: int, hi: int, scale: Fraction, addend: Fraction) -> None:
        points = np.arange(lo, hi + 1, dtype=np.float64)
        self._start = FloatIntervals.of(points, points).affine(scale, addend)
        self._last: tuple[tuple[Elementwise, ...], FloatIntervals] = (), self._start

    def after(self, functions: tuple[Elementwise, ...]) -> FloatIntervals:
        """Return the values after ``functions``, applied in order."""
        known, y = self._last
        if functions[: len(known)] != known:
            known, y = (), self._start
        y = floats(functions[len(known) :], y)
        self._last = functions, y
        return y


@lru_cache(maxsize=4)
def _points(lo: int, hi: int, scale: Fraction, addend: Fraction) -> _Points:
    return _Points(lo, hi, scale, addend)


@lru_cache(maxsize=32)
def _parts(functions: tuple[Elementwise, ...], quantizer: Quantizer, exponent: int, finest: int) -> Parts:
    """Decide parts of [-2**exponent, 2**exponent], in cells of 2**(exponent - GRID_BITS) and at least ``finest`` of
    them wide."""
    unit = 2.0 ** (exponent - GRID_BITS)
    width = 1 << FIRST_BITS
    most = (MAX_PENDING + 8 * (quantizer.high - quantizer.low)) // _times_long(functions)
    pending: IntArray = np.arange(-(1 << GRID_BITS), 1 << GRID_BITS, width, dtype=np.int64)
    outside = np.array([-(1 << GRID_BITS) - 1])
    done = [(outside, outside, outside)]
    while pending.size:
        x = FloatIntervals.of(*(np.asarray(ends * np.float64(unit)) for ends in (pending, pending + width)))
        with np.errstate(all="ignore"):
            y = floats(functions, x)
            low, high = quantizer.floats(y)
            # a part narrower than float64's error at its boundary is not worth splitting
            narrow = (y.hi - y.lo) <= 2.0**-40 * np.maximum(np.abs(y.lo), float(quantizer.scale))
        decided = (low == high) & ~y.partly
        last = width == finest or pending.size > most
        done.append((pending[decided], pending[decided] + width, low[decided]))
        left = ~(decided | narrow | y.nowhere | last)
        width //= 4
        pending = (pending[left, np.newaxis] + np.arange(4) * width).reshape(-1)
    begins, ends, levels = _sorted(done)
    new = np.append(True, (levels[1:] != levels[:-1]) | (begins[1:] != ends[:-1]))
    return Parts(begins[new], ends[np.append(np.flatnonzero(new)[1:] - 1, -1)], levels[new])


def _sorted(rows: Sequence[tuple[NDArray[Any], ...]]) -> list[NDArray[Any]]:
    """Return the columns of all ``rows``, sorted by the first."""
    columns = [np.concatenate(parts) for parts in zip(*rows, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


def _times_long(functions: tuple[Elementwise, ...]) -> int:
    """Return the chain's length in multiples of LONG, at least 1."""
    return 1 + sum(function.size for function in functions) // LONG


@dataclass
class _Decider:
    """Decide the levels of integers, one by one or in runs of one level."""

    scale: Fraction
    addend: Fraction
    functions: tuple[Elementwise, ...]
    quantizer: Quantizer
    evaluations: int = 0

    @cached_property
    def limit(self) -> int:
        return (MAX_EXACT + 4 * (self.quantizer.high - self.quantizer.low)) // _times_long(self.functions)

    def ranges(self, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Return starts and levels, rising, of the integers in the disjoint ranges ``starts`` to ``ends``."""
        short = (ends - starts < SHORT) & (np.maximum(-starts, ends) <= LARGEST_POINT)
        lengths = (ends - starts + 1)[short]
        points = np.repeat(starts[short] + lengths - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
        found = [(points, self.points(points))]
        for start, end in zip(starts[~short].tolist(), ends[~short].tolist(), strict=True):
            found.append(tuple(np.array(self.exactly(start, end), dtype=np.int64).T))
        begins, levels = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(begins)
        return begins[order], levels[order]

    def points(self, points: IntArray) -> IntArray:
        """Return the levels of rising integers within LARGEST_POINT."""
        x = points.astype(np.float64)
        with np.errstate(all="ignore"):
            y = floats(self.functions, FloatIntervals.of(x, x).affine(self.scale, self.addend))
            levels, high = self.quantizer.floats(y)
        self.decide(points, levels, np.flatnonzero((levels != high) | y.partly))
        return levels

    def decide(self, points: IntArray, levels: IntArray, undecided: IntArray) -> None:
        """Set the ``levels`` of ``points``, rising integers, at the places ``undecided``."""
        runs = np.split(undecided, np.flatnonzero(np.diff(points[undecided]) > 1) + 1)
        for run in runs if undecided.size else ():
            for start, level in self.exactly(int(points[run[0]]), int(points[run[-1]])):
                levels[run[0] + start - points[run[0]] : run[-1] + 1] = level

    def exactly(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """Return the (start, level) runs of the integers ``lo`` to ``hi``."""
        starts: list[tuple[int, int]] = []
        pending = [(lo, hi)]
        while pending:
            begin, end = pending.pop()
            level = self._level(begin, end)
            if level is None:
                middle = (begin + end) // 2
                pending += [(middle + 1, end), (begin, middle)]
            else:
                starts.append((begin, level))
        return starts

    def _level(self, begin: int, end: int) -> int | None:
        """Return the level of all integers from ``begin`` to ``end``, or None if there are several and it is
        undecided."""
        ends = self.scale * begin + self.addend, self.scale * end + self.addend
        x = Interval(min(ends), max(ends))
        bits = LEAST_BITS
        while True:
            self.evaluations += 1
            if self.evaluations > self.limit:
                raise NoSteps(
                    f"be decided with {self.limit} exact evaluations, but needs more (quantizing its input first helps)"
                )
            try:
                low, high = self.quantizer.enclose(enclose(self.functions, x, bits))
            except Undefined as error:
                if begin == end and error.certain:
                    raise
                unclear = (
                    f"have a value everywhere, but {MOST_BITS} bits do not decide whether one of its values exists"
                )
            else:
                if low == high:
                    return low
                unclear = (
                    f"keep off rounding boundaries, but {MOST_BITS} bits do not separate one of its values from one"
                )
            if begin != end:
                return None
            bits *= 2
            if bits > MOST_BITS:
                raise NoSteps(unclear)
