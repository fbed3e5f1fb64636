"""Maximum or minimum over each group of ``window`` consecutive pixels of a stream, by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.windows.pool import MaxPool as Core
from hdl_lib.windows.pool_tree import MaxPoolTree as TreeCore
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Resources
from hwflow.cores.windows.group_pool import GroupPool, PoolAttributes
from hwflow.ir.graph import IntArray, Node
from hwflow.types import TensorType


@dataclass(frozen=True, eq=False)
class MaxPoolAttributes(PoolAttributes):
    """``least``: the minimum instead of the maximum."""

    op = "max_pool"
    least: bool = False


class MaxPool(GroupPool[MaxPoolAttributes]):
    attributes = MaxPoolAttributes

    def infer(self, attributes: MaxPoolAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source = inputs[0]
        shape = (source.shape[0] // attributes.window, source.shape[1])
        return (TensorType(shape, source.element, source.interval, source.channels, 1),)

    def reduce(self, groups: IntArray, attributes: MaxPoolAttributes) -> IntArray:
        best = groups.min(axis=2) if attributes.least else groups.max(axis=2)
        return np.asarray(best, dtype=np.int64)

    def resources(self, node: Node[MaxPoolAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        channels, window = node.inputs[0].typed.shape[1], node.attributes.window
        width, together = node.inputs[0].typed.element.bits, folding.input_lanes // channels
        if together > 1:
            return costs.max_pool_tree(device.family, channels, width, together, window, decision.depth)
        blocks = -(-channels // folding.input_lanes)
        return costs.max_pool(device.family, folding.input_lanes, width, blocks, window, decision.depth)

    def build(self, node: Node[MaxPoolAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        shape, channels = shape_of(node.inputs[0].typed.element), node.inputs[0].typed.shape[1]
        window, together = node.attributes.window, folding.input_lanes // channels
        least = node.attributes.least
        core: Core | TreeCore
        if together > 1:
            core = TreeCore(shape, channels, together, window, least=least, depth=decision.depth)
        else:
            core = Core(shape, channels, folding.input_lanes, window, least=least, depth=decision.depth)
        return Built(core, [core.i], [core.o])
