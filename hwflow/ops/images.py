"""Images as streams: pixel by pixel, channels fastest."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hwflow.ir.graph import IntArray, Node, Value
from hwflow.ops.operator import LoweringContext


def image_order(channels: int, pixels: int) -> IntArray:
    """The order of an image stream: element k = pixel * channels + channel is at channel * pixels + pixel (channels
    first, as ONNX has it)."""
    return np.arange(channels * pixels).reshape(channels, pixels).T.reshape(-1)


def image_stream(node: Node, context: LoweringContext) -> Value:
    """The stream of the node's input (channels, height, width), pixel by pixel."""
    stream, order = context.stream(node.inputs[0])
    channels, height, width = node.inputs[0].typed.shape
    return context.arranged(stream, order, image_order(channels, height * width), channels)


def axis_order(shape: Sequence[int], axis: int) -> IntArray:
    """The row-major order of a tensor with ``axis`` moved behind the others: pixels of one element for each of its
    indices."""
    return np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, -1).reshape(-1)
