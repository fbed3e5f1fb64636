"""Range of constants against ONNX's reference evaluator, and what hardware makes with it."""

from __future__ import annotations

import tempfile
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
from tests.onnx_node_tests.cases import node_cases
from tests.onnx_node_tests.suite import NodeTest, as_array, run
from tests.reference_agreement import agree_with_reference


def halves(b: Builder, x: str, **attributes: Any) -> str:
    """Added along the last axis of four."""
    bounds = [b.constant(v, "float16") for v in (-0.5, 1.5, 0.5)]
    return b.node("Add", x, b.node("Cast", b.node("Range", *bounds, **attributes), to=TensorProto.FLOAT))


HONOURED = [("Range", halves, {"stash_type": TensorProto.DOUBLE})]
NODES = [("Range", lambda size, rank: [(5, "like"), (1, "like")], lambda rank: {})]
CASES = [case for case in node_cases() if [node.op_type for node in case.model.graph.node] == ["Range"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_node_tests_with_an_addition_in_rtl(case: Any) -> None:
    """Of constants nothing is left for hardware: their numbers, as integers, are added to a tensor of integers."""
    given, (expected,) = (list(values) for values in case.data_sets[0])
    b = Builder(27, 14)
    names = {11: "double", 1: "float", 10: "float16", 16: "bfloat16", 6: "int32", 5: "int16", 7: "int64"}
    infos = list(case.model.graph.input)
    kinds = [names[info.type.tensor_type.elem_type] for info in infos]
    bounds = [b.constant(as_array(v).astype(np.float64), kind) for v, kind in zip(given, kinds, strict=True)]
    numbers = b.node("Cast", b.node("Range", *bounds), to=TensorProto.INT32)
    whole = np.trunc(as_array(expected).astype(np.float64)).astype(np.int32)
    b.output(b.node("Add", b.input("x", [1, len(whole)], "int32"), numbers, name="y"))
    values = np.arange(len(whole), dtype=np.int32)[np.newaxis] * 7 - 3
    wanted = values + whole
    outcome = run(NodeTest(case.name, b.build(), {"x": values}, {"y": wanted}))
    assert outcome.kind == "RTL", outcome.reason


@settings(max_examples=15, deadline=None)
@given(
    start=st.integers(-20, 20), count=st.integers(1, 6), delta=st.sampled_from([-3, -1, 1, 2]),
    kind=st.sampled_from(["int16", "int32", "int64", "float"]),
)
def test_as_an_operand(start: int, count: int, delta: int, kind: str) -> None:
    b = Builder(21, 10)
    bounds = [b.constant(v, kind) for v in (start, start + delta * count, delta)]
    x = b.input("x", ["N", 2, count], "int32")
    b.output(b.node("Add", x, b.node("Cast", b.node("Range", *bounds), to=TensorProto.INT32)))
    with tempfile.TemporaryDirectory() as folder:
        result = compare(b.load(Path(folder)), frames=3)
    assert result.ok, list(result.lines())


def test_of_fractions() -> None:
    b = Builder(21, 10)
    bounds = [b.constant(v) for v in (-1.5, 1.0, 0.5)]
    x = b.requantize(b.input("x", ["N", 2, 5]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("Mul", x, b.node("Range", *bounds)), 0.3, 3, "int8"))
    agree_with_reference(b, reach=60)


def test_a_limit_that_is_computed(tmp_path: Path) -> None:
    """Whose length no shape can tell."""
    b = Builder(21, 10)
    limit = b.node("ReduceMax", b.input("x", [4], "int32"), keepdims=0)
    numbers = b.node("Range", b.constant(0, "int32"), limit, b.constant(1, "int32"), name="it")
    b.declare(b.node("Neg", numbers, name="y"), [4], "int32")
    b.output("y")
    assert [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
