"""What sits between USB and a board's serial line: how a host finds it, and the baud rates that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class SerialChip:
    """A chip, or the firmware of a debugger.

    ``usb``: its vendor's and its product's numbers; none where they are not known, or any adapter will do. ``baud``:
    the highest rate, or one that is known to work. ``divided``: it makes the rates of FTDI's chips only, ``baud`` over
    1, 1.5, or 2 and more in steps of an eighth (FTDI AN120, and DS_FT2232H 4.2); else every rate.
    """

    title: str
    usb: tuple[tuple[int, int], ...]
    baud: int
    divided: bool = False

    def nearest(self, baud: int) -> Fraction:
        """Return the rate next to ``baud`` that it makes, exactly."""
        if not self.divided:
            return Fraction(baud)
        eighths = max(16, round(Fraction(8 * self.baud, baud)))
        rates = (Fraction(self.baud), Fraction(2 * self.baud, 3), Fraction(8 * self.baud, eighths))
        return min(rates, key=lambda rate: abs(rate - baud))

    def within(self, limit: Fraction | int) -> int:
        """Return the highest plain rate of at most ``limit``: ``baud`` or a whole fraction of it."""
        return self.baud // max(1, -(-self.baud // Fraction(limit)))


FT231X = SerialChip("FT231X", ((0x0403, 0x6015),), 3_000_000, divided=True)
FT2232H = SerialChip("FT2232H", ((0x0403, 0x6010),), 12_000_000, divided=True)
BL702 = SerialChip("BL702 debugger", ((0x0403, 0x6010),), 115_200)  # it says that it was an FT2232H
BL616 = SerialChip("BL616 debugger", ((0x0403, 0x6010),), 115_200)
ICELINK = SerialChip("iCELink debugger", ((0x1D50, 0x602B),), 115_200)  # as the udev rules beside its icesprog
DAPLINK = SerialChip("DAPLink debugger", ((0x0D28, 0x0204),), 115_200)  # as openFPGALoader's cable cmsisdap
ADAPTER = SerialChip("adapter", (), 1_000_000)
