"""The hardware forms of a requantizer, and the choice between them.

A requantizer is a step function per channel. It becomes a multiply-add-shift, parallel thresholds, a binary search, a
ROM, or piecewise quadratics; each form's ``evaluate`` matches its core exactly, and each form is proved equal to the
step functions over their whole intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import InternalError
from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers import multiply_add_shift as mas
from hwflow.numerics.requantizers.multiply_add_shift import (
    MAX_SHIFT,
    MultiplyAddShift,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
)
from hwflow.numerics.requantizers.quadratics import QuadraticForm, find_quadratics
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.staircase import LIMIT, MAX_LEVELS, IntArray
from hwflow.numerics.requantizers.step_function import StepFunction, all_alike

__all__ = [
    "BITS_PER_LUT",
    "MAX_LOOKUP_BITS",
    "MAX_SHIFT",
    "Form",
    "LookupForm",
    "MultiplyAddShift",
    "QuadraticForm",
    "SearchForm",
    "ThresholdForm",
    "cost",
    "find_multiply_add_shift",
    "find_rounding_multiply_add_shift",
    "lookup_form",
    "proves",
    "realise",
    "search_form",
    "threshold_form",
]

Channel = int | npt.NDArray[np.integer[Any]]

BITS_PER_LUT = 16  # table bits at the cost of one LUT (16 x 1 memory, the minimum of all supported families)
MAX_LOOKUP_BITS = 12  # widest input interval of a ROM, except through ``lookup_form`` itself
MAX_THRESHOLDS = 4096  # in parallel
MANY_LUTS = 2048  # tables of two block RAMs
CHANNELS_PER_LANE = 16  # of a typical folding: the form is chosen before the folding is known


@dataclass(frozen=True)
class ThresholdForm:
    """``y = bases[c] + #{k : (x >= thresholds[c][k]) != falling[c][k]}`` for channel c.

    Every channel has the same number of thresholds, in any order. A threshold at the ``lo`` of a channel is always
    reached and one at its ``hi + 1`` never: ``threshold_type`` says what holds them all.
    """

    bases: tuple[int, ...]
    thresholds: tuple[tuple[int, ...], ...]
    falling: tuple[tuple[bool, ...], ...]

    @property
    def channels(self) -> int:
        return len(self.thresholds)

    @property
    def levels(self) -> int:
        """Thresholds per channel."""
        return len(self.thresholds[0])

    @cached_property
    def uniform(self) -> bool:
        """Whether all channels have the same parameters: constants, no table."""
        return len(set(zip(self.bases, self.thresholds, self.falling, strict=True))) <= 1

    @cached_property
    def one_base(self) -> bool:
        """Whether all channels have the same base."""
        return len(set(self.bases)) <= 1

    @cached_property
    def directions(self) -> tuple[tuple[bool, ...], ...]:
        """``falling`` by threshold instead of by channel: ``directions[k][c]``."""
        return tuple(zip(*self.falling, strict=True))

    @cached_property
    def direction_bits(self) -> tuple[tuple[bool, ...], ...]:
        """The distinct ``directions`` that differ between channels, each a bit of the channel's parameters."""
        return tuple(dict.fromkeys(d for d in self.directions if len(set(d)) > 1))

    @property
    def threshold_type(self) -> tuple[int, bool]:
        """The narrowest (bits, signed) that holds every threshold; one bit without thresholds."""
        if not self.levels:
            return 1, False
        return width_of(min(map(min, self.thresholds)), max(map(max, self.thresholds)))

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        """Return the outputs for an integer array; ``channel``: one index or an array that broadcasts with ``x``."""

        def one(x: IntArray, c: int) -> IntArray:
            kinds = list(zip(self.thresholds[c], self.falling[c], strict=True))
            rising = np.array(sorted(t for t, falls in kinds if not falls), dtype=np.int64)
            falling = np.array(sorted(t for t, falls in kinds if falls), dtype=np.int64)
            reached = np.searchsorted(rising, x, side="right") - np.searchsorted(falling, x, side="right")
            return np.asarray(self.bases[c] + len(falling) + reached)

        return _by_channel(one, x, channel, self.uniform)


