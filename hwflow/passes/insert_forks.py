"""An explicit fork wherever a stream has several readers. Requires: stream-shape. Ensures: single-consumer."""

from __future__ import annotations

from hwflow.ir.graph import Graph, Names, Node, Value


def insert_forks(graph: Graph) -> Graph:
    """Give every value exactly one reader; graph outputs count as readers."""
    names = Names([n.name for n in graph.nodes] + [v.name for v in graph.values()])
    nodes: list[Node] = []
    for node in [None, *graph.nodes]:
        if node is not None:
            nodes.append(node)
        for value in [p.value for p in graph.inputs] if node is None else node.outputs:
            fork = _fork(graph, value, names)
            if fork is not None:
                nodes.append(fork)
    graph.nodes = nodes
    return graph


def _fork(graph: Graph, value: Value, names: Names) -> Node | None:
    readers = graph.consumers().get(value, [])
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
    return Node(name, "fork", [value], branches, {"outputs": count})
