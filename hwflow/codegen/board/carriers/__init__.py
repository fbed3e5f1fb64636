# amaranth: UnusedElaboratable=no
"""What carries packets between a board and its host: a file each."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.codegen.board.carriers.serial import SerialCarrier
from hwflow.codegen.board.carriers.udp import UdpCarrier

if TYPE_CHECKING:
    from hwflow.boards import Board

__all__ = ["Carrier", "Pin", "SerialCarrier", "UdpCarrier", "carrier_for"]


def carrier_for(
    board: Board, clock_hz: Fraction, baud: int | None = None, ethernet: str | None = None
) -> Carrier:
    """Return the carrier of a board that has no processor system, for a design's clock.

    ``baud``: of a serial port; None: the highest that its chip makes and the clock reaches. ``ethernet``: the board's
    IPv4 address, for UDP instead. Raises :class:`~hwflow.errors.UsageError` where that is out of reach.
    """
    if ethernet is not None:
        return UdpCarrier(board, clock_hz, ethernet)
    return SerialCarrier(board, clock_hz, baud)