@dataclass(frozen=True, eq=False)
class SearchForm:
    """``y = value(#{k : x >= thresholds[c][k]})`` for channel c; the count is found by bisection in ``stages`` stages.

    Every channel has ``2**stages - 1`` thresholds, in rising order (equal ones allowed). ``value(i)`` is
    ``values[c][i]`` where there are ``values``, ``2**stages`` per channel, else ``base + i``, or ``base - i`` with
    ``falling``. A threshold at the ``lo`` of a channel is always reached and one at its ``hi + 1`` never.
    Rows are stored as arrays: with 16 bits there are 65,535 thresholds per channel.
    """

    thresholds: IntArray
    base: int = 0
    falling: bool = False
    values: IntArray | None = None

    def __post_init__(self) -> None:
        for name in ("thresholds", "values"):
            rows = getattr(self, name)
            if rows is not None:
                array = np.array(rows, dtype=np.int64)
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        values = None if self.values is None else self.values.tobytes()
        return self.thresholds.shape, self.thresholds.tobytes(), self.base, self.falling, values

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, SearchForm) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    @property
    def channels(self) -> int:
        return len(self.thresholds)

    @property
    def stages(self) -> int:
        """The number of sequential comparisons."""
        return len(self.thresholds[0]).bit_length()

    @cached_property
    def uniform(self) -> bool:
        """Whether all channels have the same tables."""
        return all(bool((rows == rows[0]).all()) for rows in (self.thresholds, self.values) if rows is not None)

    @cached_property
    def bounds(self) -> IntArray:
        """The operands of the core's comparisons: ``x > threshold - 1``."""
        return np.asarray(self.thresholds - 1)

    @cached_property
    def bound_type(self) -> tuple[int, bool]:
        """The narrowest (bits, signed) that holds every bound."""
        return width_of(int(self.thresholds.min()) - 1, int(self.thresholds.max()) - 1)

    @cached_property
    def value_type(self) -> tuple[int, bool]:
        """The narrowest (bits, signed) that holds every value."""
        assert self.values is not None, "a search without values has no table of them"
        return width_of(int(self.values.min()), int(self.values.max()))

    def row(self, channel: int) -> IntArray:
        """Return the results of ``channel`` for 0, 1, .. thresholds reached."""
        if self.values is not None:
            values: IntArray = self.values[channel]
            return values
        return self.base + (-1 if self.falling else 1) * np.arange(1 << self.stages)

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        """Return the outputs for an integer array; ``channel``: one index or an array that broadcasts with ``x``."""

        def one(x: IntArray, c: int) -> IntArray:
            return self.row(c)[np.searchsorted(self.thresholds[c], x, side="right")]

        return _by_channel(one, x, channel, self.uniform)


@dataclass(frozen=True)
class LookupForm:
    """``y = tables[c][x - lo]`` for channel c: any function of a small input interval, monotone or not.

    ``tables`` has one entry per channel, all of one length.
    """

    lo: int
    tables: tuple[tuple[int, ...], ...]

    @property
    def channels(self) -> int:
        return len(self.tables)

    @property
    def span(self) -> int:
        """Words per channel; the greatest input is ``lo + span - 1``."""
        return len(self.tables[0])

    @cached_property
    def low(self) -> int:
        return min(min(t) for t in self.tables)

    @cached_property
    def high(self) -> int:
        return max(max(t) for t in self.tables)

    @cached_property
    def uniform(self) -> bool:
        """Whether all channels share one table."""
        return len(set(self.tables)) <= 1

    @property
    def output_type(self) -> tuple[int, bool]:
        """The narrowest (bits, signed) that holds every word."""
        return width_of(self.low, self.high)

    @cached_property
    def array(self) -> IntArray:
        """The words [channel, x - lo]."""
        return np.array(self.tables, dtype=np.int64)

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        """Return the outputs for an integer array; ``channel``: one index or an array that broadcasts with ``x``.

        Raises ValueError for an input outside the tables: there is no word for it.
        """
        x = np.asarray(x, dtype=np.int64)
        if x.size and (int(x.min()) < self.lo or int(x.max()) >= self.lo + self.span):
            top = self.lo + self.span - 1
            raise ValueError(f"inputs of a lookup must lie in [{self.lo}, {top}], not [{x.min()}, {x.max()}]")
        return np.asarray(self.array[channel, x - self.lo], dtype=np.int64)


