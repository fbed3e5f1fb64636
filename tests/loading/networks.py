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
