"""Maximum or minimum over a sliding window, by channel; padding never wins.

The front end refuses windows of padding only. Lowers to a sliding window padded with the end of the input's interval
that never wins, and a maximum or minimum; a window over the whole image needs no sliding window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.windows.group_pool import lower_pool, pools_images
from hwflow.cores.windows.max_pool import MaxPoolAttributes
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import MaxPool2dAttributes
from hwflow.types import TensorType


class MaxPool2d(LogicalOperator[MaxPool2dAttributes]):
    attributes = MaxPool2dAttributes
    stages = frozenset({Stage.QUANTIZED})

    def takes_images(self, node: Node[MaxPool2dAttributes]) -> bool:
        return pools_images(node.inputs[0].typed, node.attributes.window)

    def infer(self, attributes: MaxPool2dAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        channels, height, width = inputs[0].shape
        shape = (channels, *WindowGeometry.of(attributes.window, height, width).output)
        return (TensorType.of(shape, inputs[0].channel_intervals(0), 0),)

    def evaluate(self, attributes: MaxPool2dAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        images = np.moveaxis(inputs[0], 1, 3)
        window = WindowGeometry.of(attributes.window, *images.shape[1:3])
        least, bounds = attributes.least, np.iinfo(np.int64)
        taps = window.windows(images, int(bounds.max if least else bounds.min))
        return (np.moveaxis(taps.min(axis=3) if least else taps.max(axis=3), 3, 1),)

    def lower(self, node: Node[MaxPool2dAttributes], context: LoweringContext) -> None:
        _, height, width = node.inputs[0].typed.shape
        window = WindowGeometry.of(node.attributes.window, height, width)
        interval = node.inputs[0].typed.interval
        if node.attributes.least:
            lower_pool(node, context, window, interval.hi, "min", MaxPoolAttributes(window.taps, least=True))
        else:
            lower_pool(node, context, window, interval.lo, "max", MaxPoolAttributes(window.taps))
