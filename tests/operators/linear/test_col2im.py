"""Col2Im: against ONNX's reference evaluator, ONNX's node tests in RTL, and what is refused."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwflow.api.checking import check
from hwflow.verify import golden
from tests.models import Builder
from tests.onnx_node_tests.quantized_nodes import node_tests_of, passes_in_rtl
from tests.reference_agreement import agree_with_reference


def folded(b: Builder, x: str, **attributes: Any) -> str:
    """6 taps of 4 blocks, which [N, 2, 3, 4] has."""
    flat = b.node("Reshape", x, b.constant([-1, 6, 4], "int64"))
    y = b.node("Col2Im", flat, b.constant([4, 5], "int64"), b.constant([2, 3], "int64"), **attributes)
    return b.node("Squeeze", y, b.constant([1], "int64"))


HONOURED = [("Col2Im", folded, {"strides": [2, 2], "pads": [1, 0, 1, 1], "dilations": [2, 1]})]


def constants(size: int, rank: int) -> list[tuple[Any, str]]:
    return [([size, 1], "int64"), ([1, 1], "int64")]


NODES = [("Col2Im", constants, lambda rank: {})]


@pytest.mark.parametrize("name", node_tests_of("Col2Im"))
def test_node_tests_in_rtl(name: str, tmp_path: Path) -> None:
    passes_in_rtl(name, tmp_path)


def test_all_node_tests_are_run() -> None:
    assert len(node_tests_of("Col2Im")) == 5


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    """Reals with scales of the tensor, of each tap or of each block, and integers that wrap around."""
    axes = data.draw(st.integers(2, 3))

    def some(low: int, high: int, count: int = axes) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    image, block = some(1, 5), some(1, 3)
    window: dict[str, list[int]] = {}
    for name, low, high, count in (("strides", 1, 3, axes), ("dilations", 1, 2, axes), ("pads", 0, 2, 2 * axes)):
        if data.draw(st.booleans()):
            window[name] = some(low, high, count)
    strides, dilations = (window.get(name, [1] * axes) for name in ("strides", "dilations"))
    pads = window.get("pads", [0] * 2 * axes)
    spans = [(block[a] - 1) * dilations[a] + 1 for a in range(axes)]
    blocks = [(image[a] + pads[a] + pads[a + axes] - spans[a]) // strides[a] + 1 for a in range(axes)]
    assume(min(blocks) > 0)
    reached = (
        {t * dilations[a] + n * strides[a] - pads[a] for t in range(block[a]) for n in range(blocks[a])}
        for a in range(axes)
    )
    assume(all(places & set(range(size)) for places, size in zip(reached, image, strict=True)))  # not the pads alone
    taps, channels = prod(block), data.draw(st.integers(1, 3))
    b = Builder(21, 10)
    shape = ["N", channels * taps, prod(blocks)]
    kind = data.draw(st.sampled_from(["float", "float", "int8", "uint16", "int32"]))
    parameters = [b.constant(v, "int64") for v in (image, block)]
    if kind == "float":
        axis = data.draw(st.sampled_from([0, 1, 2]))
        more: dict[str, Any] = {}
        scale: Any = 0.5
        zero: Any = data.draw(st.integers(-9, 9))
        if axis:
            count = int(shape[axis])
            scale, zero, more = np.arange(count) % 3 / 4 + 0.25, np.arange(count) % 7, {"axis": axis}
        d = b.requantize(b.input("x", shape), scale, zero, "int8", **more)
        if data.draw(st.booleans()):
            d = b.node("Relu", d)
        b.output(b.requantize(b.node("Col2Im", d, *parameters, **window), 0.5, 7, "int16"))
    else:
        y = b.node("Col2Im", b.input("x", shape, kind), *parameters, **window)
        b.output(b.node("Max", y, y))
    with np.errstate(over="ignore"):  # the evaluator adds numpy's numbers
        agree_with_reference(b, step=0.5, reach=100)


def test_by_hand(tmp_path: Path) -> None:
    """Two blocks of two taps, one pixel apart: the middle pixel has two elements."""
    b = Builder(21, 10)
    x = b.input("x", ["N", 2, 2], "int16")
    b.output(b.node("Col2Im", x, b.constant([1, 3], "int64"), b.constant([1, 2], "int64")))
    (found,) = golden.evaluate(b.load(tmp_path).quantized, {"x": np.array([[[1, 10], [100, 1000]]])}).values()
    assert found.tolist() == [[[[1, 110, 1000]]]]


def test_integers_wrap_around(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.input("x", ["N", 2, 2], "int8")
    b.output(b.node("Col2Im", x, b.constant([1, 3], "int64"), b.constant([1, 2], "int64")))
    (found,) = golden.evaluate(b.load(tmp_path).quantized, {"x": np.array([[[1, 100], [100, 3]]])}).values()
    assert found.tolist() == [[[[1, 200 - 256, 3]]]]


def test_a_batch_is_frames(tmp_path: Path) -> None:
    b = Builder(21, 10)
    x = b.input("x", [3, 2, 2], "int16")
    b.output(b.node("Col2Im", x, b.constant([1, 3], "int64"), b.constant([1, 2], "int64")))
    model = b.load(tmp_path)
    assert model.quantized.inputs[0].shape == (2, 2)


def refused(image: list[int], block: list[int], shape: list[int], kind: str = "int8", **attributes: Any) -> Builder:
    b = Builder(21, 10)
    y = b.node(
        "Col2Im", b.input("x", ["N", *shape], kind), b.constant(image, "int64"), b.constant(block, "int64"), name="n",
        **attributes,
    )
    b.output(b.declare(y, ["N", 1, *image], kind))
    return b


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            refused([1, 3], [1, 2], [2, 3]),
            "input 'x' must be frames of a multiple of 2 taps and 1 x 2 blocks, as block_shape, image_shape and the "
            "attributes say, not of shape [1, 2, 3] [col2im-blocks]\n  remedy: correct the shapes or the attributes",
        ),
        (
            refused([1, 3], [1, 2], [2, 2], "bool"),
            "input 'x' must hold numbers, not bools [col2im-type]\n  remedy: cast it to an integer type",
        ),
        (
            refused([1, 1], [1, 1], [1, 1], pads=[0, 1, 0, 0], strides=[1, 2]),
            "some element must go to the image, not all of them to the pads [col2im-empty]\n  remedy: reduce the pads",
        ),
    ],
)
def test_refused(model: Builder, text: str, tmp_path: Path) -> None:
    assert [str(f) for f in check(model.save(tmp_path))] == [f"unsupported: node 'n' (Col2Im): {text}"]


@pytest.mark.parametrize(
    ("image", "block", "attributes"),
    [
        ([1, 3], [2], {}), ([1, 3], [1, 0], {}), ([1, 3], [1, 2], {"strides": [1]}),
        ([1, 3], [1, 2], {"strides": [1, 0]}),
    ],
)
def test_windows_that_are_none(
    image: list[int], block: list[int], attributes: dict[str, Any], tmp_path: Path
) -> None:
    """Findings, whoever finds them."""
    found = check(refused(image, block, [2, 2], **attributes).save(tmp_path))
    assert found and all(finding.severity != "warning" for finding in found)
