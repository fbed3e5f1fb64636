"""Gather, GatherND and GatherElements of constant data, by indices known at run time: against ONNX's reference
evaluator, ONNX's node tests in RTL, and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.api.checking import check
from hwflow.loaded_model import load
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.onnxspec.reading.ml_seeds import pipeline
from tests.reference_agreement import agree_with_reference

NODE_TESTS = [name for op in ("Gather", "GatherElements", "GatherND") for name in node_tests_of(op)]


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_tests_of_constant_data_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path, constants=("data",))


def embedding(b: Builder, kind: str, shape: tuple[int, ...], seed: int) -> str:
    """A table: integers, or reals of one scale, of a scale for each column or row, or of any values."""
    rng = np.random.default_rng(seed)
    if kind == "integers":
        return b.constant(rng.integers(-999, 999, shape), "int32")
    if kind == "floats":
        return b.constant(rng.normal(size=shape))
    axis = {"tensor": None, "columns": len(shape) - 1, "rows": 0}[kind]
    count = 1 if axis is None else shape[axis]
    scale, zero = rng.integers(1, 9, count) / 8, rng.integers(-5, 5, count)
    more = {} if axis is None else {"axis": axis}
    levels = b.constant(rng.integers(-128, 128, shape), "int8")
    scale, zero = (scale[0], zero[0]) if axis is None else (scale, zero)
    return b.node("DequantizeLinear", levels, b.constant(scale), b.constant(zero, "int8"), **more)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_data_and_indices(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    counts = data.draw(st.lists(st.integers(1, 5), max_size=2))
    kind = data.draw(st.sampled_from(["integers", "tensor", "columns", "rows", "floats"]))
    b = Builder(21, 10)
    ids = b.input("ids", ["N", *counts], data.draw(st.sampled_from(["int32", "int64"])))
    y = b.node("Gather", embedding(b, kind, shape, data.draw(st.integers(0, 99))), ids)
    b.output(b.node("Add", y, y) if kind == "integers" else b.requantize(y, 0.25, -7, "int8"))
    agree_with_reference(b)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_index_vectors(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=3)))
    length = data.draw(st.integers(1, len(shape)))
    least = min(shape[:length])  # of the type of inputs whose range is known, so that each index is legal
    b = Builder(21, 10)
    levels = b.input("ids", ["N", 3, length], "uint8")
    ids = b.node("Cast", b.node("Mod", levels, b.constant(least, "uint8")), to=7)
    if data.draw(st.booleans()):
        ids = b.node("Sub", ids, b.constant(least, "int64"))  # from the end
    y = b.node("GatherND", embedding(b, "floats", shape, 3), ids)
    b.output(b.requantize(y, 0.25, -7, "int8"))
    agree_with_reference(b)


def test_elements_of_each_row(tmp_path: Path) -> None:
    """By hand: along the last axis each row has its own elements; -1 is the last."""
    b = Builder(21, 10)
    table = b.constant([[[10, 20, 30], [40, 50, 60]]], "int8")
    b.output(b.node("GatherElements", table, b.input("ids", ["N", 2, 2], "int64"), axis=2))
    model = b.load(tmp_path)
    (found,) = golden.evaluate(model.quantized, {"ids": np.array([[[2, 0], [-1, 1]]])}).values()
    assert found.tolist() == [[[30, 10], [60, 50]]]


def test_an_index_beyond_is_the_nearest(tmp_path: Path) -> None:
    """Of computed indices, whose range is not known to be the table's."""
    b = Builder(21, 10)
    ids = b.node("Add", b.input("a", ["N", 2], "int32"), b.input("b", ["N", 2], "int32"))
    b.output(b.node("Gather", b.constant([5, 6, 7], "int8"), ids))
    model = b.load(tmp_path)
    frames = {"a": np.array([[99, -1], [-9, 2]]), "b": np.array([[0, 0], [0, 0]])}
    (found,) = golden.evaluate(model.quantized, frames).values()
    assert found.tolist() == [[7, 7], [5, 7]]


def test_the_axis_gives_the_range_of_an_input(tmp_path: Path) -> None:
    """Of the longest of the axes that it indexes; it may be declared narrower."""
    b = Builder(21, 10)
    ids = b.input("ids", ["N", 4], "int64")
    for size in (20, 1000):
        b.output(b.node("Gather", b.constant(np.arange(size), "int32"), ids))
    (port,) = b.load(tmp_path).quantized.inputs
    assert str(port.value.typed) == "i11[4] in [-1000, 999]"
    (port,) = load(tmp_path / "model.onnx", input_types={"ids": "uint9"}).quantized.inputs
    assert str(port.value.typed) == "u9[4] in [0, 511]"


def test_data_and_indices_both_computed(tmp_path: Path) -> None:
    b = Builder(21, 10)
    b.output(b.node("Gather", b.input("x", ["N", 4], "int8"), b.input("ids", ["N", 2], "int32"), axis=1))
    (finding,) = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
    assert str(finding) == (
        "unsupported: node 'gather0' (Gather): data 'x' or indices 'ids' must be constant, not both computed at run "
        "time: a stream passes once [constant-parameter]\n  remedy: multiply by a OneHot of the indices, or gather on "
        "the host"
    )


def test_texts_behind_a_refused_node(tmp_path: Path) -> None:
    """The labels of an ensemble whose leaves have infinite values."""
    proto = pipeline()
    (trees,) = (made for made in proto.graph.node if made.op_type == "TreeEnsembleClassifier")
    (weights,) = (attribute for attribute in trees.attribute if attribute.name == "class_weights")
    weights.floats[0] = np.inf
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    (finding,) = [f for f in check(path) if "(Gather)" in f.where]
    assert (finding.rule, finding.message) == ("text", "data must be numbers, not strings")
