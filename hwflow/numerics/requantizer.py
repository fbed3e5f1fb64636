"""The three hardware forms of a requantizer, and the choice between them.

A requantizer is one staircase a channel. It becomes a multiply-add-shift, a set of thresholds, or a ROM; each form's
``evaluate`` does exactly what its core does, and each is proved equal to the staircases over their whole intervals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.errors import Finding, InternalError
from hwflow.numerics import multiply_add_shift as mas
from hwflow.numerics.accumulator import width_of
from hwflow.numerics.multiply_add_shift import (
    MAX_SHIFT,
    MultiplyAddShift,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
)
from hwflow.numerics.staircase import IntArray, Staircase
from hwflow.numerics.step_function import StepFunction

__all__ = [
    "BITS_PER_LUT",
    "MAX_LOOKUP_BITS",
    "MAX_SHIFT",
    "Form",
    "LookupForm",
    "MultiplyAddShift",
    "ThresholdForm",
    "cost",
    "find_multiply_add_shift",
    "find_rounding_multiply_add_shift",
    "lookup_form",
    "proves",
    "realise",
    "threshold_form",
]

Channel = int | npt.NDArray[np.integer[Any]]

BITS_PER_LUT = 16  # table bits that cost as much as one LUT (16 x 1 memory, the least any supported family has)
MAX_LOOKUP_BITS = 12  # of the input interval: beyond it a ROM is built only by ``lookup_form`` itself


@dataclass(frozen=True)
class ThresholdForm:
    """``y = base + #{k : x >= thresholds[c][k]}`` for channel c; every channel has the same number of thresholds.

    Where a channel uses fewer levels than others, a threshold at its ``lo`` is always reached and one at its ``hi + 1``
    never is: ``threshold_type`` says what holds them all.
    """

    base: int
    thresholds: tuple[tuple[int, ...], ...]

    @property
    def channels(self) -> int:
        return len(self.thresholds)

    @property
    def levels(self) -> int:
        """Thresholds a channel: one less than the number of output values."""
        return len(self.thresholds[0])

    @property
    def low(self) -> int:
        return self.base

    @property
    def high(self) -> int:
        return self.base + self.levels

    @cached_property
    def uniform(self) -> bool:
        """All channels have the same thresholds: constants, no table."""
        return len(set(self.thresholds)) <= 1

    @property
    def threshold_type(self) -> tuple[int, bool]:
        """Least (bits, signed) that holds every threshold; one bit with no thresholds."""
        if not self.levels:
            return 1, False
        return width_of(min(t[0] for t in self.thresholds), max(t[-1] for t in self.thresholds))

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        """The outputs for an integer array; ``channel`` is one index or an array that broadcasts with ``x``."""
        x, c = np.broadcast_arrays(np.asarray(x, dtype=np.int64), np.asarray(channel))
        y = np.full(x.shape, self.base, dtype=np.int64)
        if self.uniform:
            c = np.zeros_like(c)
        for one in np.unique(c):
            where = c == one
            y[where] += np.searchsorted(np.array(self.thresholds[int(one)], dtype=np.int64), x[where], side="right")
        return y


@dataclass(frozen=True)
class LookupForm:
    """``y = tables[c][x - lo]`` for channel c: any function of a small input interval, monotone or not.

    ``tables`` has one entry a channel, all of one length.
    """

    lo: int
    tables: tuple[tuple[int, ...], ...]

    @property
    def channels(self) -> int:
        return len(self.tables)

    @property
    def span(self) -> int:
        """Words a channel; the greatest input is ``lo + span - 1``."""
        return len(self.tables[0])

    @cached_property
    def low(self) -> int:
        return min(min(t) for t in self.tables)

    @cached_property
    def high(self) -> int:
        return max(max(t) for t in self.tables)

    @cached_property
    def uniform(self) -> bool:
        """All channels have the same table: one serves them all."""
        return len(set(self.tables)) <= 1

    @property
    def output_type(self) -> tuple[int, bool]:
        """Least (bits, signed) that holds every word."""
        return width_of(self.low, self.high)

    @cached_property
    def array(self) -> IntArray:
        """The words [channel, x - lo]."""
        return np.array(self.tables, dtype=np.int64)

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        """The outputs for an integer array; ``channel`` is one index or an array that broadcasts with ``x``.

        Raises ValueError for an input outside the tables: there is no word for it.
        """
        x = np.asarray(x, dtype=np.int64)
        if x.size and (int(x.min()) < self.lo or int(x.max()) >= self.lo + self.span):
            top = self.lo + self.span - 1
            raise ValueError(f"inputs of a lookup must lie in [{self.lo}, {top}], not [{x.min()}, {x.max()}]")
        return np.asarray(self.array[channel, x - self.lo], dtype=np.int64)


Form = MultiplyAddShift | ThresholdForm | LookupForm


def threshold_form(staircases: Sequence[Staircase]) -> ThresholdForm:
    """Thresholds for all channels; exists always. Channels of fewer levels are padded (see :class:`ThresholdForm`)."""
    base, top = min(s.low for s in staircases), max(s.high for s in staircases)
    return ThresholdForm(
        base,
        tuple((s.lo,) * (s.low - base) + s.thresholds + (s.hi + 1,) * (top - s.high) for s in staircases),
    )


def lookup_form(staircases: Sequence[Staircase]) -> LookupForm:
    """A ROM for all channels over the union of their intervals; outside its own interval a channel saturates."""
    lo, hi = min(s.lo for s in staircases), max(s.hi for s in staircases)
    x = np.arange(lo, hi + 1)
    rows: dict[Staircase, tuple[int, ...]] = {}
    for s in staircases:
        if s not in rows:
            rows[s] = tuple(s.evaluate(np.clip(x, s.lo, s.hi)).tolist())
    return LookupForm(lo, tuple(rows[s] for s in staircases))


def proves(form: Form, staircases: Sequence[Staircase]) -> bool:
    """Whether ``form`` equals each channel's staircase over that channel's whole interval.

    Multiply-add-shift: the inequalities at every threshold and both ends (see ``multiply_add_shift``). Thresholds:
    those that fall within the interval must be the staircase's own. ROM: every word within the interval.
    """
    if isinstance(form, MultiplyAddShift):
        return mas.proves(form, staircases)
    if form.channels != len(staircases):
        return False
    if isinstance(form, ThresholdForm):
        return all(_own(form.base, t, s) for t, s in zip(form.thresholds, staircases, strict=True))
    for row, s in zip(form.array, staircases, strict=True):
        if s.lo < form.lo or s.hi >= form.lo + form.span:
            return False
        if not np.array_equal(row[s.lo - form.lo : s.hi + 1 - form.lo], s.evaluate(np.arange(s.lo, s.hi + 1))):
            return False
    return True


def _own(base: int, thresholds: tuple[int, ...], s: Staircase) -> bool:
    """Counting ``thresholds`` from ``base`` is the staircase ``s``."""
    if any(a > b for a, b in pairwise(thresholds)):
        return False
    first, last = bisect_right(thresholds, s.lo), bisect_right(thresholds, s.hi)
    return base + first == s.low and thresholds[first:last] == s.thresholds


def cost(form: Form, input_bits: int) -> int:
    """LUTs of one lane that serves all channels in turn, tables included at BITS_PER_LUT bits a LUT.

    - multiply-add-shift: the multiplier array ``input_bits * multiplier_bits``, an adder as wide as the widest sum, and
      one multiplier and one addend field a channel; to round, an adder of the bits that the shift leaves, and a
      disjunction of those it takes;
    - thresholds: a comparator as wide as input and field for each, one more LUT each to count it, and the fields;
    - ROM: ``2**address_bits * output_bits`` a channel.

    A table that is the same for all channels is stored once; for the first two it is constants and costs nothing.
    A DSP that takes the multiplier over is the scheduler's business: here only the forms are compared.
    """
    if isinstance(form, LookupForm):
        words = 1 << (form.span - 1).bit_length()
        bits = words * form.output_type[0] * (1 if form.uniform else form.channels)
        return _ceil_div(bits, BITS_PER_LUT)
    if isinstance(form, ThresholdForm):
        width = max(form.threshold_type[0], input_bits)
        table = 0 if form.uniform else form.channels * form.levels * width
        return form.levels * (width + 1) + _ceil_div(table, BITS_PER_LUT)
    addend_bits = form.addend_type[0]
    adder = max(input_bits + form.multiplier_bits, addend_bits) + 1
    rounding = 0 if form.rounding == "floor" else max(0, adder - form.shift) + _ceil_div(form.shift, 4)
    table = 0 if form.uniform else form.channels * (form.multiplier_bits + addend_bits)
    return input_bits * form.multiplier_bits + adder + rounding + _ceil_div(table, BITS_PER_LUT)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def realise(steps: Sequence[StepFunction], input_bits: int, input_signed: bool) -> Form:
    """The cheapest form by :func:`cost`, proved equal to ``steps`` (one a channel) over their whole intervals.

    ``input_bits, input_signed`` is the type of the requantizer's input; every interval must fit in it (ValueError).
    Thresholds always exist; a multiply-add-shift may not, and one that rounds is looked for where none that rounds down
    has as small a shift; a ROM is considered up to MAX_LOOKUP_BITS bits of interval.
    On a tie the order is multiply-add-shift, thresholds, ROM.
    """
    if not steps:
        raise ValueError("steps must be one a channel, not none")
    staircases = [s.staircase() for s in steps]
    lo, hi = min(s.lo for s in staircases), max(s.hi for s in staircases)
    least = -1 << (input_bits - 1) if input_signed else 0
    greatest = least + (1 << input_bits) - 1
    if lo < least or hi > greatest:
        raise ValueError(f"intervals must lie within the input type [{least}, {greatest}], not [{lo}, {hi}]")
    forms: list[Form] = []
    found = find_multiply_add_shift(staircases)
    if found is not None:
        forms.append(found)
    rounding = find_rounding_multiply_add_shift(staircases, MAX_SHIFT if found is None else found.shift - 1)
    if rounding is not None:
        forms.append(rounding)
    thresholds = threshold_form(staircases)
    if thresholds.levels or not forms:
        forms.append(thresholds)
    if hi - lo < 1 << MAX_LOOKUP_BITS:
        forms.append(lookup_form(staircases))
    best = min(forms, key=lambda form: cost(form, input_bits))
    if not proves(best, staircases):
        raise InternalError(
            Finding(
                "requantizer-proved", f"requantizer of {len(staircases)} channels",
                f"{type(best).__name__} must equal its staircases on the whole interval, not differ",
                "report this model as a defect of hwflow",
            )
        )
    return best
