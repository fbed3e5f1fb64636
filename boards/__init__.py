"""Boards: one declarative file each; pins come from amaranth-boards."""

from .board import TOOLCHAINS, Board, ClockInput, Part, Toolchain, Uart, Usb, ZynqSystem
from .board_list import UnknownBoard, all_boards, find_board
from .serial_chips import SerialChip

__all__ = [
    "TOOLCHAINS", "Board", "ClockInput", "Part", "SerialChip", "Toolchain", "Uart", "UnknownBoard", "Usb",
    "ZynqSystem", "all_boards", "find_board",
]
