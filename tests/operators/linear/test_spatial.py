"""Windows over one, two and three spatial axes, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import Builder
from tests.reference_agreement import agree_with_reference

SHAPES = {1: [3, 9], 2: [3, 6, 5], 3: [2, 4, 3, 5]}


def image(b: Builder, axes: int, zero: int = 3) -> str:
    return b.requantize(b.input("x", ["N", *SHAPES[axes]]), 0.5, zero, "int8")


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("form", ["plain", "padded", "strided", "grouped"])
def test_conv(axes: int, form: str) -> None:
    b = Builder(19, 9)
    channels = SHAPES[axes][0]
    groups = channels if form == "grouped" else 1
    kernel = [3, 2, 2][:axes]
    weights = np.random.default_rng(axes).integers(-9, 9, (2 * channels, channels // groups, *kernel))
    more = {
        "plain": {},
        "padded": {"pads": [1, 0, 1][:axes] + [0, 1, 1][:axes]},
        "strided": {"strides": [2, 1, 2][:axes], "dilations": [1, 2, 1][:axes], "auto_pad": "SAME_UPPER"},
        "grouped": {"group": groups, "pads": [1] * (2 * axes)},
    }[form]
    if form == "strided":  # which the reference evaluator pads for no dilation
        more = {"strides": [2, 1, 2][:axes], "dilations": [1, 2, 1][:axes]}
    c = b.node("Conv", image(b, axes), b.weights(weights, 0.25), b.constant(np.arange(2 * channels) / 2), **more)
    b.output(b.requantize(c, 4.0, 5, "int8"))
    agree_with_reference(b)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("more", [{}, {"strides": 2, "pads": 1}, {"ceil_mode": 1, "strides": 2}])
def test_max_pool(axes: int, more: dict[str, int]) -> None:
    b = Builder(19, 9)
    lists = {"strides": axes, "pads": 2 * axes}
    attributes = {name: [v] * lists[name] if name in lists else v for name, v in more.items()}
    b.output(b.requantize(b.node("MaxPool", image(b, axes), kernel_shape=[2] * axes, **attributes), 1.0, 2, "int8"))
    agree_with_reference(b)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("zero", [0, 3])
@pytest.mark.parametrize("pads", [0, 1])
def test_average_pool(axes: int, count_include_pad: int, zero: int, pads: int) -> None:
    """Windows of 2, so that every average is exact in floats."""
    b = Builder(19, 9)
    pooled = b.node(
        "AveragePool", image(b, axes, zero), kernel_shape=[2] * axes, pads=[pads] * 2 * axes,
        count_include_pad=count_include_pad,
    )
    b.output(b.requantize(pooled, 0.75, 2, "int8"))
    agree_with_reference(b)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("op", ["GlobalMaxPool", "GlobalAveragePool"])
def test_global_pool(axes: int, op: str) -> None:
    b = Builder(19, 9)
    b.output(b.requantize(b.node(op, image(b, axes)), 0.75, 2, "int8"))
    agree_with_reference(b)


TRANSPOSED = [
    # axes, attributes
    (2, {}),
    (2, {"strides": [2, 2]}),
    (2, {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 2]}),
    (2, {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 1, 0, 1]}),
    (2, {"strides": [3, 2], "output_shape": [17, 11]}),
    (1, {"strides": [2], "pads": [1, 1]}),
    (3, {"strides": [1, 2, 2]}),
]


@pytest.mark.parametrize(("axes", "more"), TRANSPOSED)
@pytest.mark.parametrize("grouped", [False, True])
def test_conv_transpose(axes: int, more: dict[str, list[int]], grouped: bool) -> None:
    b = Builder(19, 9)
    channels = SHAPES[axes][0]
    groups = channels if grouped else 1
    weights = np.random.default_rng(axes).integers(-9, 9, (channels, 2, *[3, 2, 2][:axes]))
    bias = b.constant(np.arange(2 * groups) / 2)
    c = b.node("ConvTranspose", image(b, axes), b.weights(weights, 0.25), bias, group=groups, **more)
    b.output(b.requantize(c, 4.0, 5, "int8"))
    agree_with_reference(b)
