"""Images as streams: pixel by pixel, channels fastest."""

from __future__ import annotations

import numpy as np

from hwflow.ir.graph import IntArray, Node, Value
from hwflow.ops.operator import LoweringContext


def image_order(channels: int, pixels: int) -> IntArray:
    """The order of an image stream: element k = pixel * channels + channel is at channel * pixels + pixel (channels
    first, as ONNX has it)."""
    return np.arange(channels * pixels).reshape(channels, pixels).T.reshape(-1)


def image_stream(node: Node, context: LoweringContext, what: str) -> Value | None:
    """The stream of the node's input (channels, height, width); None, and a refusal of ``what``, in another order."""
    stream, order = context.stream(node.inputs[0])
    channels, height, width = node.inputs[0].typed.shape
    pixels = height * width
    if stream.typed.shape == (pixels, channels) and np.array_equal(order, image_order(channels, pixels)):
        return stream
    context.refuse(
        "stream-order",
        f"the {what}'s input must arrive pixel by pixel, channels fastest, not in another order",
        f"remove the Reshape or Transpose before the {what} that mixes channels and pixels",
    )
    return None
