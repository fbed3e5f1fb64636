"""Insert a fork wherever a stream has several readers. Requires: stream-shape. Ensures: single-consumer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwflow.cores.beat_movers import ForkAttributes
from hwflow.cores.loops.repeated import rounds_of
from hwflow.ir.graph import Graph, Names, Node, Value


def insert_forks(graph: Graph) -> Graph:
    """Give every value exactly one reader; graph outputs count as readers."""
    names = Names([n.name for n in graph.nodes] + [v.name for v in graph.values()])
    consumers = graph.consumers()  # computed once: a fork changes the readers of its own value only
    nodes = _forks([p.value for p in graph.inputs], 1, graph, consumers, names)
    for node in graph.nodes:
        nodes += [node, *_forks(node.outputs, rounds_of(node), graph, consumers, names)]
    graph.nodes = nodes
    return graph


def _forks(
    values: Sequence[Value], rounds: int, graph: Graph, consumers: Mapping[Value, list[tuple[Node, int]]], names: Names
) -> list[Node]:
    made = (_fork(graph, value, rounds, consumers[value], names) for value in values)
    return [fork for fork in made if fork is not None]


def _fork(
    graph: Graph, value: Value, rounds: int, readers: list[tuple[Node, int]], names: Names
) -> Node | None:
    ports = [p for p in graph.outputs if p.value is value]
    count = len(readers) + len(ports)
    if count <= 1:
        return None
    name = names.fresh(f"{value.name}_fork")
    branches = [Value(names.fresh(f"{name}_{i}"), value.type, value.origin) for i in range(count)]
    for branch, (node, index) in zip(branches, readers, strict=False):
        node.inputs[index] = branch
    for branch, port in zip(branches[len(readers) :], ports, strict=True):
        port.value = branch
    return Node(name, [value], branches, ForkAttributes(count, rounds))
