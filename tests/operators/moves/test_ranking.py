"""ArgMax, ArgMin and TopK against ONNX's reference evaluator, made in hardware."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.ir.graph import Graph
from hwflow.passes import pipeline
from hwflow.verify.comparison import compare
from tests.agreement import same
from tests.models import Builder
from tests.reference_agreement import agree_with_reference

SHAPE = [3, 4, 5]


def quantized(b: Builder, shape: list[int], scale: float = 0.5, name: str = "x") -> str:
    """Few levels, so that many elements are equal."""
    return b.requantize(b.input(name, ["N", *shape]), scale, 3, "int4")


def ranked(b: Builder, **more: int) -> Graph:
    """Both agree, and hardware does the ranking."""
    graph = agree_with_reference(b, **more)
    assert "stream_top_k" in {node.op for node in graph.nodes}
    assert not graph.suffix
    return graph


def places(b: Builder, x: str, op: str = "ArgMax", axis: int = 1, **more: int) -> Builder:
    b.output(b.node(op, x, name="ranking", axis=axis, **more))
    return b


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [1, 2, 3, -1, -3])
@pytest.mark.parametrize(("keepdims", "last"), [(0, 0), (1, 1)])
def test_places_along_an_axis(op: str, axis: int, keepdims: int, last: int) -> None:
    b = Builder(21, 10)
    ranked(places(b, quantized(b, SHAPE), op, axis, keepdims=keepdims, select_last_index=last), reach=20)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_of_negated_numbers(op: str) -> None:
    b = Builder(21, 10)
    ranked(places(b, b.node("Neg", quantized(b, SHAPE)), op, 2), reach=20)


def test_behind_a_function_that_makes_equals() -> None:
    b = Builder(21, 10)
    ranked(places(b, b.node("Relu", quantized(b, SHAPE))), reach=20)


def test_of_an_axis_of_one() -> None:
    b = Builder(21, 10)
    ranked(places(b, quantized(b, [1, 4])))


def test_of_integers() -> None:
    b = Builder(21, 10)
    b.output(b.node("ArgMin", b.quantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8"), axis=2, keepdims=0))
    ranked(b)


@pytest.mark.parametrize("bias", [None, 1.0, 0.125])
@pytest.mark.parametrize("scales", [0.25, [0.25, 0.5, 1.0, 0.375, 0.125]])
def test_of_sums_without_a_quantizer(scales: float | list[float], bias: float | None) -> None:
    """A classifier that ends in ArgMax over its sums; weights of one scale, or one per class."""
    rng = np.random.default_rng(2)
    b = Builder(21, 10)
    x = quantized(b, [6])
    more = {} if isinstance(scales, float) else {"axis": 0}
    zero = 0 if isinstance(scales, float) else [0] * 5
    inputs = [x, b.weights(rng.integers(-7, 8, (5, 6)), scales, zero, **more)]
    if bias is not None:
        inputs.append(b.constant(rng.integers(-8, 9, 5) * bias))
    ranked(places(b, b.node("Gemm", *inputs, transB=1), keepdims=0), reach=20)


@pytest.mark.parametrize("channelwise", [False, True])
def test_of_sums_with_scales_that_were_calibrated(channelwise: bool, tmp_path: Path) -> None:
    """The bias is an integer times the product of two scales, rounded to a float: no multiple of the sums' own. Classes
    that differ by less than that rounding are told apart, and equal ones are equal."""
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.01, 0.02, 6).astype(np.float32) if channelwise else np.float32(0.0123)
    more = {"axis": 0} if channelwise else {}
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", 4]), 0.0371, 3, "int8")
    w = b.weights(rng.integers(-3, 4, (6, 4)), scales, [0] * 6 if channelwise else 0, **more)
    bias = b.dequantize(
        b.constant(rng.integers(-90, 90, 6), "int32"), np.float32(0.0371) * scales, [0] * 6 if channelwise else 0,
        "int32", **more,
    )
    model = places(b, b.node("Gemm", x, w, bias, transB=1), keepdims=0).load(tmp_path)
    assert not model.quantized.suffix
    result = compare(model, frames=300)
    assert result.ok and result.mismatches <= 2, list(result.lines())


def test_of_pixels_with_a_scale_a_channel() -> None:
    """Classes along the channels of an image: channels come to one scale."""
    b = Builder(21, 10)
    x = b.requantize(
        b.input("x", ["N", *SHAPE]), [0.5, 0.25, 0.75], [1, -2, 3], "int8", axis=1
    )
    ranked(places(b, x), reach=20)


def test_of_rows_with_a_scale_a_channel() -> None:
    """Each channel's own order: its scale does not matter, nor its zero point."""
    b = Builder(21, 10)
    x = b.requantize(b.input("x", ["N", *SHAPE]), [0.5, 0.25, 0.75], [1, -2, 3], "int8", axis=1)
    graph = ranked(places(b, x, axis=3), reach=20)
    assert "weighted_pool" not in {node.op for node in graph.nodes}


