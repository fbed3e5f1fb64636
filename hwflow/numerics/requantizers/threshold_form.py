"""Parallel thresholds: a comparator for each unit that a function rises or falls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.form import BITS_PER_LUT, Channel, ChannelTables, by_channel, ceil_div
from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction

MAX_THRESHOLDS = 4096  # in parallel


@dataclass(frozen=True)
class ThresholdForm(ChannelTables):
    """``y = bases[c] + #{k : (x >= thresholds[c][k]) != falling[c][k]}`` for channel c.

    Every channel has the same number of thresholds, in any order. A threshold at the ``lo`` of a channel is always
    reached and one at its ``hi + 1`` never: ``threshold_type`` says what holds them all.
    """

    title = "thresholds"

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
        def one(x: IntArray, c: int) -> IntArray:
            kinds = list(zip(self.thresholds[c], self.falling[c], strict=True))
            rising = np.array(sorted(t for t, falls in kinds if not falls), dtype=np.int64)
            falling = np.array(sorted(t for t, falls in kinds if falls), dtype=np.int64)
            reached = np.searchsorted(rising, x, side="right") - np.searchsorted(falling, x, side="right")
            return np.asarray(self.bases[c] + len(falling) + reached)

        return by_channel(one, x, channel, self.uniform)

    def key(self, channel: int) -> Hashable:
        return self.bases[channel], self.thresholds[channel], self.falling[channel]

    def on_interval(self, channel: int, lo: int, hi: int) -> StepFunction:
        events = sorted(zip(self.thresholds[channel], self.falling[channel], strict=True))
        value = self.bases[channel] + sum(falls for _, falls in events)
        starts = [(lo, value)]
        for threshold, falls in events:
            value += -1 if falls else 1
            starts.append((max(lo, threshold), value))
        return StepFunction.of(lo, hi, starts)

    def cost(self, input_bits: int, lanes: int = 1) -> int:
        """Count a comparator as wide as input and field for each threshold, one more LUT each to count it, and the
        fields; one more LUT where the direction differs between channels, an adder where the base does."""
        width = max(self.threshold_type[0], input_bits)
        base_bits = 0 if self.one_base else width_of(min(self.bases), max(self.bases))[0]
        fields = self.levels * width + len(self.direction_bits) + base_bits
        directed = sum(d in self.direction_bits for d in self.directions)
        table = 0 if self.uniform else self.channels * fields
        adder = 0 if self.one_base else base_bits + self.levels.bit_length()
        return lanes * (self.levels * (width + 1) + directed + adder) + ceil_div(table, BITS_PER_LUT)

    def details(self) -> dict[str, int | str | bool]:
        return {"thresholds": self.levels, "direction_bits": len(self.direction_bits)}


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
