"""Steps of any function that can be enclosed: integer by integer where these are few, else part by part of the reals.

Few integers are evaluated in float64, all at once. Else the reals are subdivided in float64, many intervals at once: an
interval over which every value rounds to the same level is done, and so is one of few levels on which the functions
rise or fall (:mod:`hwflow.numerics.functions.crossings`); others are split in four, down to 2**-48 of the range. All
channels of a chain share that. What stays undecided are integers next to a cut, slivers around the cuts, and flat parts
that lie exactly on a rounding boundary; usually few integers fall there. These are evaluated one by one, in float64,
and where that does not decide with exact rationals, for irrational values with more and more bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwflow.numerics.functions.crossings import Crossings
from hwflow.numerics.functions.float_interval import BoolArray, FloatIntervals
from hwflow.numerics.functions.function import Elementwise, enclose, floats
from hwflow.numerics.functions.real_steps import Cuts, Levels, least_integers
from hwflow.numerics.functions.slope import Sloped
from hwflow.numerics.interval import Interval, NoSteps, Undefined
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.rounding import Quantizer

IntArray = NDArray[np.int64]

GRID_BITS = 48  # the range is cut into 2 * 2**48 cells at most
FIRST_BITS = 40  # of the first intervals' width in cells
WIDTHS = tuple(1 << bits for bits in range(0, FIRST_BITS, 8))  # of the finest parts, in cells: few, to be shared
BESIDE_INTEGERS = 1 << 8  # times the finest part is at most the distance of two integers: few lie in undecided ones
MAX_PENDING = 1 << 15  # float intervals under examination at once, and as many more as eight times the levels
MAX_EXACT = 1 << 15  # exact evaluations for one channel, and as many more as four times its levels
LEAST_BITS, MOST_BITS = 96, 6144  # of an enclosure's relative precision: doubled from the first while below the last
FEW_LEVELS = 64  # of a part on which functions rise or fall: it is split no further
FEW_POINTS = 1 << 12  # integers that are evaluated one by one, and as many more as levels
SHORT = 4  # integers between two parts that are evaluated one by one
LARGEST_POINT = 1 << 53  # every integer up to it is a float64
LONG = 16  # functions in a row: of chains n times as long an n-th of the intervals and evaluations are allowed


@dataclass(frozen=True)
class Parts:
    """Where the level is decided: parts of the reals from ``begins`` to ``ends`` (in cells, rising), both of which
    belong to them, and each one's level. The first is none: it ends before all that is asked for."""

    begins: IntArray
    ends: IntArray
    levels: IntArray


