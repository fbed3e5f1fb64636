"""A model's graphs as scopes of names, read once into plain Python: what the rules and the resolver walk over.

Reading protobuf fields costs more than anything the rules do with them; so every field that rules share is read here,
once. Nothing here recurses: nesting may be as deep as a hostile file makes it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import onnx
from onnx import AttributeProto

# Where in the model something is, for ordering findings: (section, index, section in a subgraph, index, ...).
Position = tuple[int, ...]
MODEL, INPUTS, INITIALIZERS, VALUE_INFO, NODES, OUTPUTS, ANNOTATIONS, TRAINING, FUNCTIONS = range(9)

_LONGEST = 120  # characters of a name that a finding shows


def show(name: str) -> str:
    """``name`` in quotes, for a message; cut where it is absurdly long."""
    return f"'{name}'" if len(name) <= _LONGEST else f"'{name[:_LONGEST]}...' ({len(name)} characters)"


def plain_domain(domain: str) -> str:
    """The domain with ai.onnx written as ""."""
    return "" if domain == "ai.onnx" else domain


def opset_map(opsets: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Imported version by domain, ai.onnx as ""; the highest where a domain is imported twice."""
    versions: dict[str, int] = {}
    for opset in opsets:
        domain = plain_domain(opset.domain)
        versions[domain] = max(versions.get(domain, 0), opset.version)
    return versions


@dataclass(slots=True)
class Node:
    """One node. ``domain`` is "" for ai.onnx. ``captured``: names that its subgraphs read from around them."""

    proto: onnx.NodeProto
    op_type: str
    domain: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: Sequence[AttributeProto]
    captured: Collection[str] = ()

    @property
    def reads(self) -> Iterator[str]:
        """Names of values the node reads from its own graph or an outer one, those of its subgraphs included."""
        yield from (name for name in self.inputs if name)
        yield from self.captured


_NO_ATTRIBUTES: tuple[AttributeProto, ...] = ()


def read_nodes(protos: Iterable[onnx.NodeProto]) -> list[Node]:
    """The nodes of one graph or function; ``captured`` is filled in by :func:`scopes`."""
    nodes = []
    for proto in protos:
        attributes = proto.attribute
        nodes.append(
            Node(
                proto,
                proto.op_type,
                plain_domain(proto.domain),
                proto.name,
                list(proto.input),
                list(proto.output),
                list(attributes) if attributes else _NO_ATTRIBUTES,
            )
        )
    return nodes


def node_names(nodes: Sequence[Node]) -> tuple[str, ...]:
    """A name for each node, none empty, no two equal: its own if it has one that no earlier node has."""
    own = tuple(node.name for node in nodes)
    taken = set(own)
    if len(taken) == len(own) and "" not in taken:
        return own
    used: set[str] = set()
    count: dict[str, int] = {}
    names: list[str] = []
    for node in nodes:
        name = node.name
        if not name or name in used:
            first = next((o for o in node.outputs if o), "")
            stem = name or (f"{node.op_type}_{first}" if first else node.op_type)
            name, number = stem, count.get(stem, 2)
            while name in used or name in taken:
                name, number = f"{stem}_{number}", number + 1
            count[stem] = number
        used.add(name)
        names.append(name)
    return tuple(names)


class Kind(Enum):
    """What a scope is the body of."""

    MAIN = "graph"
    SUBGRAPH = "subgraph"
    FUNCTION = "function"
    INITIALIZATION = "initialization graph"
    ALGORITHM = "algorithm graph"


@dataclass(eq=False)
class Scope:
    """One graph: the main graph, a subgraph of a node, a training graph, or a function's body."""

    kind: Kind
    graph: onnx.GraphProto | None  # None for a function
    function: onnx.FunctionProto | None  # None for a graph
    label: str  # "" for the main graph, else what follows a place: " in ..."
    position: Position
    nodes: list[Node]
    inputs: tuple[str, ...]
    initializers: tuple[str, ...]  # dense, then sparse
    outputs: tuple[str, ...]
    outer: frozenset[str]  # value names visible from outside
    opsets: Mapping[str, int]  # imported version by domain, ai.onnx as ""
    parent: Scope | None = None
    caller: int = 0  # index of the node in ``parent`` that carries a subgraph
    attribute: str = ""  # name of the attribute that holds a subgraph

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the nodes, see :func:`node_names`."""
        return node_names(self.nodes)

    @property
    def title(self) -> str:
        """The scope itself as the ``where`` of a finding."""
        if self.function is not None:
            return f"function {show(function_name(self.function))}"
        assert self.graph is not None  # a scope is a graph or a function
        return f"graph {show(self.graph.name)}{self.label}"

    @property
    def in_function(self) -> bool:
        """Whether the scope is a function's body or nested in one."""
        scope: Scope | None = self
        while scope is not None and scope.kind is Kind.SUBGRAPH:
            scope = scope.parent
        return scope is not None and scope.kind is Kind.FUNCTION

    def at(self, section: int, index: int = 0) -> Position:
        """The position of an item of this graph."""
        return (*self.position, section, index)

    def where(self, index: int) -> str:
        """Node ``index`` as the ``where`` of a finding."""
        return f"node {show(self.names[index])} ({self.nodes[index].op_type}){self.label}"

    @cached_property
    def made(self) -> frozenset[str]:
        """Names of the nodes' outputs."""
        return frozenset(name for node in self.nodes for name in node.outputs if name)

    @cached_property
    def given(self) -> frozenset[str]:
        """Value names that are there before any node of this graph."""
        return self.outer.union(self.inputs, self.initializers)

    @cached_property
    def defined(self) -> frozenset[str]:
        """All value names this graph itself defines."""
        return self.made.union(self.inputs, self.initializers)

    @cached_property
    def visible(self) -> frozenset[str]:
        """All value names that this graph's nodes may read and its subgraphs see."""
        return self.outer | self.defined


