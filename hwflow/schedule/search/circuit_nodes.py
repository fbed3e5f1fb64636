"""The nodes on circuits through delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hwflow.ir.graph import Graph, Node, Recurring


def circuit_nodes(graph: Graph) -> frozenset[Node]:
    """Return the nodes that lie behind a delay and in front of it, the delay among them."""
    producers, consumers = graph.producers(), graph.consumers()

    def after(node: Node) -> Iterable[Node]:
        return (reader for value in node.outputs for reader, _ in consumers[value])

    def before(node: Node) -> Iterable[Node]:
        return (producers[value] for value in node.inputs if value in producers)

    found: set[Node] = set()
    for node in graph.nodes:
        if isinstance(node.attributes, Recurring):
            found |= _reached(node, after) & _reached(node, before)
    return frozenset(found)


def _reached(node: Node, steps: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the nodes that are some steps from ``node``: itself only if it is on a circuit."""
    found: set[Node] = set()
    pending = [node]
    while pending:
        new = [other for other in steps(pending.pop()) if other not in found]
        found.update(new)
        pending += new
    return found
