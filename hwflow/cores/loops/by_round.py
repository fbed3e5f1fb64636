"""A node in the body of a loop whose constants differ from round to round: layers of one shape that share a core.

Its core is that of the node, with a table of constants for each round (:meth:`HardwareOperator.in_turns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hwflow.cores.operator import OPERATORS, LogicalOperator, LoweringContext
from hwflow.errors import InternalError
from hwflow.ir.graph import Attributes, IntArray, Node, Stage
from hwflow.ir.node_attributes import ByRoundAttributes
from hwflow.types import Interval, IntType, TensorType


class ByRound(LogicalOperator[ByRoundAttributes]):
    attributes = ByRoundAttributes
    stages = frozenset({Stage.QUANTIZED})

    def derive(self, attributes: ByRoundAttributes, inputs: Sequence[TensorType]) -> ByRoundAttributes:
        return replace(attributes, each=tuple([OPERATORS[own.op].derive(own, inputs) for own in attributes.each]))

    def infer(self, attributes: ByRoundAttributes, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Return types that hold the integers of all rounds."""
        found = [OPERATORS[own.op].infer(own, inputs) for own in attributes.each]
        return tuple([hull_of_types(types) for types in zip(*found, strict=True)])

    def evaluate(self, attributes: ByRoundAttributes, inputs: Sequence[IntArray]) -> tuple[IntArray, ...]:
        raise InternalError.of(
            "round", "node of a loop's body", "is one of a round, which the loop knows",
            "report this as a defect of hwflow",
        )

    def macs(self, node: Node[ByRoundAttributes]) -> int:
        first = of_round(node, 0)
        return OPERATORS[first.op].macs(first)

    def lower(self, node: Node[ByRoundAttributes], context: LoweringContext) -> None:
        context.lower_each([of_round(node, number) for number in range(len(node.attributes.each))])


def of_round(node: Node[Any], number: int) -> Node[Any]:
    """Return a node of a loop's body as it is in a round."""
    given = node.attributes
    if not isinstance(given, ByRoundAttributes):
        return node
    return Node(node.name, node.inputs, node.outputs, given.each[number], node.sources)


def in_round(attributes: Attributes, number: int) -> Attributes:
    """Return what a node's attributes are in a round."""
    return attributes.each[number] if isinstance(attributes, ByRoundAttributes) else attributes


def hull_of_types(types: Sequence[TensorType]) -> TensorType:
    """Return a type of the same shape that holds the integers of all of these."""
    first = types[0]
    axes = {type_.channel_axis % len(type_.shape) for type_ in types if type_.channels}
    if len(axes) == 1:
        axis = axes.pop()
        ranges = [type_.channel_intervals(axis) for type_ in types]
        return TensorType.of(first.shape, tuple(map(Interval.hull_of, zip(*ranges, strict=True))), axis)
    interval = Interval.hull_of([type_.interval for type_ in types])
    return TensorType(first.shape, IntType.holding(interval), interval)
