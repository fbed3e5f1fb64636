"""GatherElements: against ONNX's reference evaluator, ONNX's node tests in RTL, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.api.checking import check
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference

INDICES = np.array([2, 0, -1, 1, -3, 0, 2, 2, 1, -2, 0, 1] * 2).reshape(1, 2, 3, 4)


def own_indices(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("GatherElements", x, b.constant(INDICES, "int64"), **attributes)


HONOURED = [("GatherElements", own_indices, {"axis": 2})]


def constants(size: int, rank: int) -> list[tuple[Any, str]]:
    return [(np.zeros((1,) * rank), "int64")]


NODES = [("GatherElements", constants, lambda rank: {"axis": -1})]


@pytest.mark.parametrize("name", node_tests_of("GatherElements"))
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


def test_all_node_tests_are_run() -> None:
    assert len(node_tests_of("GatherElements")) == 3


def gathered(shape: list[int], place: int, indices: np.ndarray, kind: str, **quantizer: Any) -> Builder:
    b = Builder(21, 10)
    if kind == "float":
        scale, zero = quantizer.pop("scale"), quantizer.pop("zero")
        d = b.requantize(b.input("x", ["N", *shape]), scale, zero, "int8", **quantizer)
        y = b.node("GatherElements", d, b.constant(indices, "int64"), axis=place)
        b.output(b.requantize(y, 0.25, -7, "int16"))
    else:
        y = b.node("GatherElements", b.input("x", ["N", *shape], kind), b.constant(indices, "int64"), axis=place)
        b.output(b.node("Add", y, y))
    return b


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape_axis_and_type(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    axis = data.draw(st.integers(0, len(shape) - 1))
    counts = [data.draw(st.integers(1, 6)) if a == axis else size for a, size in enumerate(shape)]
    size = shape[axis]
    indices = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-size, size, (1, *counts))
    kind = data.draw(st.sampled_from(["float", "int8", "uint16", "int32"]))
    turned = axis + 1 if data.draw(st.booleans()) else axis - len(shape)
    more: dict[str, Any] = {"scale": 0.5, "zero": 3}
    if data.draw(st.booleans()):
        along = data.draw(st.integers(0, len(shape) - 1))
        count = shape[along]
        more = {"scale": np.arange(1, count + 1) / 4, "zero": np.arange(count), "axis": along + 1}
    agree_with_reference(gathered(shape, turned, indices, kind, **more), step=1, reach=100)


def test_fewer_indices_along_other_axes(tmp_path: Path) -> None:
    """By hand, as the operator's formula says."""
    b = Builder(21, 10)
    indices = b.constant([[[2, 0], [1, 1]]], "int64")
    b.output(b.node("GatherElements", b.input("x", ["N", 3, 3], "int8"), indices, axis=2))
    (found,) = golden.evaluate(b.load(tmp_path).quantized, {"x": np.arange(9).reshape(1, 3, 3)}).values()
    assert found.tolist() == [[[2, 0], [4, 4]]]


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 1)])
def test_a_batch(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Of a number of members: frames where the indices are the same for each, else one frame."""
    rng = np.random.default_rng(5)
    for same in (True, False):
        indices = np.broadcast_to(rng.integers(-shape[1], shape[1], (1, *shape[1:])), shape)
        if not same:
            indices = rng.integers(-shape[1], shape[1], shape)
        b = Builder(21, 10)
        b.output(b.node("GatherElements", b.input("x", shape, "int8"), b.constant(indices, "int64"), axis=1))
        model = b.load(tmp_path)
        frames = rng.integers(-99, 99, shape)
        given = frames if model.quantized.inputs[0].shape == shape[1:] else frames[None]
        (found,) = golden.evaluate(model.quantized, {"x": given}).values()
        np.testing.assert_array_equal(found.reshape(shape), np.take_along_axis(frames, indices, 1))


@pytest.mark.parametrize(
    ("indices", "axis", "text"),
    [
        ([[[0, 4]]], 2, "indices must lie in [-4, 3], not in [0, 4] [gather-indices]\n  remedy: correct the constant"),
        (
            [[[-3, 0, 0, 0]]], 1,
            "indices must lie in [-2, 1], not in [-3, 0] [gather-indices]\n  remedy: correct the constant",
        ),
        (
            [[[0], [0], [0]]], 2,  # the names are the builder's
            "indices 'c4' must have the 3 axes of 'dequantizelinear1' and no more places than [1, 2, 4] along those "
            "other than 2, not shape [1, 3, 1] [indices-shape]\n  remedy: correct the constant",
        ),
        (
            [[[0, 0, 0, 0]], [[0, 0, 0, 0]]], 0,
            "the result must keep the frame axis first, not have shape [2, 1, 4] [frame-axis]\n"
            "  remedy: reshape to (frames, ...)",
        ),
    ],
)
def test_refused(indices: Any, axis: int, text: str, tmp_path: Path) -> None:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 2, 4]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("GatherElements", d, b.constant(indices, "int64"), axis=axis, name="n"), 0.5))
    assert [str(f) for f in check(b.save(tmp_path))] == [f"unsupported: node 'n' (GatherElements): {text}"]


def test_indices_of_a_stream(tmp_path: Path) -> None:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    y = b.node("GatherElements", d, b.input("at", ["N", 4], "int32"), axis=1, name="n")
    b.output(b.requantize(y, 0.5))
    (finding,) = check(b.save(tmp_path))
    assert finding.message == (
        "data 'dequantizelinear1' or indices 'at' must be constant, not both computed at run time: a stream passes once"
    )
