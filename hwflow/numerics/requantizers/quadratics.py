"""Piecewise quadratics: any smooth function of tens of thousands of integers, exactly, in a table a tenth as large.

Inputs lie in segments of ``2**k``, each with a parabola of its own, in integers, rounded down. Its search fits real
parabolas to the middles of the unit intervals ``[y, y + 1)`` that the results lie in, with the least greatest distance
(Lawson's algorithm: least squares whose weights are multiplied by the distances, again and again; the root of the
weighted squares is below that distance), rounds their coefficients, and computes from every entry in which integers the
constant term may lie. So the form equals the function on the whole interval, or the segments are too long for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.form import BITS_PER_LUT, Channel, Form, ceil_div
from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction, all_alike

MOST_ENTRIES = 1 << 18  # from the first break of a function to the last one: all are looked at
OFFSET_BITS = range(3, 11)  # of a segment's inputs
MOST_FRACTION_BITS = 16  # of coefficients: beyond, a segment that has room for none is given up
ROUNDS = 300  # of weights, at most
MOST_RESULT_BITS = 32
MOST_WIDTH = 62  # bits of a segment's coefficients
BEND_REACH = 64  # inputs between which slopes are compared
BEND_OFF = 3  # inputs by which a kink may lie beside the greatest change
LEAST_ROOM = 0.5  # between a parabola and the intervals' ends, times the inputs of a segment: enough for few bits

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QuadraticForm(Form):
    """``y = (constants[s] + (t * (slopes[s] + (curvatures[s] * t >> k - 1)) >> k - 1)) >> shift``, the same for all
    ``channels``, with arithmetic shifts: x is number ``t + 2**(k - 1)`` of segment s. Segments begin at ``first``,
    maybe below the least input, with segment 1: ``x - first = (s - 1) * 2**k + t + 2**(k - 1)``. Inputs below ``first``
    are number 0 of segment 0, those above ``last`` number 0 of one more segment at the end. ``k``: ``offset_bits``, at
    least 2.
    """

    title = "quadratics"

    channels: int
    first: int
    last: int
    offset_bits: int
    shift: int
    constants: IntArray
    slopes: IntArray
    curvatures: IntArray

    @property
    def segments(self) -> int:
        return len(self.constants)

    @property
    def uniform(self) -> bool:
        return True

    @cached_property
    def types(self) -> tuple[tuple[int, bool], ...]:
        """The narrowest (bits, signed) that hold constants, slopes and curvatures."""
        return tuple(width_of(int(c.min()), int(c.max())) for c in (self.constants, self.slopes, self.curvatures))

    @cached_property
    def moved_type(self) -> tuple[int, bool]:
        """The narrowest (bits, signed) that holds every ``slopes[s] + (curvatures[s] * t >> k - 1)``."""
        half = 1 << self.offset_bits - 1
        ends = [self._moved(np.arange(self.segments), t) for t in (-half, half - 1)]
        return width_of(int(min(end.min() for end in ends)), int(max(end.max() for end in ends)))

    @property
    def width(self) -> int:
        """Bits of a segment's coefficients."""
        return sum(bits for bits, _ in self.types)

    @cached_property
    def words(self) -> IntArray:
        """Each segment's coefficients as one number, the constant lowest, in two's complement of ``width`` bits."""
        words, place = np.zeros(self.segments, dtype=np.int64), 0
        for (bits, _), fields in zip(self.types, (self.constants, self.slopes, self.curvatures), strict=True):
            words |= (fields & ((1 << bits) - 1)) << place
            place += bits
        return words

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        x = np.broadcast_arrays(np.asarray(x, dtype=np.int64), channel)[0]
        size, half = 1 << self.offset_bits, self.offset_bits - 1
        offset = np.where(x > self.last, size * (self.segments - 1), x - self.first + size)
        offset = np.where(x < self.first, 0, offset)
        segment, t = offset >> self.offset_bits, (offset & ((2 << half) - 1)) - (1 << half)
        moved = t * self._moved(segment, t) >> half
        return np.asarray(self.constants[segment] + moved >> self.shift, dtype=np.int64)

    def _moved(self, segment: IntArray, t: IntArray | int) -> IntArray:
        """Return the slopes at places of segments."""
        return self.slopes[segment] + (self.curvatures[segment] * t >> self.offset_bits - 1)

    def proves(self, steps: Sequence[StepFunction]) -> bool:
        """Compare entry by entry up to the limits, beyond which both are constant."""
        if self.channels != len(steps) or not all_alike(steps):
            return False
        step = steps[0]
        if step.count and not (self.first <= step.break_array[0] and step.break_array[-1] <= self.last + 1):
            return False
        x = np.arange(max(step.lo, self.first - 1), min(step.hi, self.last + 1) + 1)
        return bool(len(x)) and bool((self.evaluate(x) == step.evaluate(x)).all())

    def cost(self, input_bits: int, lanes: int = 1) -> int:
        """Count the table, two multiplier arrays of a place in a segment and a coefficient, sums as wide as these, and
        the coefficients in registers until they are read."""
        (constant, slope, curvature), moved = (bits for bits, _ in self.types), self.moved_type[0]
        products = self.offset_bits * (curvature + moved) + moved + constant
        waiting = 3 * slope + 6 * constant
        return lanes * (products + waiting + ceil_div(self.segments * self.width, BITS_PER_LUT))

    def details(self) -> dict[str, int | str | bool]:
        return {"segments": self.segments, "coefficient_bits": self.width, "shift": self.shift}


