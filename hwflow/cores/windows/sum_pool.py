"""Sum over each group of ``window`` consecutive pixels of a stream, channel by channel. Attribute: ``window``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hdl_lib.windows.pool import SumPool as Core
from hdl_lib.windows.pool_tree import SumPoolTree as TreeCore
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Device, Folding, Resources
from hwflow.cores.windows.group_pool import GroupPool
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, TensorType


class SumPool(GroupPool):
    name = "sum_pool"

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        pixels, channels = inputs[0].shape
        window = attributes["window"]
        ranges = tuple(Interval(window * r.lo, window * r.hi) for r in inputs[0].channel_intervals(1))
        return (TensorType.of((pixels // window, channels), ranges, 1),)

    def reduce(self, groups: IntArray, attributes: Mapping[str, Any]) -> IntArray:
        return np.asarray(groups.sum(axis=2), dtype=np.int64)

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        channels, window = node.inputs[0].typed.shape[1], node.attributes["window"]
        source, result, together = (
            node.inputs[0].typed.element, node.outputs[0].typed.element, folding.input_lanes // channels
        )
        if together > 1:
            return costs.sum_pool_tree(device.family, channels, source, result.bits, together, window, depths[0])
        blocks = -(-channels // folding.input_lanes)
        return costs.sum_pool(
            device.family, folding.input_lanes, source.bits, result.bits, blocks, window, depths[0]
        )

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        source, result = shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element)
        channels, window = node.inputs[0].typed.shape[1], node.attributes["window"]
        together = folding.input_lanes // channels
        core: Core | TreeCore
        if together > 1:
            core = TreeCore(source, result, channels, together, window, depth=depths[0])
        else:
            core = Core(source, result, channels, folding.input_lanes, window, depth=depths[0])
        return Built(core, [core.i], [core.o])
