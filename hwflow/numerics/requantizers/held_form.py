"""Hardware of a multiply-add-shift that has room for other step functions than those it is made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.multiply_add_shift import (
    MultiplyAddShift,
    find_multiply_add_shift,
    find_rounding_multiply_add_shift,
    multiply_add_shift_at,
)
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.step_function import StepFunction

MORE_SHIFT = 2
"""Bits of the shift beyond the least one: other scales and biases may need a finer multiplier."""

_FINE = 36  # bits of the shift: nearly all scales of 8-bit results need less

_MORE_MULTIPLIER, _MORE_ADDEND = 1, 2  # bits: scales up to twice as large, biases and zero points up to four times

LOADABLE_SHIFT, LOADABLE_MULTIPLIER = 8, 3
"""Bits more where other numbers are loaded: scales up to eight times as large, finer multipliers; and biases as large
as any sum. Of random scales that one makes the least shift for, one in 14 needs four bits more, one in 300 eight."""


@dataclass(frozen=True)
class HeldForm:
    """The shift, its rounding and the clamp, and what the fields of multipliers and addends hold: (bits, signed).
    ``loadable``: they are written while the design runs."""

    shift: int
    low: int
    high: int
    multiplier: tuple[int, bool]
    addend: tuple[int, bool]
    loadable: bool = False
    rounding: ShiftRounding = ShiftRounding.FLOOR

    def table(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "shift": self.shift, "rounding": str(self.rounding), "clamp": [self.low, self.high],
            "multiplier": list(self.multiplier), "addend": list(self.addend),
        }

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> HeldForm:
        """Return what :meth:`table` says."""
        (low, high), (multiplier, m_signed), (addend, a_signed) = table["clamp"], table["multiplier"], table["addend"]
        rounding = ShiftRounding(table["rounding"])
        return cls(table["shift"], low, high, (multiplier, m_signed), (addend, a_signed), rounding=rounding)

    @classmethod
    def of(cls, steps: Sequence[StepFunction], low: int, high: int, sum_bits: int | None = None) -> HeldForm | None:
        """Return hardware for ``steps``, one per channel, with room for others; None if there is none. ``low`` and
        ``high``: the clamp, which they need not reach; ``sum_bits``: of loadable hardware, for sums of so many bits."""
        least = find_multiply_add_shift(steps) or find_rounding_multiply_add_shift(steps)
        if least is None:
            return None
        shift, rounding = least.shift + (MORE_SHIFT if sum_bits is None else LOADABLE_SHIFT), least.rounding
        if sum_bits is not None and rounding == ShiftRounding.FLOOR:
            shift = max(shift, *map(_shift_of_any, steps))
        found = multiply_add_shift_at(steps, shift, low, high, rounding)
        if found is None:
            return None
        (bits, signed), (addend, _) = found.multiplier_type, width_of(min(-1, *found.addends), max(found.addends))
        if sum_bits is None:
            more = (bits + _MORE_MULTIPLIER, signed), (addend + _MORE_ADDEND, True)
            return cls(shift, low, high, *more, rounding=rounding)
        bits += LOADABLE_MULTIPLIER
        levels, _ = width_of(min(low, 0) - 1 << shift, max(high, 0) + 1 << shift)
        more = (bits, signed), (max(addend, bits + sum_bits, levels), True)
        return cls(shift, low, high, *more, loadable=True, rounding=rounding)

    def find(self, steps: Sequence[StepFunction]) -> MultiplyAddShift | None:
        """Return the multiply-add-shift of ``steps`` in this hardware, proved equal to them; None if there is none."""
        found = multiply_add_shift_at(steps, self.shift, self.low, self.high, self.rounding)
        if found is None or not (
            _holds(self.multiplier, found.multipliers) and _holds(self.addend, found.addends)
        ):
            return None
        return found


def _shift_of_any(steps: StepFunction) -> int:
    """Return a shift for about any scale that spreads the steps as far: a scale near a simple fraction needs less."""
    breaks = steps.break_array
    return min(_FINE, 2 * int(breaks[-1] - breaks[0]).bit_length()) if steps.count else 0


def _holds(field: tuple[int, bool], numbers: Sequence[int]) -> bool:
    bits, signed = field
    least = -1 << (bits - 1) if signed else 0
    return least <= min(numbers) and max(numbers) < least + (1 << bits)
