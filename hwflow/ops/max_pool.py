"""Maximum over each group of ``window`` consecutive pixels of a stream, channel by channel. Attribute: ``window``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hdl_lib.pool import MaxPool as Core
from hwflow.ir.graph import IntArray, Node
from hwflow.ops import costs
from hwflow.ops.group_pool import GroupPool
from hwflow.ops.operator import Built, Device, Folding, Resources
from hwflow.ops.shapes import shape_of
from hwflow.types import TensorType


class MaxPool(GroupPool):
    name = "max_pool"

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source = inputs[0]
        shape = (source.shape[0] // attributes["window"], source.shape[1])
        return (TensorType(shape, source.element, source.interval, source.channels, 1),)

    def reduce(self, groups: IntArray) -> IntArray:
        return np.asarray(groups.max(axis=2), dtype=np.int64)

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        width = node.inputs[0].typed.element.bits
        return costs.max_pool(device.family, folding.input_lanes, width, blocks, node.attributes["window"], depths[0])

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        core = Core(
            shape_of(node.inputs[0].typed.element), node.inputs[0].typed.shape[1], folding.input_lanes,
            node.attributes["window"], depth=depths[0],
        )
        return Built(core, [core.i], [core.o])