@lru_cache(maxsize=64)  # the gates of a recurrent layer share functions
def find_quadratics(steps: StepFunction) -> QuadraticForm | None:
    """Return piecewise quadratics equal to ``steps``, of the fewest table bits, for one channel; None where there are
    none, or results are longer than MOST_RESULT_BITS, or there are fewer than two breaks, or more than MOST_ENTRIES
    from the first one to the last one."""
    breaks = steps.break_array
    if len(breaks) < 2 or int(breaks[-1]) - int(breaks[0]) > MOST_ENTRIES:
        return None
    if width_of(steps.low, steps.high)[0] > MOST_RESULT_BITS:
        return None
    first, last = int(breaks[0]), int(breaks[-1]) - 1
    bends = _bends(steps, first, last)
    made = []
    for bits in OFFSET_BITS:
        begins = dict.fromkeys([first, *(first - (first - bend) % (1 << bits) for bend in bends)])
        found = (_with_segments(steps, begin, last, bits) for begin in begins)
        made += [next((form for form in found if form is not None and form.width <= MOST_WIDTH), None)]
    return min(filter(None, made), key=lambda form: form.segments * form.width, default=None)


def _bends(steps: StepFunction, first: int, last: int) -> list[int]:
    """Return inputs around the one where the function has a kink, if it seems to have one: there a segment should
    begin. Its slope changes by more than elsewhere, and by more than rounding makes it."""
    if last - first < 4 * BEND_REACH:
        return []
    y = steps.evaluate(np.arange(first, last + 1))
    changes = np.abs(y[2 * BEND_REACH :] - 2 * y[BEND_REACH:-BEND_REACH] + y[: -2 * BEND_REACH])
    bend = int(changes.argmax())
    if changes[bend] < 4 * float(np.median(changes)) + 4:
        return []
    return [first + BEND_REACH + bend + off for off in sorted(range(-BEND_OFF, BEND_OFF + 1), key=abs)]


def _with_segments(steps: StepFunction, begin: int, last: int, bits: int) -> QuadraticForm | None:
    """Return the form with segments of ``2**bits`` inputs from ``begin`` on, of the fewest fraction bits."""
    size = 1 << bits
    x = np.arange(begin, begin + -(-(last + 1 - begin) // size) * size).reshape(-1, size)
    y, known = steps.evaluate(np.clip(x, steps.lo, last)), (x >= steps.lo) & (x <= last)
    t = np.arange(size) - size // 2
    parabolas = _fitted(y + np.float64(0.5), t / (size // 2), known)
    if parabolas is None:
        return None
    for shift in range(MOST_FRACTION_BITS + 1):
        c1, c2 = (np.rint(c * 2.0**shift).astype(np.int64) for c in (parabolas[:, 1], parabolas[:, 2]))
        moved = t * (c1[:, np.newaxis] + (c2[:, np.newaxis] * t >> bits - 1)) >> bits - 1
        least = np.where(known, (y << shift) - moved, np.iinfo(np.int64).min).max(axis=1)
        most = np.where(known, (y + 1 << shift) - moved - 1, np.iinfo(np.int64).max).min(axis=1)
        if (least <= most).all():
            ends = [value << shift for value in (steps.first, steps.last)]
            c0 = np.concatenate([ends[:1], least + most >> 1, ends[1:]])
            return QuadraticForm(1, begin, last, bits, shift, c0, np.pad(c1, 1), np.pad(c2, 1))
    return None


def _fitted(y: _Floats, t: _Floats, known: npt.NDArray[np.bool_]) -> _Floats | None:
    """Return the coefficients of a parabola in ``t`` for each row of ``y``, nearer than 1/2 to all of the row's
    ``known`` places; None if there is none for some row, or none is found."""
    powers = np.stack([t**power for power in range(5)])
    middle = y.mean(axis=1, keepdims=True)
    best, farthest = np.zeros((len(y), 3)), np.full(len(y), np.inf)
    todo, weights = np.arange(len(y)), known / known.sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        rows = (y - middle)[todo]
        moments = weights @ powers.T
        matrix = np.stack([moments[:, power : power + 3] for power in range(3)], axis=1) + 1e-12 * np.eye(3)
        sums = (weights * rows) @ powers[:3].T
        parabolas = np.linalg.solve(matrix, sums[:, :, np.newaxis])[:, :, 0]
        distances = np.abs(parabolas @ powers[:3] - rows) * known[todo]
        if ((weights * distances**2).sum(axis=1) > 0.25 + 1e-6).any():
            return None
        greatest = distances.max(axis=1)
        better = greatest < farthest[todo]
        best[todo[better]], farthest[todo[better]] = parabolas[better], greatest[better]
        left = farthest[todo] > 0.5 - LEAST_ROOM / len(t)
        if not left.any():
            break
        todo, weights = todo[left], (weights * (distances + 1e-9))[left]
        weights /= weights.sum(axis=1, keepdims=True)
    best[:, :1] += middle
    return best if (farthest < 0.5).all() else None
