"""Orders of streams: which layouts of an input are followed, which shapes of graph are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.checking import check
from hwflow.passes import pipeline
from tests.agreement import agree
from tests.models import Builder


def conv(b: Builder, x: str, channels: int, name: str = "conv") -> str:
    return b.node("Conv", x, b.weights(np.ones((2, channels, 2, 2), int)), name=name)


def channels_first(b: Builder) -> str:
    return conv(b, b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5), 2)


def channels_last(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 3, 4, 2]), 0.5)
    return conv(b, b.node("Transpose", d, perm=[0, 3, 1, 2]), 2)


def channel_added(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 3, 4]), 0.5)
    return conv(b, b.node("Unsqueeze", d, b.constant([1], "int64")), 1)


def channel_moved(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 3, 4, 1]), 0.5)
    return conv(b, b.requantize(b.node("Reshape", d, b.constant([0, 1, 3, 4], "int64")), 1.0), 1)


def vector_split(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 12]), 0.5)
    return conv(b, b.requantize(b.node("Reshape", d, b.constant([0, 1, 3, 4], "int64")), 1.0), 1)


def rows_split(b: Builder) -> str:
    """Channels stay an axis; what is split are pixels."""
    d = b.requantize(b.input("x", ["N", 2, 12]), 0.5)
    return conv(b, b.requantize(b.node("Reshape", d, b.constant([0, 2, 3, 4], "int64")), 1.0), 2)


def axes_dropped(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 1, 2, 3, 4]), 0.5)
    return conv(b, b.node("Squeeze", d, b.constant([1], "int64")), 2)


@pytest.mark.parametrize(
    ("make", "order"),
    [
        (channels_first, np.arange(24).reshape(2, 12).T.reshape(-1)),
        (channels_last, np.arange(24)),
        (channel_added, np.arange(12)),
        (channel_moved, np.arange(12)),
        (vector_split, np.arange(12)),
        (rows_split, np.arange(24).reshape(2, 12).T.reshape(-1)),
        (axes_dropped, np.arange(24).reshape(2, 12).T.reshape(-1)),
    ],
)
def test_layouts_of_an_input(make: Callable[[Builder], str], order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    b = Builder()
    b.output(make(b))
    graph = pipeline.run(agree(b).quantized, pipeline.DATAFLOW)
    np.testing.assert_array_equal(graph.inputs[0].order, order)


def test_channels_of_an_input_quantized_by_channel() -> None:
    b = Builder()
    b.output(b.requantize(b.requantize(b.input("x", ["N", 3, 4]), 0.5), [1.0, 2.0, 3.0], [0, 0, 0], axis=1))
    (port,) = pipeline.run(agree(b).quantized, pipeline.DATAFLOW).inputs
    assert port.value.typed.shape == (4, 3)


def test_any_order_of_a_vector_is_absorbed_by_the_weights() -> None:
    b = Builder()
    d = b.requantize(b.input("x", ["N", 2, 3, 4]), 0.5)
    p = b.requantize(b.node("MaxPool", d, kernel_shape=[2, 2]), 0.5)
    flat = b.node("Flatten", b.node("Transpose", p, perm=[0, 3, 1, 2]))
    b.output(b.node("MatMul", flat, b.weights(np.arange(24).reshape(12, 2))))
    agree(b)


def convolution_of_mixed_axes(b: Builder) -> str:
    d = channels_first(b)
    return conv(b, b.node("Transpose", b.requantize(d, 1.0), perm=[0, 2, 1, 3]), 2, "second")


def convolution_of_a_vector_with_two_channels(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 24]), 0.5)
    return conv(b, b.requantize(b.node("Reshape", d, b.constant([0, 2, 3, 4], "int64")), 1.0), 2, "second")


def pool_of_mixed_axes(b: Builder) -> str:
    d = b.requantize(channels_first(b), 1.0)
    mixed = b.node("Transpose", d, perm=[0, 1, 3, 2])
    return b.node("MaxPool", mixed, kernel_shape=[2, 2], name="pool")


def rows_of_mixed_axes(b: Builder) -> str:
    d = b.requantize(channels_first(b), 1.0)
    return b.node("MatMul", d, b.weights(np.ones((3, 1), int)), name="fc")


def scales_of_pixels(b: Builder) -> str:
    d = b.requantize(channels_first(b), 1.0)
    return b.quantize(d, [1.0, 2.0], [0, 0], axis=2, name="q")


@pytest.mark.parametrize(
    "make",
    [
        convolution_of_mixed_axes,
        convolution_of_a_vector_with_two_channels,
        pool_of_mixed_axes,
        rows_of_mixed_axes,
        scales_of_pixels,
    ],
)
def test_other_orders_are_rearranged(make: Callable[[Builder], str]) -> None:
    b = Builder()
    b.output(make(b))
    graph = pipeline.run(agree(b).quantized, pipeline.DATAFLOW)
    assert [n.op for n in graph.nodes].count("rearrange") == 1


def test_all_refused_nodes_at_once_but_not_what_follows(tmp_path: Path) -> None:
    """The pool reads what a refused node makes: nothing can be said of it."""
    b = Builder()
    d = b.dequantize(b.input("x", ["N", 3, 4], "int32"), 0.5, None)
    wide = b.node("MatMul", d, b.weights(np.ones((4, 4), int)), name="sums")
    product = b.node("MatMul", wide, b.weights(np.ones((4, 2), int)), name="fc")
    pooled = b.node("Reshape", b.requantize(product, 1.0), b.constant([0, 1, 3, 2], "int64"))
    b.output(b.node("MaxPool", pooled, kernel_shape=[1, 2], name="pool"))
    b.output(b.requantize(b.node("MatMul", wide, b.weights(np.ones((4, 1), int)), name="other"), 1.0))
    assert [(f.where, f.rule) for f in check(b.save(tmp_path))] == [
        ("node 'fc' (dense)", "operand-width"), ("node 'other' (dense)", "operand-width")
    ]  # fmt: skip
