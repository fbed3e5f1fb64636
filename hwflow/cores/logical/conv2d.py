"""Two-dimensional convolution of a quantized image with constant weights: the sum before rounding.

Lowers to a sliding window and an MVU. If each group is one channel, lowers to a depthwise convolution, or without
windows to weighted sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.logical.images import image_order, image_stream
from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.matrix.depthwise import DepthwiseAttributes
from hwflow.cores.matrix.dot_products import group_intervals, row_values
from hwflow.cores.matrix.mvu import add_mvu
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.windows.sliding_window import SlidingWindowAttributes
from hwflow.cores.windows.weighted_pool import WeightedPoolAttributes
from hwflow.ir.graph import IntArray, Node, Stage, Value
from hwflow.ir.node_attributes import Conv2dAttributes, Window
from hwflow.types import Interval, TensorType


class Conv2d(LogicalOperator[Conv2dAttributes]):
    attributes = Conv2dAttributes
    stages = frozenset({Stage.QUANTIZED})

    def takes_images(self, node: Node[Conv2dAttributes]) -> bool:
        return True

    def infer(self, attributes: Conv2dAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes.weights
        outputs, group_channels = weights.shape[:2]
        _, height, width = inputs[0].shape
        window = WindowGeometry.of(attributes.window, height, width)
        pad = Interval(attributes.pad_value, attributes.pad_value)
        ranges = inputs[0].channel_intervals(0)
        if window.touches_padding():
            ranges = tuple(r.hull(pad) for r in ranges)
        if attributes.centred:
            ranges = tuple(each.plus(-attributes.pad_value) for each in ranges)
        if attributes.held is not None:
            return (TensorType.of((outputs, *window.output), (attributes.held.sums,) * outputs, 0),)
        groups = [ranges[first : first + group_channels] for first in range(0, len(ranges), group_channels)]
        rows = weights.reshape(outputs, group_channels * window.taps)
        channels = group_intervals(rows, groups, window.taps, binary=attributes.binary)
        return (TensorType.of((outputs, *window.output), channels, 0),)

    def evaluate(self, attributes: Conv2dAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        images = np.moveaxis(inputs[0], 1, 3)
        window = WindowGeometry.of(attributes.window, *images.shape[1:3])
        taps = window.windows(images, attributes.pad_value)
        if attributes.centred:
            taps = taps - attributes.pad_value
        groups = attributes.groups
        sums = []
        for matrix, some in zip(
            np.split(_tap_major(attributes.weights), groups), np.split(taps, groups, axis=4), strict=True
        ):
            vectors = some.reshape(*taps.shape[:3], matrix.shape[1])
            sums.append(row_values(matrix, vectors, binary=attributes.binary))
        return (np.moveaxis(np.concatenate(sums, axis=3), 3, 1),)

    def alike(self, attributes: Conv2dAttributes) -> Conv2dAttributes:
        sums = attributes.weights.shape[1] == 1 < attributes.groups and not _moves(attributes.window)
        if sums and attributes.held is None:
            return attributes  # weighted sums, which have constants of their own alone
        padded = any(attributes.pads)
        pad_value = attributes.pad_value if padded or attributes.centred else 0
        return replace(attributes, weights=np.zeros_like(attributes.weights), pad_value=pad_value)

    def macs(self, node: Node[Conv2dAttributes]) -> int:
        _, rows, columns = node.outputs[0].typed.shape
        return int(node.attributes.weights.size) * rows * columns

    def lower(self, node: Node[Conv2dAttributes], context: LoweringContext) -> None:
        stream, weights = image_stream(node, context), node.attributes.weights
        groups, (outputs, group_channels) = node.attributes.groups, weights.shape[:2]
        window = WindowGeometry.of(node.attributes.window, *node.inputs[0].typed.shape[1:])
        copies = outputs // groups if group_channels == 1 and groups > 1 else 1
        if copies > 1:  # each channel as often as it is convolved
            pixels, channels = stream.typed.shape
            index = np.repeat(np.arange(pixels * channels), copies)
            copied = RearrangeAttributes(IndexMap(index, pixels * channels), outputs, 0)
            stream = context.add("copies", [stream], copied)
        clips = _may_clip(window, node.attributes)
        moves = _moves(node.attributes.window)
        if moves and (groups == 1 or group_channels > 1):
            clipping = Clipping.OFFERED if clips else Clipping.NONE
            pad_value = node.attributes.pad_value if window.touches_padding() or node.attributes.centred else 0
            windows = SlidingWindowAttributes(window, pad_value, node.attributes.centred, clipping)
            stream = context.add("window", [stream], windows)
        matrix, binary, result = _tap_major(weights), node.attributes.binary, None
        if groups == 1:
            result = add_mvu(
                context, stream, matrix, window.taps, binary=binary, windows=window if clips else None,
                held=node.attributes.held,
            )
        elif group_channels == 1 and (moves or node.attributes.held is not None):
            attributes = DepthwiseAttributes(window, node.attributes.pad_value, matrix.T, held=node.attributes.held)
            result = context.add("", [stream], attributes)
        elif group_channels == 1:
            result = context.add("sums", [stream], WeightedPoolAttributes(matrix.T[None]))
        else:
            stream = _group_by_group(context, stream, window.taps, groups)
            result = add_mvu(
                context, stream, matrix.reshape(groups, outputs // groups, -1), window.taps, binary=binary,
                held=node.attributes.held,
            )
        if result is not None:
            context.bind(node.outputs[0], result, image_order(outputs, window.output[0] * window.output[1]))


def _moves(window: Window) -> bool:
    """Tell whether windows are more than the pixels themselves."""
    return any(size > 1 for size in (*window.kernel, *window.strides)) or any(window.pads)


def _may_clip(window: WindowGeometry, attributes: Conv2dAttributes) -> bool:
    """Tell whether sums are the same without the taps in the padding, of which there are some, but no window's all."""
    counts = attributes.pad_value != 0 and not attributes.centred
    if attributes.binary or attributes.groups > 1 or counts or not window.touches_padding():
        return False
    inside = window.inside().reshape(-1, window.taps)
    return bool(inside.any(axis=1).all() and not inside.all())


def _group_by_group(context: LoweringContext, stream: Value, taps: int, groups: int) -> Value:
    """Order each window's taps by group of channels."""
    pixels, channels = stream.typed.shape
    order = np.arange(pixels * channels)
    wanted = order.reshape(-1, taps, groups, channels // groups).transpose(0, 2, 1, 3).reshape(-1)
    return context.arranged(stream, order, wanted, channels // groups)


def _tap_major(weights: IntArray) -> IntArray:
    """Reorder weights [M, C, kh, kw] to [M, kh * kw * C], the order in which a sliding window sends its pixels."""
    return weights.transpose(0, 2, 3, 1).reshape(weights.shape[0], -1)
