"""Weighted sum over each group of ``window`` consecutive pixels of a stream, by channel.

Lanes are a part of a pixel, with a multiplier each; surplus lanes of a pixel's last beat have weights of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hdl_lib.windows.weighted_pool import WeightedPool as Core
from hwflow.cores import costs
from hwflow.cores.matrix.dot_products import WeightAttributes, group_intervals, weight_type
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Decision, Device, Resources
from hwflow.cores.windows.weighted_groups import WeightedGroups
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, TensorType


@dataclass(frozen=True, eq=False)
class WeightedPoolAttributes(WeightAttributes):
    """``weights`` [sets, window, channels]; groups take the sets in turn."""

    op = "weighted_pool"


class WeightedPool(WeightedGroups[WeightedPoolAttributes]):
    attributes = WeightedPoolAttributes

    def infer(self, attributes: WeightedPoolAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes.weights
        window = weights.shape[1]
        ranges = [[interval] for interval in inputs[0].channel_intervals(1)]
        of_sets = [group_intervals(each.T, ranges, window, binary=False) for each in weights]
        channels = tuple(map(Interval.hull_of, zip(*of_sets, strict=True)))
        return (TensorType.of((inputs[0].shape[0] // window, inputs[0].shape[1]), channels, 1),)

    def evaluate(self, attributes: WeightedPoolAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        sets, window, _ = attributes.weights.shape
        groups = inputs[0].reshape(frames, pixels // window // sets, sets, window, channels)
        return ((groups * attributes.weights).sum(axis=3).reshape(frames, pixels // window, channels),)

    def resources(self, node: Node[WeightedPoolAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        window = node.attributes.weights.shape[1]
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        return costs.weighted_pool(
            device.family, node.inputs[0].typed.element, weight_type(node), node.outputs[0].typed.element,
            folding.input_lanes, self.words(node, folding.input_lanes), blocks, window, folding.multiplier,
            decision.depth,
        )

    def table(self, node: Node[WeightedPoolAttributes], lanes: int) -> tuple[int, int]:
        sets, window, channels = node.attributes.weights.shape
        return lanes * weight_type(node).bits, sets * window * -(-channels // lanes)

    def words(self, node: Node[WeightedPoolAttributes], lanes: int) -> Sequence[int]:
        """Return a word of lanes for each beat of a group, for all sets."""
        surplus = -node.attributes.weights.shape[2] % lanes
        padded = np.pad(node.attributes.weights, [(0, 0), (0, 0), (0, surplus)])
        return pack_words(padded.reshape(-1, lanes), [weight_type(node).bits] * lanes)

    def core(self, node: Node[WeightedPoolAttributes], *parameters: Any, **more: Any) -> Core:
        return Core(*parameters, **more)
