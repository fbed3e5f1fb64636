"""Networks whose layers are loaded, with other weights, scales and biases."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.models import Builder

SIDE, CHANNELS, FEATURES, CLASSES = 5, 2, 6, 4


def network(
    folder: Path, seed: int, scale: float = 0.0173, bias: float = 0.0, name: str = "m.onnx",
    side: int = SIDE,
) -> Path:
    """A convolution of 3x3 with pads and a dense layer behind it, random int8 weights of ``seed``."""
    rng = np.random.default_rng(seed)
    b = Builder()
    x = b.requantize(b.input("x", ("N", CHANNELS, side, side)), 0.5, 3)
    kernel = b.weights(rng.integers(-60, 61, (FEATURES, CHANNELS, 3, 3)), scale)
    biases = b.constant(bias + rng.normal(size=FEATURES), name="biases")
    y = b.node("Conv", x, kernel, biases, name="conv", pads=[1, 1, 1, 1])
    y = b.requantize(b.node("Relu", y), 1.9)
    y = b.node("Flatten", y)
    y = b.node("MatMul", y, b.weights(rng.integers(-60, 61, (FEATURES * side * side, CLASSES)), 0.0131), name="dense")
    b.output(b.requantize(y, 5.3, 128))
    b.save(folder, name)
    return folder / name


def separable(folder: Path, seed: int, scale: float = 0.25, step: float = 4.0, name: str = "m.onnx") -> Path:
    """Depthwise convolutions of 3x3 and of single pixels, one read by two quantizers; scales that are powers of two;
    and a dense layer whose sums are the output."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int):
        return b.weights(rng.integers(-6, 8, shape), scale)

    b = Builder()
    x = b.requantize(b.input("x", ("N", FEATURES, SIDE, SIDE)), 0.5, 3)
    y = b.node("Conv", x, weights(FEATURES, 1, 3, 3), name="depthwise", group=FEATURES, pads=[1, 1, 1, 1])
    wide, fine = b.requantize(y, step), b.requantize(y, step / 2, 7)
    both = b.node("Concat", wide, fine, axis=1)
    y = b.node("Conv", both, weights(2 * FEATURES, 1, 1, 1), name="pixels", group=2 * FEATURES)
    y = b.node("Flatten", b.requantize(y, 2 * step, 128))
    b.output(b.node("MatMul", y, weights(2 * FEATURES * SIDE * SIDE, CLASSES), name="dense"))
    b.save(folder, name)
    return folder / name
