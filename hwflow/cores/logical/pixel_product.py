"""Multiply each pixel of an image by its own constant, the same for all channels.

Lowers to weighted sums over one pixel each.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hwflow.cores.logical.images import image_order
from hwflow.cores.operator import LogicalOperator, LoweringContext
from hwflow.cores.windows.weighted_pool import WeightedPoolAttributes
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import PixelProductAttributes
from hwflow.types import Interval, TensorType


class PixelProduct(LogicalOperator[PixelProductAttributes]):
    attributes = PixelProductAttributes
    stages = frozenset({Stage.QUANTIZED})

    def takes_images(self, node: Node[PixelProductAttributes]) -> bool:
        return True

    def infer(self, attributes: PixelProductAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        factors = Interval(int(attributes.factors.min()), int(attributes.factors.max()))
        ranges = tuple(factors.times(r) for r in inputs[0].channel_intervals(0))
        return (TensorType.of(inputs[0].shape, ranges, 0),)

    def evaluate(self, attributes: PixelProductAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (inputs[0] * attributes.factors,)

    def lower(self, node: Node[PixelProductAttributes], context: LoweringContext) -> None:
        stream, order = context.stream(node.inputs[0])
        channels, *image = node.inputs[0].typed.shape
        pixels = prod(image)
        wanted = image_order(channels, pixels)
        stream = context.arranged(stream, order, wanted, channels)
        factors = np.broadcast_to(node.attributes.factors.reshape(pixels, 1, 1), (pixels, 1, channels))
        result = context.add("", [stream], WeightedPoolAttributes(np.ascontiguousarray(factors)))
        context.bind(node.outputs[0], result, wanted)
