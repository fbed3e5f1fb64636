"""Products with a constant matrix on either side, also a batch of them, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import Builder
from tests.reference_agreement import agree_with_reference

RIGHT = [
    # frame, constant
    ((5,), (5, 3)),
    ((5,), (5,)),
    ((4, 5), (5, 3)),
    ((4, 5), (1, 5, 3)),
    ((2, 4, 5), (2, 5, 3)),
    ((2, 4, 5), (1, 2, 5, 3)),
    ((1, 4, 5), (3, 5, 2)),
    ((3, 1, 4, 5), (2, 5, 2)),
    ((4, 5), (1, 1, 5, 3)),
]
LEFT = [
    # constant, frame
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
]


@pytest.mark.parametrize(("frame", "constant"), RIGHT)
def test_constant_on_the_right(frame: tuple[int, ...], constant: tuple[int, ...]) -> None:
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", *frame]), 0.5, 3, "int8")
    w = b.weights(np.random.default_rng(1).integers(-9, 9, constant), 0.25)
    b.output(b.requantize(b.node("MatMul", d, w), 2.0, 5, "int8"))
    agree_with_reference(b)


@pytest.mark.parametrize(("constant", "frame"), LEFT)
def test_constant_on_the_left(constant: tuple[int, ...], frame: tuple[int, ...]) -> None:
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", *frame]), 0.5, 3, "int8")
    w = b.weights(np.random.default_rng(1).integers(-9, 9, constant), 0.25)
    b.output(b.requantize(b.node("MatMul", w, d), 2.0, 5, "int8"))
    agree_with_reference(b)


def test_a_batch_of_scales() -> None:
    """Scales of each matrix's columns."""
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", 2, 4, 5]), 0.5, 0, "int8")
    w = b.weights(np.random.default_rng(1).integers(-9, 9, (2, 5, 3)), [0.25, 0.5, 2.0], None, axis=2)
    b.output(b.requantize(b.node("MatMul", d, w), 2.0, 5, "int8"))
    agree_with_reference(b)
