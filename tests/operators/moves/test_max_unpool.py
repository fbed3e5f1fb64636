"""MaxUnpool: against ONNX's reference evaluator, ONNX's node tests in RTL, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from hwflow.api.checking import check
from hwflow.host.boundary_models import model_outputs, port_inputs
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference

WINDOW = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 0, 0, 1]}  # of [2, 3, 4]: an image of 5 by 5


def own_indices(b: Builder, x: str, **attributes: Any) -> str:
    places = np.random.default_rng(3).permutation(50)[:24].reshape(1, 2, 3, 4)
    return b.node("MaxUnpool", x, b.constant(places, "int64"), **attributes)


HONOURED = [("MaxUnpool", own_indices, WINDOW)]


def constants(size: int, rank: int) -> list[tuple[Any, str]]:
    return [(np.zeros((1,) * rank), "int64")]


NODES = [("MaxUnpool", constants, lambda rank: {"kernel_shape": [2] * max(1, rank - 2)})]


@pytest.mark.parametrize("name", node_tests_of("MaxUnpool"))
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


def test_all_node_tests_are_run() -> None:
    assert len(node_tests_of("MaxUnpool")) == 2


def image_of(shape: list[int], window: dict[str, list[int]]) -> list[int]:
    axes = len(shape) - 1
    pads = window.get("pads", [0] * 2 * axes)
    strides = window.get("strides", [1] * axes)
    kernel = window["kernel_shape"]
    return [(n - 1) * strides[a] + kernel[a] - pads[a] - pads[a + axes] for a, n in enumerate(shape[1:])]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape_and_window(data: st.DataObject) -> None:
    """Places of any channel, some of them twice; scales and zero points of a tensor, or one per channel."""
    axes = data.draw(st.integers(1, 3))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=axes + 1, max_size=axes + 1))
    sizes = st.lists(st.integers(1, 3), min_size=axes, max_size=axes)
    window = {"kernel_shape": data.draw(sizes)}
    if data.draw(st.booleans()):
        window["strides"] = data.draw(sizes)
    if data.draw(st.booleans()):
        pads = data.draw(st.lists(st.integers(0, 1), min_size=2 * axes, max_size=2 * axes))
        if min(image_of(shape, {**window, "pads": pads})) > 0:
            window["pads"] = pads
    image = [shape[0], *image_of(shape, window)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    b = Builder(21, 10)
    more: dict[str, Any] = {"axis": 1} if data.draw(st.booleans()) else {}
    count = shape[0]
    scale, zero = (np.arange(1, count + 1) / 4, np.arange(count) + 3) if more else (0.5, data.draw(st.integers(-9, 9)))
    d = b.requantize(b.input("x", ["N", *shape]), scale, zero, "int8", **more)
    if data.draw(st.booleans()):
        d = b.node("Relu", d)
    parameters = [b.constant(rng.integers(0, int(np.prod(image)), (1, *shape)), "int64")]
    target = [size + data.draw(st.integers(0, 2)) for size in image]
    if data.draw(st.booleans()):
        parameters.append(b.constant([1, *target], "int64"))
    y = b.node("MaxUnpool", d, *parameters, **window)
    b.output(b.declare(b.requantize(y, 0.25, 7, "int16"), ["N", *(target if len(parameters) == 2 else image)]))
    agree_with_reference(b, step=0.5, reach=100)


def test_no_half_of_a_level() -> None:
    """A zero point between two integers, of a stream that is moved: 0 must be an integer all the same."""
    b = Builder(21, 10)
    d = b.node("Add", b.requantize(b.input("x", ["N", 1, 2]), 0.5, 3, "int8"), b.constant(0.25))
    y = b.node("MaxUnpool", d, b.constant([[[3, 1]]], "int64"), kernel_shape=[2], strides=[2])
    b.output(b.requantize(y, 0.25, 7, "int16"))
    agree_with_reference(b, step=0.5)


def test_behind_a_function_without_a_table() -> None:
    """Of scales too far apart; channels exchange elements."""
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 2, 2]), [2.0**-20, 0.75], [4, -3], "int8", axis=1)
    y = b.node("MaxUnpool", b.node("Relu", d), b.constant([[[7, 1], [0, 6]]], "int64"), kernel_shape=[2], strides=[2])
    b.output(b.requantize(y, 0.25, 7, "int16"))
    agree_with_reference(b, step=0.5)


@pytest.mark.parametrize("stated", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_a_batch(stated: bool, alike: bool, tmp_path: Path) -> None:
    """Of two members: frames where each one's indices are alike from its own start, else one frame."""
    indices = np.array([[[5, 2]], [[11, 8]]]) if alike else np.array([[[11, 2]], [[5, 8]]])
    b = Builder(21, 10)
    d = b.requantize(b.input("x", [2, 1, 2]), 0.5, 3, "int8")
    parameters = [b.constant(indices, "int64")] + [b.constant([2, 1, 7], "int64")] * stated
    y = b.node("MaxUnpool", d, *parameters, kernel_shape=[3], strides=[3])
    b.output(b.declare(b.requantize(y, 0.5, 3, "int8"), [2, 1, 7 if stated else 6]))
    model = b.load(tmp_path)
    assert (model.quantized.inputs[0].shape == (1, 2)) == alike
    x = np.array([[[1.5, -2]], [[4, 3]]], np.float32)
    (expected,) = ReferenceEvaluator(model.proto).run(None, {"x": x})
    assert sorted(expected[expected != 0].tolist()) == [-2, 1.5, 3, 4]
    arrays = {"x": x.reshape(-1, *model.resolved.values["x"].shape[1:])}
    (found,) = model_outputs(model, golden.evaluate(model.quantized, port_inputs(model, arrays)), arrays).values()
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def unpooled(indices: Any, **attributes: Any) -> Builder:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 1, 2, 2]), 0.5, 3, "int8")
    parameters = [b.constant(indices, "int64")]
    stated = attributes.pop("stated", None)
    if stated:
        parameters.append(b.constant(stated, "int64"))
    y = b.node("MaxUnpool", d, *parameters, name="n", **{"kernel_shape": [2, 2], **attributes})
    b.output(b.declare(b.requantize(y, 0.5, 3, "int8"), ["N", *(stated or [1, 1, 3, 3])[1:]]))
    return b


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            unpooled([[[[0, 1], [2, 9]]]]),
            "indices must lie in [0, 8], not in [0, 9] [unpool-indices]\n  remedy: correct the constant",
        ),
        (
            unpooled([[[[0, 1], [2, -1]]]]),
            "indices must lie in [0, 8], not in [-1, 2] [unpool-indices]\n  remedy: correct the constant",
        ),
        (
            unpooled([[[[0, 1], [2, 3]]]], stated=[1, 1, 3, 2]),
            "output_shape must be at least [1, 1, 3, 3], which kernel_shape, strides and pads infer, not [1, 1, 3, 2] "
            "[unpool-shape]\n  remedy: correct it, or the attributes",
        ),
        (
            unpooled([[[[0, 1]]]]),
            "indices 'c4' must have the shape [1, 1, 2, 2] of a frame of 'dequantizelinear1', not [1, 1, 1, 2] "
            "[indices-shape]\n  remedy: correct the constant, or export the model with a batch of 1",
        ),
        (
            unpooled([[[[0, 1], [2, 3]]]], stated=[1, 1, 3, 3], pads=[2, 0, 1, 0]),
            "kernel_shape, strides and pads must infer an image of at least one pixel, not [0, 3] [unpool-window]\n"
            "  remedy: correct the attributes",
        ),
    ],
)
def test_refused(model: Builder, text: str, tmp_path: Path) -> None:
    assert [str(f) for f in check(model.save(tmp_path))] == [f"unsupported: node 'n' (MaxUnpool): {text}"]


