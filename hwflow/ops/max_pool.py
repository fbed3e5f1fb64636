"""Maximum over each group of ``window`` consecutive pixels of a stream, channel by channel. Attribute: ``window``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hdl_lib.pool import MaxPool as Core
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ops import costs
from hwflow.ops.operator import Built, Device, Folding, HardwareOperator, Resources, beats
from hwflow.ops.shapes import shape_of
from hwflow.ops.timing import Process, Timing, every
from hwflow.types import TensorType


class MaxPool(HardwareOperator):
    name = "max_pool"
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        source = inputs[0]
        shape = (source.shape[0] // attributes["window"], source.shape[1])
        return (TensorType(shape, source.element, source.interval, source.channels, 1),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        groups = inputs[0].reshape(frames, pixels // attributes["window"], attributes["window"], channels)
        return (groups.max(axis=2),)

    def foldings(self, node: Node, device: Device) -> Sequence[Folding]:
        return [Folding(lanes, lanes) for lanes in costs.useful_lanes(node.inputs[0].typed.shape[1])]

    def cycles(self, node: Node, folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node, folding: Folding) -> Timing:
        pixels, channels = node.inputs[0].typed.shape
        blocks = -(-channels // folding.input_lanes)
        window = node.attributes["window"]
        steps = np.arange(pixels * blocks).reshape(pixels // window, window, blocks)
        process = Process(steps.size, {0: every(steps.size)}, {0: steps[:, -1, :].reshape(-1)})
        return Timing((process,), (Core.latency_of(channels, folding.input_lanes),))

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
