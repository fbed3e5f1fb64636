"""What all hardware forms of a requantizer have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hwflow.numerics.requantizers.staircase import IntArray
from hwflow.numerics.requantizers.step_function import StepFunction

Channel = int | npt.NDArray[np.integer[Any]]

BITS_PER_LUT = 16  # table bits at the cost of one LUT (16 x 1 memory, the minimum of all supported families)


class Form(ABC):
    """A hardware form of step functions, one per channel. Its ``evaluate`` matches its core exactly. ``title``: its
    name in reports."""

    title: ClassVar[str]

    @property
    @abstractmethod
    def uniform(self) -> bool:
        """Whether all channels have the same parameters: constants, no table."""

    @property
    def shifts_only(self) -> bool:
        """Whether it multiplies by powers of two alone: wires and adders, cheaper than whatever else would do."""
        return False

    @abstractmethod
    def evaluate(self, x: npt.ArrayLike, channel: Channel = 0) -> IntArray:
        """Return the outputs for an integer array; ``channel``: one index or an array that broadcasts with ``x``."""

    @abstractmethod
    def proves(self, steps: Sequence[StepFunction]) -> bool:
        """Decide whether the form equals each channel's step function over its whole interval."""

    @abstractmethod
    def cost(self, input_bits: int, lanes: int = 1) -> int:
        """Return the LUTs of ``lanes`` that serve all channels in turn, with tables at BITS_PER_LUT bits per LUT.

        A table shared by all channels is stored once per lane, or, of a multiply-add-shift or of thresholds, is
        constants, at no cost. The scheduler may move a multiplier to a DSP: only the forms are compared here.
        """

    @abstractmethod
    def details(self) -> dict[str, int | str | bool]:
        """Return the form's widths and sizes, as reports name them."""


class ChannelTables(Form):
    """A form of which each channel's own step function can be read from its tables."""

    @property
    @abstractmethod
    def channels(self) -> int:
        """The number of channels."""

    @abstractmethod
    def key(self, channel: int) -> Hashable:
        """Return what is the same for two channels only if their functions are."""

    @abstractmethod
    def on_interval(self, channel: int, lo: int, hi: int) -> StepFunction | None:
        """Return the step function of ``channel`` on [lo, hi]; None if it is malformed or undefined there."""

    def proves(self, steps: Sequence[StepFunction]) -> bool:
        """Compare the form's own step functions, which are the same functions iff they compare equal."""
        if self.channels != len(steps):
            return False
        known: set[tuple[Hashable, StepFunction]] = set()
        for channel, step in enumerate(steps):
            key = self.key(channel), step
            if key not in known and self.on_interval(channel, step.lo, step.hi) != step:
                return False
            known.add(key)
        return True


def by_channel(
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


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
