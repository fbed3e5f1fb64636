"""Tables: fitted to the terminal for people, tab-separated lines for programs.

By hand: rich takes longer to import than many models to check, and would wrap or cut every cell of a narrow terminal,
where here only long texts move below their row.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence

from hwflow.cli.terminal import print_rows, say
from hwflow.display import printable

_GAP = "  "  # between columns, and in front of what stands below a row

Cell = str | int


class Table:
    """Titles and rows. ``below``: columns of long texts, placed below their row on a narrow terminal."""

    def __init__(self, *titles: str, below: Sequence[str] = ()) -> None:
        self.titles = titles
        self.rows: list[tuple[Cell, ...]] = []
        self._below = [titles.index(title) for title in below]

    def add_row(self, *cells: Cell) -> None:
        """Add a cell per column; integers are right-aligned, on a terminal with commas."""
        assert len(cells) == len(self.titles), "one cell per column"
        self.rows.append(cells)

    def print(self) -> None:
        """Print on stdout."""
        if sys.stdout.isatty():
            say(*self.lines(shutil.get_terminal_size().columns))
        else:
            print_rows(map(str, row) for row in (self.titles, *self.rows))

    def lines(self, width: int) -> Iterator[str]:
        """Yield the lines for a terminal of ``width`` columns. Only the texts below rows are wrapped, between words."""
        shown = [tuple(f"{cell:,}" if isinstance(cell, int) else printable(cell) for cell in row) for row in self.rows]
        every = [self.titles, *shown]
        sizes = [max(len(row[column]) for row in every) for column in range(len(self.titles))]
        narrow = sum(sizes) + len(_GAP) * (len(sizes) - 1) > width
        beside = [column for column in range(len(sizes)) if not narrow or column not in self._below]
        right = {column for row in self.rows for column, cell in enumerate(row) if isinstance(cell, int)}
        for row in every:
            cells = (row[c].rjust(sizes[c]) if c in right else row[c].ljust(sizes[c]) for c in beside)
            yield _GAP.join(cells).rstrip()
            for column in self._below if narrow else ():
                yield from textwrap.wrap(
                    row[column], width, initial_indent=_GAP, subsequent_indent=2 * _GAP, break_long_words=False,
                    break_on_hyphens=False,
                )
