"""Find the rounds of a loop that was written out: groups of equal nodes, each of which takes what the one before gives.

It is a matter of the graph alone, so it does not depend on who wrote the loop out: the resolver, ``hwflow quantize`` or
an exporter. (Of code, this is known as loop rerolling.) The first round often differs, since what it has of a constant
state is folded; it stays what it is, and its results are the states that the rounds behind it begin with.

Rounds may also be layers of one shape, which differ in their constants (``layers``): a core for each takes the
constants of the rounds in turns (:mod:`hwflow.cores.loops.by_round`).

Rounds are found from a *seed*: nodes that are equal and each depend on the one before, such as the products of a state
by the weights. A node belongs to round k if it depends on seed k, but not on seed k + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Delaying, Graph, Node, Value
from hwflow.ir.node_attributes import (
    ConcatAttributes,
    LoopAttributes,
    ReindexAttributes,
    ReshapeAttributes,
    TransposeAttributes,
)
from hwflow.ir.structure import Structures

LEAST_ROUNDS = 3
"""Of fewer, hardware for each is no great loss."""

LEAST_LAYERS = 2
MOST_LAYERS = 8
"""Nodes of one kind in a body: of the products of a residual block, those of one shape."""

_MOVES = (ConcatAttributes, LoopAttributes, ReindexAttributes, ReshapeAttributes, TransposeAttributes)

Row: TypeAlias = "tuple[Node | None, ...]"
"""The node of each round; the last one is None where nothing reads it."""


@dataclass(frozen=True)
class Same:
    """An operand that is the same value in every round."""

    value: Value


@dataclass(frozen=True)
class Inner:
    """Output ``index`` of the row's node of the same round."""

    row: Row
    index: int


@dataclass(frozen=True)
class State:
    """Output ``index`` of the row's node of the round before; ``first``: what it is in the first round."""

    row: Row
    index: int
    first: Value


@dataclass(frozen=True)
class Scanned:
    """A value for each round, from outside."""

    values: tuple[Value, ...]


Operand: TypeAlias = Same | Inner | State | Scanned


@dataclass
class Rounds:
    """The rounds of a loop: ``rows`` of nodes with their operands, in topological order. ``outside``: the nodes that do
    not depend on any seed, and are in no row."""

    count: int
    rows: dict[Row, list[Operand]]
    before: list[Node]


def find_rounds(graph: Graph) -> Rounds | None:
    """Return the rounds of a loop in a typed graph of the quantized stage, of those with the most
    multiply-accumulates; None where there is none."""
    structures = Structures()
    several, search = _searched(graph, LEAST_ROUNDS, structures.of_node)
    for seeds in several:
        if found := search.from_seeds(seeds, LEAST_ROUNDS):
            return found
    return None


