"""A network of two layers whose sums are easily told by hand, and frames that tell its weights apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.models import Builder


def network() -> Builder:
    """Two convolutions of single pixels, 4 to 6 to 3 channels, of 2 x 3 images."""
    b, rng = Builder(), np.random.default_rng(8)
    x = b.requantize(b.input("x", ["N", 4, 2, 3]), 1.0, 0)
    for name, inputs, outputs, scale in (("first", 4, 6, 3.0), ("second", 6, 3, 9.0)):
        weights = b.weights(rng.integers(-7, 8, (outputs, inputs, 1, 1)))
        integers = b.quantize(b.node("Conv", x, weights, name=name), scale, 90, name=f"{name}_q")
        x = b.dequantize(integers, scale, 90)
    b.output(integers)
    return b


def first_sums(x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The first convolution's sums, by the definition: its input's integers are the reals."""
    weights = np.random.default_rng(8).integers(-7, 8, (6, 4, 1, 1))[:, :, 0, 0]
    sums: npt.NDArray[np.int64] = np.einsum("oc,nchw->nohw", weights, x.astype(np.int64))
    return sums


def write_frames(path: Path) -> npt.NDArray[np.float32]:
    """Three frames; channel 0 is 0 but in frame 1, row 1, column 2 (9), and in frame 2 (everywhere 5)."""
    x = np.random.default_rng(3).integers(0, 16, (3, 4, 2, 3)).astype(np.float32)
    x[:, 0] = 0
    x[1, 0, 1, 2] = 9
    x[2, 0] = 5
    np.savez(path, x=x)
    return x
