"""Layers in turn on the same multipliers, with weights from memory outside.

Its timing is a program's (:meth:`hdl_lib.engine.engine_program.Program.pace`): a frame at a time, with weights that
come as the memory's plan guarantees. Hardware is never later, so a run that counts with it is a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.engine.engine_program import Program
from hdl_lib.engine.layer_engine import LayerEngine as Core
from hdl_lib.engine.pace import Pace, pace_beside
from hdl_lib.engine.serial_engine import SerialEngine as SerialCore
from hdl_lib.engine.serial_program import SerialProgram
from hdl_lib.external.weight_memory import WeightMemory as Memory
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.engine.engine_layers import EngineLayer, JoinedMaps, evaluate, multiplying
from hwflow.cores.external.memory_queue import words_behind
from hwflow.cores.external.weight_memory import SharingAttributes, controller_and_region, paced_steps
from hwflow.cores.operator import Built, Decision, Device, Folding, HardwareOperator, Resources
from hwflow.cores.timing import Process, Steps, Timing, every
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.types import TensorType

_CORES: Mapping[type[Program], Any] = {Program: Core, SerialProgram: SerialCore}
"""Of kinds of programs."""


@dataclass(frozen=True)
class Made:
    """How a graph got its engine: the names of the streams that it reads and makes; its lanes, how many results leave
    together, bits of a beat of weights, how many rows multiply in look-up tables, and whether it is a serial one;
    (first layer, layer behind the last one, strips) of each group of layers; the maps that wait in memory outside."""

    source: str
    result: str
    engine: tuple[int, int, int, int, bool]
    strips: tuple[tuple[int, int, int], ...]
    outside: tuple[int, ...] = ()

    def table(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        lanes, together, width, soft, serial = self.engine
        return {
            "source": self.source, "result": self.result, "lanes": lanes, "together": together, "weight_bits": width,
            "soft": soft, "serial": serial, "strips": [list(each) for each in self.strips],
            "outside": list(self.outside),
        }

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> Made:
        """Return what :meth:`table` says."""
        strips = tuple((begin, end, count) for begin, end, count in table["strips"])
        engine = (table["lanes"], table["together"], table["weight_bits"], table["soft"], table["serial"])
        return cls(table["source"], table["result"], engine, strips, tuple(table["outside"]))


@dataclass(frozen=True, eq=False)
class LayerEngineAttributes(SharingAttributes):
    """``layers`` of an image, the last of which makes what has the type ``result``; the ``program`` that computes them,
    and how it was ``made``. In the memory the first region has the weights, and the first queue the maps that wait."""

    op = "layer_engine"
    layers: tuple[EngineLayer | JoinedMaps, ...]
    result: TensorType
    program: Program
    made: Made

    @property
    def pace(self) -> Pace:
        """Return when weights come, and the image and the result pass."""
        return pace_beside(self.program, self.planned)


class LayerEngine(HardwareOperator[LayerEngineAttributes]):
    """Inputs: the image, the weights. Lanes are those of the program, or the channels where there are fewer: of as
    many pixels of the image as make a word."""

    attributes = LayerEngineAttributes
    stages = frozenset({Stage.DATAFLOW, Stage.SCHEDULED})

    def infer(self, attributes: LayerEngineAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        return (attributes.result,)

    def evaluate(self, attributes: LayerEngineAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (evaluate(attributes.layers, inputs[0]),)

    def macs(self, node: Node[LayerEngineAttributes]) -> int:
        layers = multiplying(node.attributes.layers)
        return sum(prod(layer.window.output) * layer.weights.size for layer in layers)

    def foldings(self, node: Node[LayerEngineAttributes], device: Device) -> Sequence[Folding]:
        program = node.attributes.program
        channels, made = (min(program.lanes, value.typed.shape[1]) for value in (node.inputs[0], *node.outputs))
        taken = channels * program.pixels_of_word
        form = ProductForm.DSP2 if program.pairs else ProductForm.DSP
        return [Folding(taken, made, program.products_at_once, form)]

    def multipliers_by_form(self, node: Node[LayerEngineAttributes], folding: Folding) -> Mapping[ProductForm, int]:
        soft = node.attributes.program.soft * node.attributes.program.lanes
        return {folding.multiplier: folding.multipliers - soft, ProductForm.LUT: soft}

    def lanes_of(self, node: Node[LayerEngineAttributes], index: int, folding: Folding) -> int:
        return node.attributes.program.width // node.inputs[1].typed.element.bits if index else folding.input_lanes

    def cycles(self, node: Node[LayerEngineAttributes], folding: Folding) -> int:
        return node.attributes.pace.cycles

    def outside(self, node: Node[LayerEngineAttributes]) -> Mapping[str, Any]:
        given = node.attributes
        return {"engines": given.made.table() | {"layers": len(given.layers), "words": given.program.words}}

    def timing(self, node: Node[LayerEngineAttributes], decision: Decision) -> Timing:
        pace = node.attributes.pace
        takes = {0: _spans(pace.loads), 1: paced_steps(pace, node.attributes.program.beats)}
        latency = _CORES[type(node.attributes.program)].latency
        return Timing((Process(pace.cycles, takes, {0: _spans(pace.sends)}),), (latency,))

    def resources(self, node: Node[LayerEngineAttributes], decision: Decision, device: Device) -> Resources:
        width = decision.folding.output_lanes * node.outputs[0].typed.element.bits
        given = node.attributes
        found = costs.layer_engine(device.family, given.program, width, decision.depth)
        if not given.program.levels:
            return found
        maps = given.planned.queues[0]
        depths = Memory.intake_of(maps), Memory.depth_of(maps, words_behind(maps))
        _, each = controller_and_region(given.planned.timing)  # it is one that writes, and one that reads
        ends = [costs.block_queue(device.family, given.program.width, depth) for depth in depths]
        return sum(ends, found + each + each)

    def build(self, node: Node[LayerEngineAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        core: Any = _CORES[type(node.attributes.program)](
            node.attributes.program, shape_of(node.inputs[0].typed.element), shape_of(node.outputs[0].typed.element),
            input_lanes=folding.input_lanes, output_lanes=folding.output_lanes, depth=decision.depth,
        )
        return Built(core, [core.i, core.w], [core.o])


def _spans(spans: Sequence[tuple[int, int]]) -> Steps:
    """Return the cycles of words that come or leave in spans of (first cycle, words)."""
    return np.concatenate([first + every(words) for first, words in spans])
