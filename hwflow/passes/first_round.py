"""Prove that what stands before the rounds of a loop is one more round, of states that are constants.

A first round differs from the others where its states are constant: products of them are folded into what follows. It
is one of the loop's rounds all the same if its values are those that the body gives for these states. Two values are
equal

* if equal operators make them of equal values; or
* if each of their elements is a function of one element that the round takes, the same for both, and both functions
  are equal everywhere: they are evaluated for all of its integers.

What the states are at first is no part of the graph; the integers that stand for the real number 0 are tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod

import numpy as np

from hwflow.cores.registry import OPERATORS
from hwflow.ir.graph import Delaying, Graph, IntArray, Node, Value, identity_order
from hwflow.ir.node_attributes import (
    ElementwiseAttributes,
    ProductAttributes,
    ReindexAttributes,
    RequantizeAttributes,
    ReshapeAttributes,
    ScaledAddAttributes,
    TransposeAttributes,
)
from hwflow.ir.structure import Structures
from hwflow.numerics.requantizers.stages import NoSteps, QuantizerStage
from hwflow.passes.find_rounds import Inner, Rounds, Row, Same, Scanned, State
from hwflow.types import Interval, IntType, TensorType

_POINTWISE = (ElementwiseAttributes, ProductAttributes, RequantizeAttributes, ScaledAddAttributes)
_MOVES = (ReindexAttributes, ReshapeAttributes, TransposeAttributes)
_MOST = 1 << 24  # elements of what a round takes, for all integers that it may be


@dataclass(frozen=True)
class FirstRound:
    """A round in front of a loop's. ``scanned``: what it takes for each of these operands; ``states``: the number that
    all elements of each state are; ``values``: what the body's values are in it, where they are known."""

    scanned: Mapping[Scanned, Value]
    states: Mapping[State, int]
    values: Mapping[tuple[Row, int], Value]


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of a value: its elements are functions of the elements ``source`` (flat indices) of a tensor
    ``base``. ``table``: the value for each integer that these may be, all alike, [integers or 1, *shape]. Without a
    base it is constant."""

    table: IntArray
    base: Value | None = None
    source: IntArray | None = None

    @property
    def key(self) -> Hashable:
        """Equal for values that are equal, whatever the base's elements are."""
        if (self.table == self.table[:1]).all():
            return (self.table.shape[1:], sha256(self.table[0].tobytes()).digest())
        assert self.base is not None and self.source is not None, "it is not constant"
        return (
            self.base, self.table.shape, sha256(self.source.tobytes()).digest(), sha256(self.table.tobytes()).digest()
        )


def first_round(graph: Graph, rounds: Rounds) -> FirstRound | None:
    """Return the round that the nodes in front of a typed graph's rounds are, None where they are none."""
    operands = dict.fromkeys(o for each in rounds.rows.values() for o in each)
    scanned = {o: _row_before(graph, o) for o in operands if isinstance(o, Scanned)}
    states = {o: _zero(o) for o in operands if isinstance(o, State)}
    known_scanned = {o: value for o, value in scanned.items() if value is not None}
    known_states = {o: number for o, number in states.items() if number is not None}
    if len(known_scanned) < len(scanned) or len(known_states) < len(states) or not scanned:
        return None
    if max(_size(value) for value in known_scanned.values()) > _MOST:
        return None
    values = _Proof(rounds, known_scanned, known_states).run()
    if any(values.get((o.row, o.index)) is not o.first for o in known_states):
        return None
    return FirstRound(known_scanned, known_states, values)


def _size(value: Value) -> int:
    """Return the elements of a value for all integers that it may be."""
    interval = value.typed.interval
    return (interval.hi - interval.lo + 1) * prod(value.typed.shape)


def _row_before(graph: Graph, operand: Scanned) -> Value | None:
    """Return the value that comes before those of a scanned operand: the one of indices as far before the first's as
    that is before the second's."""
    producers = graph.producers()
    nodes = [producers.get(value) for value in operand.values]
    moves = [node for node in nodes if node is not None and isinstance(node.attributes, ReindexAttributes)]
    if len(moves) < len(nodes):
        return None
    (source,), fill = moves[0].inputs, moves[0].attributes.fill
    first, second = (node.attributes.index for node in moves[:2])
    wanted = 2 * first - second
    for node in graph.nodes:
        given = node.attributes
        same = isinstance(given, ReindexAttributes) and node.inputs[0] is source and given.fill == fill
        if same and given.index.shape == wanted.shape and (given.index == wanted).all():
            return node.outputs[0]
    return None


def _zero(operand: State) -> int | None:
    """Return the integer that is 0 in terms of the quantizer that makes a state; 0 for integers that none makes."""
    node = operand.row[0]
    assert node is not None
    if not isinstance(node.attributes, RequantizeAttributes):
        return 0
    last = {stages[-1] for stages in node.attributes.stages}
    zeros = {stage.out_zero_point for stage in last if isinstance(stage, QuantizerStage)}
    if len(zeros) != 1 or not all(isinstance(stage, QuantizerStage) for stage in last):
        return None
    (zero,) = zeros
    return int(zero) if zero == int(zero) else None


