"""Weighted sum over each group of consecutive pixels of a stream, with weights by the group's position.

All channels have the same weight. Lanes are a part of a pixel, with a multiplier each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hdl_lib.windows.position_sum import PositionSum as Core
from hwflow.cores import costs
from hwflow.cores.matrix.dot_products import WeightAttributes, weight_type
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Decision, Device, Resources
from hwflow.cores.windows.weighted_groups import WeightedGroups
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, TensorType


@dataclass(frozen=True, eq=False)
class PositionSumAttributes(WeightAttributes):
    """``weights`` [positions, window]; ``repeat``: consecutive groups with the weights of one position. After the
    last position the first follows again."""

    op = "position_sum"
    repeat: int


class PositionSum(WeightedGroups[PositionSumAttributes]):
    attributes = PositionSumAttributes

    def infer(self, attributes: PositionSumAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes.weights
        ranges = tuple(sum_interval(weights, r) for r in inputs[0].channel_intervals(1))
        return (TensorType.of((inputs[0].shape[0] // weights.shape[1], inputs[0].shape[1]), ranges, 1),)

    def evaluate(self, attributes: PositionSumAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        positions, window = attributes.weights.shape
        groups = inputs[0].reshape(frames, -1, positions, attributes.repeat, window, channels)
        sums = (groups * attributes.weights.reshape(positions, 1, window, 1)).sum(axis=4)
        return (sums.reshape(frames, pixels // window, channels),)

    def resources(self, node: Node[PositionSumAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        return costs.position_sum(
            device.family, node.inputs[0].typed.element, weight_type(node), node.outputs[0].typed.element,
            folding.input_lanes, node.attributes.weights.tolist(), node.attributes.repeat, blocks,
            folding.multiplier, decision.depth,
        )

    def table(self, node: Node[PositionSumAttributes], lanes: int) -> tuple[int, int]:
        return weight_type(node).bits, node.attributes.weights.size

    def words(self, node: Node[PositionSumAttributes], lanes: int) -> Sequence[int]:
        return pack_words(node.attributes.weights.reshape(-1, 1), [weight_type(node).bits])

    def core(self, node: Node[PositionSumAttributes], *parameters: Any, **more: Any) -> Core:
        return Core(*parameters, repeat=node.attributes.repeat, **more)


def sum_interval(weights: IntArray, operand: Interval) -> Interval:
    """Return the hull of the sums by all rows of ``weights`` over elements in ``operand``."""
    below, above = (np.clip(weights, *ends).sum(axis=1) for ends in ((None, 0), (0, None)))
    least, greatest = above * operand.lo + below * operand.hi, above * operand.hi + below * operand.lo
    return Interval(int(least.min()), int(greatest.max()))
