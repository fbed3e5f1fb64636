"""Let streams wait in memory outside. Requires: single-consumer. Ensures it, too.

A queue there is a node of its own between the two ends of a stream (:mod:`hwflow.cores.external.memory_queue`), or
takes the place of a delay by frames (:mod:`hwflow.cores.external.memory_delay`). The node that brings weights has the
memory; where none is fetched, it has no outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil

from hwflow.cores.external.memory_delay import MemoryDelayAttributes
from hwflow.cores.external.memory_queue import MemoryQueueAttributes, queue_words, word_bits
from hwflow.cores.external.weight_memory import (
    MemoryPlan,
    MemoryTiming,
    Waiting,
    WeightMemoryAttributes,
    plan_of,
)
from hwflow.cores.streams.delay import StreamDelayAttributes
from hwflow.ir.graph import Graph, Names, Node, Value
from hwflow.passes.outside.memory_shared import memory_shared

NAME = "memory"
"""Of the node that has the memory."""

_ROOM = (8, 4, 2, 1)  # times what waits in another design, the first for which there are pages


def queue_outside(graph: Graph, held: Mapping[str, Fraction], timing: MemoryTiming | None) -> Graph:
    """Return a copy of a dataflow graph in which the values named in ``held`` wait in the memory, which has room for
    several times that share of a frame of each: what waits depends on the design. What a delay makes does so in its
    place, with room for the frames of the delay. ``timing``: of the memory (None: the graph is only evaluated).
    Raises :class:`ModelRefused` where the memory is too small."""
    if not held:
        return graph
    graph = graph.copy()
    plan = None if timing is None else _planned(graph, held, timing)
    nodes, values = Names([n.name for n in graph.nodes]), Names([v.name for v in graph.values()])
    consumers = graph.consumers()
    made: list[Node] = []
    index = _maps_there(graph)
    for node in graph.nodes:
        delayed = node.attributes
        if isinstance(delayed, StreamDelayAttributes) and node.outputs[0].name in held:
            delay = MemoryDelayAttributes(plan, index, node.outputs[0].name, delayed)
            made.append(Node(node.name, node.inputs, node.outputs, delay, node.sources))
            index += 1
            continue
        made.append(node)
        for value in node.outputs:
            if value.name in held:
                (reader, place), *_ = consumers[value]
                left = Value(values.fresh(f"{value.name}_waited"), value.type, value.origin, carried=value.carried)
                reader.inputs[place] = left
                name = nodes.fresh(f"{value.name}_outside")
                queue = MemoryQueueAttributes(plan, index, value.name)
                made.append(Node(name, [value], [left], queue, node.sources))
                index += 1
    graph.nodes = made
    return graph


def _maps_there(graph: Graph) -> int:
    """Return how many queues have maps of an engine, which come first."""
    return sum(
        queue.unit > 0 for node in graph.nodes if isinstance(node.attributes, WeightMemoryAttributes)
        for queue in node.attributes.queues
    )


def _planned(graph: Graph, held: Mapping[str, Fraction], timing: MemoryTiming) -> MemoryPlan:
    """Tell the node that has the memory, or a new one, of the queues; return the plan of all that lies there."""
    width = timing.chip.width
    memory = next((n for n in graph.nodes if isinstance(n.attributes, WeightMemoryAttributes)), None)
    if memory is None:
        names = Names([n.name for n in graph.nodes])
        memory = Node(names.fresh(NAME), [], [], WeightMemoryAttributes(timing, ()))
        graph.nodes.insert(0, memory)
    producers, maps = graph.producers(), memory.attributes.queues[: _maps_there(graph)]
    for times in _ROOM:
        waiting = list(maps)
        for value in (value for node in graph.nodes for value in node.outputs if value.name in held):
            words = queue_words(value.typed, width)
            delayed = producers[value].attributes
            room = delayed.delay if isinstance(delayed, StreamDelayAttributes) else times * held[value.name]
            waiting.append(Waiting(words, ceil(room * words), word_bits(value.typed, width)))
        memory.attributes, memory.kept = replace(memory.attributes, queues=tuple(waiting), longest=0), {}
        if plan_of(memory).fits:
            break
    return memory_shared(graph, memory)
