"""Which pixels of an image windows need, and when they are released, pixel by pixel.

A buffer that is released row by row holds a stride of rows more than the windows of an output row cover, so that one
row can be written while another is read. Released pixel by pixel it holds little more than what lies between a window's
first pixel and its last one. Pixels are numbered row by row.

Plain integers, no hardware.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hdl_lib.memories.release_steps import ReleaseStep, gathered
from hdl_lib.windows.window_geometry import WindowGeometry


@dataclass(frozen=True)
class PixelSteps:
    """The pixels that the windows of a ``geometry`` need and release, window by window."""

    geometry: WindowGeometry

    def needed(self, row: int, column: int) -> int:
        """Return how many pixels, from the first, must have arrived before a window: at least one, and never fewer than
        before the window ahead of it."""
        g = self.geometry
        before = (g.needed_rows(row) - 1) * g.width
        return before + self._needed_columns[column if self._needs_more(row) else -1]

    def released(self, row: int, column: int) -> int:
        """Return how many pixels, from the first, are no longer needed after a window."""
        g = self.geometry
        if column == g.out_width - 1:
            return g.released_rows(row) * g.width
        before = self._rows_before(row) * g.width
        return before + (self._released_columns[column] if self._releases_more(row) else 0)

    @property
    def minimum(self) -> int:
        """Return the least number of pixels that a buffer must hold: the most that a window needs and earlier ones did
        not release."""
        return max(1, *(needed - before for needed, before, _ in self._distinct))

    @property
    def even(self) -> int:
        """Return about as many pixels as a buffer holds if pixels arrive, and windows are read, evenly over a frame."""
        g = self.geometry
        return self.minimum + (g.stride[0] - 1) * g.width + 2 * g.stride[1]

    @property
    def greatest_surplus(self) -> int:
        """Return by how much the released pixels can exceed those that are certainly in the buffer by then."""
        return max(after - needed for needed, _, after in self._distinct)

    @property
    def greatest_lead(self) -> int:
        """Return by how much the pixels released before a window can exceed those it needs (0 or less: they do not)."""
        return max(before - needed for needed, before, _ in self._distinct)

    @cached_property
    def column_steps(self) -> tuple[ReleaseStep, ...]:
        """Return the changes after each window of an output row but the last, in rows that need and release more."""
        needs, frees = self._needed_columns, (0, *self._released_columns)
        changes = [
            (needs[column + 1] - needs[column], frees[column + 1] - frees[column]) for column in range(len(needs) - 1)
        ]
        return gathered([*changes, changes[-1] if changes else (0, 0)])

    @cached_property
    def row_steps(self) -> tuple[ReleaseStep, ...]:
        """Return the changes after the last window of each output row, with equal neighbours merged."""
        g, last = self.geometry, self.geometry.out_width - 1
        changes = []
        for row in range(g.out_height):
            ends = row == g.out_height - 1
            following = g.height * g.width + self.needed(0, 0) if ends else self.needed(row + 1, 0)
            before = self.released(row, last - 1) if last else self._rows_before(row) * g.width
            changes.append((following - self.needed(row, last), self.released(row, last) - before))
        return gathered(changes)

    @cached_property
    def moving_rows(self) -> tuple[ReleaseStep, ...]:
        """Return of each output row whether its windows need more and more pixels (1), and whether they release some
        before the last window (1), with equal neighbours merged."""
        rows = range(self.geometry.out_height)
        return gathered([(int(self._needs_more(row)), int(self._releases_more(row))) for row in rows])

    @property
    def first_change(self) -> tuple[int, int]:
        """Return the change after the first window."""
        if self.geometry.out_width == 1:
            return self.row_steps[0].needed, self.row_steps[0].released
        moves, step = self.moving_rows[0], self.column_steps[0]
        return step.needed if moves.needed else 0, step.released if moves.released else 0

    @cached_property
    def most_needed(self) -> int:
        """Return the most pixels by which what is needed grows between two windows."""
        return max(step.needed for step in (*self.column_steps, *self.row_steps))

    def _rows_before(self, row: int) -> int:
        return self.geometry.released_rows(row - 1) if row else 0

    def _needs_more(self, row: int) -> bool:
        """Tell whether an output row needs image rows that the one above does not."""
        return not row or self.geometry.needed_rows(row) > self.geometry.needed_rows(row - 1)

    def _releases_more(self, row: int) -> bool:
        return self.geometry.released_rows(row) > self._rows_before(row)

    @cached_property
    def _needed_columns(self) -> tuple[int, ...]:
        g = self.geometry
        return tuple(min(max(x * g.stride[1] - g.pads[1] + g.reach[1], 1), g.width) for x in range(g.out_width))

    @cached_property
    def _released_columns(self) -> tuple[int, ...]:
        """Return how many columns of the first row of windows are released after each window but the last."""
        g = self.geometry
        return tuple(min(max((x + 1) * g.stride[1] - g.pads[1], 0), g.width) for x in range(g.out_width - 1))

    @cached_property
    def _distinct(self) -> frozenset[tuple[int, int, int]]:
        """Return of the windows of all kinds of rows (pixels needed, released before, released after), from the first
        row that is needed on."""
        rows: dict[tuple[int, int, bool, bool], int] = {}
        g = self.geometry
        for row in range(g.out_height):
            first, after = self._rows_before(row) - g.needed_rows(row), g.released_rows(row) - g.needed_rows(row)
            rows.setdefault((first, after, self._needs_more(row), self._releases_more(row)), row)
        return frozenset(found for row in rows.values() for found in self._windows(row))

    def _windows(self, row: int) -> Iterator[tuple[int, int, int]]:
        start, before = self.geometry.needed_rows(row) * self.geometry.width, self._rows_before(row)
        released = before * self.geometry.width
        for column in range(self.geometry.out_width):
            after = self.released(row, column)
            yield self.needed(row, column) - start, released - start, after - start
            released = after
