"""What a board offers to carry packets, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwflow.codegen.board.carriers import SerialCarrier
from hwflow.codegen.board.clock_plan import plan_clock

if TYPE_CHECKING:
    from hwflow.boards import Board


def offered(board: Board) -> dict[str, str]:
    """Return the carriers of a board by their names in board.json, the default first, each in words.

    A serial port has the baud rate that it has at the board's default clock.
    """
    if board.zynq is not None:
        return {"dma": board.transport}
    baud = SerialCarrier(board, plan_clock(board).frequency_hz).baud
    rate = f"{baud / 1e6:g} Mbaud" if baud >= 1_000_000 else f"{baud / 1e3:g} kbaud"
    found = {"serial": f"{board.transport}, {rate}"}
    if board.ethernet is not None:
        found["udp"] = "gigabit Ethernet"
    if board.usb is not None:
        usb = {"usb": "USB serial device"}
        found = usb | found if board.usb.default else found | usb
    return found