@dataclass
class _Proof:
    rounds: Rounds
    scanned: Mapping[Scanned, Value]
    states: Mapping[State, int]
    _structures: Structures = field(default_factory=Structures)

    def run(self) -> dict[tuple[Row, int], Value]:
        """Return the values in front of the loop that the body's values are."""
        outside, made, by_function = self._outside()
        found: dict[tuple[Row, int], Value] = {}
        inside: dict[tuple[Row, int], _Known] = {}
        for row, operands in self.rounds.rows.items():
            node = row[0]
            assert node is not None
            equal: list[Value | None] = []
            known: list[_Known | None] = []
            for operand in operands:
                match operand:
                    case Inner(of, index):
                        equal.append(found.get((of, index)))
                        known.append(inside.get((of, index)))
                    case Scanned():
                        equal.append(self.scanned[operand])
                        known.append(outside[self.scanned[operand]])
                    case Same(same):
                        equal.append(same)
                        known.append(outside.get(same))
                    case State(_, _, first):
                        equal.append(None)
                        known.append(_Known(np.full((1, *first.typed.shape), self.states[operand], dtype=np.int64)))
            twin = made.get((self._structures.of_node(node), tuple(equal)))
            results = _results(node, known)
            for index in range(len(node.outputs)):
                if results is not None:
                    inside[row, index] = results[index]
                if twin is not None:
                    found[row, index] = twin.outputs[index]
                elif results is not None and (value := by_function.get(results[index].key)):
                    found[row, index] = value
        return found

    def _outside(self) -> tuple[dict[Value, _Known], dict[Hashable, Node], dict[Hashable, Value]]:
        """Return what is known of the values in front of the loop that are functions of what the round takes; the nodes
        by what they are and read; these values by their functions."""
        known = {value: _itself(value) for value in self.scanned.values()}
        made: dict[Hashable, Node] = {}
        by_function: dict[Hashable, Value] = {}
        met = set(self.scanned.values())
        for node in self.rounds.before:
            if isinstance(node.attributes, Delaying) or met.isdisjoint(node.inputs):
                continue
            met.update(node.outputs)
            made[self._structures.of_node(node), tuple(node.inputs)] = node
            results = _results(node, [known.get(value) for value in node.inputs])
            for value, result in zip(node.outputs, results or (), strict=False):
                known[value] = result
                by_function.setdefault(result.key, value)
        return known, made, by_function


def _itself(value: Value) -> _Known:
    """Return a tensor as a function of itself: each element is all of the integers that it may be."""
    type_, shape = value.typed, value.typed.shape
    integers = np.arange(type_.interval.lo, type_.interval.hi + 1, dtype=np.int64).reshape(-1, *(1 for _ in shape))
    axis = type_.channel_axis % len(shape)
    ends = np.array([(each.lo, each.hi) for each in type_.channel_intervals(axis)], dtype=np.int64)
    along = [-1 if place == axis else 1 for place in range(len(shape))]
    table = np.clip(integers, ends[:, 0].reshape(along), ends[:, 1].reshape(along))
    return _Known(np.broadcast_to(table, (len(integers), *shape)), value, identity_order(shape).reshape(shape))


def _results(node: Node, operands: Sequence[_Known | None]) -> tuple[_Known, ...] | None:
    """Return what is known of a node's results; None if they are not functions of single elements."""
    known = [operand for operand in operands if operand is not None]
    bases = {operand.base for operand in known if operand.base is not None}
    if len(known) < len(operands) or len(bases) > 1 or not known:
        return None
    rows = max(len(operand.table) for operand in known)
    tables = [np.broadcast_to(operand.table, (rows, *operand.table.shape[1:])) for operand in known]
    sources = [operand.source for operand in known if operand.source is not None]
    source: IntArray | None = None
    if bases:
        if isinstance(node.attributes, _MOVES):
            if isinstance(node.attributes, ReindexAttributes) and (node.attributes.index < 0).any():
                return None
            (source,) = OPERATORS[node.op].evaluate(node.attributes, [sources[0][np.newaxis]])
            source = source[0]
        elif isinstance(node.attributes, _POINTWISE):
            if any(s.shape != sources[0].shape or (s != sources[0]).any() for s in sources):
                return None
            source = sources[0]
        else:
            return None
    elif not isinstance(node.attributes, (*_MOVES, *_POINTWISE)) and rows != 1:
        return None
    types = [_type_of(table) for table in tables]
    try:
        results = OPERATORS[node.op].evaluate(OPERATORS[node.op].derive(node.attributes, types), tables)
    except NoSteps:
        return None
    base = next(iter(bases), None)
    if source is not None and any(result.shape[1:] != source.shape for result in results):
        return None
    return tuple(_Known(result, base, source) for result in results)


def _type_of(table: IntArray) -> TensorType:
    interval = Interval(int(table.min()), int(table.max()))
    return TensorType(table.shape[1:], IntType.holding(interval), interval)
