"""Geometry of the windows of a convolution or pool: their position in the image, and the rows they need when.

Plain integers, no hardware. Rows and columns are counted in pixels from 0; a window that extends beyond the image has
negative coordinates or some of ``height`` and above there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hdl_lib.memories.release_steps import ReleaseStep, gathered


@dataclass(frozen=True)
class WindowGeometry:
    """Windows of size ``kernel`` at distance ``stride`` over an image of ``height`` by ``width`` pixels.

    ``kernel``, ``stride``, ``dilation`` are (vertical, horizontal) and at least 1; ``pads`` is (top, left, bottom,
    right) and at least 0. Raises ValueError if a number is out of range or no window fits.
    """

    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilation: tuple[int, int]

    def __post_init__(self) -> None:
        for name, value in (("height", self.height), ("width", self.width)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        for name, values in (("kernel", self.kernel), ("stride", self.stride), ("dilation", self.dilation)):
            if len(values) != 2 or min(values) < 1:
                raise ValueError(f"{name} must be two numbers of at least 1 (vertical, horizontal), not {values}")
        if len(self.pads) != 4 or min(self.pads) < 0:
            raise ValueError(f"pads must be four numbers of at least 0 (top, left, bottom, right), not {self.pads}")
        for name, reach, size in (
            ("height", self.reach[0], self.height + self.pads[0] + self.pads[2]),
            ("width", self.reach[1], self.width + self.pads[1] + self.pads[3]),
        ):
            if reach > size:
                raise ValueError(
                    f"{name} with pads must be at least {reach} (the dilated kernel's), not {size}; "
                    "enlarge the pads or take a smaller kernel"
                )

    @property
    def reach(self) -> tuple[int, int]:
        """Return the rows and columns from a window's first pixel to its last, both included."""
        (kh, kw), (dh, dw) = self.kernel, self.dilation
        return (kh - 1) * dh + 1, (kw - 1) * dw + 1

    @property
    def out_height(self) -> int:
        """Return the output rows."""
        return (self.height + self.pads[0] + self.pads[2] - self.reach[0]) // self.stride[0] + 1

    @property
    def out_width(self) -> int:
        """Return the output columns."""
        return (self.width + self.pads[1] + self.pads[3] - self.reach[1]) // self.stride[1] + 1

    def inside(self, axis: int) -> tuple[tuple[int, int], ...]:
        """Return for each output row (``axis`` 0) or column (1) the first row or column of the kernel that is inside
        the image, and how many are (0: none)."""
        size, count = ((self.height, self.out_height), (self.width, self.out_width))[axis]
        kernel, stride, pad, step = self.kernel[axis], self.stride[axis], self.pads[axis], self.dilation[axis]
        spans = []
        for start in range(-pad, -pad + count * stride, stride):
            first, end = max(0, -(start // step)), min(kernel, (size - 1 - start) // step + 1)
            spans.append((first, max(0, end - first)))
        return tuple(spans)

    def needed_rows(self, row: int) -> int:
        """Return how many rows of the image, from the top, must have arrived before output row ``row``: at least one,
        so that no output of a frame comes before its input, even if the windows are entirely above the image."""
        return min(max(row * self.stride[0] - self.pads[0] + self.reach[0], 1), self.height)

    def released_rows(self, row: int) -> int:
        """Return how many rows of the image, from the top, are no longer needed after output row ``row``."""
        if row == self.out_height - 1:
            return self.height
        return min(max((row + 1) * self.stride[0] - self.pads[0], 0), self.height)

    def _before(self, row: int) -> int:
        """Return the rows released before output row ``row``."""
        return self.released_rows(row - 1) if row else 0

    @property
    def minimum_rows(self) -> int:
        """Return the least number of image rows that a buffer must hold: the most that an output row needs and earlier
        ones did not release."""
        return max(1, *(self.needed_rows(row) - self._before(row) for row in range(self.out_height)))

    @property
    def greatest_surplus(self) -> int:
        """Return by how much the released rows can exceed the rows that are certainly in the buffer by then."""
        return max(self.released_rows(row) - self.needed_rows(row) for row in range(self.out_height))

    @property
    def greatest_lead(self) -> int:
        """Return by how much the rows released before an output row can exceed those it needs (0 or less: they do not).
        """
        return max(self._before(row) - self.needed_rows(row) for row in range(self.out_height))

    @cached_property
    def row_steps(self) -> tuple[ReleaseStep, ...]:
        """Return the changes after each output row of a frame, with equal neighbours merged."""
        changes = []
        for row in range(self.out_height):
            following = self.height + self.needed_rows(0) if row == self.out_height - 1 else self.needed_rows(row + 1)
            changes.append((following - self.needed_rows(row), self.released_rows(row) - self._before(row)))
        return gathered(changes)
