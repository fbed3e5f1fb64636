"""Find the queues of a design that may lie in memory outside: those that take many block RAMs.

Their depths hardly depend on foldings: a skip of a network waits for as many rows as the layers beside it reach. So
they are read off a design with any number of block RAMs. What delays hold is known from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from hwflow.cores.beat_movers import FifoAttributes, ForkAttributes
from hwflow.cores.loops.followed_by import FollowedByAttributes
from hwflow.cores.loops.repeated import RepeatedAttributes
from hwflow.cores.operator import beats
from hwflow.cores.streams.delay import StreamDelayAttributes
from hwflow.ir.graph import Delaying, Graph, Node, Value
from hwflow.schedule.schedule import Schedule

_LEAST = 5
"""Block RAMs of a queue that is worth a place outside: the words on their way take two, or a third."""

_IN_ROUNDS = (Delaying, FollowedByAttributes, RepeatedAttributes)


@dataclass(frozen=True)
class DeepQueue:
    """The queue of a ``value`` of the dataflow graph, by name: ``blocks`` of block RAM, and the ``share`` of a frame
    for which it has room."""

    value: str
    blocks: int
    share: Fraction


def deep_queues(graph: Graph, made: Schedule) -> list[DeepQueue]:
    """Return the deep queues of a design made of a dataflow graph, largest first."""
    circuits = any(isinstance(node.attributes, _IN_ROUNDS) for node in graph.nodes)
    names = {value.name: value for node in graph.nodes for value in node.outputs}
    readers = graph.consumers()
    producers = made.graph.producers()
    found: dict[str, DeepQueue] = {}
    for node in () if circuits else made.graph.nodes:
        blocks = int(made.parts[node].bram) if node in made.parts else 0
        if not isinstance(node.attributes, FifoAttributes | ForkAttributes) or blocks < _LEAST:
            continue
        decision = made.plan[node]
        depths = decision.depths or (decision.depth,)
        sizes = [depth * beats_bits(node, decision.folding.output_lanes) for depth in depths]
        for value, depth, size in zip(node.outputs, depths, sizes, strict=True):
            share = Fraction(depth, beats(value.typed.shape, decision.folding.output_lanes))
            own = _of_graph(value, producers, names)
            part = blocks * size // sum(sizes)
            if own is not None and part >= _LEAST:
                last = _before_join(own, readers)
                if last is not None:
                    found[last.name] = DeepQueue(last.name, part, share)
    return sorted(found.values(), key=lambda queue: (-queue.blocks, queue.value))


def deep_delays(graph: Graph, block: int) -> Mapping[str, Fraction]:
    """Return what delays by frames make of a dataflow graph, by name, where they hold many block RAMs of ``block``
    bits; and how many frames they hold."""
    found = {}
    for node in graph.nodes:
        given = node.attributes
        if isinstance(given, StreamDelayAttributes) and given.rows == 1 and not given.anew:
            (value,) = node.outputs
            held = given.delay * prod(value.typed.shape) * value.typed.element.bits
            if held >= _LEAST * block:
                found[value.name] = Fraction(given.delay)
    return found


def beats_bits(node: Node, lanes: int) -> int:
    """Return the bits of a beat that a node makes."""
    return lanes * node.outputs[0].typed.element.bits


def _of_graph(value: Value, producers: dict[Value, Node], names: dict[str, Value]) -> Value | None:
    """Return the dataflow graph's value that a stream carries, if need be through what was inserted."""
    while value.name not in names:
        producer = producers.get(value)
        if producer is None or len(producer.inputs) != 1:
            return None
        value = producer.inputs[0]
    return names[value.name]


def _before_join(value: Value, readers: dict[Value, list[tuple[Node, int]]]) -> Value | None:
    """Return the last stream of as many elements on the way from ``value`` to what has several inputs: behind a queue
    outside nothing has a queue of its own (:mod:`hwflow.schedule.fixed_depths`). None where the way leads elsewhere: a
    queue there is deep only for its design's many lanes."""
    while readers[value]:
        (reader, _), *_ = readers[value]
        if len(reader.inputs) > 1:
            return value
        if len(reader.outputs) != 1 or reader.outputs[0].typed.shape != value.typed.shape:
            break
        value = reader.outputs[0]
    return None
