"""The static schedule of a sliding window that reads whole words of an image row and sends whole windows.

Plain integers, no hardware. A reader goes over the image rows of one output row after another, word by word (a word is
``pixels`` consecutive pixels of a row, of all kernel rows at once), and keeps the words it still needs in shift
registers. A beat is ``windows`` consecutive windows of an output row. It leaves, always from the same places of the
registers, as soon as every column has arrived that a window of any such beat takes from the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hdl_lib.windows.window_geometry import WindowGeometry


@dataclass(frozen=True)
class WindowSteps:
    """The steps of the reader; ``pixels`` per word, which divide the image's width, ``windows`` per beat, which divide
    the output's width.

    If an output row has several beats, the columns from a beat's first window to the next one's (``windows`` times the
    horizontal stride) must be whole words. Raises ValueError otherwise.
    """

    geometry: WindowGeometry
    pixels: int
    windows: int

    def __post_init__(self) -> None:
        g = self.geometry
        for name, count, size in (("pixels", self.pixels, g.width), ("windows", self.windows, g.out_width)):
            if count < 1 or size % count:
                raise ValueError(f"{name} must divide the width of {size}, not {count}")
        if self.beats > 1 and self.shift % self.pixels:
            raise ValueError(
                f"windows must be a multiple of {self.pixels} pixels apart from beat to beat, not {self.shift}"
            )

    @property
    def words(self) -> int:
        """Return the words of an image row."""
        return self.geometry.width // self.pixels

    @property
    def row_steps(self) -> int:
        """Return the steps of an output row: one for each word, more if its beats take more."""
        return max(self.words, (self.beats - 1) * self.period + 1)

    @property
    def beats(self) -> int:
        """Return the beats of an output row."""
        return self.geometry.out_width // self.windows

    @property
    def shift(self) -> int:
        """Return the columns from a beat's windows to the next one's."""
        return self.windows * self.geometry.stride[1]

    @property
    def period(self) -> int:
        """Return the steps from beat to beat within an output row."""
        return self.shift // self.pixels if self.beats > 1 else 1

    def offset(self, window: int, column: int) -> int:
        """Return the image column of a window's kernel column, relative to that of the beat's first word."""
        g = self.geometry
        return window * g.stride[1] + column * g.dilation[1] - g.pads[1]

    @cached_property
    def columns(self) -> dict[int, tuple[int, int]]:
        """Return the offsets that are inside the image in some beat of an output row, with the first and last such
        beat."""
        found = {}
        for offset in sorted({self.offset(w, c) for w in range(self.windows) for c in range(self.geometry.kernel[1])}):
            inside = [b for b in range(self.beats) if 0 <= b * self.shift + offset < self.geometry.width]
            if inside:
                found[offset] = inside[0], inside[-1]
        return found

    @property
    def masked(self) -> bool:
        """Tell whether a column is inside the image in some beats of an output row, and outside in others."""
        return any(span != (0, self.beats - 1) for span in self.columns.values())

    @cached_property
    def kernel_rows(self) -> dict[int, tuple[int, int]]:
        """Return the kernel rows that are inside the image in some output row, with the first and last such row."""
        g = self.geometry
        found = {}
        for row in range(g.kernel[0]):
            place = row * g.dilation[0] - g.pads[0]
            inside = [y for y in range(g.out_height) if 0 <= y * g.stride[0] + place < g.height]
            if inside:
                found[row] = inside[0], inside[-1]
        return found

    @cached_property
    def delay(self) -> int:
        """Return the steps from the one with a beat's first word to the one that sends the beat."""
        return max(0, *(offset // self.pixels for offset in self.columns), 0)

    @property
    def tail(self) -> int:
        """Return the steps of a frame after its last row's, for the remaining beats."""
        return max(0, (self.beats - 1) * self.period + self.delay - (self.row_steps - 1))

    @property
    def steps(self) -> int:
        """Return the steps of a frame."""
        return self.geometry.out_height * self.row_steps + self.tail

    @cached_property
    def ages(self) -> dict[int, int]:
        """Return for each place in a word from which beats take a pixel how many words back it is at most."""
        ages: dict[int, int] = {}
        for offset in self.columns:
            age = self.delay - offset // self.pixels
            ages[offset % self.pixels] = max(age, ages.get(offset % self.pixels, 0))
        return ages

    def sends(self, row: int, beat: int) -> int:
        """Return the step that sends a beat of an output row."""
        return row * self.row_steps + beat * self.period + self.delay