Form = MultiplyAddShift | ThresholdForm | SearchForm | LookupForm | QuadraticForm


def _by_channel(
    one: Callable[[IntArray, int], IntArray], x: npt.ArrayLike, channel: Channel, uniform: bool
) -> IntArray:
    """Apply ``one(inputs, channel)`` to the inputs of each channel."""
    x, c = np.broadcast_arrays(np.asarray(x, dtype=np.int64), np.asarray(channel))
    y = np.zeros(x.shape, dtype=np.int64)
    if uniform:
        c = np.zeros_like(c)
    for index in np.unique(c):
        where = c == index
        y[where] = one(x[where], int(index))
    return y


def threshold_form(steps: Sequence[StepFunction], *, one_base: bool = True) -> ThresholdForm | None:
    """Return parallel thresholds for all channels, one per unit that a function rises or falls; None if there are more
    than MAX_THRESHOLDS.

    ``one_base``: all channels share one base, and shorter ones are padded with thresholds that are always or never
    reached; otherwise each channel has its own base, and the number of thresholds is the maximum over channels.
    """
    if max(s.travel for s in steps) > MAX_THRESHOLDS:
        return None
    rows = []
    for s in steps:
        jumps = list(zip(s.breaks, pairwise(s.values), strict=True))
        rising = tuple(t for t, (a, b) in jumps for _ in range(b - a))
        falling = tuple(t for t, (a, b) in jumps for _ in range(a - b))
        rows.append((s, rising, falling, s.values[0] - len(falling)))
    base = min(own for _, _, _, own in rows)
    ones = [own - base if one_base else 0 for _, _, _, own in rows]
    levels = max(len(r) + len(f) + n for (_, r, f, _), n in zip(rows, ones, strict=True))
    if levels > MAX_THRESHOLDS:
        return None
    # Padding first, rising, padding, falling: thresholds that rise or fall in all channels share their places.
    owned = [
        (False,) * n + (True,) * len(r) + (False,) * (levels - n - len(r) - len(f)) + (True,) * len(f)
        for (_, r, f, _), n in zip(rows, ones, strict=True)
    ]
    falls_at = [
        {k >= levels - len(f) for (_, _, f, _), own in zip(rows, owned, strict=True) if own[k]} for k in range(levels)
    ]
    bases, thresholds, directions = [], [], []
    for (s, rising, falling, own_base), n in zip(rows, ones, strict=True):
        row, falls = [], []
        for k in range(levels):
            if n <= k < n + len(rising):
                row.append(rising[k - n])
                falls.append(False)
            elif k >= levels - len(falling):
                row.append(falling[k - (levels - len(falling))])
                falls.append(True)
            else:  # of the direction that the others have there, or else of the channel's own
                down = falls_at[k] == {True} or (falls_at[k] == {True, False} and not rising and bool(falling))
                row.append(s.lo if (k < n) != down else s.hi + 1)
                falls.append(down)
        bases.append(base if one_base else own_base)
        thresholds.append(tuple(row))
        directions.append(tuple(falls))
    return ThresholdForm(tuple(bases), tuple(thresholds), tuple(directions))


