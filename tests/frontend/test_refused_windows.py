"""Refusals of convolutions and pools."""

from __future__ import annotations

import numpy as np

from tests.frontend.refusals import Cases, conv, image
from tests.models import Builder

cases = Cases()


@cases(
    "error: node 'conv' (Conv): bias 'b' must have one element an output (3), not shape [2] [bias-shape]\n"
    "  remedy: give one bias for each output",
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
    "error: node 'conv' (Conv): group must divide the 2 input and 3 output channels, not be 2 [conv-group]\n"
    "  remedy: correct the attribute",
)
def groups_of_unequal_outputs(b: Builder) -> str:
    return b.node("Conv", image(b), b.weights(np.ones((3, 1, 3, 3), int)), group=2, name="conv")


@cases(
    "error: node 'conv' (Conv): weights 'w' must have the 2 input channels of a group on axis 1, not 3 "
    "[conv-channels]\n"
    "  remedy: correct the weights' shape",
)
def convolution_of_other_channels(b: Builder) -> str:
    return b.node("Conv", image(b), b.weights(np.ones((4, 3, 3, 3), int), name="w"), name="conv")


@cases(
    "error: node 'conv' (Conv): the result must hold at least one element, not have shape [1, 3, 0, 0] "
    "[empty-tensor]\n"
    "  remedy: correct the node's attributes or the shape of what it reads",
)
def empty_result(b: Builder) -> str:
    return conv(b, image(b, 2, 2, 2))


@cases(
    "error: node 'conv' (Conv): the result must hold at least one element, not have shape [1, 3, -1, -1] "
    "[empty-tensor]\n"
    "  remedy: correct the node's attributes or the shape of what it reads",
)
def window_larger_than_the_image(b: Builder) -> str:
    return conv(b, image(b, 2, 1, 1))


@cases(
    "error: node 'pool' (MaxPool): the pool's input must have one scale and zero point a channel, not one a "
    "pixel [pool-scale]\n"
    "  remedy: quantize before the pool",
)
def pool_of_scales_by_pixel(b: Builder) -> str:
    d = b.requantize(b.input("x", ["N", 1, 2, 2]), [0.5, 1.0], [0, 0], axis=2)
    return b.node("MaxPool", d, kernel_shape=[2, 2], name="pool")


@cases(
    "error: node 'pool' (MaxPool): the output 'Indices' must be absent, not used [pool-indices]\n"
    "  remedy: remove it",
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
    "error: node 'conv' (Conv): kernel_shape must be that of the weights [3, 3], not [2, 2] [window-kernel]\n"
    "  remedy: correct the attribute or leave it out",
)
def kernel_shape_unlike_the_weights(b: Builder) -> str:
    return conv(b, image(b), kernel_shape=[2, 2])


@cases(
    "error: node 'pool' (MaxPool): there must be 2 x 2 windows, not 3 x 3 as onnx's shape inference has it "
    "[window-count]\n"
    "  remedy: set ceil_mode to 0 and give the pads explicitly",
)
def more_windows_than_there_are(b: Builder) -> str:
    more = {"strides": [2, 2], "ceil_mode": 1, "auto_pad": "VALID"}
    return b.node("MaxPool", image(b, 1, 5, 5), kernel_shape=[2, 2], name="pool", **more)


@cases(
    "error: node 'conv' (Conv): auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, not 'SAME' "
    "[window-auto-pad]\n"
    "  remedy: correct the attribute",
)
def unknown_auto_pad(b: Builder) -> str:
    return conv(b, image(b), auto_pad="SAME")


