"""CumSum against ONNX's reference evaluator and its node tests, in hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwflow.api.checking import check
from hwflow.verify import golden
from hwflow.verify.comparison import compare
from tests.models import Builder
from tests.onnx_node_tests.suite import NodeTest, narrowed, node_tests, run
from tests.reference_agreement import agree_with_reference


def sums(b: Builder, x: str, axis: int = 2, **attributes: Any) -> str:
    return b.node("CumSum", x, b.constant(axis, "int64"), **attributes)


HONOURED = [("CumSum", sums, {name: 1}) for name in ("exclusive", "reverse")]
NODES = [("CumSum", lambda size, rank: [(-1, "int64")], lambda rank: {})]
# Most of its node tests have floats of 64 bits.
TESTS = [*narrowed("CumSum"), *(test for test in node_tests() if test.operators == "CumSum")]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_node_tests_in_rtl(test: NodeTest) -> None:
    outcome = run(test)
    assert outcome.kind == "RTL", outcome.reason


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("flag", [0, 1])
def test_images_in_rtl(axis: int, flag: int) -> None:
    """Along channels, rows and columns: groups beside each other and behind each other."""
    b = Builder(21, 10)
    b.output(sums(b, b.input("x", [2, 3, 4, 2], "int32"), axis, exclusive=flag, reverse=flag))
    x = np.random.default_rng(axis).integers(-(2**31), 2**31, (2, 3, 4, 2)).astype(np.int32)
    turned = np.flip(x, axis) if flag else x
    expected = np.cumsum(turned, axis=axis, dtype=np.int32) - flag * turned
    wanted = {b.outputs[0]: np.flip(expected, axis) if flag else expected}
    outcome = run(NodeTest("images", b.build(), {"x": x}, wanted))
    assert outcome.kind == "RTL", outcome.reason


FLAGS = {"exclusive": st.integers(0, 1), "reverse": st.integers(0, 1)}


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), axis=st.integers(-3, 3), zero=st.integers(-8, 7),
    along=st.sampled_from([None, 1, -1]), **FLAGS,
)
def test_of_reals(
    shape: list[int], axis: int, zero: int, along: int | None, exclusive: int, reverse: int
) -> None:
    """Scales and zero points of the tensor, or along an axis, which may be the one of the sums."""
    rank = len(shape) + 1
    axis = (axis - 1) % (rank - 1) + 1 if axis >= 0 else max(axis, 1 - rank)
    b = Builder(21, 10)
    scale: Any = 0.5
    zeros: Any = zero
    if along is not None:
        size = shape[along - 1 if along > 0 else along]
        scale, zeros = 0.25 * (1 + np.arange(size)), (np.arange(size) * 3 + zero) % 16 - 8
    x = b.requantize(b.input("x", ["N", *shape]), scale, zeros, "int8", **({"axis": along} if along else {}))
    b.output(b.requantize(sums(b, x, axis, exclusive=exclusive, reverse=reverse), 0.375, -7, "int16"))
    agree_with_reference(b, reach=60)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), axis=st.integers(0, 9),
    kind=st.sampled_from(["int32", "uint32"]), seed=st.integers(0, 9), **FLAGS,
)
def test_of_integers_that_wrap(shape: list[int], axis: int, kind: str, seed: int, exclusive: int, reverse: int) -> None:
    axis %= len(shape)
    b = Builder(21, 10)
    b.output(sums(b, b.input("x", ["N", *shape], kind), axis + 1, exclusive=exclusive, reverse=reverse))
    model = load_in_memory(b)
    limits = np.iinfo(kind)
    x = np.random.default_rng(seed).integers(limits.min, limits.max, (3, *shape), dtype=kind, endpoint=True)
    (found,) = golden.evaluate(model.quantized, {"x": x.astype(np.int64)}).values()
    turned = np.flip(x, axis + 1) if reverse else x
    expected = np.cumsum(turned, axis=axis + 1, dtype=kind)
    expected = expected - turned if exclusive else expected
    np.testing.assert_array_equal(found, np.flip(expected, axis + 1) if reverse else expected)
    assert compare(model, frames=5).ok


def load_in_memory(b: Builder) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return b.load(Path(folder))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("reverse", [0, 1])
def test_behind_a_convolution(axis: int, reverse: int, channels_last: bool) -> None:
    """Whose sums have a bias that is no multiple of their scale, with weights of one scale or one per channel."""
    rng = np.random.default_rng(1)
    for scale in (0.25, np.array([0.25, 0.375, 0.125])):
        more = {} if isinstance(scale, float) else {"axis": 0}
        b = Builder(21, 10)
        x = b.requantize(b.input("x", ["N", 2, 4, 5]), 0.5, 3, "int8")
        w = b.weights(rng.integers(-5, 6, (3, 2, 3, 3)), scale, 0 if not more else [0] * 3, **more)
        y = b.node("Conv", x, w, b.constant([0.1, -0.3, 0.7]), kernel_shape=[3, 3])
        y = b.node("Transpose", y, perm=[0, 2, 3, 1]) if channels_last else y
        if axis != (3 if channels_last else 1):
            b.output(b.requantize(sums(b, y, axis, exclusive=1, reverse=reverse), 3.1, 5, "int8"))
            result = compare(load_in_memory(b), frames=20)
            assert result.ok, list(result.lines())


def test_behind_a_relu_and_in_front_of_another_operator() -> None:
    b = Builder(21, 10)
    x = b.node("Relu", b.requantize(b.input("x", ["N", 4, 3]), 0.5, 3, "int8"))
    y = b.node("Add", sums(b, x, 1), sums(b, x, 2, reverse=1))
    b.output(b.requantize(b.node("MatMul", y, b.weights(np.arange(6).reshape(3, 2) - 3, 0.5)), 4.1, 5, "int8"))
    agree_with_reference(b, reach=60)


def test_of_scales_without_a_common_divisor(tmp_path: Path) -> None:
    """Along the axis they are added; across, each keeps its own."""
    scales = [1000.0, 1e-9, 0.1, 0.3]
    for axis, rules in ((1, ["common-scale"]), (2, [])):
        b = Builder(21, 10)
        x = b.requantize(b.input("x", ["N", 4, 3]), scales, [1, 2, 3, 4], "int8", axis=1)
        b.output(b.requantize(sums(b, x, axis), 0.5, 0, "int8"))
        found = [f for f in check(b.save(tmp_path)) if f.severity != "warning"]
        assert [f.rule for f in found] == rules
        assert all("must have a usable common divisor, not none (ratio " in f.message for f in found)


@pytest.mark.parametrize("axis", [0, -3])
def test_along_the_frames(axis: int, tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4, 3]), 0.5, 3, "int8")
    b.output(b.requantize(sums(b, x, axis), 0.5, 0, "int8"))
    assert [f.rule for f in check(b.save(tmp_path)) if f.severity != "warning"] == ["frame-axis"]


@pytest.mark.parametrize("shape", [[5], [3, 4], [2, 3, 4]])
def test_of_whole_tensors(shape: list[int]) -> None:
    """Their first axis is one like the others; else they are a batch."""
    for axis in range(len(shape)):
        b = Builder(21, 10)
        b.output(sums(b, b.input("x", shape, "int32"), axis, reverse=1))
        model = load_in_memory(b)
        result = compare(model, frames=3)
        assert result.ok, list(result.lines())


def test_an_axis_that_is_no_constant(tmp_path: Path) -> None:
    b = Builder(21, 10)
    greatest = b.node("ReduceMax", b.input("a", ["N", 2], "int8"), b.constant([1], "int64"), keepdims=0)
    axis = b.node("Cast", greatest, to=7)
    x = b.requantize(b.input("x", ["N", 4, 3]), 0.5, 3, "int8")
    b.output(b.requantize(b.node("CumSum", x, axis, name="it"), 0.5, 0, "int8"))
    assert [f.where for f in check(b.save(tmp_path)) if f.severity != "warning"]