def test_the_indices_of_a_max_pool(tmp_path: Path) -> None:
    """Which hardware does not make."""
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 1, 4, 4]), 0.5, 3, "int8")
    pooled = b.node("MaxPool", d, name="pool", outputs=["places"], kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("MaxUnpool", pooled, "places", name="n", kernel_shape=[2, 2], strides=[2, 2])
    b.output(b.requantize(y, 0.5, 3, "int8"))
    found = [f"{finding.where}: {finding.message}" for finding in check(b.save(tmp_path))]
    assert found == [
        "node 'pool' (MaxPool): the output 'Indices' must be absent, not used",
        "node 'n' (MaxUnpool): indices 'places' must be a constant, not computed at run time",
    ]


def test_indices_made_at_run_time(tmp_path: Path) -> None:
    b = Builder(21, 10)
    d = b.requantize(b.input("x", ["N", 1, 2]), 0.5, 3, "int8")
    places = b.node("Expand", b.node("ArgMax", d, axis=2), b.constant([1, 1, 2], "int64"), name="at")
    y = b.node("MaxUnpool", d, places, name="n", kernel_shape=[2])
    b.output(b.requantize(y, 0.5, 3, "int8"))
    (finding,) = check(b.save(tmp_path))
    assert finding.message == "indices 'at' must be a constant, not computed at run time"