def find_layers(graph: Graph) -> Rounds | None:
    """Return rounds that are layers which differ in nothing but constants that a core may take in turns; of those with
    the most multiply-accumulates that need no multipliers of their own then, the ones with the smallest body."""
    structures = Structures()

    def kind(node: Node) -> Hashable:
        return structures.of_node(node, OPERATORS[node.op].alike(node.attributes))

    several, search = _searched(graph, LEAST_LAYERS, kind)
    best: tuple[tuple[int, int], Rounds] | None = None
    for nodes in several:
        if not OPERATORS[nodes[0].op].macs(nodes[0]):
            break
        series = search.in_series(nodes)
        for period in range(1, min(MOST_LAYERS, len(series) // LEAST_LAYERS) + 1):
            for first in range(period):
                found = search.from_seeds(series[first::period], LEAST_LAYERS)
                if found is None:
                    continue
                macs = sum(OPERATORS[row[0].op].macs(row[0]) for row in found.rows if row[0] is not None)
                figures = ((found.count - 1) * macs, -len(found.rows))
                if best is None or figures > best[0]:
                    best = figures, found
    return best and best[1]


def _searched(
    graph: Graph, least: int, kind: Callable[[Node], Hashable]
) -> tuple[list[list[Node]], _Search]:
    """Return the nodes of each kind of which there are at least so many, those with the most multiply-accumulates
    first, and a search among them."""
    kinds: dict[Node, Hashable] = {
        node: id(node) if isinstance(node.attributes, Delaying) else kind(node) for node in graph.nodes
    }
    alike: dict[Hashable, list[Node]] = {}
    for node in graph.nodes:
        if not isinstance(node.attributes, _MOVES):
            alike.setdefault(kinds[node], []).append(node)
    several = [nodes for nodes in alike.values() if len(nodes) >= least]
    several.sort(key=lambda nodes: -OPERATORS[nodes[0].op].macs(nodes[0]))
    return several, _Search(graph, kinds)


@dataclass
class _Search:
    graph: Graph
    kinds: Mapping[Node, Hashable]
    _rows: dict[Node, tuple[Row, int]] = field(default_factory=dict)
    _levels: dict[Node, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._producers = self.graph.producers()
        self._consumers = self.graph.consumers()
        self._places = {node: place for place, node in enumerate(self.graph.nodes)}
        self._outputs = {port.value for port in self.graph.outputs}

    def from_seeds(self, seeds: Sequence[Node], least: int) -> Rounds | None:
        """Return the rounds, at least so many, that begin with such of these nodes as depend on each other; None where
        there are none."""
        seed = self.in_series(seeds)
        if len(seed) < least:
            return None
        self._rows = {}
        self._grow(seed)
        rows = self._consistent()
        if seed not in rows or not any(isinstance(o, State) for operands in rows.values() for o in operands):
            return None
        inside = {node for row in rows for node in row}
        before = [node for node in self.graph.nodes if self._levels[node] == 0 and node not in inside]
        return Rounds(len(seed), dict(sorted(rows.items(), key=lambda item: self._place(item[0]))), before)

    def in_series(self, candidates: Sequence[Node]) -> tuple[Node, ...]:
        """Return nodes of which each depends on the one before, from the first candidate on, and set the levels."""
        self._levels = {}
        among = {*candidates}
        seeds: list[Node] = []
        for node in self.graph.nodes:
            operands = () if isinstance(node.attributes, Delaying) else node.inputs
            level = max(map(self._level, operands), default=0)
            if node in among and level == len(seeds):
                seeds.append(node)
                level += 1
            self._levels[node] = level
        return tuple(seeds)

    def _level(self, value: Value) -> int:
        node = self._producers.get(value)
        return 0 if node is None else self._levels[node]

    def _place(self, row: Row) -> int:
        assert row[0] is not None
        return self._places[row[0]]

    def _grow(self, seed: Row) -> None:
        """Collect the rows around a seed: what each round does with its nodes' results, and what it does to each of its
        operands before."""
        pending = [seed]
        self._rows.update((node, (seed, place)) for place, node in enumerate(seed) if node)
        while pending:
            row = pending.pop()
            for new in (*self._behind(row), *self._in_front(row)):
                if all(node is None or self._may_join(node) for node in new):
                    self._rows.update((node, (new, place)) for place, node in enumerate(new) if node)
                    pending.append(new)

    def _may_join(self, node: Node) -> bool:
        """Tell whether a node is free to be part of a body, in which there are no loops."""
        return node not in self._rows and not isinstance(node.attributes, LoopAttributes)

    def _in_front(self, row: Row) -> Iterator[Row]:
        nodes = [node for node in row if node is not None]
        for index in range(len(nodes[0].inputs)):
            producers = [self._producers.get(node.inputs[index]) for node in nodes]
            found = tuple(node for node in producers if node is not None and self._levels[node] == 0)
            alike = len({self.kinds[node] for node in found}) == 1 and len(set(found)) == len(row)
            if alike and all(len(node.outputs) == 1 for node in found) and self._read_here_alone(found, row):
                yield found

    def _read_here_alone(self, found: Sequence[Node], row: Row) -> bool:
        return all(
            node.outputs[0] not in self._outputs
            and all(reader is mine for reader, _ in self._consumers[node.outputs[0]])
            for node, mine in zip(found, row, strict=True)
        )

    def _behind(self, row: Row) -> Iterator[Row]:
        assert row[0] is not None
        for index in range(len(row[0].outputs)):
            readers: list[dict[Hashable, list[Node]]] = []
            for number, node in enumerate(row, 1):
                own: dict[Hashable, list[Node]] = {}
                for reader, place in self._consumers[node.outputs[index]] if node else ():
                    if self._levels[reader] == number:
                        own.setdefault((self.kinds[reader], place), []).append(reader)
                readers.append(own)
            for kind, nodes in readers[0].items():
                counts = {len(own.get(kind, ())) for own in readers[:-1]}
                last = readers[-1].get(kind, [])
                if counts == {len(nodes)} and len(last) in (0, len(nodes)):
                    for place in range(len(nodes)):
                        yield (*(own[kind][place] for own in readers[:-1]), last[place] if last else None)

    def _consistent(self) -> dict[Row, list[Operand]]:
        """Return the rows whose operands are known, with these: rows that fail take those with them that need them."""
        rows = dict.fromkeys(row for row, _ in self._rows.values())
        while True:
            kept: dict[Row, list[Operand]] = {}
            for row in rows:
                operands = [self._operand(row, index, rows) for index in range(len(row[0].inputs if row[0] else ()))]
                known = [operand for operand in operands if operand is not None]
                if len(known) == len(operands):
                    kept[row] = known
            read = {o.row for operands in kept.values() for o in operands if isinstance(o, Inner | State)}
            for row in [*kept]:  # what was only in front of rows that failed
                if row[0] is not None and self._levels[row[0]] == 0 and row not in read:
                    del kept[row]
            if len(kept) == len(rows):
                return kept
            rows = dict.fromkeys(kept)

    def _operand(self, row: Row, index: int, rows: Mapping[Row, object]) -> Operand | None:
        nodes = [node for node in row if node is not None]
        values = [node.inputs[index] for node in nodes]
        if all(value is values[0] for value in values) and self._level(values[0]) == 0:
            return Same(values[0])
        if inner := self._source(values, rows, 0):
            return Inner(*inner)
        if not self._level(values[0]) and (before := self._source(values[1:], rows, 0)):
            return State(*before, values[0])
        if not any(map(self._level, values)) and len(values) == len(row):
            return Scanned(tuple(values))
        return None

    def _source(self, values: Sequence[Value], rows: Mapping[Row, object], first: int) -> tuple[Row, int] | None:
        """Return the row, and its nodes' output, whose nodes from round ``first`` on give these values."""
        node = self._producers.get(values[0]) if values else None
        if node is None or node not in self._rows:
            return None
        row, place = self._rows[node]
        index = node.outputs.index(values[0])
        if row not in rows or place != first:
            return None
        for value, other in zip(values, row[first:], strict=False):
            if other is None or other.outputs[index] is not value:
                return None
        return row, index
