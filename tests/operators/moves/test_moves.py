"""Operators that move elements: every form against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.verify import golden
from tests.models import Builder
from tests.reference_agreement import agree_with_reference

SHAPE = [2, 4, 6]


def moved(make: Callable[[Builder, str], str], shape: list[int] = SHAPE, **quantizer: Any) -> Builder:
    """Quantized numbers through a node, and out through a requantizer."""
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", *shape]), quantizer.pop("scale", 0.5), quantizer.pop("zero", 3), "int8",
                     **quantizer)
    b.output(b.requantize(make(b, d), 2.0, -7, "int8"))
    return b


def ints(b: Builder, *values: int) -> str:
    return b.constant(list(values), "int64")


SLICES = [
    # starts, ends, axes, steps
    ([1], [3], [2], [1]),
    ([0, -4], [2, -1], [1, 3], [1, 2]),
    ([-1], [-100], [3], [-1]),
    ([5, 3], [0, -5], [-1, -2], [-2, -1]),
    ([1], [1000], [2], [2]),
    ([0, 1, 0, 2], [1, 2, 4, 5], [0, 1, 2, 3], [1, 1, 1, 1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> None:
    agree_with_reference(moved(lambda b, x: b.node("Slice", x, *(ints(b, *v) for v in (starts, ends, axes, steps)))))


def test_slice_of_leading_axes() -> None:
    agree_with_reference(moved(lambda b, x: b.node("Slice", x, ints(b, 0, 1), ints(b, 1, 2))))


PADS = [
    # pads, axes
    ([0, 1, 2, 0, 0, 0, 1, 3], None),
    ([0, 0, 1, 2, 0, 0, 0, 1], None),
    ([1, 2, 0, 3], [2, -1]),
]


@pytest.mark.parametrize(("pads", "axes"), PADS)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(pads: list[int], axes: list[int] | None, mode: str) -> None:
    value = 1.5 if mode == "constant" else 0.0

    def make(b: Builder, x: str) -> str:
        more = [b.constant(value)] + ([ints(b, *axes)] if axes else [])
        return b.node("Pad", x, ints(b, *pads), *more, mode=mode)

    agree_with_reference(moved(make))


def test_negative_pads_cut(tmp_path: Path) -> None:
    """Which the reference evaluator does not take."""
    model = moved(
        lambda b, x: b.node("Pad", x, ints(b, 0, 0, -1, 2, 0, 0, 1, -2), b.constant(2.0)), scale=1.0, zero=0
    ).load(tmp_path)
    x = np.arange(48).reshape(1, *SHAPE) - 20
    (found,) = golden.evaluate(model.quantized, {"x": x}).values()
    cut = np.pad(x[:, :, 1:, :4].astype(float), ((0, 0), (0, 0), (0, 1), (2, 0)), constant_values=2)
    np.testing.assert_array_equal(found, np.rint(cut / 2) - 7)


def test_padding_with_nothing_is_padding_with_zero() -> None:
    agree_with_reference(moved(lambda b, x: b.node("Pad", x, ints(b, 0, 0, 1, 1, 0, 0, 1, 1))))


def test_padding_channels_of_several_scales() -> None:
    builder = moved(
        lambda b, x: b.node("Pad", x, ints(b, 0, 0, 1, 1, 0, 0, 1, 1)), scale=[0.5, 2.0], zero=[4, 4], axis=1
    )
    agree_with_reference(builder)


def test_padding_behind_a_function_without_a_table() -> None:
    """Scales too far apart for integers of one scale; Relu leaves the zeros alone, and is the next quantizer's."""
    builder = moved(
        lambda b, x: b.node("Pad", b.node("Relu", x), ints(b, 0, 0, 1, 1, 0, 0, 1, 1)), scale=[2.0**-20, 0.75],
        zero=[4, 4], axis=1,
    )
    agree_with_reference(builder)


def test_padding_behind_a_function_that_moves_zeros(tmp_path: Path) -> None:
    builder = moved(
        lambda b, x: b.node("Pad", b.node("Exp", x), ints(b, 0, 0, 1, 1, 0, 0, 1, 1)), scale=[2.0**-20, 0.75],
        zero=[4, 4], axis=1,
    )
    (finding,) = check(builder.save(tmp_path))
    assert finding.rule == "exact-levels"


