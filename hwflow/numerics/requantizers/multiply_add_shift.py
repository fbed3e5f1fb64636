"""Multiply, add, shift, clamp: find the smallest form ``y = clamp((m * x + b) >> s, low, high)`` of step functions.

The shift rounds down, or to nearest with ties to even or to odd (below: *Ties*).

Conditions. Let one channel's staircase on ``[lo, hi]`` have thresholds ``T_1 <= .. <= T_n`` where it reaches the
levels ``v_k = bottom + k``, and let ``[low, high]`` be the clamp all channels share. With ``m >= 0`` the form is
monotone, so it equals the staircase on the whole interval if and only if

    m * T_k       + b >= v_k * 2**s      for k = 1 .. n, and for (lo, bottom) if bottom > low        (lower points)
    m * (T_k - 1) + b <  v_k * 2**s      for k = 1 .. n, and for (hi + 1, top + 1) if top < high     (upper points)

Search. A ``b`` exists for given ``m, s`` iff ``max(v_k * 2**s - m * T_k) < min(v_k * 2**s - m * (T_k - 1))``; both
sides are integers, so this depends on the slope ``m / 2**s`` alone: the slopes of all lines that separate the lower
points ``(T_k, v_k)`` (on or below the line) from the upper points ``(T_k - 1, v_k)`` (strictly above it). They form an
open interval, whose rational ends are found exactly by Newton's iteration on the difference of the two sides, a concave
piecewise linear function: from outside it reaches the end in a handful of steps. The minimum shift is then the smallest
``s`` for which an integer multiple of ``2**-s`` lies inside, and if ``s`` works for a channel so does ``s + 1`` (with
``2m, 2b``): the minimum common shift is the maximum of the channels' minimum shifts.

Direction. With ``m <= 0`` the form is non-increasing. A non-increasing step function ``f`` is a staircase of ``-x``,
and ``m * x = (-m) * (-x)``: its multiplier is the negative of the one for ``f(-x)`` over ``[-hi, -lo]``. No form of
this kind equals a function that both rises and falls.

Ties. With dyadic scales and offsets, inputs fall exactly between two levels; such ties go to the even one, so the steps
of the staircase alternate (255, 257, ..) and no line separates the points strictly. Rounding in the shift solves this:
``y = clamp(round(v / 2**s))`` with ``v = m * x + b``, ties to even, or to odd (an odd zero point, added after rounding
to even and folded into ``b`` as ``zero_point * 2**s``, flips every tie). Then ``y >= n`` if and only if

    v >= n * 2**s - 2**(s - 1) + d_n         d_n = 1 if a tie between n - 1 and n goes down, else 0

so the form is monotone as before, and the conditions are those above with this bound in place of ``n * 2**s``. Because
of ``d_n`` they depend on ``s`` and not on the slope alone; at a given ``s`` they are lines again, with ``m`` the slope.
Any solution satisfies the conditions without ``d_n`` and with "less or equal": that closed interval of slopes, the one
for rounding down with its ends, gives the first shift worth trying. A solution at ``s`` gives one at ``s + 1`` here too
(with ``2m, 2b``), because the bound there is twice the bound at ``s``, or one less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import InternalError
from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.form import BITS_PER_LUT, Channel, Form, ceil_div
from hwflow.numerics.requantizers.hull import Indices
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding, least_reaching
from hwflow.numerics.requantizers.staircase import IntArray, Staircase
from hwflow.numerics.requantizers.step_function import StepFunction

MAX_SHIFT = 80  # random int8 layers of 2304 inputs per channel need 39, 16-bit layers 62

_SAFE = 1 << 62
_Array = npt.NDArray[Any]  # int64, or object holding Python ints


@dataclass(frozen=True)
class MultiplyAddShift(Form):
    """``y = clamp((multipliers[c] * x + addends[c]) >> shift, low, high)`` with an arithmetic shift, for channel c.

    Multipliers and addends may be negative; one shift, one clamp and one rounding for all channels. With a
    ``rounding`` other than FLOOR, which is of ``y`` before the clamp, the shift must be at least 1 (ValueError).
    """

    title = "multiply-add-shift"

    multipliers: tuple[int, ...]
    addends: tuple[int, ...]
    shift: int
    low: int
    high: int
    rounding: ShiftRounding = ShiftRounding.FLOOR

    def __post_init__(self) -> None:
        if self.rounding != ShiftRounding.FLOOR and self.shift < 1:
            raise ValueError(f"shift must be at least 1 with rounding {self.rounding}, not {self.shift}; use floor")

    @property
    def channels(self) -> int:
        return len(self.multipliers)

    @property
    def uniform(self) -> bool:
        return len(set(self.multipliers)) <= 1 and len(set(self.addends)) <= 1

    @property
    def shifts_only(self) -> bool:
        return all(abs(number) & (abs(number) - 1) == 0 for number in set(self.multipliers))

    @property
    def multiplier_type(self) -> tuple[int, bool]:
        """(bits, signed) of the multiplier field; unsigned unless a multiplier is negative."""
        return width_of(min(self.multipliers), max(self.multipliers))

    @property
    def multiplier_bits(self) -> int:
        """Width of the multiplier field."""
        return self.multiplier_type[0]

    @property
    def addend_type(self) -> tuple[int, bool]:
        """(bits, signed) of the addend field."""
        return width_of(min(self.addends), max(self.addends))

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        x = np.asarray(x, dtype=np.int64)
        if x.size == 0:
            return np.zeros(np.broadcast_shapes(x.shape, np.shape(channel)), dtype=np.int64)
        reach = max(abs(int(x.min())), abs(int(x.max()))) * max(map(abs, self.multipliers))
        reach += max(map(abs, self.addends))
        reach += 1 << self.shift
        kind: Any = np.int64 if reach < _SAFE else object
        m, b = np.array(self.multipliers, dtype=kind)[channel], np.array(self.addends, dtype=kind)[channel]
        v = m * x.astype(kind) + b
        if self.rounding != ShiftRounding.FLOOR:
            odd = (v >> self.shift) & 1
            v = v + ((1 << (self.shift - 1)) - 1) + (odd if self.rounding == ShiftRounding.HALF_EVEN else 1 - odd)
        return np.asarray(np.clip(v >> self.shift, self.low, self.high), dtype=np.int64)

    def proves(self, steps: Sequence[StepFunction]) -> bool:
        """Check the conditions above: at every threshold and both ends."""
        if not (len(self.multipliers) == len(self.addends) == len(steps)) or self.shift < 0:
            return False
        for multiplier, b, step in dict.fromkeys(zip(self.multipliers, self.addends, steps, strict=True)):
            rising, m = (step.mirrored(), -multiplier) if multiplier < 0 else (step, multiplier)
            if rising.direction != 1:
                return False
            s = rising.staircase()
            if s.low < self.low or s.high > self.high:
                return False
            if s.low > self.low and m * s.lo + b < least_reaching(s.low, self.shift, self.rounding):
                return False
            if s.high < self.high and m * s.hi + b >= least_reaching(s.high + 1, self.shift, self.rounding):
                return False
            if not s.count:
                continue
            # v_k is at most an end of the clamp in size, and T_k - 1 at most an end of the interval
            extent = max(abs(s.lo), abs(s.hi)) * m + abs(b) + ((max(abs(s.low), abs(s.high)) + 1) << self.shift)
            lower, upper = (_Points(s, places, np.int64 if extent < _SAFE else object) for places in s.binding)
            if not np.all(m * lower.thresholds + b >= lower.bounds(self.shift, self.rounding)):
                return False
            if not np.all(m * (upper.thresholds - 1) + b < upper.bounds(self.shift, self.rounding)):
                return False
        return True

    def cost(self, input_bits: int, lanes: int = 1) -> int:
        """Count the multiplier array ``input_bits * multiplier_bits``, an adder as wide as the widest sum, and one
        multiplier and one addend field per channel; to round, an adder of the bits that the shift leaves, and a
        disjunction of those it takes."""
        addend_bits = self.addend_type[0]
        adder = max(input_bits + self.multiplier_bits, addend_bits) + 1
        rounds = self.rounding != ShiftRounding.FLOOR
        rounding = max(0, adder - self.shift) + ceil_div(self.shift, 4) if rounds else 0
        table = 0 if self.uniform else self.channels * (self.multiplier_bits + addend_bits)
        return lanes * (input_bits * self.multiplier_bits + adder + rounding) + ceil_div(table, BITS_PER_LUT)

    def details(self) -> dict[str, int | str | bool]:
        return {
            "multiplier_bits": self.multiplier_bits,
            "multiplier_signed": self.multiplier_type[1],
            "addend_bits": self.addend_type[0],
            "shift": self.shift,
            "rounding": self.rounding,
        }


def find_multiply_add_shift(steps: Sequence[StepFunction], max_shift: int = MAX_SHIFT) -> MultiplyAddShift | None:
    """Return the form with the minimum common shift; None if there is none up to ``max_shift``.

    ``steps``: one per channel. The clamp is the range of all channels together. At the common shift each channel takes
    the multiplier of least magnitude (which minimizes the width of the field), and with it the addend nearest to zero.
    A constant channel takes multiplier 0. The result is proved before it is returned.
    """
    distinct = _distinct(steps)
    if distinct is None:
        return None
    low, high = _clamp(distinct.values())
    slopes = _exact_slopes(tuple(distinct.values()), low, high)
    if any(slope is not None and not _ordered(slope, strict=True) for slope in slopes):
        return None
    shift = 0
    for slope in slopes:  # a shift that works for a channel stays valid when it grows
        while _least_multiplier(slope, shift) is None:
            shift += 1
            if shift > max_shift:
                return None
    multipliers = [_least_multiplier(slope, shift) for slope in slopes]
    return _proved(steps, distinct, multipliers, shift, low, high, ShiftRounding.FLOOR)


def multiply_add_shift_at(
    steps: Sequence[StepFunction], shift: int, low: int, high: int, rounding: ShiftRounding = ShiftRounding.FLOOR
) -> MultiplyAddShift | None:
    """Return the form of ``steps`` with this shift, its ``rounding`` and this clamp, chosen and proved as in
    :func:`find_multiply_add_shift`; None if there is none."""
    distinct = _distinct(steps)
    if distinct is None or any(s.low < low or s.high > high for s in distinct.values()):
        return None
    staircases = tuple(distinct.values())
    if rounding == ShiftRounding.FLOOR:
        multipliers = [_least_multiplier(slope, shift) for slope in _exact_slopes(staircases, low, high)]
    else:
        slopes = _slopes(staircases, low, high, shift, rounding)
        multipliers = [_least_multiplier(slope, 0) for slope in slopes]
    if None in multipliers:
        return None
    return _proved(steps, distinct, multipliers, shift, low, high, rounding)


def find_rounding_multiply_add_shift(
    steps: Sequence[StepFunction], max_shift: int = MAX_SHIFT
) -> MultiplyAddShift | None:
    """Return the form that rounds to nearest, ties to even or to odd, with the minimum shift from 1 to ``max_shift``,
    or None.

    If both kinds of tie work at the minimum shift: ties to even. Multipliers, addends, clamp and proof are as in
    :func:`find_multiply_add_shift`. It exists for all dyadic chains whose output zero points are all even or all odd.
    """
    distinct = _distinct(steps)
    if distinct is None:
        return None
    staircases = list(distinct.values())
    low, high = _clamp(staircases)
    slopes = _exact_slopes(tuple(staircases), low, high)
    first = 1
    for slope in slopes:
        while not _has_multiple(slope, first):
            first += 1
            if first > max_shift:
                return None
    best: MultiplyAddShift | None = None
    for rounding in (ShiftRounding.HALF_EVEN, ShiftRounding.HALF_ODD):
        shift = _rounding_shift(staircases, slopes, first, max_shift, rounding)
        if shift is None:
            continue
        multipliers = [_least_multiplier(slope, 0) for slope in _slopes(staircases, low, high, shift, rounding)]
        best = _proved(steps, distinct, multipliers, shift, low, high, rounding)
        max_shift = shift - 1
    return best


def with_multiple_addends(
    form: MultiplyAddShift, steps: Sequence[StepFunction], offset: int, bits: int
) -> MultiplyAddShift | None:
    """Return the same functions with ``addend + multiplier * offset`` a multiple of ``2**bits`` for each channel, and
    the least shift from ``bits`` on that allows it; None if it takes more than :data:`MORE_SHIFT` beyond that of
    ``form``, and multipliers of more than :data:`MORE_BITS` beyond ``bits``.

    Between the ends of a channel's slopes there is most room for addends in the middle; from there on outwards
    :data:`TRIED` multipliers are looked at, each of which has its own multiple.
    """
    distinct = _distinct(steps)
    if distinct is None or form.rounding != ShiftRounding.FLOOR:
        return None
    slopes = _exact_slopes(tuple(distinct.values()), form.low, form.high)
    more = max(MORE_SHIFT, bits + MORE_BITS - form.multiplier_bits)
    for shift in range(max(bits, form.shift), form.shift + more + 1):
        chosen: dict[StepFunction, tuple[int, int]] = {}
        for (step, staircase), slope in zip(distinct.items(), slopes, strict=True):
            conditions = _Conditions(staircase, shift, form.low, form.high, ShiftRounding.FLOOR)
            for m in _around_the_middle(slope, shift):
                least, most = conditions.addends(m)
                moved = m * step.direction * offset
                if least is None:
                    least = (most or 0) - (1 << bits)
                addend = -(-(least + moved) >> bits << bits) - moved
                if most is None or addend <= most:
                    chosen[step] = m * step.direction, addend
                    break
            else:
                break
        if len(chosen) == len(distinct):
            pairs = [chosen[step] for step in steps]
            found = MultiplyAddShift(
                tuple(m for m, _ in pairs), tuple(b for _, b in pairs), shift, form.low, form.high
            )
            return found if found.proves(steps) else None
    return None


MORE_SHIFT, MORE_BITS, TRIED = 8, 10, 40


def _around_the_middle(slope: _Slope | None, shift: int) -> Iterator[int]:
    """Yield multipliers inside the open interval, from its middle outwards."""
    if slope is None:
        yield 0
        return
    p_lo, q_lo, p_hi, q_hi = slope
    first = (p_lo << shift) // q_lo + 1
    last = first + TRIED if q_hi == 0 else -((-p_hi << shift) // q_hi) - 1
    middle = (first + last) // 2
    for distance in range(TRIED // 2 + 1):
        yield from (m for m in dict.fromkeys((middle - distance, middle + distance)) if first <= m <= last)


def _distinct(steps: Sequence[StepFunction]) -> dict[StepFunction, Staircase] | None:
    """Return each distinct function with its staircase (of ``-x`` where it falls); None if one rises and falls."""
    if not steps:
        raise ValueError("steps must be one per channel, not none")
    distinct = dict.fromkeys(steps)
    if any(s.direction == 0 for s in distinct):
        return None
    return {s: (s if s.direction == 1 else s.mirrored()).staircase() for s in distinct}


def _clamp(staircases: Collection[Staircase]) -> tuple[int, int]:
    """Return the range of all channels together."""
    return min(s.low for s in staircases), max(s.high for s in staircases)


def _rounding_shift(
    staircases: Sequence[Staircase],
    slopes: Sequence[_Slope | None],
    first: int,
    max_shift: int,
    rounding: ShiftRounding,
) -> int | None:
    """Return the least shift from ``first`` on at which every channel has a multiplier; each slope interval, closed,
    holds a multiple of ``2**-first``.

    Where that is a single slope, the bounds of the addend are known at ``first`` up to what doubling them can make of
    one unit between them: if the next shift does not do either, none does.
    """
    low, high = _clamp(staircases)
    pending = list(range(len(staircases)))
    for shift in range(first, max_shift + 1):
        found = _slopes([staircases[c] for c in pending], low, high, shift, rounding)
        pending = [c for c, slope in zip(pending, found, strict=True) if _least_multiplier(slope, 0) is None]
        if not pending:
            return shift
        if shift > first and any(not _ordered(slopes[c], strict=True) for c in pending):
            return None
    return None


def _proved(
    steps: Sequence[StepFunction],
    distinct: Mapping[StepFunction, Staircase],
    multipliers: Sequence[int | None],
    shift: int,
    low: int,
    high: int,
    rounding: ShiftRounding,
) -> MultiplyAddShift:
    """Return the form with these multipliers (one for each of ``distinct``); InternalError if it differs from the
    functions."""
    chosen: dict[StepFunction, tuple[int, int]] = {}
    for (s, staircase), m in zip(distinct.items(), multipliers, strict=True):
        assert m is not None
        chosen[s] = m * s.direction, _addend(staircase, m, shift, low, high, rounding)
    pairs = [chosen[s] for s in steps]
    form = MultiplyAddShift(tuple(m for m, _ in pairs), tuple(b for _, b in pairs), shift, low, high, rounding)
    if not form.proves(steps):
        raise InternalError.of(
            "requantizer-proved", "multiply-add-shift search", f"{form} must satisfy every threshold, not fail one",
            "report this model as a defect of hwflow",
        )
    return form


class _Points:
    """Points ``(T_k, v_k)`` of a staircase in arrays of a kind that holds what is computed with them."""

    def __init__(self, s: Staircase, places: Indices, kind: Any) -> None:
        self.thresholds: _Array = s.array[places].astype(kind)
        self._levels: _Array = (places + (s.low + 1)).astype(kind)

    def bounds(self, shift: int, rounding: ShiftRounding) -> _Array:
        """Return the least numbers that the shift maps to the levels."""
        return least_reaching(self._levels, shift, rounding)


# An interval of slopes (p_lo / q_lo, p_hi / q_hi), q_hi = 0 meaning no upper end; None: slope 0, no thresholds.
_Slope = tuple[int, int, int, int]
_EMPTY: _Slope = (1, 1, 0, 1)


def _ordered(slope: _Slope | None, *, strict: bool) -> bool:
    """Tell whether the open (``strict``) or the closed interval is nonempty."""
    if slope is None:
        return True
    p_lo, q_lo, p_hi, q_hi = slope
    return p_lo * q_hi < p_hi * q_lo + (not strict)


def _has_multiple(slope: _Slope | None, shift: int) -> bool:
    """Tell whether a multiple of 2**-shift lies inside the closed interval."""
    if slope is None:
        return True
    p_lo, q_lo, p_hi, q_hi = slope
    return -((-p_lo << shift) // q_lo) * q_hi <= p_hi << shift


def _least_multiplier(slope: _Slope | None, shift: int) -> int | None:
    """Return the smallest integer m with m / 2**shift inside the open interval."""
    if slope is None:
        return 0
    p_lo, q_lo, p_hi, q_hi = slope
    m = (p_lo << shift) // q_lo + 1
    return m if m * q_hi < p_hi << shift else None


def _addend(s: Staircase, m: int, shift: int, low: int, high: int, rounding: ShiftRounding) -> int:
    """Return the integer nearest to zero that meets all conditions for this multiplier."""
    least, most = _Conditions(s, shift, low, high, rounding).addends(m)
    b = 0
    if most is not None:
        b = min(b, most)
    if least is not None:
        b = max(b, least)
    return b


class _Conditions:
    """The conditions of a channel at a shift."""

    def __init__(self, s: Staircase, shift: int, low: int, high: int, rounding: ShiftRounding) -> None:
        self._steps, self._shift, self._rounding = s, shift, rounding
        self._first = least_reaching(s.low, shift, rounding) if s.low > low else None
        self._last = least_reaching(s.high + 1, shift, rounding) if s.high < high else None
        self._ends = max(abs(s.lo), abs(s.hi)), (max(abs(s.low), abs(s.high)) + 1) << shift

    def addends(self, m: int) -> tuple[int | None, int | None]:
        """Return the minimum and maximum addend that meet all conditions for this multiplier; None: unbounded."""
        s = self._steps
        at_least: list[int] = []
        at_most: list[int] = []
        if self._first is not None:
            at_least.append(self._first - m * s.lo)
        if self._last is not None:
            at_most.append(self._last - m * s.hi - 1)
        if s.count:
            kind: Any = np.int64 if self._ends[0] * m + self._ends[1] < _SAFE else object
            lower, upper = (_Points(s, places, kind) for places in s.binding)
            at_least.append(int((lower.bounds(self._shift, self._rounding) - m * lower.thresholds).max()))
            at_most.append(int((upper.bounds(self._shift, self._rounding) - m * upper.thresholds).min()) + m - 1)
        return max(at_least, default=None), min(at_most, default=None)


@lru_cache(maxsize=64)
def _exact_slopes(staircases: tuple[Staircase, ...], low: int, high: int) -> tuple[_Slope | None, ...]:
    """Return :func:`_slopes` of shifts that round down, with which every search for the same functions begins."""
    return tuple(_slopes(staircases, low, high))


def _slopes(
    staircases: Sequence[Staircase], low: int, high: int, shift: int = 0,
    rounding: ShiftRounding = ShiftRounding.FLOOR,
) -> list[_Slope | None]:
    """Return the open interval of valid slopes per channel; _EMPTY if even its ends are invalid.

    The slopes are ``m`` at the given shift: ``m / 2**shift`` at shift 0. All channels together in padded arrays
    [channel, point]; x counts from the channel's ``lo``, v from the bound of its ``low``.
    """
    rows = [c for c, s in enumerate(staircases) if s.count]
    result: list[_Slope | None] = [None] * len(staircases)
    if not rows:
        return result
    levels = max(staircases[c].count for c in rows) + 1
    span = max(staircases[c].hi - staircases[c].lo for c in rows) + 2
    # an iterate p / q has p <= levels << shift, and q <= span: all intermediate values stay below twice their product
    kind: Any = np.int64 if 4 * ((levels + 1) << shift) * span < _SAFE else object
    points = max(len(places) for c in rows for places in staircases[c].binding) + 1
    lower = np.zeros((2, len(rows), points), dtype=kind)  # [x or v, channel, point]
    upper = np.zeros((2, len(rows), points), dtype=kind)
    for row, c in enumerate(rows):
        s = staircases[c]
        below, above = (_Points(s, places, kind) for places in s.binding)
        start, n = least_reaching(s.low, shift, rounding), len(below.thresholds)
        lower[0, row, 1 : n + 1], lower[1, row, 1 : n + 1] = (
            below.thresholds - s.lo, below.bounds(shift, rounding) - start
        )
        lower[:, row, n + 1 :] = lower[:, row, n : n + 1]
        if s.low == low:  # (lo, bottom), that is (0, 0), is no condition
            lower[:, row, 0] = lower[:, row, 1]
        n = len(above.thresholds)
        upper[0, row, :n], upper[1, row, :n] = above.thresholds - s.lo - 1, above.bounds(shift, rounding) - start
        upper[:, row, n:] = upper[:, row, n - 1 : n]
        if s.high < high:
            upper[0, row, n:], upper[1, row, n:] = s.hi - s.lo, least_reaching(s.high + 1, shift, rounding) - start
    left = _end(lower, upper, rising=True)
    right = _end(lower, upper, rising=False)
    for row, c in enumerate(rows):
        slope = int(left[0][row]), int(left[1][row]), int(right[0][row]), int(right[1][row])
        result[c] = slope if slope[1] and _ordered(slope, strict=False) else _EMPTY
    return result


def _end(lower: _Array, upper: _Array, *, rising: bool) -> tuple[_Array, _Array]:
    """Return the left (``rising``) or right end p / q of {slope : min over upper > max over lower}, for each channel.

    The function is min over pairs (upper j, lower k) of ``(v_j - v_k) - slope * (x_j - x_k)``. The pair farthest apart
    in x gives a slope outside the set or at its end; from there, each step goes to the root of the pair that is least.
    Right ends that do not exist come back as 1 / 0. A single slope where the two sides are equal is both ends of an
    empty set; where there is not even that, the left end comes back as 1 / 0.
    """
    every = np.arange(lower.shape[1])
    sign = -1 if rising else 1  # a pair bounds the slope on this side iff sign * (x_j - x_k) > 0
    j, k = (0, -1) if rising else (-1, 0)
    p, q = sign * (upper[1, :, j] - lower[1, :, k]), sign * (upper[0, :, j] - lower[0, :, k])
    if rising:  # q >= 1: the first threshold - 1 lies left of the last threshold
        active = every
    else:
        unbounded = q <= 0
        p[unbounded], q[unbounded] = 1, 0
        active = every[~unbounded.astype(bool)]
    while active.size:
        above = q[active, None] * upper[1, active] - p[active, None] * upper[0, active]
        below = q[active, None] * lower[1, active] - p[active, None] * lower[0, active]
        j_least, k_most = above.argmin(axis=1), below.argmax(axis=1)
        rows = np.arange(active.size)
        negative = (above[rows, j_least] < below[rows, k_most]).astype(bool)
        active, j_least, k_most = active[negative], j_least[negative], k_most[negative]
        dv = sign * (upper[1, active, j_least] - lower[1, active, k_most])
        dx = sign * (upper[0, active, j_least] - lower[0, active, k_most])
        apart = (dx <= 0).astype(bool)  # the pair bounds the other side only: the two exclude each other
        dv[apart], dx[apart] = 1, 0
        p[active], q[active] = dv, dx
        active = active[~apart]
    return p, q
