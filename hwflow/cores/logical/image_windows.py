"""The geometry of sliding windows over an image, shared by convolutions and pools in both stages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import IntArray
from hwflow.ir.node_attributes import Window


class Clipping(StrEnum):
    """Whether a stream of windows has only the taps inside the image. ``OFFERED``: padding adds nothing to the result,
    and the search decides (:class:`hwflow.cores.operator.Folding`)."""

    NONE = "none"
    OFFERED = "offered"
    CLIPPED = "clipped"


@dataclass(frozen=True)
class WindowGeometry:
    """A window sliding over an image of ``height`` x ``width``; ``pads`` are (top, left, bottom, right)."""

    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]

    @classmethod
    def of(cls, window: Window, height: int, width: int) -> WindowGeometry:
        """Return the geometry of ``window`` over an image of this size."""
        (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
        top, left, bottom, right = window.pads
        return cls(height, width, (kh, kw), (sh, sw), (top, left, bottom, right), (dh, dw))

    @property
    def output(self) -> tuple[int, int]:
        """Return (rows, columns) of window positions; ONNX operator Conv, output shape with explicit pads."""
        top, left, bottom, right = self.pads
        rows = (self.height + top + bottom - (self.kernel[0] - 1) * self.dilations[0] - 1) // self.strides[0] + 1
        columns = (self.width + left + right - (self.kernel[1] - 1) * self.dilations[1] - 1) // self.strides[1] + 1
        return rows, columns

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def whole(self) -> bool:
        """Whether a single window covers the image, and nothing else."""
        return self.kernel == (self.height, self.width) and not any(self.pads)

    def windows(self, images: IntArray, pad_value: int) -> IntArray:
        """Gather windows: [frames, height, width, channels] to [frames, rows, columns, taps, channels], taps in
        row-major order."""
        top, left, bottom, right = self.pads
        padded = np.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad_value)
        rows, columns = self.output
        views = []
        for ky in range(self.kernel[0]):
            for kx in range(self.kernel[1]):
                y, x = ky * self.dilations[0], kx * self.dilations[1]
                y_end, x_end = y + (rows - 1) * self.strides[0] + 1, x + (columns - 1) * self.strides[1] + 1
                views.append(padded[:, y : y_end : self.strides[0], x : x_end : self.strides[1], :])
        return np.stack(views, axis=3)

    def inside(self) -> npt.NDArray[np.bool_]:
        """Return for each tap of each window, row by row, whether it is inside the image."""
        axes = []
        for axis, size in enumerate((self.height, self.width)):
            first = np.arange(self.output[axis])[:, None] * self.strides[axis] - self.pads[axis]
            place = first + np.arange(self.kernel[axis]) * self.dilations[axis]
            axes.append((place >= 0) & (place < size))
        rows, columns = axes
        taps: npt.NDArray[np.bool_] = (rows[:, None, :, None] & columns[None, :, None, :]).reshape(-1)
        return taps

    def touches_padding(self) -> bool:
        """Tell whether any window covers padding."""
        return any(self.pads)