def subdivided(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    """``quantizer(functions(scale * q + addend))`` for integers ``lo <= q <= hi``; scale must be positive.

    Raises NoSteps if the functions are undefined at one of them, or MOST_BITS do not decide one, or exact
    evaluations up to the limit (see MAX_EXACT) do not decide all, or an exact value is too long.
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
    """First and last integers of the gaps behind parts that end at ``ends`` (in units) and begin, as integers, at
    ``begins``; those without an integer are left out."""
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
    """The same integer by integer; ``lo`` and ``hi`` within LARGEST_POINT, ``scale`` of any sign."""
    found = _by_floats(lo, hi, scale, addend, functions, quantizer, hi - lo + 1)
    assert found is not None, "no more than all can be undecided"
    return found


def of_few(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer,
    undecided: int,
) -> StepFunction | None:
    """The same, or None where there are many integers, or float64 leaves more than ``undecided`` of them to exact
    rationals."""
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
    """Functions of ``scale * q + addend`` for each integer q from ``lo`` to ``hi``, of which it keeps those of the last
    chain: quantizers along one chain see every function of it once."""

    def __init__(self, lo: int, hi: int, scale: Fraction, addend: Fraction) -> None:
        points = np.arange(lo, hi + 1, dtype=np.float64)
        self._start = FloatIntervals.of(points, points).affine(scale, addend)
        self._last: tuple[tuple[Elementwise, ...], FloatIntervals] = (), self._start

    def after(self, functions: tuple[Elementwise, ...]) -> FloatIntervals:
        """What ``functions`` make of them, one after the other."""
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
    """From -2**exponent to 2**exponent, in cells of 2**(exponent - GRID_BITS). Where functions rise or fall no more
    than ``finest`` cells are left undecided around a cut, nor elsewhere than around cuts, if float64 tells so much."""
    unit = 2.0 ** (exponent - GRID_BITS)
    width = 1 << FIRST_BITS
    most = (MAX_PENDING + 8 * (quantizer.high - quantizer.low)) // _times_long(functions)
    pending: IntArray = np.arange(-(1 << GRID_BITS), 1 << GRID_BITS, width, dtype=np.int64)
    outside = np.array([-(1 << GRID_BITS) - 1])
    done = [(outside, outside, outside)]
    sloped: list[tuple[IntArray, IntArray, BoolArray]] = []
    while pending.size:
        x = FloatIntervals.of(*(np.asarray(ends * np.float64(unit)) for ends in (pending, pending + width)))
        with np.errstate(all="ignore"):
            y, slope = Sloped.of(x).through(functions)
            low, high = quantizer.floats(y)
            # a part that is narrower than float64 can tell from its boundary is not worth splitting
            narrow = (y.hi - y.lo) <= 2.0**-40 * np.maximum(np.abs(y.lo), float(quantizer.scale))
        decided = (low == high) & ~y.partly
        last = width == finest or pending.size > most
        monotone = ~decided & ~y.partly & ((slope.lo >= 0) | (slope.hi <= 0)) & (last | (high - low <= FEW_LEVELS))
        done.append((pending[decided], pending[decided] + width, low[decided]))
        sloped.append((pending[monotone], pending[monotone] + width, slope.lo[monotone] >= 0))
        left = ~(decided | monotone | narrow | y.nowhere | last)
        width //= 4
        pending = (pending[left, np.newaxis] + np.arange(4) * width).reshape(-1)
    starts, ends, rising = _sorted(sloped)
    done.append(Crossings(functions, quantizer, unit).parts(starts, ends, rising, finest))
    begins, ends, levels = _sorted(done)
    new = np.append(True, (levels[1:] != levels[:-1]) | (begins[1:] != ends[:-1]))
    return Parts(begins[new], ends[np.append(np.flatnonzero(new)[1:] - 1, -1)], levels[new])


def _sorted(rows: Sequence[tuple[NDArray[Any], ...]]) -> list[NDArray[Any]]:
    """Columns of all ``rows``, in the order of the first one."""
    columns = [np.concatenate(parts) for parts in zip(*rows, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


def _times_long(functions: tuple[Elementwise, ...]) -> int:
    """How many times LONG a chain is, at least 1."""
    return 1 + sum(function.size for function in functions) // LONG


@dataclass
class _Decider:
    """Decides integers one by one, or many at once where they have one level."""

    scale: Fraction
    addend: Fraction
    functions: tuple[Elementwise, ...]
    quantizer: Quantizer
    evaluations: int = 0

    @cached_property
    def limit(self) -> int:
        return (MAX_EXACT + 4 * (self.quantizer.high - self.quantizer.low)) // _times_long(self.functions)

    def ranges(self, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Starts and levels, rising, of the integers from each of ``starts`` to each of ``ends``, which lie apart."""
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
        """The levels of integers within LARGEST_POINT, rising."""
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
        """(start, level) of the integers ``lo`` to ``hi``."""
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
        """The level of all integers from ``begin`` to ``end``, or None if they are several and it is not clear."""
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
                unclear = f"have a value everywhere, but {MOST_BITS} bits do not tell whether one of its values exists"
            else:
                if low == high:
                    return low
                unclear = (
                    f"keep off the boundaries of rounding, but {MOST_BITS} bits do not tell one of its values from one"
                )
            if begin != end:
                return None
            bits *= 2
            if bits > MOST_BITS:
                raise NoSteps(unclear)
