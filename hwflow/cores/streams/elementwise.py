"""An elementwise integer function of tensors of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hdl_lib.arithmetic.lane_functions import LaneFunction
from hdl_lib.memories.rom import Table
from hdl_lib.streams.elementwise import READ_LATENCY
from hdl_lib.streams.elementwise import Elementwise as Core
from hwflow.cores import costs
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
from hwflow.cores.streams.lanes import lane_function, lane_resources
from hwflow.cores.timing import Timing, beat_by_beat
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.integer_functions import Function, Multiplied
from hwflow.ir.node_attributes import ElementwiseAttributes
from hwflow.ir.wrapping import wrapped, wrapped_interval
from hwflow.types import Interval, IntType, TensorType


class Elementwise(LogicalOperator[ElementwiseAttributes], Joined[ElementwiseAttributes]):
    attributes = ElementwiseAttributes
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})
    keeps_order = joins = True

    def infer(self, attributes: ElementwiseAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        first = next((t for t in inputs if t.channels), inputs[0])
        axis = first.channel_axis if first.channels else 0
        known = any(t.channels for t in inputs)
        columns = [t.channel_intervals(axis) if known else (t.interval,) for t in inputs]
        found = tuple(_interval(attributes, ranges) for ranges in zip(*columns, strict=True))
        if known:
            return (TensorType.of(first.shape, found, axis),)
        return (TensorType(first.shape, IntType.holding(found[0]), found[0]),)

    def evaluate(self, attributes: ElementwiseAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        left = iter(inputs)
        operands = [next(left) if c is None else np.asarray(c, dtype=np.int64) for c in attributes.constants]
        result = attributes.function.evaluate(operands)
        return (result if attributes.wrap is None else wrapped(result, attributes.wrap),)

    def lower(self, node: Node[ElementwiseAttributes], context: LoweringContext) -> None:
        streams, order = joined_streams(node, context)
        constants = tuple(
            c.reshape(-1)[order].reshape(streams[0].typed.shape) if isinstance(c, np.ndarray) else c
            for c in node.attributes.constants
        )
        result = context.add("", streams, replace(node.attributes, constants=constants))
        context.bind(node.outputs[0], result, order)

    def foldings(self, node: Node[ElementwiseAttributes], device: Device) -> Sequence[Folding]:
        lanes = costs.stream_lanes(node.outputs[0].typed.shape)
        if not isinstance(node.attributes.function, Multiplied):
            return [Folding(count, count) for count in lanes]
        x, w = _types(node)
        kinds = costs.product_kinds(device.family, x, w)
        return [Folding(count, count, 0, kind) for count in lanes for kind, _ in kinds]

    def is_steady(self, node: Node[ElementwiseAttributes], folding: Folding) -> bool:
        return len(node.inputs) == 1

    def timing(self, node: Node[ElementwiseAttributes], decision: Decision) -> Timing:
        folding = decision.folding
        latency = Core.latency_of(_lane(node, folding), tables=bool(_tensors(node)))
        if decision.depths == (0,):
            return beat_by_beat(self.cycles(node, folding), latency - 1)
        return joined_timing(self.cycles(node, folding), latency, len(node.inputs))

    def resources(self, node: Node[ElementwiseAttributes], decision: Decision, device: Device) -> Resources:
        folding = decision.folding
        function: Function = node.attributes.function
        output, constants, lanes = node.outputs[0].typed.element, node.attributes.constants, folding.output_lanes
        types = _types(node)
        operands = [costs.Operand(element, isinstance(c, int)) for c, element in zip(constants, types, strict=True)]
        widths = [function.used_bits(value.typed.element.bits, output.bits) for value in node.inputs]
        tensors = _tensors(node)
        words = _words(tensors, lanes)
        bits = [
            function.used_bits(element.bits, output.bits)
            for constant, element in zip(constants, types, strict=True) if isinstance(constant, np.ndarray)
        ]
        tables, held = _tables(device.family, words, bits, chosen=not decision.provisional)
        held = held if isinstance(constants[-1], np.ndarray) else None
        total = lane_resources(device.family, function, operands, output, lanes, folding.multiplier, held)
        latency = Core.latency_of(_lane(node, folding), tables=bool(tensors))
        if tensors:
            total += tables + costs.count_up(len(words[0])) + Resources(ff=READ_LATENCY * lanes * sum(widths))
        made = max(1, output.bits - function.zero_bits(constants))
        return total + costs.joined(device.family, widths, made, lanes, latency - 1, decision.depth)

    def build(self, node: Node[ElementwiseAttributes], decision: Decision, name: str) -> Built:
        folding = decision.folding
        lanes = folding.output_lanes
        files: list[MemoryFile] = []
        constants: list[int | Table | None] = []
        words = iter(_words(_tensors(node), lanes))
        for place, (constant, element) in enumerate(zip(node.attributes.constants, _types(node), strict=True)):
            if not isinstance(constant, np.ndarray):
                constants.append(constant)
                continue
            own = next(words)
            file = MemoryFile(f"{name}_constant_{place}", pack_words(own, element.bits), lanes * element.bits)
            files.append(file)
            constants.append(file.table)
        core = Core(_lane(node, folding), lanes=lanes, depth=decision.depth, constants=constants)
        return Built(core, core.sources, [core.o], files)


def _tensors(node: Node[ElementwiseAttributes]) -> list[IntArray]:
    return [constant for constant in node.attributes.constants if isinstance(constant, np.ndarray)]


def _beats(constant: IntArray, lanes: int) -> IntArray:
    """Return a constant tensor as a stream [beats, lanes], 0 in surplus lanes."""
    channels = grouped(constant.shape, lanes)[1]
    return np.pad(constant.reshape(-1, channels), ((0, 0), (0, -channels % lanes))).reshape(-1, lanes)


def _words(constants: Sequence[IntArray], lanes: int) -> list[IntArray]:
    """Return the table [words, lanes] of each constant tensor: the beats of a frame, or of the least period of all
    tables, such as a pixel for one value per channel."""
    beats = [_beats(constant, lanes) for constant in constants]
    if not beats:
        return []
    period = rest = len(beats[0])
    prime = 2
    while rest > 1:  # the lengths that divide the frame and begin again are multiples of the least of them
        if prime * prime > rest:
            prime = rest
        if rest % prime:
            prime += 1
            continue
        rest //= prime
        part = period // prime
        if all((own[part:] == own[:-part]).all() for own in beats):
            period = part
    return [own[:period] for own in beats]


def _tables(
    family: str, words: Sequence[IntArray], bits: Sequence[int], *, chosen: bool
) -> tuple[Resources, int | None]:
    """Return the resources of the tables, with ``bits`` of each element used, and the distinct bits of a word; None if
    that takes long to count. ``chosen``: of the folding that is built, constant bits are not counted."""
    if sum(own.size * used for own, used in zip(words, bits, strict=True)) > costs.MOST_KNOWN_BITS:
        total = Resources()
        for own, used in zip(words, bits, strict=True):
            lanes = own.shape[1]
            changing = costs.changing_numbers(own, [used] * lanes) if chosen else None
            total += costs.rom(family, len(own), lanes * used, changing)
        return total, None
    # Bits that are alike are one in all tables, which have the same address.
    together = [0] * (len(words[0]) if words else 0)
    width = 0
    for own, used in zip(words, bits, strict=True):
        for index, word in enumerate(pack_words(own, used)):
            together[index] |= word << width
        width += own.shape[1] * used
    found = costs.filled_rom(family, together, width) if words else Resources()
    return found, found.ff if found.bram else found.ff // 2


def _range(constant: Any) -> Interval:
    """Return the range of a constant operand."""
    if isinstance(constant, np.ndarray):
        return Interval(int(constant.min()), int(constant.max()))
    return Interval(constant, constant)


def _interval(attributes: ElementwiseAttributes, ranges: Sequence[Interval]) -> Interval:
    left = iter(ranges)
    operands = [next(left) if c is None else _range(c) for c in attributes.constants]
    exact: Interval = attributes.function.interval(operands)
    return exact if attributes.wrap is None else wrapped_interval(exact, attributes.wrap)


def _types(node: Node[ElementwiseAttributes]) -> list[IntType]:
    """Return the types of all operands."""
    left = iter(node.inputs)
    constants = node.attributes.constants
    return [next(left).typed.element if c is None else IntType.holding(_range(c)) for c in constants]


def _lane(node: Node[ElementwiseAttributes], folding: Folding) -> LaneFunction:
    function: Function = node.attributes.function
    return lane_function(function, _types(node), node.outputs[0].typed.element, folding.multiplier)
