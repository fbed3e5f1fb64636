"""A binary search among thresholds in rising order, a comparison after the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.form import BITS_PER_LUT, Channel, ChannelTables, by_channel, ceil_div
from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction


@dataclass(frozen=True, eq=False)
class SearchForm(ChannelTables):
    """``y = value(#{k : x >= thresholds[c][k]})`` for channel c; the count is found by bisection in ``stages`` stages.

    Every channel has ``2**stages - 1`` thresholds, in rising order (equal ones allowed). ``value(i)`` is
    ``values[c][i]`` where there are ``values``, ``2**stages`` per channel, else ``base + i``, or ``base - i`` with
    ``falling``. A threshold at the ``lo`` of a channel is always reached and one at its ``hi + 1`` never.
    Rows are stored as arrays: with 16 bits there are 65,535 thresholds per channel.
    """

    title = "search"

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

    @property
    def value_bits(self) -> int:
        """Bits of a value, 0 without a table of them."""
        return 0 if self.values is None else self.value_type[0]

    def row(self, channel: int) -> IntArray:
        """Return the results of ``channel`` for 0, 1, .. thresholds reached."""
        if self.values is not None:
            values: IntArray = self.values[channel]
            return values
        return self.base + (-1 if self.falling else 1) * np.arange(1 << self.stages)

    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        def one(x: IntArray, c: int) -> IntArray:
            return self.row(c)[np.searchsorted(self.thresholds[c], x, side="right")]

        return by_channel(one, x, channel, self.uniform)

    def key(self, channel: int) -> Hashable:
        return self.thresholds[channel].tobytes(), None if self.values is None else self.values[channel].tobytes()

    def on_interval(self, channel: int, lo: int, hi: int) -> StepFunction | None:
        thresholds, row = self.thresholds[channel], self.row(channel)
        if len(thresholds) != (1 << self.stages) - 1 or len(row) != 1 << self.stages:
            return None
        if (thresholds[1:] < thresholds[:-1]).any():  # bisection needs sorted thresholds
            return None
        return StepFunction.of_arrays(lo, hi, np.append(lo, np.maximum(lo, thresholds)), row)

    def cost(self, input_bits: int, lanes: int = 1) -> int:
        """Count one comparator per stage, the input kept for each of two cycles per stage (a register costs half a
        LUT), the tables without what is padding in them, which yields to logic minimisation."""
        bound_bits = self.bound_type[0]
        rows = self.thresholds[:1] if self.uniform else self.thresholds
        kept = len(rows) + int(np.count_nonzero(rows[:, 1:] != rows[:, :-1]))
        tables = (kept * (bound_bits + self.value_bits) + len(rows) * self.value_bits) * (lanes if self.uniform else 1)
        each = self.stages * (max(bound_bits, input_bits) + 1 + input_bits)
        return lanes * each + ceil_div(tables, BITS_PER_LUT)

    def details(self) -> dict[str, int | str | bool]:
        return {"stages": self.stages, "threshold_bits": self.bound_type[0], "value_bits": self.value_bits}


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
