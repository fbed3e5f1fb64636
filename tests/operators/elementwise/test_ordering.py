"""Max, Min, Sum, Mean, comparisons and Where of quantized streams, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hwflow.ir.graph import Graph, Value
from hwflow.loaded_model import Model
from hwflow.passes import pipeline
from hwflow.verify.comparison import compare
from tests.agreement import same
from tests.models import Builder
from tests.reference_agreement import agree_with_reference


def stream(b: Builder, name: str, scale: float, zero_point: int = 0, shape: tuple[int | str, ...] = ("N", 3, 4)) -> str:
    return b.requantize(b.input(name, shape), scale, zero_point, "int8")


def float_stream(
    b: Builder, name: str, scale: float, zero_point: int = 0, shape: tuple[int | str, ...] = ("N", 3, 4)
) -> str:
    """Of a scale that calibration may have found: a float32 with a long mantissa."""
    return b.requantize(stream(b, name, 0.25, 3, shape), scale, zero_point, "int8")


def float_channels(b: Builder, name: str) -> str:
    return b.requantize(stream(b, name, 0.25, 3), [0.3, 0.7, 0.11], [0, 5, -7], "int8", axis=1)


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
FLOAT_CASES: dict[str, Callable[[Builder], str]] = {
    "max": lambda b: b.node("Max", float_stream(b, "x", 0.3, 3), float_stream(b, "y", 0.7, -5)),
    "min_of_three": lambda b: b.node(
        "Min", float_stream(b, "x", 0.3, 3), float_stream(b, "y", 0.7), float_stream(b, "z", 0.11, 4)
    ),
    "min_of_two_shapes": lambda b: b.node(
        "Min", float_stream(b, "x", 0.3, 3), float_stream(b, "y", 0.7, 1, ("N", 1, 4))
    ),
    "max_with_a_constant": lambda b: b.node("Max", float_stream(b, "x", 0.3, 3), b.constant(-2.1)),
    "max_with_a_tensor": lambda b: b.node("Max", b.constant([[3.3], [-1.7], [0.1]]), float_stream(b, "x", 0.3, 3)),
    "channels": lambda b: b.node("Max", float_channels(b, "x"), float_stream(b, "y", 0.9, -5)),
    "channels_of_two_shapes": lambda b: b.node(
        "Min", float_channels(b, "x"), float_stream(b, "y", 0.9, -5, ("N", 1, 4))
    ),
    "negated": lambda b: b.node("Neg", b.node("Max", float_stream(b, "x", 0.3, 3), float_stream(b, "y", 0.7, -5))),
    "behind_a_function": lambda b: b.node(
        "Max", b.node("Abs", float_stream(b, "x", 0.3, 3)), float_stream(b, "y", 0.7, -5)
    ),
    "pooled": lambda b: b.node(
        "ReduceMax", b.node("Max", float_stream(b, "x", 0.3, 3), float_stream(b, "y", 0.7, -5)),
        b.constant([2], "int64"),
    ),
    "greatest_channel": lambda b: b.node("ReduceMax", float_channels(b, "x"), b.constant([1], "int64")),
    "least_of_all": lambda b: b.node("ReduceMin", float_channels(b, "x"), b.constant([1, 2], "int64")),
    "where": lambda b: b.node(
        "Where", b.node("Greater", float_stream(b, "x", 0.3, 3), b.constant(1.7)), float_stream(b, "y", 0.7),
        float_stream(b, "z", 0.11, 9),
    ),
}


def explained(b: Builder, tmp_path: Path) -> Model:
    """Every difference from ONNX's evaluator is the rounding of its floats."""
    model = b.load(tmp_path)
    result = compare(model, frames=20)
    assert result.ok, list(result.lines())
    assert result.mismatches <= 40, list(result.lines())
    return model


@pytest.mark.parametrize("name", FLOAT_CASES)
def test_scales_without_a_common_divisor(name: str, tmp_path: Path) -> None:
    """Two requantizers, to the final scale, and the choice: nothing is left of ranks."""
    b = Builder(18, 9)
    b.output(b.quantize(FLOAT_CASES[name](b), 0.5, 0, "int8"))
    model = explained(b, tmp_path)
    graph = pipeline.run(model.quantized, pipeline.DATAFLOW)
    inputs = {p.name: np.random.default_rng(5).integers(-128, 128, (20, *p.shape)) for p in model.quantized.inputs}
    same(model.quantized, graph, inputs)
    behind = [n for n in graph.nodes if n.op == "requantize" and n.inputs[0] in elementwise_results(graph)]
    assert not behind


@pytest.mark.parametrize("name", ["max", "where"])
def test_such_an_output_is_the_hosts(name: str, tmp_path: Path) -> None:
    b = Builder(18, 9)
    b.output(FLOAT_CASES[name](b))
    model = explained(b, tmp_path)
    assert model.quantized.suffix


@pytest.mark.parametrize("operator", ["Equal", "Greater", "LessOrEqual"])
def test_comparisons_of_such_scales(operator: str, tmp_path: Path) -> None:
    b = Builder(18, 9)
    b.output(b.node(operator, float_channels(b, "x"), float_stream(b, "y", 0.9, -5)))
    explained(b, tmp_path)


def elementwise_results(graph: Graph) -> set[Value]:
    return {v for n in graph.nodes if n.op == "elementwise" for v in n.outputs}


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
