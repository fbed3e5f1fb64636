"""Sum over a sliding window, by channel: average pools, whose division is part of the next quantizer.

Lowers to a sliding window and a sum; a window over the whole image, as in global pools, needs no sliding window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.windows.group_pool import lower_pool, pools_images
from hwflow.cores.windows.sum_pool import SumPoolAttributes
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import SumPool2dAttributes
from hwflow.types import Interval, TensorType


class SumPool2d(LogicalOperator[SumPool2dAttributes]):
    attributes = SumPool2dAttributes
    stages = frozenset({Stage.QUANTIZED})

    def takes_images(self, node: Node[SumPool2dAttributes]) -> bool:
        return pools_images(node.inputs[0].typed, node.attributes.window)

    def infer(self, attributes: SumPool2dAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        channels, height, width = inputs[0].shape
        window, pad = WindowGeometry.of(attributes.window, height, width), attributes.pad_value
        inside = np.ones((1, height, width, 1), dtype=np.int64)
        counts = window.windows(inside, 0).sum(axis=3)  # taps of each window that are no padding
        ranges = []
        for r in inputs[0].channel_intervals(0):
            ranges.append(Interval.around(n * end + (window.taps - n) * pad for n in
                                          (int(counts.min()), int(counts.max())) for end in (r.lo, r.hi)))
        return (TensorType.of((channels, *window.output), tuple(ranges), 0),)

    def evaluate(self, attributes: SumPool2dAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        images = np.moveaxis(inputs[0], 1, 3)
        window = WindowGeometry.of(attributes.window, *images.shape[1:3])
        taps = window.windows(images, attributes.pad_value)
        return (np.moveaxis(taps.sum(axis=3), 3, 1),)

    def lower(self, node: Node[SumPool2dAttributes], context: LoweringContext) -> None:
        _, height, width = node.inputs[0].typed.shape
        window = WindowGeometry.of(node.attributes.window, height, width)
        lower_pool(node, context, window, node.attributes.pad_value, "sum", SumPoolAttributes(window.taps))
