"""Order and cycles of nodes, and of whatever else depends on each other.

By hand: graphlib does not keep the order of nodes that are ready together (here the lowest index is first), and gives
one cycle instead of all components.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

Edges = Mapping[int, Collection[int]]


class Node(Protocol):
    """What order needs of a :class:`hwflow.onnxspec.graphs.scopes.Node`: the names that it makes and reads."""

    outputs: list[str]

    @property
    def reads(self) -> Iterator[str]: ...


def _producers(nodes: Sequence[Node], given: Collection[str]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.outputs:
            if name and name not in given:
                producers.setdefault(name, index)
    return producers


def topological_order(nodes: Sequence[Node], given: Collection[str] = frozenset()) -> tuple[list[int], list[int]]:
    """Return the indices in topological order, the lowest possible index first, and the remaining indices: those on and
    after cycles. Values in ``given`` exist before any node. Source: A. B. Kahn, Topological sorting of large networks,
    1962."""
    producers = _producers(nodes, given)
    missing = [0] * len(nodes)
    readers: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for producer in {producers[name] for name in node.reads if name in producers}:
            missing[index] += 1
            readers[producer].append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)
    return order, [index for index, count in enumerate(missing) if count > 0]


def components(edges: Edges) -> Iterator[list[int]]:
    """Yield the strongly connected components, each after those that its edges lead to. Source: R. Tarjan, Depth-first
    search and linear graph algorithms, 1972."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    stacked: set[int] = set()
    for root in edges:
        path: list[tuple[int, Iterator[int]]] = [] if root in number else [(root, iter(edges[root]))]
        while path:
            vertex, rest = path[-1]
            if vertex not in number:
                number[vertex] = low[vertex] = len(number)
                stack.append(vertex)
                stacked.add(vertex)
            for target in rest:
                if target not in number:
                    path.append((target, iter(edges[target])))
                    break
                if target in stacked:
                    low[vertex] = min(low[vertex], number[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[vertex])
                if low[vertex] == number[vertex]:
                    component = [stack.pop()]
                    while component[-1] != vertex:
                        component.append(stack.pop())
                    stacked.difference_update(component)
                    yield component


def cycles(edges: Edges) -> list[list[int]]:
    """Return a cycle along the edges for each strongly connected component that has one; each from its lowest vertex,
    and in the order of these."""
    found = []
    for component in components(edges):
        members, vertex = set(component), component[0]
        if len(component) == 1 and vertex not in edges[vertex]:
            continue
        # Every vertex of the component has an edge inside it: a walk must return to itself.
        path: dict[int, int] = {}
        while vertex not in path:
            path[vertex] = len(path)
            vertex = next(target for target in edges[vertex] if target in members)
        cycle = list(path)[path[vertex] :]
        first = cycle.index(min(cycle))
        found.append(cycle[first:] + cycle[:first])
    return sorted(found)


def node_cycles(nodes: Sequence[Node], left: Sequence[int], given: Collection[str] = frozenset()) -> list[list[int]]:
    """Return :func:`cycles` among the nodes ``left`` over by :func:`topological_order`, in the direction of the
    data."""
    producers, inside = _producers(nodes, given), set(left)
    sources = {
        index: [producers[name] for name in nodes[index].reads if producers.get(name, -1) in inside] for index in left
    }
    return [[first, *reversed(rest)] for first, *rest in cycles(sources)]
