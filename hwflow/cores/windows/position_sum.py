"""Weighted sum over each group of consecutive pixels of a stream, with weights by the group's position.

All channels have the same weight. Lanes are a part of a pixel, with a multiplier each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.arithmetic.multiplier import BLOCK, FORMS, PART, ProductForm
from hdl_lib.memories.rom import Table
from hdl_lib.windows.position_sum import PositionSum as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, Resources, beats
from hwflow.cores.timing import Process, Timing, every
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import Interval, IntType, TensorType


@dataclass(frozen=True, eq=False)
class PositionSumAttributes(Attributes):
    """``weights`` int64 [positions, window]; ``repeat``: consecutive groups with the weights of one position. After the
    last position the first follows again."""

    weights: IntArray
    repeat: int


class PositionSum(HardwareOperator[PositionSumAttributes]):
    name = "position_sum"
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

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

    def macs(self, node: Node[PositionSumAttributes]) -> int:
        pixels, channels = node.inputs[0].typed.shape
        return int(pixels * channels)

    def foldings(self, node: Node[PositionSumAttributes], device: Device) -> Sequence[Folding]:
        kinds: tuple[ProductForm, ...] = FORMS
        element, weight = node.inputs[0].typed.element, weight_type(node)
        if costs.product_is_cheap_in_luts(element, weight):
            kinds = (ProductForm.LUT,)
        part = costs.FAMILIES[device.family].dsp_width - 1 if max(element.bits, weight.bits) > BLOCK else 0
        lanes = costs.useful_lanes(node.inputs[0].typed.shape[1])
        return [Folding(n, n, n, kind, part if kind == ProductForm.DSP else 0) for n in lanes for kind in kinds]

    def cycles(self, node: Node[PositionSumAttributes], folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node[PositionSumAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        pixels, channels = node.inputs[0].typed.shape
        window = node.attributes.weights.shape[1]
        steps = every(self.cycles(node, folding)).reshape(pixels // window, window, -(-channels // folding.input_lanes))
        process = Process(steps.size, {0: steps.reshape(-1)}, {0: steps[:, -1, :].reshape(-1)})
        weight = weight_type(node)
        latency = Core.weighted_latency_of(
            shape_of(node.inputs[0].typed.element), shape_of(weight), folding.multiplier, folding.part or PART,
            table=(weight.bits, node.attributes.weights.size),
        )
        return Timing((process,), (latency,))

    def resources(self, node: Node[PositionSumAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        return costs.position_sum(
            device.family, node.inputs[0].typed.element, weight_type(node), node.outputs[0].typed.element,
            folding.input_lanes, node.attributes.weights.tolist(), node.attributes.repeat, blocks,
            folding.multiplier, decision.depth,
        )

    def build(self, node: Node[PositionSumAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        weights, width = node.attributes.weights, weight_type(node).bits
        file = MemoryFile(f"{name}_weights", pack_words(weights.reshape(-1, 1), [width]), width)
        core = Core(
            shape_of(node.inputs[0].typed.element), shape_of(weight_type(node)),
            shape_of(node.outputs[0].typed.element), node.inputs[0].typed.shape[1], folding.input_lanes,
            weights.shape[1], repeat=node.attributes.repeat,
            weights=Table(words=None, file=f"weights/{file.name}.mem", width=width, depth=weights.size),
            multiplier=folding.multiplier, part=folding.part or PART, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o], [file])


def weight_type(node: Node[PositionSumAttributes]) -> IntType:
    """Return the narrowest type of all weights."""
    weights = node.attributes.weights
    return IntType.holding(Interval(int(weights.min()), int(weights.max())))


def sum_interval(weights: IntArray, operand: Interval) -> Interval:
    """Return the hull of the sums by all rows of ``weights`` over elements in ``operand``."""
    below, above = (np.clip(weights, *ends).sum(axis=1) for ends in ((None, 0), (0, None)))
    least, greatest = above * operand.lo + below * operand.hi, above * operand.hi + below * operand.lo
    return Interval(int(least.min()), int(greatest.max()))
