"""Maximum, or minimum, over a sliding window, channel by channel; padding never wins.

Attributes: ``least`` (absent: False), the minimum; ``kernel``, ``strides``, ``pads`` (top, left, bottom, right),
``dilations``. A window of padding only is refused by the front end. Lowers to a sliding window padded with the end of
the input's interval that never wins, and a maximum or minimum; a window over the whole image needs no sliding window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hwflow.cores.logical.image_windows import WindowGeometry
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.windows.group_pool import lower_pool
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import TensorType


def geometry(attributes: Mapping[str, Any], height: int, width: int) -> WindowGeometry:
    """The window of a pool with these attributes over an image."""
    return WindowGeometry(
        height, width, attributes["kernel"], attributes["strides"], attributes["pads"], attributes["dilations"]
    )


class MaxPool2d(LogicalOperator):
    name = "max_pool2d"
    stages = frozenset({Stage.QUANTIZED})

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        channels, height, width = inputs[0].shape
        shape = (channels, *geometry(attributes, height, width).output)
        return (TensorType.of(shape, inputs[0].channel_intervals(0), 0),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        images = np.moveaxis(inputs[0], 1, 3)
        window = geometry(attributes, *images.shape[1:3])
        least, bounds = attributes.get("least", False), np.iinfo(np.int64)
        taps = window.windows(images, int(bounds.max if least else bounds.min))
        return (np.moveaxis(taps.min(axis=3) if least else taps.max(axis=3), 3, 1),)

    def lower(self, node: Node, context: LoweringContext) -> None:
        _, height, width = node.inputs[0].typed.shape
        window = geometry(node.attributes, height, width)
        interval, more = node.inputs[0].typed.interval, {"least": True}
        if node.attributes.get("least", False):
            lower_pool(node, context, window, interval.hi, "max_pool", "min", more)
        else:
            lower_pool(node, context, window, interval.lo, "max_pool", "max")