def test_padding_around_a_convolution() -> None:
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")
    padded = b.node("Pad", d, ints(b, 0, 0, 1, 1, 0, 0, 1, 1), b.constant(-1.0))
    c = b.node("Conv", padded, b.weights(np.arange(54).reshape(3, 2, 3, 3) - 20, 0.5))
    b.output(b.requantize(c, 16.0, 5, "int8"))
    graph = agree_with_reference(b)
    assert [n.op for n in graph.nodes] == ["rearrange", "sliding_window", "mvu", "requantize"]


@pytest.mark.parametrize(("indices", "axis"), [([3, 0, 0, 1], 2), ([[1, -1], [0, 2]], 3), (1, 1), ([-1], -2)])
def test_gather(indices: Any, axis: int) -> None:
    agree_with_reference(moved(lambda b, x: b.node("Gather", x, b.constant(indices, "int64"), axis=axis)))


@pytest.mark.parametrize("repeats", [(1, 1, 2, 3), (1, 3, 1, 1)])
def test_tile(repeats: tuple[int, ...]) -> None:
    agree_with_reference(moved(lambda b, x: b.node("Tile", x, ints(b, *repeats))))


@pytest.mark.parametrize(("shape", "wanted"), [([1, 4], (3, 1)), ([2, 1], (1, 2, 5)), ([1, 1, 3], (1, 4, 2, 1))])
def test_expand(shape: list[int], wanted: tuple[int, ...]) -> None:
    agree_with_reference(moved(lambda b, x: b.node("Expand", x, ints(b, *wanted)), shape=shape))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    agree_with_reference(moved(lambda b, x: b.node("DepthToSpace", x, blocksize=2, mode=mode), shape=[8, 2, 3]))


def test_space_to_depth() -> None:
    agree_with_reference(moved(lambda b, x: b.node("SpaceToDepth", x, blocksize=2)))


@pytest.mark.parametrize(("sizes", "axis"), [([1, 3], 2), ([2, 2, 2], -1), ([1, 1], 1)])
def test_split(sizes: list[int], axis: int) -> None:
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", *SHAPE]), 0.5, 3, "int8")
    more = [f"part{k}" for k in range(1, len(sizes))]
    first = b.node("Split", d, ints(b, *sizes), name="part0", outputs=more, axis=axis)
    b.output(*(b.requantize(name, 2.0, k, "int8") for k, name in enumerate([first, *more])))
    agree_with_reference(b)


def test_moves_in_a_row_keep_their_scales() -> None:
    """Channels with scales of their own, cut, gathered and turned before they meet their weights."""
    b = Builder(19, 9)
    d = b.requantize(b.input("x", ["N", *SHAPE]), [0.5, 2.0], [4, -3], "int8", axis=1)
    d = b.node("Gather", d, ints(b, 1, 0, 1), axis=1)
    d = b.node("Slice", d, ints(b, 1), ints(b, 6), ints(b, 3), ints(b, 2))
    d = b.node("Flatten", b.node("Transpose", d, perm=[0, 2, 3, 1]))
    b.output(b.requantize(b.node("MatMul", d, b.weights(np.arange(72).reshape(36, 2) - 40, 0.5)), 64.0, 1, "int8"))
    agree_with_reference(b)


REFUSED = [
    (
        lambda b, x: b.node("Pad", x, ints(b, 0, 0, 0, 1, 0, 0, 0, 1), b.constant(0.3), name="n"),
        "node 'n' (Pad): the constant must be a multiple of the operand's scale, not 0.300000012 [pad-value]\n"
        "  remedy: pad with a number that the preceding quantizer can represent",
    ),
    (
        lambda b, x: b.node("Gather", x, ints(b, 7), axis=2, name="n"),
        "node 'n' (Gather): indices must lie in [-4, 3], not in [7, 7] [gather-indices]\n"
        "  remedy: correct the constant",
    ),
    (
        lambda b, x: b.node("Tile", x, ints(b, 2, 1, 1, 1), name="n"),
        "node 'n' (Tile): the result must keep the frame axis first, not have shape [2, 2, 4, 6] [frame-axis]\n"
        "  remedy: reshape to (frames, ...)",
    ),
]


@pytest.mark.parametrize(("make", "text"), REFUSED, ids=["pad_value", "gather", "tile"])
def test_refused(make: Callable[[Builder, str], str], text: str, tmp_path: Path) -> None:
    assert [str(f) for f in check(moved(make).save(tmp_path))] == [f"unsupported: {text}"]
