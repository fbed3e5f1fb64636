"""The list of boards: every module of this package that defines ``BOARDS``. Adding a board is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from .board import Board


class UnknownBoard(KeyError):
    """No board has that name. The text lists all boards; ``known``: their names."""

    def __init__(self, name: str, known: tuple[str, ...]):
        self.name = name
        self.known = known
        super().__init__(name)

    def __str__(self) -> str:
        return f"board must be one of {', '.join(self.known)}, not {self.name!r}"


@cache
def all_boards() -> tuple[Board, ...]:
    """Return every board, sorted by name."""
    boards: dict[str, Board] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for board in getattr(importlib.import_module(f".{module.name}", __package__), "BOARDS", ()):
            if board.name in boards:
                raise ValueError(f"board names must be unique, not twice {board.name!r}")
            boards[board.name] = board
    return tuple(boards[name] for name in sorted(boards))


def find_board(name: str) -> Board:
    """Return the board of that name. Raises :class:`UnknownBoard`."""
    for board in all_boards():
        if board.name == name:
            return board
    raise UnknownBoard(name, tuple(b.name for b in all_boards()))
