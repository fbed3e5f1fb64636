"""Steps of any function that can be enclosed: subdivide until each part has one level.

First the reals, in float64, many intervals at once: an interval over which every value rounds to the same level is
done, others are split in four, down to 2**-48 of the range. That is shared by all channels of a chain. What stays
undecided are slivers around the cuts, and flat parts that lie exactly on a rounding boundary; usually few integers fall
there. These are decided with exact rationals, and for irrational values with more and more bits.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hwflow.numerics.float_interval import FloatIntervals
from hwflow.numerics.function import Elementwise, enclose, floats
from hwflow.numerics.interval import Interval, NoSteps, Undefined
from hwflow.numerics.rounding import Quantizer
from hwflow.numerics.step_function import StepFunction

IntArray = npt.NDArray[np.int64]

GRID_BITS = 48  # the range is cut into 2 * 2**48 cells at most
FIRST_BITS = 40  # of the first intervals' width in cells
MAX_PENDING = 1 << 15  # float intervals under examination at once, and as many more as eight times the levels
MAX_EXACT = 1 << 15  # exact evaluations for one channel, and as many more as four times its levels
LEAST_BITS, MOST_BITS = 96, 6144  # of an enclosure's relative precision: doubled from the first while below the last
UNDECIDED = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Parts:
    """The range from -2**exponent to 2**exponent in parts: ``starts`` (in cells of 2**(exponent - GRID_BITS), rising)
    and each part's level, or UNDECIDED. Both ends of a part belong to it."""

    exponent: int
    starts: list[int]
    levels: list[int]


def subdivided(
    lo: int, hi: int, scale: Fraction, addend: Fraction, functions: tuple[Elementwise, ...], quantizer: Quantizer
) -> StepFunction:
    """``quantizer(functions(scale * q + addend))`` for integers ``lo <= q <= hi``; scale must be positive.

    Raises NoSteps if the functions are undefined at one of them, or MOST_BITS do not decide one, or exact
    evaluations up to the limit (see MAX_EXACT) do not decide all.
    """
    largest = max(abs(scale * lo + addend), abs(scale * hi + addend))
    exponent = max(largest.numerator.bit_length() - largest.denominator.bit_length() + 1, -512)
    if exponent > 1000:
        raise NoSteps("have arguments up to 2**1000, but they are greater")
    parts = _parts(functions, quantizer, exponent)
    # cell s begins at q = (s * cell - addend) / scale: over one denominator
    cell = Fraction(2) ** (exponent - GRID_BITS) / scale
    shift = -addend / scale
    factor, offset = cell.numerator * shift.denominator, shift.numerator * cell.denominator
    denominator = cell.denominator * shift.denominator
    exact = _Exact(scale, addend, functions, quantizer)
    starts: list[tuple[int, int]] = []

    def place(k: int) -> int:  # the least integer in part k
        return -(-(parts.starts[k] * factor + offset) // denominator)

    indices = range(len(parts.starts))
    first = max(0, bisect_right(indices, lo, key=place) - 1)
    last = bisect_right(indices, hi, key=place)  # the first part beyond hi
    ends = [-(-(start * factor + offset) // denominator) for start in parts.starts[first + 1 : last]]
    begin = lo
    for end, level in zip([*ends, hi + 1], parts.levels[first:last], strict=True):
        if end > begin:
            if level == UNDECIDED:
                starts += exact.decide(begin, end - 1)
            else:
                starts.append((begin, level))
            begin = end
    return StepFunction.of(lo, hi, starts)


@lru_cache(maxsize=32)
def _parts(functions: tuple[Elementwise, ...], quantizer: Quantizer, exponent: int) -> Parts:
    """The range in parts, see :class:`Parts`; neighbouring parts of one level are one."""
    unit = np.float64(2.0 ** (exponent - GRID_BITS))
    width = 1 << FIRST_BITS
    most = MAX_PENDING + 8 * (quantizer.high - quantizer.low)
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
        if width == 1 or pending.size > most:
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
    return Parts(exponent, starts[new].tolist(), levels[new].tolist())


@dataclass
class _Exact:
    """Decides integers one by one, or many at once where they have one level."""

    scale: Fraction
    addend: Fraction
    functions: tuple[Elementwise, ...]
    quantizer: Quantizer
    evaluations: int = 0

    @property
    def limit(self) -> int:
        return MAX_EXACT + 4 * (self.quantizer.high - self.quantizer.low)

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
        x = Interval(self.scale * begin + self.addend, self.scale * end + self.addend)
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
