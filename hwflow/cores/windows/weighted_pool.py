"""Weighted sum over each group of ``window`` consecutive pixels of a stream, by channel.

Lanes are a part of a pixel, with a multiplier each; surplus lanes of a pixel's last beat have weights of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl_lib.arithmetic.multiplier import BLOCK, FORMS, PART, ProductForm
from hdl_lib.memories.rom import Table
from hdl_lib.windows.weighted_pool import WeightedPool as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.matrix.dot_products import group_intervals, weight_type
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, MemoryFile, Resources, beats
from hwflow.cores.timing import Process, Timing, every
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.types import Interval, TensorType


@dataclass(frozen=True, eq=False)
class WeightedPoolAttributes(Attributes):
    """``weights`` int64 [sets, window, channels]; groups take the sets in turn."""

    weights: IntArray


class WeightedPool(HardwareOperator[WeightedPoolAttributes]):
    name = "weighted_pool"
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: WeightedPoolAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        weights = attributes.weights
        window = weights.shape[1]
        ranges = [[interval] for interval in inputs[0].channel_intervals(1)]
        of_sets = [group_intervals(each.T, ranges, window, binary=False) for each in weights]
        channels = tuple(Interval(min(r.lo for r in c), max(r.hi for r in c)) for c in zip(*of_sets, strict=True))
        return (TensorType.of((inputs[0].shape[0] // window, inputs[0].shape[1]), channels, 1),)

    def evaluate(self, attributes: WeightedPoolAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        frames, pixels, channels = inputs[0].shape
        sets, window, _ = attributes.weights.shape
        groups = inputs[0].reshape(frames, pixels // window // sets, sets, window, channels)
        return ((groups * attributes.weights).sum(axis=3).reshape(frames, pixels // window, channels),)

    def macs(self, node: Node[WeightedPoolAttributes]) -> int:
        pixels, channels = node.inputs[0].typed.shape
        return int(pixels * channels)

    def foldings(self, node: Node[WeightedPoolAttributes], device: Device) -> Sequence[Folding]:
        kinds: tuple[ProductForm, ...] = FORMS
        element, weight = node.inputs[0].typed.element, weight_type(node)
        if costs.product_is_cheap_in_luts(element, weight):
            kinds = (ProductForm.LUT,)
        part = costs.FAMILIES[device.family].dsp_width - 1 if max(element.bits, weight.bits) > BLOCK else 0
        lanes = costs.useful_lanes(node.inputs[0].typed.shape[1])
        return [Folding(n, n, n, kind, part if kind == ProductForm.DSP else 0) for n in lanes for kind in kinds]

    def cycles(self, node: Node[WeightedPoolAttributes], folding: Folding) -> int:
        return beats(node.inputs[0].typed.shape, folding.input_lanes)

    def timing(self, node: Node[WeightedPoolAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        pixels, channels = node.inputs[0].typed.shape
        window = node.attributes.weights.shape[1]
        blocks = -(-channels // folding.input_lanes)
        steps = every(self.cycles(node, folding)).reshape(pixels // window, window, blocks)
        process = Process(steps.size, {0: steps.reshape(-1)}, {0: steps[:, -1, :].reshape(-1)})
        weight = weight_type(node)
        latency = Core.weighted_latency_of(
            shape_of(node.inputs[0].typed.element), shape_of(weight), folding.multiplier, folding.part or PART,
            table=(folding.input_lanes * weight.bits, len(node.attributes.weights) * window * blocks),
        )
        return Timing((process,), (latency,))

    def resources(self, node: Node[WeightedPoolAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        window = node.attributes.weights.shape[1]
        blocks = -(-node.inputs[0].typed.shape[1] // folding.input_lanes)
        return costs.weighted_pool(
            device.family, node.inputs[0].typed.element, weight_type(node), node.outputs[0].typed.element,
            folding.input_lanes, weight_words(node, folding), blocks, window, folding.multiplier, decision.depth,
        )

    def build(self, node: Node[WeightedPoolAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        channels = node.inputs[0].typed.shape[1]
        words = weight_words(node, folding)
        file = MemoryFile(f"{name}_weights", words, folding.input_lanes * weight_type(node).bits)
        core = Core(
            shape_of(node.inputs[0].typed.element), shape_of(weight_type(node)),
            shape_of(node.outputs[0].typed.element), channels, folding.input_lanes,
            node.attributes.weights.shape[1],
            weights=Table(words=None, file=f"weights/{file.name}.mem", width=file.width, depth=len(words)),
            multiplier=folding.multiplier, part=folding.part or PART, depth=decision.depth,
        )
        return Built(core, [core.i], [core.o], [file])


def weight_words(node: Node[WeightedPoolAttributes], folding: Folding) -> Sequence[int]:
    """Return the table: a word of lanes for each beat of a group, for all sets."""
    weights, lanes = node.attributes.weights, folding.input_lanes
    sets, window, channels = weights.shape
    blocks = -(-channels // lanes)
    padded = np.zeros((sets, window, blocks * lanes), dtype=np.int64)
    padded[:, :, :channels] = weights
    return pack_words(padded.reshape(sets * window * blocks, lanes), [weight_type(node).bits] * lanes)
