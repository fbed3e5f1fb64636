"""The rounding of a shift to the right, as :class:`hdl_lib.requantizers.shift_and_clamp.ShiftRounding` has it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

import numpy.typing as npt

_Level = TypeVar("_Level", int, npt.NDArray[Any])


class ShiftRounding(StrEnum):
    """How a shift rounds. The values are the words of reports."""

    FLOOR = "floor"
    HALF_EVEN = "half_even"  # to nearest, ties to even
    HALF_ODD = "half_odd"  # to nearest, ties to odd


def least_reaching(level: _Level, shift: int, rounding: ShiftRounding) -> _Level:
    """Return the smallest number that the shift maps to ``level`` or above."""
    if rounding == ShiftRounding.FLOOR:
        return level << shift
    down = (level + (rounding == ShiftRounding.HALF_ODD)) & 1  # a tie between level - 1 and level goes down
    return (level << shift) - (1 << (shift - 1)) + down
