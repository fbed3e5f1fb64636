"""Reductions over any axes, and streams of two shapes, against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.checking import check
from tests.agreement import agree
from tests.models import Builder
from tests.reference_agreement import agree_with_reference

SHAPE = [2, 4, 8]


def reduced(op: str, axes: list[int] | None, keepdims: int, *, relu: bool = False, opset: int = 19) -> Builder:
    b = Builder(opset, 9)
    d = b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")
    if relu:
        d = b.node("Relu", d)
    more = [] if axes is None else [b.constant(axes, "int64")]
    b.output(b.requantize(b.node(op, d, *more, keepdims=keepdims, name="reduce"), 2.0, 5, "int8"))
    return b


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axes", [[1], [2], [-1], [2, 3], [1, 3], [1, 2, 3]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduce(op: str, axes: list[int], keepdims: int) -> None:
    if op in ("ReduceSum", "ReduceMean"):
        agree_with_reference(reduced(op, axes, keepdims))
    else:  # whose axes were attributes until operator set 18
        b = Builder(19, 9)
        d = b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")
        b.output(b.requantize(b.node(op, d, b.constant(axes, "int64"), keepdims=keepdims), 2.0, 5, "int8"))
        agree_with_reference(b)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_reduce_behind_a_function(op: str) -> None:
    agree_with_reference(reduced(op, [3], 1, relu=True))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "MaxPool"])
def test_extremes_of_negated_numbers(op: str) -> None:
    b = Builder(19, 9)
    d = b.node("Neg", b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8"))
    if op == "MaxPool":
        y = b.node("MaxPool", d, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    else:
        y = b.node(op, d, b.constant([2], "int64"))
    b.output(b.requantize(y, 2.0, 5, "int8"))
    agree_with_reference(b)


def test_nothing_to_reduce() -> None:
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", 4]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("ReduceSum", d, noop_with_empty_axes=1), 2.0, 5, "int8"))
    agree_with_reference(b)


@pytest.mark.parametrize("axes", [[0, 1], None])
def test_frames_are_not_reduced(axes: list[int] | None, tmp_path: Path) -> None:
    (finding,) = check(reduced("ReduceSum", axes, 1).save(tmp_path))
    found = "[0, 1]" if axes else "all of them"
    assert str(finding) == (
        f"unsupported: node 'reduce' (ReduceSum): axes must not include the frame axis 0, not be {found} [frame-axis]\n"
        "  remedy: reduce within a frame"
    )


def test_numbers_of_one_axis_are_frames(tmp_path: Path) -> None:
    """One number a frame: its only axis counted from behind is the frame axis, whatever the hardware's shape."""
    b = Builder(19)
    d = b.requantize(b.input("x", ["N"]), 0.5, 0, "int8")
    b.output(b.requantize(b.node("ReduceMax", d, b.constant([-1], "int64"), name="reduce"), 0.5, 0, "int8"))
    (finding,) = check(b.save(tmp_path))
    assert finding.rule == "frame-axis"


STREAMS = [
    # shapes of two streams; frames in front
    ([2, 4, 8], [2, 1, 1]),
    ([2, 1, 8], [1, 4, 1]),
    ([4, 8], [2, 1, 8]),
    ([8], [1, 2, 1]),
]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize(("left", "right"), STREAMS)
def test_streams_of_two_shapes(op: str, left: list[int], right: list[int]) -> None:
    """The frame axis stands before both; ONNX aligns shapes at their ends."""
    b = Builder(19, 9)
    sides = []
    for name, shape in (("x", left), ("y", right)):
        d = b.requantize(b.input(name, ["N", *shape]), 0.5, 3, "int8")
        sides.append(b.node("Reshape", d, b.constant([1] * (4 - len(shape)) + shape, "int64")))
    b.output(b.requantize(b.node(op, *sides), 2.0, 5, "int8"))
    agree_with_reference(b)


def test_a_squeeze_and_excite_gate() -> None:
    """Mean over the image, a dense layer, a sigmoid, and its product with every pixel."""
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", 4, 4, 4]), 0.5, 3, "int8")
    gate = b.requantize(b.node("GlobalAveragePool", d), 0.5, 1, "int8")
    gate = b.node("Conv", gate, b.weights(np.arange(16).reshape(4, 4, 1, 1) - 7, 0.125))
    gate = b.requantize(b.node("HardSigmoid", gate, alpha=0.25, beta=0.5), 1 / 64, 0, "uint8")
    b.output(b.requantize(b.node("Mul", d, gate), 0.5, 3, "int8"))
    graph = agree_with_reference(b)
    assert [n.op for n in graph.nodes].count("rearrange") == 1


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "GlobalAveragePool", "AveragePool", "Conv"])
@pytest.mark.parametrize("function", ["Relu", "Clip", "Clip and Relu"])
@pytest.mark.parametrize("sums", ["Conv", "Add"])
def test_sums_of_limited_sums(op: str, function: str, sums: str) -> None:
    """Relu of sums, whose integers are too many for a table, without a quantizer between."""
    b, rng = Builder(13), np.random.default_rng(3)
    x = b.requantize(b.input("x", ["N", 2, 4, 4]), 0.5, 7)
    bias = b.weights(rng.integers(-99, 99, 3), [0.125, 0.25, 0.0625], [0, 0, 0], "int32", axis=0)
    w = b.weights(rng.integers(-9, 9, (3, 2, 2, 2)), [0.25, 0.5, 0.125], [0, 0, 0], axis=0)
    y = b.node("Conv", x, w, bias)
    if sums == "Add":
        y = b.node("Add", y, b.requantize(b.input("y", ["N", 3, 3, 3]), -0.75, 9))
    if "Clip" in function:
        y = b.node("Clip", y, b.constant(-1.5), b.constant(6.0))
    if "Relu" in function:
        y = b.node("Relu", y)
    if op == "ReduceMean":
        y = b.node("ReduceMean", y, axes=[2, 3])
    elif op == "ReduceSum":
        y = b.node("ReduceSum", y, b.constant([2, 3], "int64"))
    elif op == "AveragePool":
        y = b.node("AveragePool", y, kernel_shape=[2, 2])
    elif op == "Conv":
        y = b.node("Conv", y, b.weights(rng.integers(-9, 9, (2, 3, 2, 2)), 0.25))
    else:
        y = b.node(op, y)
    b.output(b.requantize(y, 1.5, 90))
    agree(b)