@pytest.mark.parametrize("quantized_behind", [False, True])
def test_of_two_heads_with_scales_of_their_own(quantized_behind: bool, tmp_path: Path) -> None:
    """Their float scales have no common divisor: ranks among all levels of both."""
    b = Builder(21, 10)
    heads = [b.requantize(quantized(b, [4], 0.25, name), scale, zero, "int8") for name, scale, zero in
             (("x", 0.3, 5), ("y", 0.11, -7))]
    best = b.node("TopK", b.node("Concat", *heads, axis=1), b.constant([3], "int64"), outputs=["places"])
    b.output(b.quantize(best, 0.2, 1, "int8") if quantized_behind else best, "places")
    model = b.load(tmp_path)
    result = compare(model, frames=40)
    assert result.ok, list(result.lines())
    same(
        model.quantized, pipeline.run(model.quantized, pipeline.DATAFLOW),
        {p.name: np.random.default_rng(0).integers(-8, 8, (40, *p.shape)) for p in model.quantized.inputs},
    )


def test_places_are_integers_for_what_follows() -> None:
    b = Builder(21, 10)
    best = b.node("ArgMax", quantized(b, SHAPE), axis=1)
    b.output(b.node("Equal", best, b.constant(2, "int64")), b.node("Cast", best, to=6))
    b.output(b.node("Add", best, b.constant([[[10], [20], [30], [40]]], "int64")))
    ranked(b, reach=20)


def test_places_as_reals() -> None:
    b = Builder(21, 10)
    best = b.node("ArgMax", quantized(b, SHAPE), axis=1)
    b.output(b.quantize(b.node("Cast", best, to=1), 0.5, 3, "int8"))
    ranked(b, reach=20)


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("taken", ["values", "places", "both"])
def test_top_k(axis: int, largest: int, taken: str) -> None:
    b = Builder(21, 10)
    x, k = quantized(b, SHAPE), b.constant([3], "int64")
    values = b.node("TopK", x, k, name="top", outputs=["places"], axis=axis, largest=largest)
    b.output(*{"values": [values], "places": ["places"], "both": ["places", values]}[taken])
    graph = ranked(b, reach=20)
    assert ("elementwise" in {node.op for node in graph.nodes}) == (taken == "both")


@pytest.mark.parametrize("k", [1, 6])
def test_the_best_of_sums_with_their_values(k: int) -> None:
    rng = np.random.default_rng(5)
    b = Builder(21, 10)
    weights = b.weights(rng.integers(-7, 8, (6, 4)), [0.25, 0.5, 1.0, 0.375, 0.125, 0.5], [0] * 6, axis=0)
    y = b.node("Gemm", quantized(b, [4]), weights, b.constant(rng.integers(-8, 9, 6) * 0.125), transB=1)
    values = b.node("TopK", y, b.constant([k], "int64"), outputs=["places"], sorted=0)
    b.output(b.quantize(values, 0.5, -3, "int8"), "places")
    ranked(b, reach=20)


def test_what_is_too_much_is_left_to_the_host() -> None:
    b = Builder(21, 10)
    x = b.requantize(b.node("Neg", quantized(b, [80])), 0.25, 0, "int4")
    b.output(b.node("TopK", x, b.constant([65], "int64"), name="top", outputs=["places"]), "places")
    graph = agree_with_reference(b)
    assert graph.suffix[-1] == "top"


def test_what_is_too_much_in_front_of_a_quantizer(tmp_path: Path) -> None:
    b = Builder(21, 10)
    values = b.node("TopK", quantized(b, [80]), b.constant([65], "int64"), name="top", outputs=["places"])
    b.output(b.requantize(values, 0.5, 3, "int4"))
    (finding,) = check(b.save(tmp_path))
    assert str(finding) == (
        "unsupported: node 'top' (TopK): k must be at most 64, not 65: each element is compared with the k best so far "
        "at once [top-count]\n"
        "  remedy: ask for fewer, or leave the node to the host after the last quantizer"
    )


def test_frames_are_not_ranked(tmp_path: Path) -> None:
    b = Builder(21, 10)
    best = b.node("ArgMax", quantized(b, SHAPE), name="ranking", axis=0)
    b.output(b.requantize(b.node("Cast", best, to=1), 0.5, 3, "int4"))
    (finding,) = check(b.save(tmp_path))
    assert str(finding) == (
        "unsupported: node 'ranking' (ArgMax): axis must lie within a frame, not be the frame axis 0 [frame-axis]\n"
        "  remedy: work along an axis within a frame, or leave the node to the host: it compares frames with each "
        "other"
    )
