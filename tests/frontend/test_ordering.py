"""Max, Min, Sum, Mean, comparisons and Where of quantized streams, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.models import Builder
from tests.reference_agreement import agree_with_reference


def stream(b: Builder, name: str, scale: float, zero_point: int = 0, shape: tuple[int | str, ...] = ("N", 3, 4)) -> str:
    return b.requantize(b.input(name, shape), scale, zero_point, "int8")


def chosen(b: Builder) -> str:
    x, y = stream(b, "x", 0.25, 3), stream(b, "y", 0.75, -5)
    return b.node("Where", b.node("Greater", x, b.constant(1.5)), x, y)


CASES: dict[str, Callable[[Builder], str]] = {
    "max": lambda b: b.node("Max", stream(b, "x", 0.25, 3), stream(b, "y", 0.75, -5)),
    "min_of_three": lambda b: b.node(
        "Min", stream(b, "x", 0.25), stream(b, "y", 0.5, 7), stream(b, "z", 1.5, -1, ("N", 1, 4))
    ),
    "max_with_a_constant": lambda b: b.node("Max", stream(b, "x", 0.25, 3), b.constant(-2.125)),
    "min_with_a_channel": lambda b: b.node("Min", b.constant([[3.0], [-1.5], [0.0]]), stream(b, "x", 0.25, 3)),
    "max_of_a_negated_one": lambda b: b.node("Max", b.node("Neg", stream(b, "x", 0.25, 3)), stream(b, "y", 0.5)),
    "max_behind_a_function": lambda b: b.node("Max", b.node("Relu", stream(b, "x", 0.25, 3)), stream(b, "y", 0.5)),
    "sum_of_three": lambda b: b.node(
        "Sum", stream(b, "x", 0.25), stream(b, "y", 0.5, 7), stream(b, "z", 1.5, -1, ("N", 1, 4))
    ),
    "mean_of_three": lambda b: b.node(
        "Mean", stream(b, "x", 0.25), b.constant([1.0, 2.0, -3.0, 0.5]), stream(b, "y", 0.5, 7)
    ),
    "where": chosen,
}


@pytest.mark.parametrize("name", CASES)
def test_quantized_again(name: str) -> None:
    b = Builder(18, 9)
    b.output(b.requantize(CASES[name](b), 0.5, 0, "int8"))
    agree_with_reference(b)


@pytest.mark.parametrize("name", CASES)
def test_as_an_output(name: str) -> None:
    b = Builder(18, 9)
    b.output(CASES[name](b))
    agree_with_reference(b)


@pytest.mark.parametrize("operator", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@pytest.mark.parametrize("second", ["stream", "constant", "first"])
def test_comparisons(operator: str, second: str) -> None:
    b = Builder(18, 9)
    x = stream(b, "x", 0.5, 3)
    other = stream(b, "y", 0.75, -5) if second == "stream" else b.constant(np.arange(4) - 1.5)
    b.output(b.node(operator, *((other, x) if second == "first" else (x, other))))
    agree_with_reference(b)
