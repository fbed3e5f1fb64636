"""What carries packets between a board and its host: a file each."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hwflow.codegen.board.carriers.board_carrier import Carrier, Pin
from hwflow.codegen.board.carriers.serial import SerialCarrier

if TYPE_CHECKING:
    from hwflow.boards import Board

__all__ = ["Carrier", "Pin", "SerialCarrier", "carrier_for"]


def carrier_for(board: Board, clock_hz: Fraction, baud: int | None = None) -> Carrier:
    """Return the carrier of a board that has no processor system, for a design's clock.

    ``baud``: of a serial port; None: the highest that its chip makes and the clock reaches. Raises
    :class:`~hwflow.errors.UsageError` where that is out of reach.
    """
    return SerialCarrier(board, clock_hz, baud)
