"""EyeLike against ONNX's reference evaluator: a constant, and what hardware makes with it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from hwflow.api.checking import check
from hwflow.verify.comparison import compare
from tests.models import Builder, kind_of
from tests.onnx_node_tests.suite import NodeTest, narrowed, node_tests, run


def added(b: Builder, x: str, **attributes: Any) -> str:
    """To a constant of the same sizes as a frame's rows."""
    eye = b.node("EyeLike", b.constant(np.zeros((3, 4)), "int32"), **attributes)
    return b.node("Add", x, eye if "dtype" in attributes else b.node("Cast", eye, to=TensorProto.FLOAT))


HONOURED = [("EyeLike", added, {"k": -1}), ("EyeLike", added, {"dtype": TensorProto.FLOAT})]
NODES = [("EyeLike", lambda size, rank: [], lambda rank: {"k": 1})]

TESTS = [*narrowed("EyeLike"), *(test for test in node_tests() if test.operators == "EyeLike")]
# Of these nothing is left for hardware, but a constant.


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_node_tests_with_an_addition_in_rtl(test: NodeTest) -> None:
    """The matrix, as integers, and the input."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    graph = model.graph
    (eye,) = (node for node in graph.node if node.op_type == "EyeLike")
    (output,) = graph.output
    (expected,) = test.expected.values()
    del graph.node[:]
    graph.node.extend([
        eye, helper.make_node("Cast", [eye.output[0]], ["integers"], to=TensorProto.INT32),
        helper.make_node("Add", [eye.input[0], "integers"], ["result"]),
    ])
    output.name, output.type.tensor_type.elem_type = "result", TensorProto.INT32
    if expected.dtype == np.int16:  # behind a quantizer
        expected = (expected.astype(np.float64) + 2) * 0.5
    ((name, x),) = test.inputs.items()
    wanted = {"result": (x + expected).astype(np.int32)}
    outcome = run(NodeTest(test.name, model, {name: x}, wanted))
    assert outcome.kind == "RTL", outcome.reason


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 5), columns=st.integers(1, 5), k=st.integers(-6, 6),
    dtype=st.sampled_from([None, "int32", "float"]), batch=st.booleans(),
)
def test_of_whole_tensors(rows: int, columns: int, k: int, dtype: str | None, batch: bool) -> None:
    """Of an input, whose first size is a number, and of an inner value."""
    b = Builder(22, 10)
    x = b.input("x", [rows, columns], "int32")
    y = b.node("EyeLike", b.node("Neg", x) if batch else x, k=k, **({} if dtype is None else {"dtype": kind_of(dtype)}))
    b.output(b.node("Sub", x, b.node("Cast", y, to=TensorProto.INT32)))
    with tempfile.TemporaryDirectory() as folder:
        result = compare(b.load(Path(folder)), frames=3)
    assert result.ok, list(result.lines())


def test_of_any_number_of_frames(tmp_path: Path) -> None:
    b = Builder(22, 10)
    x = b.node("Neg", b.input("x", ["N", 4], "int32"))
    y = b.node("EyeLike", x, name="it")
    b.output(b.requantize(b.node("Cast", b.node("Add", x, y), to=TensorProto.FLOAT), 0.5))
    found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert [(f.rule, f.where) for f in found] == [("frame-axis", "node 'it' (EyeLike)")]
