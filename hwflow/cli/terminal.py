"""What the command line prints: a line of progress, tables, JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 1000  # columns of what is no terminal: a row of a table stays a line



class Steps:
    """A live line on a terminal, with a bar where it is known how much there is to do; one line a step elsewhere. On
    stderr, so that stdout stays data."""

    def __enter__(self) -> Self:
        from rich.console import Console  # takes longer to import than many models to check
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        console = Console(stderr=True, highlight=False)
        self._shown: Progress | None = None
        if console.is_terminal:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
            self._shown = Progress(*columns, console=console, transient=True).__enter__()
            self._task = self._shown.add_task("starting", total=None)
            self._counting = *columns, BarColumn(), MofNCompleteColumn()
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown.stop()

    def __call__(self, line: str) -> None:
        """A step begins."""
        if self._shown is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._shown.update(self._task, description=line)

    def count(self, done: int, total: int) -> None:
        """So much of the step is done."""
        if self._shown is not None:
            self._shown.columns = self._counting
            self._shown.update(self._task, completed=done, total=total)


def new_table(*columns: str) -> Table:
    """A table with these columns."""
    from rich.table import Table

    return Table(*columns)


def print_table(grid: Table) -> None:
    """On stdout."""
    from rich.console import Console

    terminal = Console().is_terminal
    Console(highlight=False, markup=False, width=None if terminal else WIDE).print(grid)


def counted(number: int, noun: str) -> str:
    """"1 error", "2 errors"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_json(table: Any) -> None:
    """On stdout, in a line."""
    print(json.dumps(table))
