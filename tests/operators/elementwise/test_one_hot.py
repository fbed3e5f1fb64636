"""OneHot against ONNX's reference evaluator and its node tests, in hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from hwflow.api.checking import check
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.suite import NodeTest, narrowed, run
from tests.reference_agreement import agree_with_reference


def spread(b: Builder, x: str, depth: int = 4, values: Any = (0, 1), kind: str = "float", **attributes: Any) -> str:
    return b.node("OneHot", x, b.constant(depth, "int64"), b.constant(list(values), kind), **attributes)


HONOURED = [("OneHot", spread, {"axis": axis}) for axis in (2, -2)]
NODES = [("OneHot", lambda size, rank: [(3, "int64"), ([0, 1], "float")], lambda rank: {})]
# Its node tests have indices of 64 bits and of floats, a depth of float, values of bfloat16.


@pytest.mark.parametrize("test", narrowed("OneHot"), ids=lambda test: test.name)
def test_node_tests_in_rtl(test: NodeTest) -> None:
    outcome = run(test)
    assert outcome.kind == "RTL", outcome.reason


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), max_size=3), depth=st.integers(1, 9), axis=st.integers(-4, 4),
    kind=st.sampled_from(["int8", "uint8", "int16", "int32", "float"]), zero=st.integers(-5, 5),
    values=st.sampled_from([(0, 1), (1, 0), (-3, 4), (2.5, -0.75), (0.1, 0.7), (2, 2)]),
)
def test_of_reals(
    shape: list[int], depth: int, axis: int, kind: str, zero: int, values: tuple[float, float]
) -> None:
    """Indices of all types, negative and out of range among them; in front of a quantizer."""
    rank = len(shape) + 2
    axis = axis % (rank - 1) + 1 if axis >= 0 else max(axis, 1 - rank)
    b = Builder(21, 10)
    x = b.input("x", ["N", *shape])
    if kind == "float":
        x = b.requantize(x, 0.75, zero, "int8")
    else:
        x = b.node("Cast", b.quantize(x, 0.75, zero, "int8"), to={"int8": 3, "uint8": 2, "int16": 5, "int32": 6}[kind])
    b.output(b.requantize(spread(b, x, depth, values, axis=axis), 0.3, -7, "int8"))
    agree_with_reference(b, reach=60)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), max_size=2), depth=st.integers(1, 6), zero=st.integers(-5, 5),
    kind=st.sampled_from(["int8", "uint8", "int16", "int32", "uint32", "int64", "bool"]),
    values=st.sampled_from([(0, 1), (1, 0), (3, 100), (7, 7)]),
)
def test_of_integers(shape: list[int], depth: int, zero: int, kind: str, values: tuple[int, int]) -> None:
    b = Builder(21, 10)
    x = b.quantize(b.input("x", ["N", *shape]), 1.0, zero, "int8")
    b.output(spread(b, x, depth, values, kind, axis=-1))
    agree_with_reference(b, reach=60)


def test_of_places() -> None:
    """What an ArgMax finds, as reals that a matrix multiplies: a table of rows."""
    b = Builder(21, 10)
    best = b.node("ArgMax", b.requantize(b.input("x", ["N", 5, 3]), 0.5, 3, "int8"), axis=1, keepdims=0)
    rows = b.node("MatMul", spread(b, best, 5), b.weights(np.arange(20).reshape(5, 4) - 7, 0.25))
    b.output(b.requantize(rows, 0.5, 1, "int8"))
    agree_with_reference(b, reach=60)


def test_at_the_model_s_end(tmp_path: Path) -> None:
    b = Builder(21, 10)
    b.output(spread(b, b.quantize(b.input("x", ["N", 3]), 0.5, 3, "int8"), 4, (0.1, 0.7)))
    result = compare(b.load(tmp_path), frames=20)
    assert result.ok, list(result.lines())


def test_depths_and_values_that_are_not_integers() -> None:
    b = Builder(21, 10)
    x = b.node("Cast", b.quantize(b.input("x", ["N", 3]), 0.5, 3, "int8"), to=TensorProto.INT32)
    y = b.node("OneHot", x, b.constant(6.0), b.weights([-3, 5], 0.5, 1), axis=1)
    b.output(b.requantize(y, 0.5, 2, "int8"))
    agree_with_reference(b, reach=10)


@pytest.mark.parametrize(
    ("axis", "rule"), [(0, "frame-axis"), (-3, "frame-axis"), (1, "")]
)
def test_axes_within_a_frame(axis: int, rule: str, tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3]), 0.5, 3, "int8")
    b.output(b.requantize(spread(b, x, 4, axis=axis), 0.5, 0, "int8"))
    found = [f.rule for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert found == ([rule] if rule else [])


def test_values_that_are_computed(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 3]), 0.5, 3, "int8")
    v = b.requantize(b.input("v", [2]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("OneHot", x, b.constant(3, "int64"), v, name="it"), 0.5, 0, "int8"))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert found and all(f.severity == "unsupported" for f in found)
