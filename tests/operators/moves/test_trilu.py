"""Trilu against ONNX's reference evaluator and its node tests, in hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.api.checking import check
from tests.models import Builder
from tests.onnx_node_tests.suite import NodeTest, narrowed, run
from tests.reference_agreement import agree_with_reference

HONOURED = [("Trilu", lambda b, x, **a: b.node("Trilu", x, b.constant(1, "int64"), **a), {"upper": 0})]
NODES = [("Trilu", lambda size, rank: [(0, "int64")], lambda rank: {})]
# Its node tests have matrices of 64-bit integers.


@pytest.mark.parametrize("test", narrowed("Trilu"), ids=lambda test: test.name)
def test_node_tests_in_rtl(test: NodeTest) -> None:
    outcome = run(test)
    if outcome.kind == "host":  # where all is kept
        assert test.name in {"test_tril_out_pos", "test_triu_out_neg_out"}, outcome.reason
    else:
        assert outcome.kind == "RTL", outcome.reason


def triangle(b: Builder, x: str, k: int | None, upper: int) -> str:
    return b.node("Trilu", x, *([] if k is None else [b.constant(k, "int64")]), upper=upper)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=4), k=st.one_of(st.none(), st.integers(-7, 7)),
    upper=st.integers(0, 1), zero=st.integers(-8, 7), channelwise=st.booleans(),
    scale=st.sampled_from([0.25, 0.375, 1]),
)
def test_of_reals(
    shape: list[int], k: int | None, upper: int, zero: int, channelwise: bool, scale: float
) -> None:
    b = Builder(21, 10)
    size = shape[0]
    zeros: Any = (np.arange(size) + zero) % 16 - 8 if channelwise else zero
    scales: Any = scale * (1 + np.arange(size)) if channelwise else scale
    x = b.requantize(b.input("x", ["N", *shape]), scales, zeros, "int8", **({"axis": 1} if channelwise else {}))
    b.output(b.requantize(triangle(b, x, k, upper), 0.5, 3, "int8"))
    agree_with_reference(b, reach=60)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=4), k=st.integers(-5, 5), upper=st.integers(0, 1),
    kind=st.sampled_from(["int8", "uint8", "int16", "int32", "uint32", "bool"]),
)
def test_of_integers(shape: list[int], k: int, upper: int, kind: str) -> None:
    b = Builder(21, 10)
    x = b.node("Cast", b.quantize(b.input("x", ["N", *shape]), 0.5, 3, "int8"), to=6)
    x = b.node("Cast", x, to={"int8": 3, "uint8": 2, "int16": 5, "int32": 6, "uint32": 12, "bool": 9}[kind])
    b.output(b.node("Cast", triangle(b, x, k, upper), to=6))
    agree_with_reference(b, reach=60)


@pytest.mark.parametrize("k", [-1, 0, 2])
@pytest.mark.parametrize("function", ["Relu", "Sigmoid", "Exp"])
def test_behind_a_function(function: str, k: int) -> None:
    """0 stays 0 through a Relu, which is left to the quantizer behind; others are quantized before."""
    b = Builder(21, 10)
    y = b.node(function, b.requantize(b.input("x", ["N", 3, 4]), 0.25, 3, "int8"))
    y = y if function == "Relu" else b.requantize(y, 0.125, 1, "int8")
    b.output(b.requantize(triangle(b, y, k, 1), 0.1875, -7, "int8"))
    agree_with_reference(b)


def test_where_no_integer_means_0() -> None:
    """Behind a bias that is no multiple of the scale."""
    b = Builder(21, 10)
    x = b.node("Add", b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5, 3, "int8"), b.constant(0.125))
    b.output(b.requantize(triangle(b, x, 1, 0), 0.375, -7, "int8"))
    agree_with_reference(b, reach=60)


def test_of_weights() -> None:
    b = Builder(21, 10)
    w = b.weights(np.arange(16).reshape(4, 4) - 5, 0.25, 2)
    x = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("MatMul", x, triangle(b, w, 1, 0)), 1.5, 1, "int8"))
    agree_with_reference(b, reach=60)


def test_of_a_whole_tensor(tmp_path: Path) -> None:
    """A matrix without frames, and a batch of them."""
    for shape in ([4, 5], [3, 4, 5]):
        b = Builder(21, 10)
        b.output(triangle(b, b.input("x", shape, "int8"), 1, 0))
        assert not [f for f in check(b.save(tmp_path)) if f.severity != "warning"]


def test_of_frames(tmp_path: Path) -> None:
    """Whose axis would be one of the matrix."""
    b = Builder(21, 10)
    b.output(b.requantize(b.node("Trilu", b.requantize(b.input("x", ["N", 5]), 0.5), name="it"), 0.25))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert [(f.rule, f.where) for f in found] == [("frame-axis", "node 'it' (Trilu)")]


def test_an_offset_that_is_computed(tmp_path: Path) -> None:
    b = Builder(21, 10)
    k = b.node("Cast", b.node("ReduceMax", b.input("k", ["N", 2], "int8"), b.constant([1], "int64"), keepdims=0), to=7)
    b.output(b.requantize(b.node("Trilu", b.requantize(b.input("x", ["N", 2, 5]), 0.5), k, name="it"), 0.25))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert ("constant-parameter", "node 'it' (Trilu)") in [(f.rule, f.where) for f in found]
