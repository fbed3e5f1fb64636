"""Make the rounds of loops that were written out one node each, whose body is hardware once. Requires: typed-values.
Ensures: typed-values.

Every value stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from math import prod

import numpy as np

from hwflow.cores.registry import OPERATORS
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Attributes, Graph, Names, Node, Port, Stage, Value, identity_order
from hwflow.ir.node_attributes import (
    ByRoundAttributes,
    ConcatAttributes,
    LoopAttributes,
    ReindexAttributes,
    ReshapeAttributes,
)
from hwflow.ir.structure import Structures
from hwflow.passes.find_rounds import Inner, Operand, Rounds, Row, Same, Scanned, State, find_layers, find_rounds
from hwflow.passes.first_round import FirstRound, first_round
from hwflow.passes.infer_types import infer_types


def roll_loops(graph: Graph) -> Graph:
    """Return a copy of the graph with its loops as nodes; ``graph`` itself where there are none, or where what holds in
    each round does not hold for all of them together."""
    return _rolled(graph, layers=False)


def share_layers(graph: Graph) -> Graph:
    """Return a copy of the graph in which layers of one shape that follow each other are the rounds of a loop, whose
    cores have the constants of each; ``graph`` itself where there are none."""
    return _rolled(graph, layers=True)


def _rolled(graph: Graph, *, layers: bool) -> Graph:
    made, find = graph, find_layers if layers else find_rounds
    while rounds := find(made):
        rolled, found = _copied(made, rounds)
        _Roll(rolled, found, None if layers else first_round(rolled, found), layers=layers).run()
        try:
            made = infer_types(rolled)
        except ModelRefused:
            return made
    return made


def _copied(graph: Graph, rounds: Rounds) -> tuple[Graph, Rounds]:
    """Return a copy of the graph, and its rounds."""
    copy = graph.copy()
    nodes = dict(zip(graph.nodes, copy.nodes, strict=True))
    values = dict(zip(graph.values(), copy.values(), strict=True))

    def row(old: Row) -> Row:
        return tuple(None if node is None else nodes[node] for node in old)

    def operand(old: Operand) -> Operand:
        match old:
            case Same(value):
                return Same(values[value])
            case Inner(of, index):
                return Inner(row(of), index)
            case State(of, index, first):
                return State(row(of), index, values[first])
            case Scanned(each):
                return Scanned(tuple(values[value] for value in each))

    rows = {row(old): list(map(operand, operands)) for old, operands in rounds.rows.items()}
    return copy, Rounds(rounds.count, rows, [nodes[node] for node in rounds.before])


class _Roll:
    """One loop of a graph that is changed."""

    def __init__(self, graph: Graph, rounds: Rounds, first: FirstRound | None, *, layers: bool) -> None:
        self.graph = graph
        self.rounds = rounds
        self.first = first
        self.layers = layers
        self.structures = Structures()
        self.producers = graph.producers()
        self.node_names = Names([node.name for node in graph.nodes])
        self.value_names = Names([value.name for value in graph.values()])
        self.inside: dict[tuple[Row, int], Value] = {}  # the body's values, by rows and outputs
        self.made: list[Node] = []
        self.origin: dict[Value, tuple[Value, int]] = {}  # of which result's row a value of one round is

    def run(self) -> None:
        rows = self.rounds.rows
        operands: dict[Operand, None] = dict.fromkeys(
            o for each in rows.values() for o in each if not isinstance(o, Inner)
        )
        scanned = [o for o in operands if isinstance(o, Scanned)]
        states = [o for o in operands if isinstance(o, State)]
        same = [o for o in operands if isinstance(o, Same)]
        first = self.first
        count = self.rounds.count + (first is not None)
        rows_of = {o: o.values if first is None else (first.scanned[o], *o.values) for o in scanned}
        taken = [*(self._stacked(rows_of[o]) for o in scanned), *(o.first for o in states), *(o.value for o in same)]
        order: list[Operand] = [*scanned, *states, *same]
        own = {o: Value(self.value_names.fresh(f"{value.name}_in")) for o, value in zip(order, taken, strict=True)}
        nodes = [self._node(row, given, own) for row, given in rows.items()]
        read = self._read_outside()
        outputs = list(dict.fromkeys([*((o.row, o.index) for o in states), *read]))
        shapes = [self._shape(*output) for output in outputs]
        body = Graph(
            self.graph.name, Stage.QUANTIZED,
            [
                _port(own[o], value.typed.shape[1:] if isinstance(o, Scanned) else value.typed.shape)
                for o, value in zip(order, taken, strict=True)
            ],
            [_port(self.inside[output], shape) for output, shape in zip(outputs, shapes, strict=True)], nodes,
        )
        places = tuple(outputs.index((o.row, o.index)) for o in states)
        begin = tuple(None if first is None else first.states[o] for o in states)
        attributes = LoopAttributes(body, count, len(scanned), places, begin)
        if first is not None:
            taken = [*taken[: len(scanned)], *taken[len(scanned) + len(states) :]]
        name = self.node_names.fresh(f"{nodes[0].name}_loop")
        results = {output: Value(self.value_names.fresh(f"{self.inside[output].name}_rows")) for output in outputs}
        sources = tuple(dict.fromkeys(source for node in nodes for source in node.sources))
        self.made.append(Node(name, taken, list(results.values()), attributes, sources))
        self._connect(results, {} if first is None else first.values)

    def _node(self, row: Row, operands: list[Operand], own: dict[Operand, Value]) -> Node:
        """Return the body's node of a row."""
        first = row[0]
        assert first is not None
        inputs = [self.inside[o.row, o.index] if isinstance(o, Inner) else own[o] for o in operands]
        outputs = [Value(self.value_names.fresh(f"{value.name}_each")) for value in first.outputs]
        self.inside.update(((row, index), value) for index, value in enumerate(outputs))
        sources = tuple(dict.fromkeys(source for node in row if node is not None for source in node.sources))
        return Node(self.node_names.fresh(f"{first.name}_each"), inputs, outputs, self._attributes(row), sources)

    def _attributes(self, row: Row) -> Attributes:
        """Return the attributes of a row's nodes, of each round where they differ."""
        each: tuple[Attributes, ...] = tuple([node.attributes for node in row if node is not None])
        alike = len(set(map(self.structures.of_attributes, each))) == 1
        if self.layers:
            each = tuple(OPERATORS[each[0].op].of_rounds(each))
        if alike:
            return each[0]
        return ByRoundAttributes(each + each[-1:] * (len(row) - len(each)))  # nothing reads the last round's

    def _shape(self, row: Row, index: int) -> tuple[int, ...]:
        assert row[0] is not None
        return row[0].outputs[index].typed.shape

    def _stacked(self, values: tuple[Value, ...]) -> Value:
        """Return a new value, [rounds, *shape], of a value for each round."""
        name, shape = self.value_names.fresh(f"{values[0].name}_stacked"), values[0].typed.shape
        nodes = [self.producers.get(value) for value in values]
        moves = [node for node in nodes if node is not None and isinstance(node.attributes, ReindexAttributes)]
        same = len({(node.inputs[0], node.attributes.fill) for node in moves}) == 1
        if len(moves) == len(nodes) and same:
            index = np.stack([node.attributes.index for node in moves])
            return self._add(name, [moves[0].inputs[0]], ReindexAttributes(index, moves[0].attributes.fill))
        rows = [self._add(f"{name}_{place}", [value], ReshapeAttributes((1, *shape)))
                for place, value in enumerate(values)]
        return self._add(name, rows, ConcatAttributes(0))

    def _add(self, name: str, inputs: list[Value], attributes: ReindexAttributes | ReshapeAttributes | ConcatAttributes
             ) -> Value:
        value = Value(self.value_names.fresh(name))
        node = Node(self.node_names.fresh(name), inputs, [value], attributes)
        infer_types(Graph("", Stage.QUANTIZED, [], [], [node]))
        self.made.append(node)
        return value

    def _read_outside(self) -> list[tuple[Row, int]]:
        """Return the rows, and their outputs, that are read outside of the loop."""
        inside = {node for row in self.rounds.rows for node in row if node is not None}
        read = {value for node in self.graph.nodes if node not in inside for value in node.inputs}
        read |= {port.value for port in self.graph.outputs}
        return [
            (row, index) for row in self.rounds.rows for index in range(len(row[0].outputs if row[0] else ()))
            if any(node is not None and node.outputs[index] in read for node in row)
        ]

    def _connect(self, results: dict[tuple[Row, int], Value], before: Mapping[tuple[Row, int], Value]) -> None:
        """Put the loop in place of its rounds. ``before``: what its values are in a round in front of these."""
        begun = 1 if before else 0
        inside = {node for row in self.rounds.rows for node in row if node is not None}
        first = set(self.rounds.before)
        behind = [node for node in self.graph.nodes if node not in inside and node not in first]
        for (row, index), result in results.items():
            self.origin.update(
                (node.outputs[index], (result, begun + place)) for place, node in enumerate(row) if node is not None
            )
            if (row, index) in before:
                self.origin[before[row, index]] = (result, 0)
        for node in behind:
            if isinstance(node.attributes, ConcatAttributes):
                node.inputs = self._together(node.inputs, node.attributes.axis)
                if len(node.inputs) == 1:  # of nothing but rows of one result
                    node.attributes = ReshapeAttributes(node.outputs[0].typed.shape)
        read = {v for node in behind for v in node.inputs} | {port.value for port in self.graph.outputs}
        still = {value for node in self.rounds.before for value in node.outputs}
        for value in [*self.origin]:
            if value in read and value in still:  # of the round in front, which may be needed for something else
                self._replace(value, behind)
            elif value in read:
                self._take(value, [value], 0)
        self.graph.nodes = _living(self.graph, [*self.rounds.before, *self.made, *behind])

    def _replace(self, value: Value, readers: list[Node]) -> None:
        """Give readers, and the graph's outputs, the loop's row in place of a value."""
        new = Value(self.value_names.fresh(value.name), value.type, value.origin, value.meaning)
        self._take(new, [value], 0)
        for node in readers:
            node.inputs = [new if each is value else each for each in node.inputs]
        for port in self.graph.outputs:
            if port.value is value:
                port.value = new

    def _together(self, inputs: list[Value], axis: int) -> list[Value]:
        """Return the inputs of a concatenation, with rows of one of the loop's results that follow each other as
        one."""
        found: list[Value] = []
        for result, group in groupby(inputs, lambda value: self.origin.get(value, (None, 0))[0]):
            values = [*group]
            if result is None or len(values) < 2:
                found += values
            else:
                found.append(Value(self.value_names.fresh(f"{values[0].name}_and_more")))
                self._take(found[-1], values, axis)
        return found

    def _take(self, value: Value, rows: list[Value], axis: int) -> None:
        """Make ``value`` of these rows of one of the loop's results, after each other along ``axis``."""
        shape, result = rows[0].typed.shape, self.origin[rows[0]][0]
        flat = identity_order(shape).reshape(shape)
        index = np.concatenate([flat + self.origin[row][1] * prod(shape) for row in rows], axis=axis)
        name = self.node_names.fresh(f"{value.name}_row")
        self.made.append(Node(name, [result], [value], ReindexAttributes(index, 0)))


def _living(graph: Graph, nodes: list[Node]) -> list[Node]:
    """Return the nodes that an output needs: what was taken of each row is taken of all together now."""
    producers = {value: node for node in nodes for value in node.outputs}
    pending = [port.value for port in graph.outputs]
    needed: set[Node] = set()
    while pending:
        node = producers.get(pending.pop())
        if node is not None and node not in needed:
            needed.add(node)
            pending += node.inputs
    return [node for node in nodes if node in needed]


def _port(value: Value, shape: tuple[int, ...]) -> Port:
    return Port(value.name, value, shape, identity_order(shape))
