"""GatherND: against ONNX's reference evaluator, ONNX's node tests in RTL, and what is refused."""

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

INDICES = np.array([[0, 1], [1, -1], [-2, 0], [1, 2]]).reshape(1, 2, 2, 2)


def own_indices(b: Builder, x: str, **attributes: Any) -> str:
    return b.node("GatherND", x, b.constant(INDICES, "int64"), **attributes)


HONOURED = [("GatherND", own_indices, {"batch_dims": 1})]


def constants(size: int, rank: int) -> list[tuple[Any, str]]:
    return [(np.zeros((1, 1)), "int64")]


NODES = [("GatherND", constants, lambda rank: {})]


@pytest.mark.parametrize("name", node_tests_of("GatherND"))
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


def test_all_node_tests_are_run() -> None:
    assert len(node_tests_of("GatherND")) == 3


def gathered(
    shape: list[int], indices: np.ndarray, kind: str, opset: int, batch: dict[str, int], **more: Any
) -> Builder:
    b = Builder(opset, 10)
    if kind == "float":
        scale, zero = more.pop("scale"), more.pop("zero")
        d = b.requantize(b.input("x", ["N", *shape]), scale, zero, "int8", **more)
        b.output(b.requantize(b.node("GatherND", d, b.constant(indices, "int64"), **batch), 0.25, 7, "int16"))
    else:
        y = b.node("GatherND", b.input("x", ["N", *shape], kind), b.constant(indices, "int64"), **batch)
        b.output(b.node("Add", y, y))
    return b


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape_and_type(data: st.DataObject) -> None:
    """Frames are one of the shared axes, or the first place of each vector."""
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    batch = data.draw(st.integers(0, len(shape)))
    length = data.draw(st.integers(1, len(shape) + 1 - batch))
    front = [1, *shape][:batch] or [1]
    inner = data.draw(st.lists(st.integers(1, 3), max_size=2))
    sizes = np.array([1, *shape][batch : batch + length])
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    indices = rng.integers(-sizes, sizes, (*front, *inner, length))
    kind = data.draw(st.sampled_from(["float", "int8", "uint16", "int32"]))
    more: dict[str, Any] = {"scale": 0.5, "zero": 3}
    if data.draw(st.booleans()):
        along = data.draw(st.integers(0, len(shape) - 1))
        count = shape[along]
        more = {"scale": np.arange(1, count + 1) / 4, "zero": np.arange(count), "axis": along + 1}
    attributes = {"batch_dims": batch} if batch or data.draw(st.booleans()) else {}
    builder = gathered(shape, indices, kind, 21, attributes, **more)
    agree_with_reference(builder, step=1, reach=100)


def test_before_there_were_shared_axes() -> None:
    indices = np.array([[[0, 1, -1], [0, 0, 1]]])
    agree_with_reference(gathered([2, 3], indices, "int32", 11, {}), reach=100)


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("kind", ["shared", "own", "mixed", "elements"])
def test_a_batch(kind: str, opset: int, tmp_path: Path) -> None:
    """Of two members: frames where nothing of one goes to another, else one frame."""
    x = np.arange(24).reshape(2, 3, 4)
    indices, batch, expected = {
        "shared": ([[[2]], [[2]]], 1, x[:, [2]]),
        "own": ([[[0, 2], [0, -1]], [[1, 2], [-1, -1]]], 0, x[:, [2, -1]]),
        "mixed": ([[[1, 2]], [[0, 2]]], 0, x[[1, 0], 2][:, None]),
        "elements": ([[1, 2, 3], [0, 0, 0], [1, 0, 1]], 0, np.array([23, 0, 13])),
    }[kind]
    if batch and opset == 11:
        return  # which had no shared axes
    b = Builder(opset, 6)
    attributes = {"batch_dims": batch} if batch else {}
    b.output(b.node("GatherND", b.input("x", x.shape, "int8"), b.constant(indices, "int64"), **attributes))
    model = b.load(tmp_path)
    whole = model.quantized.inputs[0].shape == x.shape
    assert whole == (kind in ("mixed", "elements"))
    (found,) = golden.evaluate(model.quantized, {"x": x[None] if whole else x}).values()
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("indices", "batch", "text"),
    [
        (
            [[[3], [4]]], 2,
            "indices along axis 2 must lie in [-4, 3], not in [3, 4] [gather-indices]\n  remedy: correct the constant",
        ),
        (
            [[[0, -3]]], 0,
            "indices along axis 1 must lie in [-2, 1], not in [-3, -3] [gather-indices]\n"
            "  remedy: correct the constant",
        ),
        (
            [[[0]], [[0]], [[0]]], 0,
            "the result must keep the frame axis first, not have shape [3, 1, 2, 4] [frame-axis]\n"
            "  remedy: reshape to (frames, ...)",
        ),
    ],
)
def test_refused(indices: Any, batch: int, text: str, tmp_path: Path) -> None:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 2, 4]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("GatherND", d, b.constant(indices, "int64"), batch_dims=batch, name="n"), 0.5))
    assert [str(f) for f in check(b.save(tmp_path))] == [f"unsupported: node 'n' (GatherND): {text}"]


@pytest.mark.parametrize(("shape", "batch"), [((2, 1), 1), ((1, 1, 1), 2), ((1, 3), 1), ((1, 4), 0), ((1,), 1)])
def test_indices_that_do_not_fit(shape: tuple[int, ...], batch: int, tmp_path: Path) -> None:
    """Findings whoever finds them: vectors that are too long, shared axes that differ."""
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 2, 4]), 0.5, 3, "int8")
    y = b.node("GatherND", d, b.constant(np.zeros(shape), "int64"), batch_dims=batch, name="n")
    b.output(b.requantize(b.declare(y, ["N", 4]), 0.5))
    findings = check(b.save(tmp_path))
    assert findings and all(finding.severity != "warning" for finding in findings)


def test_indices_of_a_stream(tmp_path: Path) -> None:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    y = b.node("GatherND", d, b.node("ArgMax", d, axis=1, name="at"), batch_dims=1, name="n")
    b.output(b.requantize(y, 0.5))
    (finding,) = check(b.save(tmp_path))
    assert finding.message == (
        "data 'dequantizelinear1' or indices 'at' must be constant, not both computed at run time: a stream passes once"
    )
