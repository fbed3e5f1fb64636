"""A model's graphs as scopes of names, read once into plain Python, for the rules and the resolver.

Reading protobuf fields costs more than anything the rules do with them, so every field that rules share is read here
once. Nothing here recurses: a hostile file may nest to any depth.

By hand, because a broken model is read whole, so that every finding comes at once: onnx-ir (1.1) raises at the first
value that is defined twice, and takes twice as long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from itertools import chain
from typing import Any

import onnx
from onnx import AttributeProto

from hwflow.display import cell, show
from hwflow.onnxspec.graphs.topology import topological_order

# A place in the model, which orders findings: (section, index, number of the node's subgraph, section, ...).
Position = tuple[int, ...]
MODEL, INPUTS, INITIALIZERS, VALUE_INFO, NODES, OUTPUTS, ANNOTATIONS, TRAINING, FUNCTIONS = range(9)

_DEEPEST = 8  # enclosing graphs that a finding shows
_LAYERS = 64  # sets that a Layered keeps separate; protobuf reads no file with half as many nested graphs


class Layered(Set[str]):
    """The names of a graph and its enclosing ones as one set, without copying the outer ones for each inner graph: a
    graph of ten thousand values may have ten thousand subgraphs. Lookup and ``other - layered`` are fast; length and
    iteration are not."""

    __slots__ = ("layers",)

    def __init__(self, layers: tuple[frozenset[str], ...]) -> None:
        self.layers = layers

    def __contains__(self, name: object) -> bool:
        for layer in self.layers:  # noqa: SIM110 - a generator takes three times as long
            if name in layer:
                return True
        return False

    def __bool__(self) -> bool:
        return any(self.layers)

    def __iter__(self) -> Iterator[str]:
        return iter(frozenset[str]().union(*self.layers))

    def __len__(self) -> int:
        return len(frozenset[str]().union(*self.layers))

    def __rsub__(self, other: Iterable[str]) -> Any:  # a set for a set, else a frozenset
        rest = frozenset(other)
        for layer in self.layers:
            if not rest:
                break
            rest = rest.difference(layer) if len(layer) <= len(rest) else frozenset(n for n in rest if n not in layer)
        return set(rest) if isinstance(other, set) else rest

    def __ge__(self, other: Set[Any]) -> bool:
        return not frozenset(other) - self

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Tell whether no name of ``other`` is in the set."""
        names = frozenset(other)
        return all(names.isdisjoint(layer) for layer in self.layers)

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> frozenset[Any]:  # what &, | and ^ give
        return frozenset(it)


def _extended(outer: Set[str], own: frozenset[str]) -> Set[str]:
    """Return the union of ``outer`` and ``own``."""
    if not outer:
        return own
    if not own:
        return outer
    layers = (*(outer.layers if isinstance(outer, Layered) else (frozenset(outer),)), own)
    if len(layers) > _LAYERS:
        layers = (frozenset[str]().union(*layers),)
    return Layered(layers)


def plain_domain(domain: str) -> str:
    """Return the domain, with ai.onnx as ""."""
    return "" if domain == "ai.onnx" else domain


