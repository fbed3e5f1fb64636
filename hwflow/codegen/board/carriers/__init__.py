# amaranth: UnusedElaboratable=no
"""What carries packets between a board and its host: a file each."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.codegen.board.carriers.serial import SerialCarrier
from hwflow.codegen.board.carriers.udp import UdpCarrier
from hwflow.codegen.board.carriers.usb import UsbCarrier

if TYPE_CHECKING:
    from hwflow.boards import Board

__all__ = ["Carrier", "Pin", "SerialCarrier", "UdpCarrier", "UsbCarrier", "carrier_for", "carrier_name"]


def carrier_name(board: Board, baud: int | None = None, ethernet: str | None = None, usb: bool = False) -> str:
    """Return which carrier it is: "udp" or "usb" where that is asked for, "serial" where a baud rate is, else the
    board's own."""
    if ethernet is not None:
        return UdpCarrier.name
    own = board.usb is not None and board.usb.default and baud is None
    return UsbCarrier.name if usb or own else SerialCarrier.name


def carrier_for(
    board: Board, clock_hz: Fraction, baud: int | None = None, ethernet: str | None = None, usb: bool = False,
    design: str = "hwflow",
) -> Carrier:
    """Return the carrier of a board that has no processor system, for a design's clock.

    ``baud``: of a serial port; None: the highest that its chip makes and the clock reaches. ``ethernet``: the board's
    IPv4 address, for UDP instead. ``usb``: a USB serial device instead, which some boards are unless a baud rate is
    given; ``design`` is the name that it shows. Raises :class:`~hwflow.errors.UsageError` where that is out of reach.
    """
    name = carrier_name(board, baud, ethernet, usb)
    if name == UdpCarrier.name:
        assert ethernet is not None, "it chose this one"
        return UdpCarrier(board, clock_hz, ethernet)
    if name == UsbCarrier.name:
        return UsbCarrier(board, clock_hz, design)
    return SerialCarrier(board, clock_hz, baud)
