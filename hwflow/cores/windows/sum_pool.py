"""Sum over each group of ``window`` consecutive pixels of a stream, by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.windows.pool import SumPool as Core
from hdl_lib.windows.pool_tree import SumPoolTree as TreeCore
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Device, Resources
from hwflow.cores.windows.group_pool import GroupPool, PoolAttributes
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, TensorType


@dataclass(frozen=True, eq=False)
class SumPoolAttributes(PoolAttributes):
    """``window``: pixels per group."""

    op = "sum_pool"


class SumPool(GroupPool[SumPoolAttributes]):
    attributes = SumPoolAttributes

    def infer(self, attributes: SumPoolAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        pixels, channels = inputs[0].shape
        window = attributes.window
        ranges = tuple(Interval(window * r.lo, window * r.hi) for r in inputs[0].channel_intervals(1))
        return (TensorType.of((pixels // window, channels), ranges, 1),)

    def reduce(self, groups: IntArray, attributes: SumPoolAttributes) -> IntArray:
        return np.asarray(groups.sum(axis=2), dtype=np.int64)

    def resources(self, node: Node[SumPoolAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        channels, window = node.inputs[0].typed.shape[1], node.attributes.window
        source, result, together = (
            node.inputs[0].typed.element, node.outputs[0].typed.element, folding.input_lanes // channels
        )
        if together > 1:
            return costs.sum_pool_tree(device.family, channels, source, result.bits, together, window, decision.depth)
        blocks = -(-channels // folding.input_lanes)
        return costs.sum_pool(
            device.family, folding.input_lanes, source.bits, result.bits, blocks, window, decision.depth
        )

    def build(self, node: Node[SumPoolAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        source, result = shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element)
        channels, window = node.inputs[0].typed.shape[1], node.attributes.window
        together = folding.input_lanes // channels
        core: Core | TreeCore
        if together > 1:
            core = TreeCore(source, result, channels, together, window, depth=decision.depth)
        else:
            core = Core(source, result, channels, folding.input_lanes, window, depth=decision.depth)
        return Built(core, [core.i], [core.o])
