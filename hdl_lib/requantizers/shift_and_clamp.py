"""What follows the sum in a requantizer: a shift with its rounding, and a clamp."""

from __future__ import annotations

from enum import StrEnum

from amaranth.hdl import Module, Shape, Signal

from hdl_lib.arithmetic.adder_tree import Term, registered
from hdl_lib.arithmetic.multiplier import interval


class ShiftRounding(StrEnum):
    """How a shift rounds."""

    FLOOR = "floor"
    HALF_EVEN = "half_even"  # to nearest, ties to even
    HALF_ODD = "half_odd"  # to nearest, ties to odd


def checked_rounding(rounding: str, shift: int) -> ShiftRounding:
    """Return ``rounding``. Raises ValueError if it is unknown or ``shift`` too small for it."""
    if rounding not in list(ShiftRounding):
        raise ValueError(f"rounding must be one of {', '.join(ShiftRounding)}, not {rounding}")
    if shift < (rounding != ShiftRounding.FLOOR):
        least = int(rounding != ShiftRounding.FLOOR)
        raise ValueError(f"shift must be at least {least} with rounding {rounding}, not {shift}")
    return ShiftRounding(rounding)


def check_clamp(low: int, high: int, shape: Shape) -> None:
    """Raise ValueError unless ``low`` and ``high`` are values of ``shape`` in this order."""
    least, greatest = interval(shape)
    if not least <= low <= high <= greatest:
        raise ValueError(
            f"low and high must be in {least}..{greatest}, the range of {shape}, and in this order, "
            f"not {low} and {high}"
        )


def quotient(m: Module, name: str, total: Term, shift: int, rounding: str) -> Term:
    """Return ``total`` shifted, and unless it is rounded down, rounded to nearest in a register of its own, a cycle
    later. ``name`` is at the end of its signals' names.

    Adds 1 to the quotient rounded down if the remainder is more than half, or exactly half and the quotient has the
    wrong parity: an adder of the quotient's width only.
    """
    if rounding == ShiftRounding.FLOOR:
        return Term(total.value.shift_right(shift), total.low >> shift, total.high >> shift)
    half, odd = 1 << (shift - 1), rounding == ShiftRounding.HALF_ODD

    def rounded(value: int) -> int:
        return (value + half - 1 + (value >> shift & 1 ^ odd)) >> shift

    # Wide enough that the bits of the remainder and the last one of the quotient are there.
    wide = Signal(Shape(max(len(total.value), shift + 1), total.value.shape().signed), name=f"total_{name}")
    m.d.comb += wide.eq(total.value)
    wrong = ~wide[shift] if odd else wide[shift]
    up = Signal(name=f"up_{name}")
    m.d.comb += up.eq(wide[shift - 1] & (wide[: shift - 1].any() | wrong))
    nearest = Term(wide.shift_right(shift) + up, rounded(total.low), rounded(total.high))
    return registered(m, f"quotient_{name}", nearest)
