"""A function of the integers at the same place of several tensors of one shape.

Attributes: ``function`` (:mod:`hwflow.ir.integer_functions`), ``constants`` (an operand's value where it is a
constant, else None: those operands alone are inputs), ``wrap`` (the integer type that the result wraps around to, as
ONNX's; None: it is exact).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hdl_lib.elementwise import Elementwise as Core
from hdl_lib.lane_functions import LaneFunction
from hwflow.ir.graph import IntArray, Node, Stage
from hwflow.ir.integer_functions import Function
from hwflow.ir.wrapping import wrapped, wrapped_interval
from hwflow.ops import costs
from hwflow.ops.joined import Joined, joined_streams, joined_timing
from hwflow.ops.lanes import lane_function, lane_resources, used_bits, zero_bits
from hwflow.ops.operator import Built, Device, Folding, LogicalOperator, LoweringContext, Resources
from hwflow.ops.timing import Timing
from hwflow.types import Interval, IntType, TensorType


class Elementwise(LogicalOperator, Joined):
    name = "elementwise"
    stages = frozenset({Stage.QUANTIZED, Stage.DATAFLOW, Stage.SCHEDULED})
    onnx = (
        "Abs", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Clip", "Div",
        "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Neg", "Not", "Or", "Sub",
        "Where", "Xor",
    )  # fmt: skip

    def infer(self, attributes: Mapping[str, Any], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        first = next((t for t in inputs if t.channels), inputs[0])
        axis = first.channel_axis if first.channels else 0
        known = any(t.channels for t in inputs)
        columns = [t.channel_intervals(axis) if known else (t.interval,) for t in inputs]
        found = tuple(_interval(attributes, ranges) for ranges in zip(*columns, strict=True))
        if known:
            return (TensorType.of(first.shape, found, axis),)
        return (TensorType(first.shape, IntType.holding(found[0]), found[0]),)

    def evaluate(self, attributes: Mapping[str, Any], inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        left = iter(inputs)
        operands = [next(left) if c is None else np.array(c, dtype=np.int64) for c in attributes["constants"]]
        result = attributes["function"].evaluate(operands)
        return (result if attributes["wrap"] is None else wrapped(result, attributes["wrap"]),)

    def lower(self, node: Node, context: LoweringContext) -> None:
        streams, order = joined_streams(node, context)
        attributes = {name: node.attributes[name] for name in ("function", "constants", "wrap")}
        context.bind(node.outputs[0], context.add("elementwise", "", streams, attributes), order)

    def foldings(self, node: Node, device: Device) -> Sequence[Folding]:
        return [Folding(lanes, lanes) for lanes in costs.stream_lanes(node.outputs[0].typed.shape)]

    def timing(self, node: Node, folding: Folding) -> Timing:
        return joined_timing(self.cycles(node, folding), _lane(node).stages + 1, len(node.inputs))

    def resources(self, node: Node, folding: Folding, depths: Sequence[int], device: Device) -> Resources:
        function: Function = node.attributes["function"]
        output = node.outputs[0].typed.element
        operands = [
            costs.Operand(element, c is not None)
            for c, element in zip(node.attributes["constants"], _types(node), strict=True)
        ]
        lane = lane_resources(device.family, function, operands, output)
        made = max(1, output.bits - zero_bits(function, node.attributes["constants"]))
        widths = [used_bits(function, value.typed.element, output) for value in node.inputs]
        return lane.times(folding.output_lanes) + costs.joined(
            device.family, widths, made, folding.output_lanes, _lane(node).stages, depths[0]
        )

    def build(self, node: Node, folding: Folding, depths: Sequence[int], name: str) -> Built:
        constants = node.attributes["constants"]
        core = Core(_lane(node), lanes=folding.output_lanes, depth=depths[0], constants=constants)
        return Built(core, core.sources, [core.o])


def _interval(attributes: Mapping[str, Any], ranges: Sequence[Interval]) -> Interval:
    left = iter(ranges)
    operands = [next(left) if c is None else Interval(c, c) for c in attributes["constants"]]
    exact: Interval = attributes["function"].interval(operands)
    return exact if attributes["wrap"] is None else wrapped_interval(exact, attributes["wrap"])


def _types(node: Node) -> list[IntType]:
    """The types of all operands."""
    left = iter(node.inputs)
    return [
        next(left).typed.element if c is None else IntType.holding(Interval(c, c)) for c in node.attributes["constants"]
    ]


def _lane(node: Node) -> LaneFunction:
    function: Function = node.attributes["function"]
    return lane_function(function, _types(node), node.outputs[0].typed.element)