def search_form(steps: Sequence[StepFunction], *, with_values: bool) -> SearchForm | None:
    """Return a binary search for all channels; None where none exists: nothing to search, or, without values, channels
    that do not all rise or all fall, or jumps that would take two stages more than with values.

    ``with_values``: a threshold per break, and the results in a table. Otherwise a threshold per level, and the number
    reached is the result up to a constant: channels that begin above the first of all levels are padded with thresholds
    that are always reached.
    """
    if with_values:
        count = max(s.count for s in steps)
        if not count:
            return None
        size = 1 << count.bit_length()
        values = [np.pad(s.value_array, (0, size - 1 - s.count), mode="edge") for s in steps]
        return SearchForm(_filled(steps, [s.break_array for s in steps], size - 1), values=np.stack(values))
    directions = {s.direction for s in steps if s.count}
    if len(directions) != 1 or directions == {0}:
        return None
    (direction,) = directions
    base = direction * min(direction * s.first for s in steps)
    count = max(abs(s.last - base) for s in steps)
    if count.bit_length() > max(s.count for s in steps).bit_length() + 1:
        return None
    rows = []
    for s in steps:
        own = np.repeat(s.break_array, np.abs(np.diff(s.value_array)))
        rows.append(np.append(np.full(abs(s.first - base), s.lo), own))
    return SearchForm(_filled(steps, rows, (1 << count.bit_length()) - 1), base, direction < 0)


def _filled(steps: Sequence[StepFunction], rows: Sequence[IntArray], size: int) -> IntArray:
    """Pad the thresholds of each channel with some that are never reached."""
    return np.stack([np.pad(r, (0, size - len(r)), constant_values=s.hi + 1) for s, r in zip(steps, rows, strict=True)])


def lookup_form(steps: Sequence[StepFunction]) -> LookupForm:
    """Return a ROM for all channels over the union of their intervals; outside its own interval a channel keeps the
    value at the nearest end."""
    lo, hi = min(s.lo for s in steps), max(s.hi for s in steps)
    x = np.arange(lo, hi + 1)
    rows: dict[StepFunction, tuple[int, ...]] = {}
    for s in steps:
        if s not in rows:
            rows[s] = tuple(s.evaluate(np.clip(x, s.lo, s.hi)).tolist())
    return LookupForm(lo, tuple(rows[s] for s in steps))


def proves(form: Form, steps: Sequence[StepFunction]) -> bool:
    """Decide whether ``form`` equals each channel's step function over its whole interval.

    Multiply-add-shift: the inequalities at every threshold and both ends (see ``multiply_add_shift``). The others: the
    form's own step function on the interval, which is the same function iff it compares equal; of piecewise quadratics
    every entry.
    """
    if isinstance(form, MultiplyAddShift):
        return mas.proves(form, steps)
    if form.channels != len(steps):
        return False
    if isinstance(form, QuadraticForm):
        return all_alike(steps) and form.proves(steps[0])
    known: set[tuple[Any, ...]] = set()
    for channel, step in enumerate(steps):
        if isinstance(form, ThresholdForm):
            key: tuple[Any, ...] = (form.bases[channel], form.thresholds[channel], form.falling[channel], step)
        elif isinstance(form, SearchForm):
            values = form.values if form.values is None else form.values[channel].tobytes()
            key = (form.thresholds[channel].tobytes(), values, step)
        else:
            key = (form.tables[channel], step)
        if key not in known and _on_interval(form, channel, step.lo, step.hi) != step:
            return False
        known.add(key)
    return True


