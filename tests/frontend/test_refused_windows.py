"""Refusals of convolutions and pools."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.refusals import Cases, conv, image
from tests.models import Builder

cases = Cases()


@cases(
    "error: node 'conv' (Conv): axis 0 of 'b' must be 3, as axis 0 of 'dequantizelinear0' is, not 2 "
    "[operator-sizes]\n"
    "  remedy: correct the size or the attribute that is wrong",
)
def bias_of_a_convolution(b: Builder) -> str:
    w = b.weights(np.ones((3, 2, 3, 3), int), 0.5)
    return b.node("Conv", image(b), w, b.constant([1.0, 2.0], name="b"), name="conv")


@cases(
    "error: node 'pool' (MaxPool): every window must hold a pixel, not padding alone as with pads [2, 0] [pool-pads]\n"
    "  remedy: reduce the pads",
)
def pool_of_padding_alone_along_one_axis(b: Builder) -> str:
    return b.node("MaxPool", image(b, 2, 4), kernel_shape=[2], pads=[2, 0], name="pool")


@cases(
    "error: node 'conv' (Conv): axis 0 of 'dequantizelinear2' must be a multiple of 2 (2 groups), not 3 "
    "[operator-sizes]\n"
    "  remedy: correct the size or the attribute that is wrong",
)
def groups_of_unequal_outputs(b: Builder) -> str:
    return b.node("Conv", image(b), b.weights(np.ones((3, 1, 3, 3), int)), group=2, name="conv")


@cases(
    "error: node 'conv' (Conv): axis 1 of 'dequantizelinear1' must be 3, as axis 1 of 'w' is, not 2 "
    "[operator-sizes]\n"
    "  remedy: correct the size or the attribute that is wrong",
)
def convolution_of_other_channels(b: Builder) -> str:
    return b.node("Conv", image(b), b.weights(np.ones((4, 3, 3, 3), int), name="w"), name="conv")


@cases(
    "error: node 'conv' (Conv): the result must hold at least one element, not have shape [1, 3, 0, 0] "
    "[empty-tensor]\n"
    "  remedy: leave the node out, or give its window pads if it is larger than the image",
)
def empty_result(b: Builder) -> str:
    return conv(b, image(b, 2, 2, 2))


@cases(
    "error: node 'conv' (Conv): the result must hold at least one element, not have shape [1, 3, -1, -1] "
    "[empty-tensor]\n"
    "  remedy: leave the node out, or give its window pads if it is larger than the image",
)
def window_larger_than_the_image(b: Builder) -> str:
    return conv(b, image(b, 2, 1, 1))


@cases(
    "error: node 'pool' (MaxPool): the pool's input must have one scale and zero point per channel, not one per "
    "pixel [pool-scale]\n"
    "  remedy: quantize before the pool",
)
def pool_of_scales_by_pixel(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 1, 2, 2]), [0.5, 1.0], [0, 0], axis=2)
    return b.node("MaxPool", d, kernel_shape=[2, 2], name="pool")


@cases(
    "error: node 'pool' (MaxPool): the output 'Indices' must be absent, not used [pool-indices]\n"
    "  remedy: leave the indices out, or the node to the host, before the first or after the last quantizer",
)
def pool_with_indices(b: Builder) -> str:
    b.output("where")
    return b.node("MaxPool", image(b), kernel_shape=[2, 2], name="pool", outputs=["where"])


@cases(
    "error: node 'pool' (MaxPool): every window must hold a pixel, not padding alone as with pads [2, 0, 0, 0] "
    "[pool-pads]\n"
    "  remedy: reduce the pads",
)
def pool_window_of_padding(b: Builder) -> str:
    return b.node("MaxPool", image(b), kernel_shape=[2, 2], pads=[2, 0, 0, 0], name="pool")


@cases(
    "error: node 'pool' (MaxPool): every window must hold a pixel, not padding alone as with pads [2, 2, 2, 2] "
    "[pool-pads]\n"
    "  remedy: reduce the pads",
)
def pool_window_that_steps_over_the_image(b: Builder) -> str:
    return b.node("MaxPool", image(b, 1, 1, 1), kernel_shape=[2, 2], dilations=[3, 3], pads=[2, 2, 2, 2], name="pool")


@cases(
    "error: node 'conv' (Conv): axis 2 of 'dequantizelinear2' must be 2, as element 0 of attribute 'kernel_shape' is, "
    "not 3 [operator-sizes]\n"
    "  remedy: correct the size or the attribute that is wrong",
    "error: node 'conv' (Conv): axis 3 of 'dequantizelinear2' must be 2, as element 1 of attribute 'kernel_shape' is, "
    "not 3 [operator-sizes]\n"
    "  remedy: correct the size or the attribute that is wrong",
)
def kernel_shape_unlike_the_weights(b: Builder) -> str:
    return conv(b, image(b), kernel_shape=[2, 2])


@cases(
    "error: node 'pool' (MaxPool): there must be 2 x 2 windows, not 3 x 3 as by onnx's shape inference "
    "[window-count]\n"
    "  remedy: set ceil_mode to 0 and give the pads explicitly",
)
def more_windows_than_there_are(b: Builder) -> str:
    more = {"strides": [2, 2], "ceil_mode": 1, "auto_pad": "VALID"}
    return b.node("MaxPool", image(b, 1, 5, 5), kernel_shape=[2, 2], name="pool", **more)


@cases(
    "error: node 'conv' (Conv): attribute 'auto_pad' must be 'NOTSET', 'SAME_UPPER', 'SAME_LOWER' or 'VALID', not "
    "'SAME' [supported-attribute]\n"
    "  remedy: use such a value, or leave the node to the host, before the first or after the last quantizer",
)
def unknown_auto_pad(b: Builder) -> str:
    return conv(b, image(b), auto_pad="SAME")


@pytest.mark.parametrize("name", list(cases))
def test_refusal(name: str) -> None:
    cases.verify(name)
