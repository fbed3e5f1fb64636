"""Let matrix-vector units take their weights from memory outside. Requires: single-consumer. Ensures it, too.

A unit of N vectors and M outputs becomes one that holds groups of the vectors while the rows of weights pass
(:mod:`hwflow.cores.external.fetched_matrix`), or to which a line buffer sends a group of windows again for each row
(:mod:`hwflow.cores.external.fetched_row`), and a rearranger that brings each vector's results together. A quantizer
behind the unit comes before the rearranger, row by row, so that a third of the bits wait there. One node without inputs
brings all weights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hwflow.cores.engine.layer_engine import LayerEngineAttributes
from hwflow.cores.external.fetched_matrix import FetchedMatrixAttributes
from hwflow.cores.external.fetched_row import FetchedRowAttributes
from hwflow.cores.external.weight_memory import (
    Fetched,
    MemoryTiming,
    WeightMemoryAttributes,
    lanes_for,
)
from hwflow.cores.logical.image_windows import Clipping
from hwflow.cores.logical.index_map import IndexMap
from hwflow.cores.matrix.dot_products import MvuAttributes, weight_type
from hwflow.cores.registry import OPERATORS
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.windows.sliding_window import SlidingWindowAttributes
from hwflow.ir.graph import Attributes, Graph, IntArray, Names, Node, Value
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.passes.outside.memory_shared import memory_shared
from hwflow.types import TensorType

ANY_TIMING: MemoryTiming | None = None
"""Of a graph that is only evaluated."""

MANY = 1 << 16
"""Weights that pass in a frame, beyond which they are very many."""

NAME = "memory"
"""Of the node that brings the weights."""


def may_be_fetched(node: Node, width: int) -> bool:
    """Tell whether a node's weights may lie in a memory with words of ``width`` bits. Those of a layer with room for
    others stay in block RAM, where a bitstream has them."""
    if isinstance(node.attributes, MvuAttributes) and node.attributes.held is not None:
        return False
    if not isinstance(node.attributes, MvuAttributes) or node.attributes.binary or node.attributes.weights.ndim > 2:
        return False
    bits = weight_type(node).bits
    return bits <= width and node.attributes.weights.shape[1] >= lanes_for(width, [bits])


def groups_of(node: Node[MvuAttributes]) -> list[int]:
    """Return the sizes of groups of vectors that share a row of weights while it is there, greatest first."""
    vectors = node.outputs[0].typed.shape[0]
    return [size for size in range(vectors, 0, -1) if vectors % size == 0]


def window_of(node: Node[MvuAttributes], group: int, producer: Node | None) -> Node[SlidingWindowAttributes] | None:
    """Return the line buffer in front of a node, if it can send a group of windows again for each row of weights: a
    segment of an output row. With fewer channels than twice the group a row of weights takes longer to use than to
    come, as the line buffer sends a pixel a cycle at the most."""
    if producer is None or not isinstance(producer.attributes, SlidingWindowAttributes):
        return None
    if producer.attributes.images * producer.attributes.stacked > 1:
        return None
    window = producer.attributes.geometry
    fast = producer.outputs[0].typed.shape[1] >= _CHANNELS * group
    return producer if fast and window.taps > 1 and window.output[1] % group == 0 else None


def quantizer_of(node: Node, consumers: Consumers) -> Node[RequantizeAttributes] | None:
    """Return the quantizer that alone reads what a node makes, if it may take its results row by row."""
    readers = consumers[node.outputs[0]]
    if len(readers) != 1:
        return None
    ((reader, _),) = readers
    given = reader.attributes
    if not isinstance(given, RequantizeAttributes) or given.held is not None or given.rounds > 1:
        return None
    return reader


_PASSING = 64  # cycles of an element between two units, at most
_CHANNELS = 2  # of a window for each of a group
Consumers = Mapping[Value, Sequence[tuple[Node, int]]]
Known = dict[tuple[str, type[Attributes], int, bool], dict[Any, Any]]
"""What is known of the nodes of a layer (:attr:`Node.kept`), by name, kind and group, and whether very many weights
pass: the rest follows from shapes and intervals of the layer and from the quantizer and the line buffer beside it."""


def fetch_weights(
    graph: Graph, groups: Mapping[str, int], timing: MemoryTiming | None, known: Known | None = None
) -> Graph:
    """Return a copy of a dataflow graph in which the nodes named in ``groups`` have their weights in a memory, and use
    a row for so many vectors at a time; in the same memory as those that lie there already. ``known``: of other such
    copies, which share what is computed once. Raises :class:`ModelRefused` where the memory is too small."""
    graph = graph.copy()
    if not groups:
        return graph
    nodes, values = Names([n.name for n in graph.nodes]), Names([v.name for v in graph.values()])
    producers = graph.producers()
    made: list[Node] = []
    layers: list[Fetched] = []
    streams: list[Value] = []
    consumers = graph.consumers()
    engine = next((node for node in graph.nodes if isinstance(node.attributes, LayerEngineAttributes)), None)
    behind = engine is not None and follow_alone(graph, engine.outputs[0], groups)
    many = sum(
        node.attributes.weights.size * (node.outputs[0].typed.shape[0] // groups[node.name])
        for node in graph.nodes if node.name in groups
    ) > MANY
    moved: set[Node] = set()  # quantizers that come before a rearranger
    for node in graph.nodes:
        if node.name not in groups:
            made += [node] if node not in moved else []
            continue
        weights, group = node.attributes.weights, groups[node.name]
        result = node.outputs[0]
        vectors, channels = result.typed.shape
        taken = weights.size + _PASSING * (weights.shape[0] + weights.shape[1]) if behind else 0
        layers.append(Fetched(weights, vectors // group, taken=taken))
        streams.append(Value(values.fresh(f"{node.name}_weights"), None, result.origin))
        by_row = Value(values.fresh(f"{node.name}_rows"), None, result.origin)
        producer = producers.get(node.inputs[0])
        _without_clipping(producer)
        window = window_of(node, group, producer)
        rows, operands = (vectors // group * channels, group), [streams[-1], node.inputs[0]]
        matrix: Attributes = FetchedMatrixAttributes.of(weights.shape, group, result.typed.interval, many=many)
        if window is not None:
            window.attributes = replace(window.attributes, segment=group, times=channels)
            window.outputs[0].type = None
            rows, operands = (vectors * channels, 1), operands[::-1]
            matrix = FetchedRowAttributes.of(weights.shape, group, result.typed.interval)
        own = [Node(node.name, operands, [by_row], matrix, node.sources)]
        quantizer = quantizer_of(node, consumers) if group > 1 else None
        if quantizer is not None:
            moved.add(quantizer)
            result, name = quantizer.outputs[0], f"{node.name}_quantized_rows"
            type_ = TensorType(rows, result.typed.element, result.typed.interval)
            source, by_row = by_row, Value(values.fresh(name), type_, result.origin)
            attributes = _by_row(quantizer, channels, group)
            own.append(Node(quantizer.name, [source], [by_row], attributes, quantizer.sources))
        order = RearrangeAttributes(_vector_by_vector(vectors, channels, group), channels, 0)
        own.append(Node(nodes.fresh(f"{node.name}_vectors"), [by_row], [result], order, node.sources))
        made += own
        for each in own if window is None else (window, *own):
            each.kept = {} if known is None else known.setdefault((each.name, type(each.attributes), group, many), {})
    there = next((node for node in made if isinstance(node.attributes, WeightMemoryAttributes)), None)
    if there is None:
        memory = Node(nodes.fresh(NAME), [], streams, WeightMemoryAttributes(timing, tuple(layers)))
    else:
        attributes = replace(there.attributes, layers=(*there.attributes.layers, *layers))
        memory = Node(there.name, [], [*there.outputs, *streams], attributes)
        made.remove(there)
    graph.nodes = [memory, *made]
    for node in graph.nodes:
        if any(value.type is None for value in node.outputs):
            types = OPERATORS[node.op].infer(node.attributes, [value.typed for value in node.inputs])
            for value, type_ in zip(node.outputs, types, strict=True):
                value.type = type_
    if timing is not None:
        memory_shared(graph, memory)
    return graph


def follow_alone(graph: Graph, result: Value, names: Collection[str]) -> bool:
    """Tell whether the nodes with these names read a vector, and one what another one makes of it, with nothing else
    between but quantizers: each begins when the one before it has ended."""
    consumers, left = graph.consumers(), set(names)
    while left:
        readers = consumers[result]
        if len(readers) != 1 or result.typed.shape[0] > 1:
            return False
        ((node, _),) = readers
        if node.name not in left and not isinstance(node.attributes, RequantizeAttributes):
            return False
        left.discard(node.name)
        (result,) = node.outputs
    return True


def _without_clipping(window: Node | None) -> None:
    """Let windows that were to be clipped, if the unit wants them so, come whole."""
    if window is not None and getattr(window.attributes, "clipping", Clipping.NONE) != Clipping.NONE:
        window.attributes = replace(window.attributes, clipping=Clipping.NONE)
        window.kept = {}


def _by_row(quantizer: Node[RequantizeAttributes], channels: int, row: int) -> RequantizeAttributes:
    """Return the attributes of a quantizer that takes a row of so many elements for each of the ``channels``, one after
    the other."""
    given = quantizer.attributes
    steps = given.steps if len(given.steps) == channels else given.steps * channels
    return replace(given, axis=1, steps=steps, rounds=channels, row=row)


def _vector_by_vector(vectors: int, channels: int, group: int) -> IndexMap:
    """Return where the results of a vector lie among those that come row by row."""
    places: IntArray = np.arange(vectors * channels).reshape(vectors // group, channels, group)
    return IndexMap(places.swapaxes(1, 2).reshape(-1), vectors * channels)