def opset_map(opsets: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return the imported version by domain, ai.onnx as ""; the highest if a domain is imported twice."""
    versions: dict[str, int] = {}
    for opset in opsets:
        domain = plain_domain(opset.domain)
        versions[domain] = max(versions.get(domain, 0), opset.version)
    return versions


@cache
def implicit_version(ir_version: int) -> int:
    """Return the version of ai.onnx of a model that does not import it: the newest set of the onnx releases with the
    model's IR version (onnx.helper.VERSION_TABLE); 1 before IR version 3, when there were no imports; the newest of all
    if ``ir_version`` is no IR version. Source: clause OPS-04."""
    if 1 <= ir_version < 3:
        return 1
    rows = onnx.helper.VERSION_TABLE
    return max([row[2] for row in rows if row[1] <= ir_version], default=max(row[2] for row in rows))


def model_opsets(model: onnx.ModelProto) -> dict[str, int]:
    """Return :func:`opset_map` of the model's imports, with the implicit version of ai.onnx if it is not imported."""
    versions = opset_map(model.opset_import)
    versions.setdefault("", implicit_version(model.ir_version))
    return versions


@dataclass(slots=True)
class Node:
    """One node. ``domain`` is "" for ai.onnx. ``captured``: the outer names that its subgraphs read."""

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
        """Yield the names that the node and its subgraphs read from its own graph or an outer one."""
        yield from (name for name in self.inputs if name)
        yield from self.captured


_NO_ATTRIBUTES: tuple[AttributeProto, ...] = ()


def read_nodes(protos: Iterable[onnx.NodeProto]) -> list[Node]:
    """Read the nodes of one graph or function; :func:`scopes` fills in ``captured``."""
    nodes = []
    for proto in protos:
        attributes = proto.attribute
        nodes.append(
            Node(
                proto,
                proto.op_type,
                plain_domain(proto.domain),
                proto.name,
                proto.input[:],
                proto.output[:],
                attributes[:] if attributes else _NO_ATTRIBUTES,
            )
        )
    return nodes


def node_names(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return a unique, nonempty name for each node: its own unless an earlier node has it."""
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
    """The kind of a scope."""

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
    outer: Set[str]  # value names visible from outside
    opsets: Mapping[str, int]  # version by domain, ai.onnx as "": imported, or in a model's graphs implicit
    parent: Scope | None = None
    caller: int = 0  # index in ``parent`` of a subgraph's node
    attribute: str = ""  # name of a subgraph's attribute, with [k] in a list

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, see :func:`node_names`."""
        return node_names(self.nodes)

    @property
    def title(self) -> str:
        """The ``where`` of findings about the scope itself."""
        if self.function is not None:
            return f"function {show(function_name(self.function))}"
        assert self.graph is not None  # a scope is a graph or a function
        return f"graph {show(self.graph.name)}{self.label}" if self.graph.name else f"graph{self.label}"

    @property
    def in_function(self) -> bool:
        """Whether the scope is a function's body or nested in one."""
        scope: Scope | None = self
        while scope is not None and scope.kind is Kind.SUBGRAPH:
            scope = scope.parent
        return scope is not None and scope.kind is Kind.FUNCTION

    def at(self, section: int, index: int = 0) -> Position:
        """Return the position of an item of this graph."""
        return (*self.position, section, index)

    def where(self, index: int) -> str:
        """Return the ``where`` of findings about node ``index``."""
        return f"{self._node(index)}{self.label}"

    def label_of(self, attribute: str, index: int, root: Scope) -> str:
        """Return the label of the subgraph in that attribute of node ``index``; ``root``: the outermost enclosing
        graph."""
        depth = (len(self.position) - len(root.position)) // 3 + 1
        if depth <= _DEEPEST:
            return f" in {show(attribute)} of {self.where(index)}"
        return f" in {show(attribute)} of {self._node(index)}, {depth} graphs deep{root.label}"

    def _node(self, index: int) -> str:
        return f"node {show(self.names[index])} ({cell(self.nodes[index].op_type)})"

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The outputs of all nodes in order, including absent ones ("")."""
        return tuple(chain.from_iterable([node.outputs for node in self.nodes]))

    @cached_property
    def references(self) -> list[tuple[int, AttributeProto]]:
        """The attributes that refer to one of the enclosing function, with their nodes' indices."""
        return [
            (index, attribute)
            for index, node in enumerate(self.nodes)
            for attribute in node.attributes
            if attribute.ref_attr_name
        ]

    @cached_property
    def computed(self) -> frozenset[str]:
        """Names of the nodes' outputs."""
        names = frozenset(self.results)
        return names.difference(("",)) if "" in names else names

    @cached_property
    def producers(self) -> dict[str, int]:
        """The index of the first node that computes each value."""
        producers: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            for name in node.outputs:
                if name:
                    producers.setdefault(name, index)
        return producers

    @cached_property
    def held(self) -> frozenset[str]:
        """Names of the initializers."""
        return frozenset(self.initializers)

    @cached_property
    def entered(self) -> frozenset[str]:
        """Names of inputs and initializers."""
        return self.held.union(self.inputs)

    @cached_property
    def described(self) -> tuple[str, ...]:
        """Names of the entries of value_info."""
        source = self.function if self.graph is None else self.graph
        return () if source is None else tuple([info.name for info in source.value_info])

    @cached_property
    def given(self) -> Set[str]:
        """Value names that exist before any node of this graph."""
        return _extended(self.outer, self.entered)

    @cached_property
    def defined(self) -> frozenset[str]:
        """All value names this graph itself defines."""
        return self.computed | self.entered

    @cached_property
    def visible(self) -> Set[str]:
        """All value names that this graph's nodes may read and its subgraphs see."""
        return _extended(self.outer, self.defined)

    @cached_property
    def defined_once(self) -> bool:
        """Whether no value has two definitions in this graph; input and initializer of one name count as one."""
        return (
            len(self.computed) + self.results.count("") == len(self.results)
            and self.computed.isdisjoint(self.entered)
            and len(set(self.inputs)) == len(self.inputs)
        )

    @cached_property
    def in_order(self) -> bool:
        """Whether every node reads only given values and outputs of earlier nodes."""
        there = {"", *self.entered}
        has, add = there.issuperset, there.update
        for node in self.nodes:
            if not has(node.inputs) and frozenset(node.inputs) - there - self.outer:
                return False
            if node.captured and frozenset(node.captured) - there - self.outer:
                return False
            add(node.outputs)
        return True

    @cached_property
    def topology(self) -> tuple[list[int], list[int]]:
        """See :func:`topological_order`."""
        return topological_order(self.nodes, self.given)


def function_name(function: onnx.FunctionProto) -> str:
    """Return DOMAIN.NAME, with :OVERLOAD if there is one."""
    overload = f":{function.overload}" if function.overload else ""
    return f"{function.domain}.{function.name}{overload}"


def _graph_scope(
    kind: Kind,
    graph: onnx.GraphProto,
    label: str,
    position: Position,
    outer: Set[str],
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
    """Yield the node's subgraphs with the names of their attributes, with [k] in a list."""
    for attribute in node.attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for k, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{k}]", graph


def _nested(root: Scope) -> list[Scope]:
    """Return ``root`` and everything nested in it, each graph before its subgraphs, in the order of the nodes."""
    found: list[Scope] = []
    pending = [root]
    while pending:
        scope = pending.pop()
        found.append(scope)
        children = []
        for index, node in enumerate(scope.nodes):
            if not node.attributes:
                continue
            for ordinal, (name, graph) in enumerate(subgraphs(node)):
                label = scope.label_of(name, index, root)
                position = (*scope.at(NODES, index), ordinal)
                child = _graph_scope(Kind.SUBGRAPH, graph, label, position, scope.visible, scope.opsets)
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
                # A name that is not UTF-8 is bytes.
                node.captured = sorted(free.union(node.captured), key=str)
    return found


def _training_scopes(model: onnx.ModelProto, main: Scope) -> Iterator[Scope]:
    for index, training in enumerate(model.training_info):
        for kind, graph, outer in (
            # The initialization graph stands alone; the algorithm graph continues the main graph (onnx.proto).
            # An empty one is the default, a graph that does nothing.
            (Kind.INITIALIZATION, training.initialization, frozenset[str]()),
            (Kind.ALGORITHM, training.algorithm, main.visible),
        ):
            if graph.ByteSize():
                label = f" in {kind.value} of training_info[{index}]"
                position = (TRAINING, 2 * index + (kind is Kind.ALGORITHM))
                yield _graph_scope(kind, graph, label, position, outer, main.opsets)


def scopes(model: onnx.ModelProto) -> Iterator[Scope]:
    """Yield the main graph, its subgraphs in the order of their nodes, the training graphs, the functions; each
    followed by its nested graphs."""
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
    """Return the main graph and its subgraphs."""
    return _nested(_graph_scope(Kind.MAIN, model.graph, "", (), frozenset(), model_opsets(model)))
