"""Two-dimensional convolution of a quantized image by constant weights: the sum before any rounding.

Attributes: ``weights`` int64 [M, C, kh, kw] (weight zero point already subtracted), ``strides``, ``pads`` (top, left,
bottom, right), ``dilations``, ``pad_value`` (the input's zero point); ``binary`` (absent: False): weights and inputs
are 0 and 1, what is summed is 1 where they are equal, else 0, and there are no pads. Lowers to a sliding window and an
MVU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ops.dot_products import is_binary, row_intervals, row_values
from hwflow.ops.images import image_order, image_stream
from hwflow.ops.mvu import add_mvu
from hwflow.ops.operator import LogicalOperator, LoweringContext
from hwflow.ops.windows import WindowGeometry
from hwflow.types import Interval, TensorType


def geometry(attributes: Mapping[str, Any], height: int, width: int) -> WindowGeometry:
    """The window of a convolution with these attributes over an image."""
    kernel = attributes["weights"].shape[2:]
    return WindowGeometry(height, width, kernel, attributes["strides"], attributes["pads"], attributes["dilations"])


class Conv2d(LogicalOperator):
    name = "conv2d"
    stages = frozenset({Stage.QUANTIZED})
    onnx = ("Conv", "ConvInteger", "QLinearConv")
    limits = "2-D, one group, constant quantized weights"

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes["weights"]
        outputs, in_channels = weights.shape[:2]
        _, height, width = inputs[0].shape
        window = geometry(attributes, height, width)
        pad = Interval(attributes["pad_value"], attributes["pad_value"])
        ranges = inputs[0].channel_intervals(0)
        if window.touches_padding():
            ranges = tuple(r.hull(pad) for r in ranges)
        rows = weights.reshape(outputs, in_channels * window.taps)
        repeated = [r for r in ranges for _ in range(window.taps)]
        channels = row_intervals(rows, repeated, binary=is_binary(attributes))
        return (TensorType.of((outputs, *window.output), channels, 0),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        images = np.moveaxis(inputs[0], 1, 3)
        window = geometry(attributes, *images.shape[1:3])
        taps = window.windows(images, attributes["pad_value"])
        matrix = _tap_major(attributes["weights"])
        vectors = taps.reshape(*taps.shape[:3], matrix.shape[1])
        sums = row_values(matrix, vectors, binary=is_binary(attributes))
        return (np.moveaxis(sums, 3, 1),)

    def macs(self, node: Node) -> int:
        _, rows, columns = node.outputs[0].typed.shape
        return int(node.attributes["weights"].size) * rows * columns

    def lower(self, node: Node, context: LoweringContext) -> None:
        stream = image_stream(node, context)
        window = geometry(node.attributes, *node.inputs[0].typed.shape[1:])
        value = stream
        if window.taps > 1 or window.strides != (1, 1) or any(window.pads):
            attributes = {"geometry": window, "pad_value": node.attributes["pad_value"]}
            value = context.add("sliding_window", "window", [stream], attributes)
        weights = _tap_major(node.attributes["weights"])
        result = add_mvu(context, value, weights, window.taps, binary=is_binary(node.attributes))
        if result is not None:
            outputs, positions = weights.shape[0], window.output[0] * window.output[1]
            context.bind(node.outputs[0], result, image_order(outputs, positions))


def _tap_major(weights: IntArray) -> IntArray:
    """[M, C, kh, kw] to [M, kh * kw * C]: the order in which a sliding window sends its pixels."""
    return weights.transpose(0, 2, 3, 1).reshape(weights.shape[0], -1)
