"""Forms of operators that models seldom have, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.models import Builder
from tests.reference_agreement import agree_with_reference

CASES: dict[str, tuple[list[int], Callable[[Builder, str], str]]] = {
    # a frame's shape, what is made of quantized reals of it
    "transposed convolution without pads": (
        [2, 4, 4], lambda b, x: b.node("ConvTranspose", x, b.weights(np.ones((2, 2, 3, 3)), 0.25), auto_pad="VALID"),
    ),
    "triangle of sums": (
        [3, 3], lambda b, x: b.node("Trilu", b.node("MatMul", x, b.weights(np.arange(9).reshape(3, 3), 0.25))),
    ),
    "resized sums": (
        [2, 3, 3],
        lambda b, x: b.node(
            "Resize", b.node("Conv", x, b.weights(np.ones((2, 2, 2, 2)), 0.25)), "", b.constant([1.0, 1, 2, 2]),
            mode="linear",
        ),
    ),
    "slopes per element": ([2, 2], lambda b, x: b.node("PRelu", x, b.constant([[0.5, 0.25], [1.0, 2.0]]))),
    "constant cast to the type that it has": (
        [4], lambda b, x: b.node("Add", x, b.node("Cast", b.weights(np.arange(4), 0.5), to=1)),
    ),
    "square by Einsum": ([2, 3], lambda b, x: b.node("Einsum", x, x, equation="nij,nij->nij")),
    "constant divided": (
        [4], lambda b, x: b.node("Div", b.constant(3.0), b.node("Clip", x, b.constant(0.5), b.constant(9.0))),
    ),
    "limited and zero": (
        [2, 3],
        lambda b, x: b.node(
            "ReduceSum", b.node("Relu", b.node("Mul", x, b.constant([[0.0], [1.0]]))), b.constant([1, 2], "int64"),
        ),
    ),
    "limited in some channels": (
        [2, 3],
        lambda b, x: b.node(
            "Conv", b.node("Concat", b.node("Relu", x), x, axis=1), b.weights(np.arange(8).reshape(1, 4, 2), 0.25)
        ),
    ),
    "a mean of some limited channels": (
        [2, 2, 2], lambda b, x: b.node("GlobalAveragePool", b.node("Concat", b.node("Relu", x), x, axis=1)),
    ),
    "several constants joined": (
        [2],
        lambda b, x: b.node("Concat", b.weights(np.ones((1, 2)), 0.5), b.weights(np.ones((1, 2)), 0.5), x, axis=1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reals(name: str) -> None:
    shape, make = CASES[name]
    b = Builder(19, 9)
    first = 1 if "joined" in name else "N"
    x = b.requantize(b.input("x", [first, *shape]), 0.5, 3, "int8")
    b.output(b.requantize(make(b, x), 2.0, -7, "int8"))
    agree_with_reference(b)


def test_a_scale_per_input_of_a_float_matrix() -> None:
    b = Builder(19, 9)
    x = b.requantize(b.input("x", ["N", 3]), [0.5, 0.25, 1.0], [0, 0, 0], "int8", axis=1)
    b.output(b.requantize(b.node("MatMul", x, b.constant([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])), 2.0, -7, "int8"))
    agree_with_reference(b)


def test_the_first_power_of_integers() -> None:
    b = Builder(19, 9)
    x = b.node("Cast", b.input("x", ["N", 4], "int8"), to=6)
    b.output(b.node("Pow", x, b.constant(1, "int32")))
    agree_with_reference(b)
