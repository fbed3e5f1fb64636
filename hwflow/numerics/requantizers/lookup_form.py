"""A ROM of results, addressed by the input."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.form import BITS_PER_LUT, Channel, ChannelTables, ceil_div
from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction


@dataclass(frozen=True)
class LookupForm(ChannelTables):
    """``y = tables[c][x - lo]`` for channel c: any function of a small input interval, monotone or not.

    ``tables`` has one entry per channel, all of one length.
    """

    title = "lookup"

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
        """Raise ValueError for an input outside the tables: there is no word for it."""
        x = np.asarray(x, dtype=np.int64)
        if x.size and (int(x.min()) < self.lo or int(x.max()) >= self.lo + self.span):
            top = self.lo + self.span - 1
            raise ValueError(f"inputs of a lookup must lie in [{self.lo}, {top}], not [{x.min()}, {x.max()}]")
        return np.asarray(self.array[channel, x - self.lo], dtype=np.int64)

    def key(self, channel: int) -> Hashable:
        return self.tables[channel]

    def on_interval(self, channel: int, lo: int, hi: int) -> StepFunction | None:
        if lo < self.lo or hi >= self.lo + self.span:
            return None
        return StepFunction.of_table(lo, self.tables[channel][lo - self.lo : hi + 1 - self.lo])

    def cost(self, input_bits: int, lanes: int = 1) -> int:
        """Count ``2**address_bits * output_bits`` bits per channel."""
        words = 1 << (self.span - 1).bit_length()
        bits = words * self.output_type[0] * (lanes if self.uniform else self.channels)
        return ceil_div(bits, BITS_PER_LUT)

    def details(self) -> dict[str, int | str | bool]:
        return {"words": self.span}


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
