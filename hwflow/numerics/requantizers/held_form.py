"""Hardware of a multiply-add-shift that has room for other step functions than those it is made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.multiply_add_shift import (
    MultiplyAddShift,
    find_multiply_add_shift,
    multiply_add_shift_at,
)
from hwflow.numerics.requantizers.step_function import StepFunction

MORE_SHIFT = 2
"""Bits of the shift beyond the least one: other scales and biases may need a finer multiplier."""

_MORE_MULTIPLIER, _MORE_ADDEND = 1, 2  # bits: scales up to twice as large, biases and zero points up to four times

LOADABLE_SHIFT, LOADABLE_MULTIPLIER = 4, 3
"""Bits more where other numbers are loaded: scales up to eight times as large, finer multipliers; and biases as large
as any sum."""


@dataclass(frozen=True)
class HeldForm:
    """The shift and the clamp, and what the fields of multipliers and addends hold: (bits, signed). ``loadable``: they
    are written while the design runs."""

    shift: int
    low: int
    high: int
    multiplier: tuple[int, bool]
    addend: tuple[int, bool]
    loadable: bool = False

    @classmethod
    def of(cls, steps: Sequence[StepFunction], low: int, high: int, sum_bits: int | None = None) -> HeldForm | None:
        """Return hardware for ``steps``, one per channel, with room for others; None if there is none. ``low`` and
        ``high``: the clamp, which they need not reach; ``sum_bits``: of loadable hardware, for sums of so many bits."""
        least = find_multiply_add_shift(steps)
        if least is None:
            return None
        shift = least.shift + (MORE_SHIFT if sum_bits is None else LOADABLE_SHIFT)
        found = multiply_add_shift_at(steps, shift, low, high)
        if found is None:
            return None
        (bits, signed), (addend, _) = found.multiplier_type, width_of(min(-1, *found.addends), max(found.addends))
        if sum_bits is None:
            return cls(shift, low, high, (bits + _MORE_MULTIPLIER, signed), (addend + _MORE_ADDEND, True))
        bits += LOADABLE_MULTIPLIER
        return cls(shift, low, high, (bits, signed), (max(addend, bits + sum_bits), True), loadable=True)

    def find(self, steps: Sequence[StepFunction]) -> MultiplyAddShift | None:
        """Return the multiply-add-shift of ``steps`` in this hardware, proved equal to them; None if there is none."""
        found = multiply_add_shift_at(steps, self.shift, self.low, self.high)
        if found is None or not (
            _holds(self.multiplier, found.multipliers) and _holds(self.addend, found.addends)
        ):
            return None
        return found


def _holds(field: tuple[int, bool], numbers: Sequence[int]) -> bool:
    bits, signed = field
    least = -1 << (bits - 1) if signed else 0
    return least <= min(numbers) and max(numbers) < least + (1 << bits)
