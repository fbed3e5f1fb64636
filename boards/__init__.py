"""Boards: one declarative file each; pins come from amaranth-boards."""

from .board import Board, ClockInput, Part, Uart
from .registry import UnknownBoard, all_boards, find_board

__all__ = ["Board", "ClockInput", "Part", "Uart", "UnknownBoard", "all_boards", "find_board"]
