"""What must hold in every scope, graph or function's body: values defined once, before they are read, and no cycle."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.display import show
from hwflow.onnxspec.clauses.rules import Context, Hit, at_node
from hwflow.onnxspec.graphs.scopes import INPUTS, Kind, Scope
from hwflow.onnxspec.graphs.topology import node_cycles

RENAME = "rename one of them"
BREAK_CYCLE = "break the cycle: no node may read, directly or through others, its own results"


def double_definitions(scope: Scope) -> Iterator[tuple[bool, Hit]]:
    """Yield every definition of a value after its first, and whether it is a node's output and the first in the same
    scope. An input and an initializer of one name are one definition."""
    # The algorithm graph continues the main graph, and so defines nothing that the main graph does.
    disjoint = scope.kind is not Kind.ALGORITHM or scope.outer.isdisjoint(scope.computed)
    if scope.defined_once and disjoint:
        return
    entered = dict.fromkeys(scope.initializers, "an initializer")
    inputs: set[str] = set()
    for index, name in enumerate(scope.inputs):
        if name and name in inputs:
            message = f"value {show(name)} must be defined once, but two inputs have that name"
            yield False, Hit(scope.at(INPUTS, index), f"input {show(name)}{scope.label}", message, RENAME)
        inputs.add(name)
        entered.setdefault(name, "the function's input" if scope.kind is Kind.FUNCTION else "the graph's input")
    producers: dict[str, int] = {}
    for index, node in enumerate(scope.nodes):
        for name in filter(None, node.outputs):
            other = entered.get(name)
            producer = producers.get(name) if other is None else None
            if producer is not None:
                other = "another output of this node" if producer == index else scope.where(producer)
            elif other is None and not disjoint and name in scope.outer:
                other = "the main graph"
            if other is None:
                producers[name] = index
            else:
                message = f"value {show(name)} must be defined once, but {other} defines it too"
                yield producer is not None or name in entered, at_node(scope, index, message, RENAME)


def double_assignments(context: Context) -> Iterator[Hit]:
    """Yield values of functions' bodies with a second definition by a node."""
    for scope in context.scopes:
        if scope.kind is Kind.FUNCTION:
            yield from (hit for outputs, hit in double_definitions(scope) if outputs)


def undefined_inputs(scope: Scope) -> Iterator[tuple[int, str]]:
    """Yield the nodes' inputs that nothing visible defines, with the nodes' indices."""
    if scope.in_order:
        return
    missing = {name for node in scope.nodes for name in node.inputs} - scope.visible
    for index, node in enumerate(scope.nodes if missing - {""} else ()):
        for name in dict.fromkeys(node.inputs):
            if name and name in missing:
                yield index, name


def shortened(names: list[str]) -> str:
    """Format a cycle for a message, without its middle if long."""
    return " -> ".join(names if len(names) <= 12 else [*names[:6], "...", *names[-5:]])


def cycles(scope: Scope) -> Iterator[Hit]:
    """Yield the cycles among the nodes, one of each set that depend on each other."""
    if scope.in_order or not scope.topology[1]:
        return
    what = "function" if scope.kind is Kind.FUNCTION else "graph"
    for cycle in node_cycles(scope.nodes, scope.topology[1], scope.given):
        around = shortened([show(scope.names[index]) for index in (*cycle, cycle[0])])
        yield at_node(scope, cycle[0], f"the {what} must have no cycle, but there is one: {around}", BREAK_CYCLE)


def disorder(scope: Scope) -> Iterator[Hit]:
    """Yield cycles, for which no order is topological, and nodes that precede the producers of their inputs."""
    if scope.in_order:
        return
    yield from cycles(scope)
    on_cycle = set(scope.topology[1])
    for index, node in enumerate(scope.nodes):
        for name in dict.fromkeys(node.reads) if index not in on_cycle else ():
            producer = scope.producers.get(name, -1)
            if producer > index and name not in scope.given:
                later = f"{show(name)} is computed later, by {scope.where(producer)}"
                yield at_node(scope, index, f"nodes must be in topological order, but {later}")
