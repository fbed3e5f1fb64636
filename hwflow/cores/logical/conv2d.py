"""Two-dimensional convolution of a quantized image by constant weights: the sum before any rounding.

Attributes: ``weights`` int64 [M, C / groups, kh, kw] (weight zero point already subtracted), ``groups`` (absent: 1) of
channels that are convolved by themselves, ``strides``, ``pads`` (top, left, bottom, right), ``dilations``,
``pad_value`` (the input's zero point); ``binary`` (absent: False; not where a group is one channel): weights and inputs
are 0 and 1, what is summed is 1 where they are equal, else 0, and there are no pads. Lowers to a sliding window and an
MVU; where each group is one channel to a depthwise convolution, or without windows to weighted sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.logical.images import image_order, image_stream
from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.matrix.dot_products import group_intervals, is_binary, row_values
from hwflow.cores.matrix.mvu import add_mvu
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.ir.graph import IntArray, Node, Stage, Value
from hwflow.types import Interval, TensorType


def geometry(attributes: Mapping[str, Any], height: int, width: int) -> WindowGeometry:
    """The window of a convolution with these attributes over an image."""
    kernel = attributes["weights"].shape[2:]
    return WindowGeometry(height, width, kernel, attributes["strides"], attributes["pads"], attributes["dilations"])


class Conv2d(LogicalOperator):
    name = "conv2d"
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes["weights"]
        outputs, group_channels = weights.shape[:2]
        _, height, width = inputs[0].shape
        window = geometry(attributes, height, width)
        pad = Interval(attributes["pad_value"], attributes["pad_value"])
        ranges = inputs[0].channel_intervals(0)
        if window.touches_padding():
            ranges = tuple(r.hull(pad) for r in ranges)
        groups = [ranges[first : first + group_channels] for first in range(0, len(ranges), group_channels)]
        rows = weights.reshape(outputs, group_channels * window.taps)
        channels = group_intervals(rows, groups, window.taps, binary=is_binary(attributes))
        return (TensorType.of((outputs, *window.output), channels, 0),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        images = np.moveaxis(inputs[0], 1, 3)
        window = geometry(attributes, *images.shape[1:3])
        taps = window.windows(images, attributes["pad_value"])
        groups = groups_of(attributes)
        sums = []
        for matrix, some in zip(
            np.split(_tap_major(attributes["weights"]), groups), np.split(taps, groups, axis=4), strict=True
        ):
            vectors = some.reshape(*taps.shape[:3], matrix.shape[1])
            sums.append(row_values(matrix, vectors, binary=is_binary(attributes)))
        return (np.moveaxis(np.concatenate(sums, axis=3), 3, 1),)

    def macs(self, node: Node) -> int:
        _, rows, columns = node.outputs[0].typed.shape
        return int(node.attributes["weights"].size) * rows * columns

    def lower(self, node: Node, context: LoweringContext) -> None:
        stream, weights = image_stream(node, context), node.attributes["weights"]
        groups, (outputs, group_channels) = groups_of(node.attributes), weights.shape[:2]
        window = geometry(node.attributes, *node.inputs[0].typed.shape[1:])
        copies = outputs // groups if group_channels == 1 and groups > 1 else 1
        if copies > 1:  # each channel as often as it is convolved
            pixels, channels = stream.typed.shape
            index = np.repeat(np.arange(pixels * channels), copies)
            attributes = {"map": IndexMap(index, pixels * channels), "channels": outputs, "fill": 0}
            stream = context.add("rearrange", "copies", [stream], attributes)
        moves = window.taps > 1 or window.strides != (1, 1) or any(window.pads)
        if moves and (groups == 1 or group_channels > 1):
            attributes = {"geometry": window, "pad_value": node.attributes["pad_value"]}
            stream = context.add("sliding_window", "window", [stream], attributes)
        matrix, binary, result = _tap_major(weights), is_binary(node.attributes), None
        if groups == 1:
            result = add_mvu(context, stream, matrix, window.taps, binary=binary)
        elif group_channels == 1 and moves:
            attributes = {"geometry": window, "pad_value": node.attributes["pad_value"], "weights": matrix.T}
            result = context.add("depthwise", "", [stream], attributes)
        elif group_channels == 1:
            result = context.add("weighted_pool", "sums", [stream], {"weights": matrix.T[None]})
        else:
            stream = _group_by_group(context, stream, window.taps, groups)
            result = add_mvu(
                context, stream, matrix.reshape(groups, outputs // groups, -1), window.taps, binary=binary
            )
        if result is not None:
            context.bind(node.outputs[0], result, image_order(outputs, window.output[0] * window.output[1]))


def groups_of(attributes: Mapping[str, Any]) -> int:
    """The attribute ``groups``."""
    return int(attributes.get("groups", 1))


def _group_by_group(context: LoweringContext, stream: Value, taps: int, groups: int) -> Value:
    """Order each window's taps by group of channels."""
    pixels, channels = stream.typed.shape
    order = np.arange(pixels * channels)
    wanted = order.reshape(-1, taps, groups, channels // groups).transpose(0, 2, 1, 3).reshape(-1)
    return context.arranged(stream, order, wanted, channels // groups)


def _tap_major(weights: IntArray) -> IntArray:
    """[M, C, kh, kw] to [M, kh * kw * C]: the order in which a sliding window sends its pixels."""
    return weights.transpose(0, 2, 3, 1).reshape(weights.shape[0], -1)
