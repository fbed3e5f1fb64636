"""Move a requantizer that follows a choice among requantized streams in front of it, where it is fused with theirs.
Requires: types. Ensures: types.

An optimisation: q(max(a, b)) = max(q(a), q(b)) for a non-decreasing step function, min(q(a), q(b)) for a non-increasing
one; q(c ? a : b) = c ? q(a) : q(b) for any. This leaves two requantizers of three, and the choice is among the final
integers, which have few bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hwflow.ir.graph import Graph, IntArray, Names, Node, Value
from hwflow.ir.integer_functions import Extreme, Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, RequantizeAttributes
from hwflow.numerics.requantizers.stages import NoSteps, chain
from hwflow.passes.infer_types import infer_types


def requantize_choices(graph: Graph) -> Graph:
    """Return a copy of the graph with all such requantizers moved and types inferred again."""
    graph = graph.copy()
    while _move_one(graph):
        infer_types(graph)
    return graph


def _move_one(graph: Graph) -> bool:
    sole = _Sole(graph)
    requantizers = (n for n in graph.nodes if isinstance(n.attributes, RequantizeAttributes))
    behind = [n for n in requantizers if sole.choice(n.inputs[0]) is not None]
    return any(_move(graph, sole, node) for node in behind)


class _Sole:
    """The values with a single reader."""

    def __init__(self, graph: Graph) -> None:
        self._producers = graph.producers()
        outputs = {p.value for p in graph.outputs}
        self._values = {v for v, readers in graph.consumers().items() if len(readers) == 1 and v not in outputs}

    def choice(self, value: Value) -> Node[ElementwiseAttributes] | None:
        """Return the node that produces ``value`` by a choice among requantized streams and constants, if one does."""
        node = self._producers.get(value)
        if node is None or value not in self._values or not _is_choice(node):
            return None
        return node if all(self._requantized(v) for v in chosen(node)) else None

    def _requantized(self, value: Value) -> bool:
        node = self._producers.get(value)
        if node is None or value not in self._values:
            return False
        return isinstance(node.attributes, RequantizeAttributes) or self.choice(value) is not None


def _is_choice(node: Node) -> bool:
    if not isinstance(node.attributes, ElementwiseAttributes) or node.attributes.wrap is not None:
        return False
    function = node.attributes.function
    return isinstance(function, Extreme) or (function == Simple("where") and node.attributes.constants[0] is None)


def chosen(node: Node[ElementwiseAttributes]) -> list[Value]:
    """Return the streams among which a node chooses: all inputs but a condition."""
    return node.inputs[0 if isinstance(node.attributes.function, Extreme) else 1 :]


def _move(graph: Graph, sole: _Sole, requantize: Node[RequantizeAttributes]) -> bool:
    """Move a requantizer if possible; return whether it was moved."""
    choice = sole.choice(requantize.inputs[0])
    assert choice is not None, "looked for"
    function, constants = choice.attributes.function, choice.attributes.constants
    if isinstance(function, Extreme):
        directions = {steps.direction for steps in requantize.attributes.steps}
        if len(directions) > 1 or 0 in directions:
            return False
        function = Extreme(function.greatest == (1 in directions))
    first = 0 if isinstance(function, Extreme) else 1
    try:
        for value in chosen(choice):
            _check(requantize.attributes, value)
        levels = [*constants[:first], *(_level(requantize, c) for c in constants[first:])]
    except (NoSteps, ValueError):  # it is not defined everywhere
        return False
    names, values = Names([n.name for n in graph.nodes]), Names([v.name for v in graph.values()])
    place = graph.nodes.index(choice)
    stages = replace(requantize.attributes, steps=())
    for number, value in enumerate(chosen(choice)):
        level = Value(values.fresh(value.name))
        made = Node(names.fresh(requantize.name), [value], [level], stages, requantize.sources)
        graph.nodes.insert(place, made)
        choice.inputs[len(choice.inputs) - len(chosen(choice)) + number] = level
    choice.attributes = replace(choice.attributes, function=function, constants=tuple(levels))
    choice.outputs = list(requantize.outputs)
    choice.sources = choice.sources + requantize.sources
    graph.nodes.remove(requantize)
    return True


def _check(attributes: RequantizeAttributes, value: Value) -> None:
    """Raise NoSteps or ValueError unless the requantizer is defined on all of the value's interval."""
    stages, ranges = attributes.stages, value.typed.channel_intervals(attributes.axis)
    for index, column in enumerate(stages):
        for interval in dict.fromkeys(ranges if len(stages) == 1 else ranges[index : index + 1]):
            chain(column, interval.lo, interval.hi)


def _level(requantize: Node[RequantizeAttributes], constant: int | IntArray | None) -> int | IntArray | None:
    """Requantize a constant operand."""
    if constant is None:
        return None
    stages, axis = requantize.attributes.stages, requantize.attributes.axis
    shape = requantize.outputs[0].typed.shape
    if len(stages) == 1 and isinstance(constant, int):
        return chain(stages[0], constant, constant)(constant)
    whole = np.moveaxis(np.broadcast_to(constant, shape), axis, 0)
    columns = stages * len(whole) if len(stages) == 1 else stages
    levels = [
        chain(column, int(part.min()), int(part.max())).evaluate(part)
        for column, part in zip(columns, whole, strict=True)
    ]
    return np.moveaxis(np.stack(levels), 0, axis)