def function_name(function: onnx.FunctionProto) -> str:
    """DOMAIN.NAME, with :OVERLOAD if there is one."""
    overload = f":{function.overload}" if function.overload else ""
    return f"{function.domain}.{function.name}{overload}"


def _graph_scope(
    kind: Kind,
    graph: onnx.GraphProto,
    label: str,
    position: Position,
    outer: frozenset[str],
    opsets: Mapping[str, int],
) -> Scope:
    initializers = [t.name for t in graph.initializer]
    if graph.sparse_initializer:
        initializers += [t.values.name for t in graph.sparse_initializer]
    return Scope(
        kind=kind,
        graph=graph,
        function=None,
        label=label,
        position=position,
        nodes=read_nodes(graph.node),
        inputs=tuple([i.name for i in graph.input]),
        initializers=tuple(initializers),
        outputs=tuple([o.name for o in graph.output]),
        outer=outer,
        opsets=opsets,
    )


def subgraphs(node: Node) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Graphs that the node carries, with the name of their attribute."""
    for attribute in node.attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield attribute.name, graph


def _nested(root: Scope) -> list[Scope]:
    """``root`` and everything nested in it, each graph before its subgraphs, in the order of the nodes."""
    found: list[Scope] = []
    pending = [root]
    while pending:
        scope = pending.pop()
        found.append(scope)
        children = []
        for index, node in enumerate(scope.nodes):
            if not node.attributes:
                continue
            for name, graph in subgraphs(node):
                label = f" in {show(name)} of {scope.where(index)}"
                child = _graph_scope(
                    Kind.SUBGRAPH, graph, label, scope.at(NODES, index), scope.visible, scope.opsets
                )
                child.parent, child.caller, child.attribute = scope, index, name
                children.append(child)
        pending.extend(reversed(children))
    for scope in reversed(found):  # the inner ones first
        if scope.parent is not None:
            free = {name for node in scope.nodes for name in node.reads}
            free.update(name for name in scope.outputs if name)
            free -= scope.defined
            if free:
                node = scope.parent.nodes[scope.caller]
                node.captured = sorted(free.union(node.captured))
    return found


def _training_scopes(model: onnx.ModelProto, main: Scope) -> Iterator[Scope]:
    for index, training in enumerate(model.training_info):
        for kind, graph, outer in (
            # The initialization graph stands alone; the algorithm graph continues the main graph (onnx.proto).
            # One that is there without anything in it is the default, a graph that does nothing.
            (Kind.INITIALIZATION, training.initialization, frozenset[str]()),
            (Kind.ALGORITHM, training.algorithm, main.visible),
        ):
            if graph.ByteSize():
                label = f" in {kind.value} of training_info[{index}]"
                position = (TRAINING, 2 * index + (kind is Kind.ALGORITHM))
                yield _graph_scope(kind, graph, label, position, outer, main.opsets)


def scopes(model: onnx.ModelProto) -> Iterator[Scope]:
    """The main graph, its subgraphs in the order of their nodes, the training graphs, the functions; each with what is
    nested in it."""
    nested = main_scopes(model)
    main = nested[0]
    yield from nested
    for training in _training_scopes(model, main):
        yield from _nested(training)
    for index, function in enumerate(model.functions):
        yield from _nested(
            Scope(
                kind=Kind.FUNCTION,
                graph=None,
                function=function,
                label=f" in function {show(function_name(function))}",
                position=(FUNCTIONS, index),
                nodes=read_nodes(function.node),
                inputs=tuple(function.input),
                initializers=(),
                outputs=tuple(function.output),
                outer=frozenset(),
                opsets=opset_map(function.opset_import),
            )
        )


def main_scopes(model: onnx.ModelProto) -> list[Scope]:
    """The main graph and its subgraphs."""
    return _nested(_graph_scope(Kind.MAIN, model.graph, "", (), frozenset(), opset_map(model.opset_import)))


def main_scope(model: onnx.ModelProto) -> Scope:
    """The main graph alone, with what its subgraphs capture."""
    return main_scopes(model)[0]


def _producers(nodes: Sequence[Node], given: Collection[str]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.outputs:
            if name and name not in given:
                producers.setdefault(name, index)
    return producers


def is_sorted(nodes: Sequence[Node], given: Collection[str] = frozenset()) -> bool:
    """Whether no node reads what itself or a later node makes; names that nothing makes do not count."""
    producers = _producers(nodes, given)
    return all(producers.get(name, -1) < index for index, node in enumerate(nodes) for name in node.reads)


def topological_order(nodes: Sequence[Node], given: Collection[str] = frozenset()) -> tuple[list[int], list[int]]:
    """Indices in topological order, the lowest possible index first, and the indices left over: those on cycles and
    behind them. Values in ``given`` are there before any node. Source: A. B. Kahn, Topological sorting of large
    networks, 1962."""
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


def find_cycle(nodes: Sequence[Node], left: Sequence[int], given: Collection[str] = frozenset()) -> list[int]:
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
        index = next(producers[n] for n in nodes[index].reads if n in producers and producers[n] in inside)
    cycle = path[place[index] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]
