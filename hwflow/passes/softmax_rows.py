"""Make each Softmax with its quantizer one node. Requires and ensures: single-consumer.

An optimisation for graphs with time: one serial core (:mod:`hwflow.cores.streams.softmax_row`) takes a fraction of the
hardware of a core for each operation, and many more cycles. Every value that is left stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hwflow.cores.beat_movers import ForkAttributes
from hwflow.cores.registry import OPERATORS
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.streams.softmax_row import SoftmaxRowAttributes, is_offered
from hwflow.cores.windows.group_pool import PoolAttributes
from hwflow.cores.windows.max_pool import MaxPoolAttributes
from hwflow.cores.windows.sum_pool import SumPoolAttributes
from hwflow.ir.graph import A, Graph, IntArray, Node, Value
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, QuotientAttributes, RequantizeAttributes
from hwflow.numerics.requantizers.step_function import all_alike

P = TypeVar("P", bound=PoolAttributes)


def softmax_rows(graph: Graph) -> Graph:
    """Return a copy of a dataflow graph with every such Softmax as one node; ``graph`` itself where there is none."""
    if not _found(graph):
        return graph
    graph = graph.copy()
    for softmax in _found(graph):
        _replace(graph, softmax)
    return graph


@dataclass(frozen=True)
class _Softmax:
    """``nodes`` that compute ``result`` from ``source``, the last one last, and what one node says instead."""

    source: Value
    result: Value
    nodes: tuple[Node, ...]
    attributes: SoftmaxRowAttributes


class _NoSoftmaxError(Exception):
    """What stands in front of a quotient is something else."""


def _found(graph: Graph) -> list[_Softmax]:
    found = []
    for node in graph.nodes:
        if isinstance(node.attributes, QuotientAttributes):
            try:
                found.append(_Behind(graph).softmax(node))
            except _NoSoftmaxError:
                continue
    return found


def _replace(graph: Graph, softmax: _Softmax) -> None:
    last = softmax.nodes[-1]
    inside = set(softmax.nodes)
    sources = dict.fromkeys(source for node in graph.nodes if node in inside for source in node.sources)
    made = Node(last.name, [softmax.source], [softmax.result], softmax.attributes, tuple(sources))
    graph.nodes = [made if node is last else node for node in graph.nodes if node is last or node not in inside]


class _Behind:
    """The nodes of a Softmax, found from its quotient on; each value has one reader."""

    def __init__(self, graph: Graph) -> None:
        self._producers: Mapping[Value, Node] = graph.producers()
        self._consumers = graph.consumers()
        self._nodes: list[Node] = []

    def softmax(self, quotient: Node[QuotientAttributes]) -> _Softmax:
        """Return the Softmax; raise :class:`_NoSoftmaxError` where it is none."""
        each, whole = quotient.inputs
        powers, _ = self._forked(each, whole, SumPoolAttributes)
        functions, distances = self._functions(powers)
        greatest, each = distances.inputs
        source, pool = self._forked(each, greatest, MaxPoolAttributes)
        quantizer = self._quantizer(quotient.outputs[0])
        steps, result = quantizer.attributes.steps, quantizer.outputs[0]
        _require(not pool.least and quantizer.attributes.rounds == 1 and all_alike(steps))
        most = source.typed.interval.hi - source.typed.interval.lo
        table = _powers([distances, *functions], most)
        attributes = SoftmaxRowAttributes(table, quotient.attributes, steps[0], result.typed)
        _require(is_offered(attributes))
        return _Softmax(source, result, (*self._nodes, distances, *functions, quotient, quantizer), attributes)

    def _forked(self, each: Value, whole: Value, pool: type[P]) -> tuple[Value, P]:
        """Return the value whose every element is ``each``, and of whose every row ``whole`` is the ``pool``, repeated.
        """
        repeated = self._made(whole, RearrangeAttributes)
        pooled = self._made(repeated.inputs[0], pool)
        arranged = self._made(pooled.inputs[0], RearrangeAttributes)
        fork = self._made(arranged.inputs[0], ForkAttributes)
        rows, size = fork.inputs[0].typed.shape
        _require({*fork.outputs} == {each, arranged.inputs[0]} and fork.attributes.rounds == 1)
        _require(arranged.attributes.map.is_identity and arranged.attributes.channels == 1)
        _require(pooled.attributes.window == size > 1)
        index = repeated.attributes.map.index
        _require(np.array_equal(index, np.arange(rows).repeat(size)) and repeated.attributes.channels == size)
        return fork.inputs[0], pooled.attributes

    def _functions(self, powers: Value) -> tuple[list[Node], Node]:
        """Return the functions of a distance that give ``powers``, and what makes the distances."""
        functions: list[Node] = []
        node = self._producer(powers)
        while len(node.inputs) == 1:
            _require(node.op in _FUNCTIONS)
            functions.insert(0, node)
            node = self._producer(node.inputs[0])
        _require(isinstance(node.attributes, ElementwiseAttributes) and node.attributes.function == Simple("sub"))
        _require(len(node.inputs) == 2)
        return functions, node

    def _quantizer(self, value: Value) -> Node[RequantizeAttributes]:
        readers = [reader for reader, _ in self._consumers[value]]
        if not readers or not isinstance(readers[0].attributes, RequantizeAttributes):
            raise _NoSoftmaxError
        return readers[0]

    def _producer(self, value: Value) -> Node:
        if value not in self._producers:
            raise _NoSoftmaxError
        return self._producers[value]

    def _made(self, value: Value, kind: type[A]) -> Node[A]:
        """Return the node of this kind that makes the value, which is one of those that are replaced."""
        node = self._producer(value)
        if not isinstance(node.attributes, kind):
            raise _NoSoftmaxError
        self._nodes.append(node)
        return node


_FUNCTIONS = frozenset({ElementwiseAttributes.op, RequantizeAttributes.op})


def _require(holds: bool) -> None:
    if not holds:
        raise _NoSoftmaxError


def _powers(functions: Sequence[Node], most: int) -> IntArray:
    """Return what becomes of the differences of 0 to ``most`` and 0, by functions of one element each."""
    distances = np.arange(most + 1).reshape(1, -1, 1)
    operands = [distances, np.zeros_like(distances)]
    for node in functions:
        constants = getattr(node.attributes, "constants", ())
        _require(not any(isinstance(constant, np.ndarray) for constant in constants))
        _require(all_alike(getattr(node.attributes, "steps", ())))
        operands = [*OPERATORS[node.op].evaluate(node.attributes, operands)]
    (powers,) = operands
    return powers.reshape(-1)
