"""A model's graphs as scopes of names: what the rules and the resolver walk over."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import AttributeProto

# Where in the model something is, for ordering findings: (section, index, section in a subgraph, index, ...).
Position = tuple[int, ...]
MODEL, INPUTS, INITIALIZERS, NODES, OUTPUTS, FUNCTIONS = range(6)


def node_names(nodes: Sequence[onnx.NodeProto]) -> tuple[str, ...]:
    """A name for each node, none empty, no two equal: its own if it has one that no earlier node has."""
    taken = {node.name for node in nodes}
    used: set[str] = set()
    names: list[str] = []
    for node in nodes:
        name = node.name
        if not name or name in used:
            first = next((o for o in node.output if o), "")
            stem = name or (f"{node.op_type}_{first}" if first else node.op_type)
            name, count = stem, 2
            while name in used or name in taken:
                name, count = f"{stem}_{count}", count + 1
        used.add(name)
        names.append(name)
    return tuple(names)


@dataclass(frozen=True)
class Scope:
    """One graph: the main graph, a subgraph of a node, or a function's body."""

    label: str  # "" for the main graph, else what follows a place: " in ..."
    position: Position
    nodes: Sequence[onnx.NodeProto]
    names: tuple[str, ...]  # of the nodes, see node_names
    inputs: tuple[str, ...]
    initializers: tuple[str, ...]
    outputs: tuple[str, ...]
    outer: frozenset[str]  # value names visible from outside
    opsets: Mapping[str, int]

    def at(self, section: int, index: int = 0) -> Position:
        """The position of an item of this graph."""
        return (*self.position, section, index)

    def where(self, index: int) -> str:
        """Node ``index`` as the ``where`` of a finding."""
        return f"node '{self.names[index]}' ({self.nodes[index].op_type}){self.label}"

    def given(self) -> frozenset[str]:
        """Value names that are there before any node of this graph."""
        return self.outer.union(self.inputs, self.initializers)

    def defined(self) -> frozenset[str]:
        """All value names this graph itself defines."""
        made = (name for node in self.nodes for name in node.output if name)
        return frozenset((*self.inputs, *self.initializers, *made))


def opset_map(opsets: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Imported version by domain, ai.onnx as ""; the highest where a domain is imported twice."""
    versions: dict[str, int] = {}
    for opset in opsets:
        domain = plain_domain(opset.domain)
        versions[domain] = max(versions.get(domain, 0), opset.version)
    return versions


def plain_domain(domain: str) -> str:
    """The domain with ai.onnx written as ""."""
    return "" if domain == "ai.onnx" else domain


def subgraphs(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Graphs that the node carries, with the name of their attribute."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield attribute.name, graph


def _graph_scope(
    graph: onnx.GraphProto, label: str, position: Position, outer: frozenset[str], opsets: Mapping[str, int]
) -> Scope:
    initializers = [t.name for t in graph.initializer] + [t.values.name for t in graph.sparse_initializer]
    return Scope(
        label=label,
        position=position,
        nodes=graph.node,
        names=node_names(graph.node),
        inputs=tuple(i.name for i in graph.input),
        initializers=tuple(initializers),
        outputs=tuple(o.name for o in graph.output),
        outer=outer,
        opsets=opsets,
    )


def _nested(scope: Scope) -> Iterator[Scope]:
    yield scope
    visible: frozenset[str] | None = None
    for index, node in enumerate(scope.nodes):
        for name, graph in subgraphs(node):
            if visible is None:
                visible = scope.outer | scope.defined()
            label = f" in '{name}' of {scope.where(index)}"
            yield from _nested(_graph_scope(graph, label, scope.at(NODES, index), visible, scope.opsets))


def scopes(model: onnx.ModelProto) -> Iterator[Scope]:
    """The main graph, then its subgraphs in the order of their nodes, then the functions and theirs."""
    opsets = opset_map(model.opset_import)
    yield from _nested(_graph_scope(model.graph, "", (), frozenset(), opsets))
    for index, function in enumerate(model.functions):
        yield from _nested(
            Scope(
                label=f" in function '{function.domain}.{function.name}'",
                position=(FUNCTIONS, index),
                nodes=function.node,
                names=node_names(function.node),
                inputs=tuple(function.input),
                initializers=(),
                outputs=tuple(function.output),
                outer=frozenset(),
                opsets=opset_map(function.opset_import),
            )
        )


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Names of values the node reads from its own graph or an outer one, those of its subgraphs included."""
    yield from (name for name in node.input if name)
    for _, graph in subgraphs(node):
        own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        own.update(t.values.name for t in graph.sparse_initializer)
        own.update(name for inner in graph.node for name in inner.output)
        for inner in graph.node:
            yield from (name for name in reads(inner) if name not in own)
        yield from (output.name for output in graph.output if output.name not in own)


def _producers(nodes: Sequence[onnx.NodeProto], given: frozenset[str]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and name not in given:
                producers.setdefault(name, index)
    return producers


def topological_order(
    nodes: Sequence[onnx.NodeProto], given: frozenset[str] = frozenset()
) -> tuple[list[int], list[int]]:
    """Indices in topological order, the lowest possible index first, and the indices left over: those on cycles and
    behind them. Values in ``given`` are there before any node. Source: A. B. Kahn, Topological sorting of large
    networks, 1962."""
    producers = _producers(nodes, given)
    missing = [0] * len(nodes)
    readers: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for producer in {producers[name] for name in reads(node) if name in producers}:
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


def find_cycle(nodes: Sequence[onnx.NodeProto], left: Sequence[int], given: frozenset[str] = frozenset()) -> list[int]:
    """One cycle among the nodes ``left`` over by :func:`topological_order`, in the direction of the data."""
    producers = _producers(nodes, given)
    inside = set(left)
    # Going against the data, every node left over has a producer left over: the walk must come back to itself.
    path: list[int] = []
    place: dict[int, int] = {}
    index = left[0]
    while index not in place:
        place[index] = len(path)
        path.append(index)
        index = next(producers[n] for n in reads(nodes[index]) if n in producers and producers[n] in inside)
    cycle = path[place[index] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]
