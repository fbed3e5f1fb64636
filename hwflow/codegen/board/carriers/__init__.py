# amaranth: UnusedElaboratable=no
"""What carries packets between a board and its host: a file each."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.codegen.board.carriers.link_options import OWN, LinkOptions
from hwflow.codegen.board.carriers.serial import SerialCarrier
from hwflow.codegen.board.carriers.udp import UdpCarrier
from hwflow.codegen.board.carriers.usb import UsbCarrier

if TYPE_CHECKING:
    from hwflow.boards import Board

__all__ = [
    "OWN", "Carrier", "LinkOptions", "Pin", "SerialCarrier", "UdpCarrier", "UsbCarrier", "carrier_for", "carrier_name",
]


def carrier_name(board: Board, link: LinkOptions = OWN) -> str:
    """Return which carrier it is: the one that is asked for, else the board's own."""
    if link.ethernet is not None:
        return UdpCarrier.name
    own = board.usb is not None and board.usb.default and link.baud is None
    return UsbCarrier.name if link.usb or own else SerialCarrier.name


def carrier_for(board: Board, clock_hz: Fraction, link: LinkOptions = OWN, design: str = "hwflow") -> Carrier:
    """Return the carrier of a board that has no processor system, for a design's clock.

    ``design``: the name that a USB device shows. Raises :class:`~hwflow.errors.UsageError` where what is asked for is
    out of reach.
    """
    name = carrier_name(board, link)
    if name == UdpCarrier.name:
        assert link.ethernet is not None, "it chose this one"
        return UdpCarrier(board, clock_hz, link.ethernet)
    if name == UsbCarrier.name:
        return UsbCarrier(board, clock_hz, design)
    return SerialCarrier(board, clock_hz, link.baud)