def _on_interval(form: ThresholdForm | SearchForm | LookupForm, channel: int, lo: int, hi: int) -> StepFunction | None:
    """Return the step function that ``form`` computes on [lo, hi]; None if it is malformed or undefined there."""
    if isinstance(form, LookupForm):
        if lo < form.lo or hi >= form.lo + form.span:
            return None
        return StepFunction.of_table(lo, form.tables[channel][lo - form.lo : hi + 1 - form.lo])
    if isinstance(form, ThresholdForm):
        events = sorted(zip(form.thresholds[channel], form.falling[channel], strict=True))
        value = form.bases[channel] + sum(falls for _, falls in events)
        starts = [(lo, value)]
        for threshold, falls in events:
            value += -1 if falls else 1
            starts.append((max(lo, threshold), value))
        return StepFunction.of(lo, hi, starts)
    thresholds, row = form.thresholds[channel], form.row(channel)
    if len(thresholds) != (1 << form.stages) - 1 or len(row) != 1 << form.stages:
        return None
    if (thresholds[1:] < thresholds[:-1]).any():  # bisection needs sorted thresholds
        return None
    return StepFunction.of_arrays(lo, hi, np.append(lo, np.maximum(lo, thresholds)), row)


def cost(form: Form, input_bits: int, lanes: int = 1) -> int:
    """Return the LUTs of ``lanes`` that serve all channels in turn, with tables at BITS_PER_LUT bits per LUT.

    - multiply-add-shift: the multiplier array ``input_bits * multiplier_bits``, an adder as wide as the widest sum, and
      one multiplier and one addend field per channel; to round, an adder of the bits that the shift leaves, and a
      disjunction of those it takes;
    - thresholds: a comparator as wide as input and field for each, one more LUT each to count it, and the fields; one
      more LUT where the direction differs between channels, an adder where the base does;
    - search: one comparator per stage, the input kept for each of two cycles per stage (a register costs half a LUT),
      the tables without what is padding in them, which yields to logic minimisation;
    - ROM: ``2**address_bits * output_bits`` per channel;
    - piecewise quadratics: the table, two multiplier arrays of a place in a segment and a coefficient, sums as wide as
      these, and the coefficients in registers until they are read.

    A table shared by all channels is stored once per lane; for the first two forms it is constants, at no cost. The
    scheduler may move the multiplier to a DSP: only the forms are compared here.
    """
    if isinstance(form, LookupForm):
        words = 1 << (form.span - 1).bit_length()
        bits = words * form.output_type[0] * (lanes if form.uniform else form.channels)
        return _ceil_div(bits, BITS_PER_LUT)
    if isinstance(form, QuadraticForm):
        (constant, slope, curvature), moved = (bits for bits, _ in form.types), form.moved_type[0]
        products = form.offset_bits * (curvature + moved) + moved + constant
        waiting = 3 * slope + 6 * constant
        return lanes * (products + waiting + _ceil_div(form.segments * form.width, BITS_PER_LUT))
    if isinstance(form, ThresholdForm):
        width = max(form.threshold_type[0], input_bits)
        base_bits = 0 if form.one_base else width_of(min(form.bases), max(form.bases))[0]
        fields = form.levels * width + len(form.direction_bits) + base_bits
        directed = sum(d in form.direction_bits for d in form.directions)
        table = 0 if form.uniform else form.channels * fields
        adder = 0 if form.one_base else base_bits + form.levels.bit_length()
        return lanes * (form.levels * (width + 1) + directed + adder) + _ceil_div(table, BITS_PER_LUT)
    if isinstance(form, SearchForm):
        bound_bits = form.bound_type[0]
        value_bits = 0 if form.values is None else form.value_type[0]
        rows = form.thresholds[:1] if form.uniform else form.thresholds
        kept = len(rows) + int(np.count_nonzero(rows[:, 1:] != rows[:, :-1]))
        tables = (kept * (bound_bits + value_bits) + len(rows) * value_bits) * (lanes if form.uniform else 1)
        each = form.stages * (max(bound_bits, input_bits) + 1 + input_bits)
        return lanes * each + _ceil_div(tables, BITS_PER_LUT)
    addend_bits = form.addend_type[0]
    adder = max(input_bits + form.multiplier_bits, addend_bits) + 1
    rounding = 0 if form.rounding == ShiftRounding.FLOOR else max(0, adder - form.shift) + _ceil_div(form.shift, 4)
    table = 0 if form.uniform else form.channels * (form.multiplier_bits + addend_bits)
    return lanes * (input_bits * form.multiplier_bits + adder + rounding) + _ceil_div(table, BITS_PER_LUT)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def realise(steps: Sequence[StepFunction], input_bits: int, input_signed: bool) -> Form:
    """Return the cheapest form by :func:`cost`, proved equal to ``steps`` (one per channel) over their whole intervals.

    ``input_bits, input_signed`` is the type of the requantizer's input; every interval must fit in it (ValueError).
    A rounding multiply-add-shift is searched where its shift may be smaller than that of rounding down. A search, which
    exists for all functions that are not constant, is considered only if there is no multiply-add-shift, whose
    multiplier is cheap in a DSP; the cost is then that of a lane per CHANNELS_PER_LANE channels, otherwise of one lane.
    A ROM is considered up to MAX_LOOKUP_BITS bits of interval, piecewise quadratics beyond if all channels are alike
    and the other forms cost more than MANY_LUTS.
    Results that differ by MAX_LEVELS or more have tables only. On a tie the order is multiply-add-shift, thresholds,
    search, ROM.
    """
    if not steps:
        raise ValueError("steps must be one per channel, not none")
    lo, hi = min(s.lo for s in steps), max(s.hi for s in steps)
    least = -1 << (input_bits - 1) if input_signed else 0
    greatest = least + (1 << input_bits) - 1
    if lo < least or hi > greatest:
        raise ValueError(f"intervals must lie within the input type [{least}, {greatest}], not [{lo}, {hi}]")
    forms: list[Form] = []
    wide = max(s.travel for s in steps) >= MAX_LEVELS  # a table of long results: no thresholds for each unit
    far = max(-lo, hi) > LIMIT  # keys of float64: compared, not multiplied
    if far and not any(s.count for s in steps):
        forms.append(ThresholdForm(tuple(s.first for s in steps), ((hi + 1,),) * len(steps), ((False,),) * len(steps)))
    found = None if wide or far else find_multiply_add_shift(steps)
    if found is not None:
        forms.append(found)
    most = MAX_SHIFT if found is None else found.shift - 1
    rounding = None if wide or far else find_rounding_multiply_add_shift(steps, most)
    if rounding is not None:
        forms.append(rounding)
    least_cost = min((cost(form, input_bits) for form in forms), default=None)
    # A comparator per unit that a function rises or falls is a lower bound on the cost of parallel thresholds.
    if not wide and (least_cost is None or max(s.travel for s in steps) * (input_bits + 1) < least_cost):
        parallel = (threshold_form(steps, one_base=True), threshold_form(steps, one_base=False))
        forms += [form for form in parallel if form is not None and form.levels]
    if least_cost is None:
        searches = (None if wide else search_form(steps, with_values=False), search_form(steps, with_values=True))
        forms += [form for form in searches if form is not None]
    if hi - lo < 1 << MAX_LOOKUP_BITS:
        forms.append(lookup_form(steps))
    elif least_cost is None and all(cost(form, input_bits) >= MANY_LUTS for form in forms) and all_alike(steps):
        quadratics = find_quadratics(steps[0])
        forms += [] if quadratics is None else [replace(quadratics, channels=len(steps))]
    # One comparator per level against one per stage depends on the number of lanes: that of a typical folding.
    lanes = _ceil_div(len(steps), CHANNELS_PER_LANE) if least_cost is None else 1
    best = min(forms, key=lambda form: cost(form, input_bits, lanes))
    if not proves(best, steps):
        raise InternalError.of(
            "requantizer-proved", f"requantizer of {len(steps)} channels",
            f"{type(best).__name__} must equal its step functions on the whole interval, not differ",
            "report this model as a defect of hwflow",
        )
    return best
