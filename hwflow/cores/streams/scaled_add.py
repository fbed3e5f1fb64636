"""The sum of two tensors of one shape, each multiplied by integers, exact before rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from amaranth.hdl import Shape

from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.memories.rom import Table
from hdl_lib.streams.stream_add import AddPlan
from hdl_lib.streams.stream_add import StreamAdd as Core
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.logical.images import along_axis
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import (
    Built,
    Decision,
    Device,
    Folding,
    LogicalOperator,
    LoweringContext,
    MemoryFile,
    Resources,
    grouped,
)
from hwflow.cores.streams.joined import Joined, joined_streams, joined_timing
from hwflow.cores.timing import Timing
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.node_attributes import HeldFactors, ScaledAddAttributes
from hwflow.types import Interval, IntType, TensorType


class ScaledAdd(LogicalOperator[ScaledAddAttributes], Joined[ScaledAddAttributes]):
    attributes = ScaledAddAttributes
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})
    keeps_order = joins = True

    def channel_axis(self, node: Node[ScaledAddAttributes]) -> int | None:
        return node.attributes.axis if any(len(each) > 1 for each in node.attributes.multipliers) else None

    def infer(self, attributes: ScaledAddAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        shape, axis = inputs[0].shape, attributes.axis
        count = shape[axis]
        if attributes.held is not None:
            return (TensorType.of(shape, (attributes.held.sums,) * count, axis),)
        ends = []
        for source, values in zip(inputs, attributes.multipliers, strict=True):
            factors = _each(values, count)
            products = [
                sorted((m * r.lo, m * r.hi)) for m, r in zip(factors, source.channel_intervals(axis), strict=True)
            ]
            ends.append(products)
        channels = tuple(Interval(a[0] + b[0], a[1] + b[1]) for a, b in zip(*ends, strict=True))
        return (TensorType.of(shape, channels, axis),)

    def evaluate(self, attributes: ScaledAddAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        rank = inputs[0].ndim
        axis = attributes.axis % (rank - 1) + 1
        total = np.zeros_like(inputs[0])
        for x, values in zip(inputs, attributes.multipliers, strict=True):
            shape = [1] * rank
            shape[axis] = -1
            total += np.asarray(values, dtype=np.int64).reshape(shape) * x
        return (total,)

    def alike(self, attributes: ScaledAddAttributes) -> ScaledAddAttributes:
        return replace(attributes, multipliers=())

    def of_rounds(self, each: Sequence[ScaledAddAttributes]) -> list[ScaledAddAttributes]:
        """Return the same multipliers, for each channel if some round has such."""
        most = max(len(values) for own in each for values in own.multipliers)
        return [
            replace(own, multipliers=tuple([values * (most // len(values)) for values in own.multipliers]))
            for own in each
        ]

    def in_turns(self, each: Sequence[ScaledAddAttributes]) -> ScaledAddAttributes | None:
        count = max(len(values) for own in each for values in own.multipliers)
        rows = [
            [number for own in each for number in _each(own.multipliers[index], count)] for index in range(2)
        ]
        multipliers = tuple([tuple(row[:1] if len(set(row)) == 1 else row) for row in rows])
        return replace(each[0], multipliers=multipliers, rounds=len(each))

    def lower(self, node: Node[ScaledAddAttributes], context: LoweringContext) -> None:
        streams, order = joined_streams(node, context)
        multipliers = node.attributes.multipliers
        if any(len(values) > 1 for values in multipliers):
            shape = node.inputs[0].typed.shape
            streams, order, indices = along_axis(context, streams, order, shape, node.attributes.axis)
            multipliers = tuple(
                values if len(values) == 1 else tuple(values[i] for i in indices) for values in multipliers
            )
        result = context.add("", streams, ScaledAddAttributes(1, multipliers, held=node.attributes.held))
        context.bind(node.outputs[0], result, order)

    def foldings(self, node: Node[ScaledAddAttributes], device: Device) -> Sequence[Folding]:
        found = []
        for count in costs.stream_lanes(node.outputs[0].typed.shape):
            in_blocks = Folding(count, count, 0, ProductForm.DSP, part=costs.FAMILIES[device.family].dsp_width - 1)
            if costs.add_multipliers(device.family, _plan(node, in_blocks)):
                found.append(in_blocks)
            found.append(Folding(count, count, 0, ProductForm.LUT))
        return found

    def timing(self, node: Node[ScaledAddAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        return joined_timing(self.cycles(node, folding), _plan(node, folding).latency)

    def resources(self, node: Node[ScaledAddAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        types = tuple(value.typed.element for value in node.inputs)
        plan = _plan(node, folding)
        blocks = -(-node.outputs[0].typed.shape[1] // folding.output_lanes)
        total = _cost(device.family, types, plan, blocks, decision.depth, folding.output_lanes // plan.lanes)
        turns = node.attributes.rounds, grouped(node.outputs[0].typed.shape, folding.output_lanes)[0]
        held = node.attributes.held
        if held is not None:
            writers = [costs.table_writer(2, bits) for bits in held.bits] if held.loadable else []
            return sum(writers, total)
        tables = [index for index, shape in enumerate(plan.table_shapes) if shape is not None]
        return sum([costs.taking_turns(len(plan.words(index)) // turns[0], turns) for index in tables], total)

    def build(self, node: Node[ScaledAddAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        lanes = folding.output_lanes
        pixels, channels = grouped(node.outputs[0].typed.shape, lanes)
        given, types = node.attributes, [shape_of(value.typed.element) for value in node.inputs]
        times, turns = channels // node.outputs[0].typed.shape[1], (given.rounds, pixels)
        multipliers = [_tiled(values, given.rounds, times) for values in given.multipliers]
        plan = AddPlan(
            types, node.outputs[0].typed.element.bits, lanes, channels, multipliers, folding.multiplier,
            folding.part or PART, given.rounds, _held_shapes(given.held),
        )
        files: list[MemoryFile] = []
        tables: list[Table | None] = []
        for index, (label, shape) in enumerate(zip("ab", plan.table_shapes, strict=True)):
            if shape is None:
                tables.append(None)
                continue
            words = pack_words(np.array(plan.words(index), dtype=np.int64), shape.width)
            files.append(MemoryFile(
                f"{name}_multipliers_{label}", words, plan.columns * shape.width, given.held is not None,
                given.held is not None and given.held.loadable,
            ))
            tables.append(files[-1].table)
        core = Core(
            types, shape_of(node.outputs[0].typed.element), lanes=lanes, channels=channels, multipliers=multipliers,
            multiplier=folding.multiplier, depth=decision.depth, part=folding.part or PART, tables=tables, turns=turns,
            held=_held_shapes(given.held),
        )
        return Built(core, [core.a, core.b], [core.o], files)


_cost = lru_cache(maxsize=1 << 12)(costs.stream_add)  # equal nodes share their plans


def _each(values: Sequence[int], count: int) -> list[int]:
    """Return one multiplier for each channel."""
    return [int(m) for m in values] * (count if len(values) == 1 else 1)


def _tiled(values: tuple[int, ...], rounds: int, times: int) -> tuple[int, ...]:
    """Return the multipliers of so many pixels side by side, of each round; one for all channels stays one."""
    own = len(values) // rounds
    if own <= 1:
        return values
    return tuple([number for begin in range(0, len(values), own) for number in values[begin : begin + own] * times])


def _held_shapes(held: HeldFactors | None) -> tuple[Shape, Shape] | None:
    return None if held is None else (Shape(held.bits[0], True), Shape(held.bits[1], True))


def _plan(node: Node[ScaledAddAttributes], folding: Folding) -> AddPlan:
    """Return the plan of the core at this folding: of one pixel if a beat holds several, of a single lane if all
    channels are alike."""
    types = tuple(value.typed.element for value in node.inputs)
    multipliers = node.attributes.multipliers
    output = node.outputs[0].typed
    lanes, channels = min(folding.output_lanes, output.shape[1]), output.shape[1]
    if node.attributes.held is None and all(len(set(values)) == 1 for values in multipliers):
        lanes, channels, multipliers = 1, 1, tuple(values[:1] for values in multipliers)
    return _planned(
        types, output.element.bits, lanes, channels, multipliers, folding.multiplier, folding.part or PART,
        node.attributes.rounds, node.attributes.held,
    )


@lru_cache(maxsize=1024)  # the search for foldings asks for the same again and again
def _planned(
    types: tuple[IntType, ...], width: int, lanes: int, channels: int, multipliers: tuple[tuple[int, ...], ...],
    form: ProductForm, part: int, rounds: int, held: HeldFactors | None,
) -> AddPlan:
    shapes = [shape_of(t) for t in types]
    return AddPlan(shapes, width, lanes, channels, multipliers, form, part, rounds, _held_shapes(held))
