"""What follows the sum in a requantizer: a shift with its rounding, and a clamp."""

from __future__ import annotations

from enum import StrEnum

from amaranth.hdl import Shape

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
