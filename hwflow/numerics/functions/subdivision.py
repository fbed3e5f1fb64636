"""Steps of any function that can be enclosed: integer by integer where these are few, else part by part of the reals.

Few integers are evaluated in float64, all at once. Else the reals are subdivided in float64, many intervals at once:
an interval over which every value rounds to the same level is done, others are split in four, down to 2**-48 of the
range. That is shared by all channels of a chain. What stays undecided are integers next to a cut, slivers around the
cuts, and flat parts that lie exactly on a rounding boundary; usually few integers fall there. These are decided with
exact rationals, and for irrational values with more and more bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from hwflow.numerics.functions.float_interval import FloatIntervals
from hwflow.numerics.functions.function import Elementwise, enclose, floats
from hwflow.numerics.functions.real_steps import Levels
from hwflow.numerics.interval import Interval, NoSteps, Undefined
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.numerics.rounding import Quantizer

IntArray = npt.NDArray[np.int64]

GRID_BITS = 48  # the range is cut into 2 * 2**48 cells at most
FIRST_BITS = 40  # of the first intervals' width in cells
WIDTHS = tuple(1 << bits for bits in range(0, FIRST_BITS, 8))  # of the finest parts, in cells: few, to be shared
BESIDE_INTEGERS = 1 << 12  # times the finest part is at most the distance of two integers: few lie in undecided ones
MAX_PENDING = 1 << 15  # float intervals under examination at once, and as many more as eight times the levels
MAX_EXACT = 1 << 15  # exact evaluations for one channel, and as many more as four times its levels
LEAST_BITS, MOST_BITS = 96, 6144  # of an enclosure's relative precision: doubled from the first while below the last
UNDECIDED = np.iinfo(np.int64).min
FEW_POINTS = 1 << 12  # integers that are evaluated one by one, and as many more as twice the levels
LARGEST_POINT = 1 << 53  # every integer up to it is a float64
LONG = 16  # functions in a row: of chains n times as long an n-th of the intervals and evaluations are allowed


@dataclass(frozen=True)
class Parts:
    """The range from -2**exponent to 2**exponent in parts: ``starts`` (in cells of 2**(exponent - GRID_BITS), rising)
    and each part's level, or UNDECIDED. Both ends of a part belong to it."""

    exponent: int
    starts: IntArray
    levels: IntArray


def subdivided(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    """``quantizer(functions(scale * q + addend))`` for integers ``lo <= q <= hi``; scale must be positive.

    Raises NoSteps if the functions are undefined at one of them, or MOST_BITS do not decide one, or exact
    evaluations up to the limit (see MAX_EXACT) do not decide all, or an exact value is too long.
    """
    if hi - lo < FEW_POINTS + 2 * (quantizer.high - quantizer.low) and max(-lo, hi) <= LARGEST_POINT:
        return pointwise(lo, hi, scale, addend, functions, quantizer)
    largest = max(abs(scale * lo + addend), abs(scale * hi + addend))
    exponent = max(largest.numerator.bit_length() - largest.denominator.bit_length() + 1, -512)
    if exponent > 1000:
        raise NoSteps("have arguments up to 2**1000, but they are greater")
    # a part begins at q = (start * cell - addend) / scale
    unit = Fraction(2) ** (exponent - GRID_BITS) / scale
    finest = max((w for w in WIDTHS if w * unit * BESIDE_INTEGERS <= 1), default=1)
    parts = _parts(functions, quantizer, exponent, finest)
    cuts = Levels(parts.levels, parts.starts[1:], np.zeros(len(parts.starts) - 1, np.bool_), unit, -addend / scale)
    first, places = cuts.least_integers(lo, hi)
    begins: IntArray = np.append(lo, places)
    levels = parts.levels[first : first + len(places) + 1]
    ends = np.append(places, hi + 1)
    some = ends > begins
    begins, levels, ends = begins[some], levels[some], ends[some]
    unclear = levels == UNDECIDED
    if not unclear.any():
        return StepFunction.of_arrays(lo, hi, begins, levels)
    exact = _Exact(scale, addend, functions, quantizer)
    decided = [(begins[~unclear], levels[~unclear])]
    for begin, end in zip(begins[unclear].tolist(), ends[unclear].tolist(), strict=True):
        pairs = np.array(exact.decide(begin, end - 1), dtype=np.int64)
        decided.append((pairs[:, 0], pairs[:, 1]))
    begins, levels = (np.concatenate(columns) for columns in zip(*decided, strict=True))
    order = np.argsort(begins)
    return StepFunction.of_arrays(lo, hi, begins[order], levels[order])


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
    exact = _Exact(scale, addend, functions, quantizer)
    for run in np.split(undecided, np.flatnonzero(np.diff(undecided) > 1) + 1) if undecided.size else ():
        for start, level in exact.decide(lo + int(run[0]), lo + int(run[-1])):
            levels[start - lo : run[-1] + 1] = level
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
    """The range in parts, see :class:`Parts`, of ``finest`` cells or more; neighbouring parts of one level are one."""
    unit = np.float64(2.0 ** (exponent - GRID_BITS))
    width = 1 << FIRST_BITS
    most = (MAX_PENDING + 8 * (quantizer.high - quantizer.low)) // _times_long(functions)
    pending: IntArray = np.arange(-(1 << GRID_BITS), 1 << GRID_BITS, width, dtype=np.int64)
    done: list[tuple[IntArray, IntArray]] = []
    while pending.size:
        x = FloatIntervals.of(*(np.asarray(ends * unit, dtype=np.float64) for ends in (pending, pending + width)))
        with np.errstate(all="ignore"):
            y = floats(functions, x)
            low, high = quantizer.floats(y)
            # a part that is narrower than float64 can tell from its boundary is not worth splitting
            narrow = (y.hi - y.lo) <= 2.0**-40 * np.maximum(np.abs(y.lo), float(quantizer.scale))
        decided = (low == high) & ~y.partly
        left = ~decided & (narrow | y.nowhere)
        if width == finest or pending.size > most:
            left = ~decided
        done.append((pending[decided], low[decided]))
        done.append((pending[left], np.full(int(left.sum()), UNDECIDED)))
        pending = pending[~decided & ~left]
        width //= 4
        pending = (pending[:, np.newaxis] + np.arange(4) * width).reshape(-1)
    starts, levels = (np.concatenate(columns) for columns in zip(*done, strict=True))
    order = np.argsort(starts)
    starts, levels = starts[order], levels[order]
    new = np.concatenate([[True], levels[1:] != levels[:-1]])
    return Parts(exponent, starts[new], levels[new])


def _times_long(functions: tuple[Elementwise, ...]) -> int:
    """How many times LONG a chain is, at least 1."""
    return 1 + sum(function.size for function in functions) // LONG


@dataclass
class _Exact:
    """Decides integers one by one, or many at once where they have one level."""

    scale: Fraction
    addend: Fraction
    functions: tuple[Elementwise, ...]
    quantizer: Quantizer
    evaluations: int = 0

    @cached_property
    def limit(self) -> int:
        return (MAX_EXACT + 4 * (self.quantizer.high - self.quantizer.low)) // _times_long(self.functions)

    def decide(self, lo: int, hi: int) -> list[tuple[int, int]]:
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
