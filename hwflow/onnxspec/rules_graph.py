"""Clauses about names and the shape of the graph: definitions, uses, single assignment, order."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.onnxspec.graph import INITIALIZERS, INPUTS, NODES, OUTPUTS, find_cycle, reads, topological_order
from hwflow.onnxspec.rules import Context, Hit, Rule

_RENAME = "rename one of them"


def _value_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        for section, kind, names in (
            (INPUTS, "input", scope.inputs),
            (OUTPUTS, "output", scope.outputs),
        ):
            for index, name in enumerate(names):
                if not name:
                    message = f"{kind} {index} of the graph must have a name, but it has none"
                    yield Hit(scope.at(section, index), f"{kind} {index}{scope.label}", message, "give it a name")


def _initializer_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        seen: set[str] = set()
        for index, name in enumerate(scope.initializers):
            position = scope.at(INITIALIZERS, index)
            if not name:
                message = "an initializer must have a name, but this one has none"
                yield Hit(position, f"initializer {index}{scope.label}", message, "give it a name")
            elif name in seen:
                message = f"initializer names must be distinct, but '{name}' names more than one"
                yield Hit(position, f"initializer '{name}'{scope.label}", message, _RENAME)
            seen.add(name)


def _single_assignment(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        made: dict[str, str] = {}
        for index, name in enumerate(scope.inputs):
            if name and name in made:
                message = f"value '{name}' must be defined once, but two inputs have that name"
                yield Hit(scope.at(INPUTS, index), f"input '{name}'{scope.label}", message, _RENAME)
            made[name] = "the graph's input"
        made.update(dict.fromkeys(scope.initializers, "an initializer"))
        for index, node in enumerate(scope.nodes):
            for name in node.output:
                if not name:
                    continue
                if name in made or name in scope.outer:
                    other = made.get(name, "a graph around this one")
                    message = f"value '{name}' must be defined once, but {other} defines it too"
                    yield Hit(scope.at(NODES, index), scope.where(index), message, _RENAME)
                else:
                    made[name] = scope.where(index)


def _dangling_inputs(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        known = scope.outer | scope.defined()
        for index, node in enumerate(scope.nodes):
            for name in dict.fromkeys(node.input):
                if name and name not in known:
                    yield Hit(
                        scope.at(NODES, index),
                        scope.where(index),
                        f"input '{name}' must be a graph input, an initializer or the output of a node, "
                        "but nothing makes it",
                        f"add what makes '{name}', or read another value",
                    )


def _dangling_outputs(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        # An output of a subgraph may be a value of a graph around it.
        known = scope.outer | scope.defined()
        for index, name in enumerate(scope.outputs):
            if name and name not in known:
                yield Hit(
                    scope.at(OUTPUTS, index),
                    f"output '{name}'{scope.label}",
                    f"output '{name}' must be the output of a node, an input or an initializer, but nothing makes it",
                    f"add what makes '{name}', or remove the output",
                )


def _no_cycles(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        left = topological_order(scope.nodes, scope.given())[1]
        if left:
            cycle = find_cycle(scope.nodes, left, scope.given())
            through = " -> ".join(f"'{scope.names[i]}'" for i in [*cycle, cycle[0]])
            yield Hit(
                scope.at(NODES, cycle[0]),
                scope.where(cycle[0]),
                f"the graph must have no cycle, but there is one: {through}",
                "break the cycle: no node may read, directly or through others, what it makes",
            )


def _order(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        maker: dict[str, int] = {}
        given = scope.given()
        for index, node in enumerate(scope.nodes):
            for name in node.output:
                if name and name not in given:
                    maker.setdefault(name, index)
        on_cycle = set(topological_order(scope.nodes, scope.given())[1])
        for index, node in enumerate(scope.nodes):
            if index in on_cycle:
                continue  # GRA-03 says it
            for name in dict.fromkeys(reads(node)):
                if maker.get(name, -1) > index:
                    later = scope.where(maker[name])
                    yield Hit(
                        scope.at(NODES, index),
                        scope.where(index),
                        f"nodes must be in topological order, but '{name}' is made later, by {later}",
                        "sort the nodes so that each one follows those it reads from",
                    )


def _node_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        seen: set[str] = set()
        for index, node in enumerate(scope.nodes):
            if node.name and node.name in seen:
                yield Hit(
                    scope.at(NODES, index),
                    scope.where(index),
                    f"node names must be distinct, but '{node.name}' names an earlier node too; "
                    f"this one is called '{scope.names[index]}' here",
                    _RENAME,
                    "warning",  # nothing refers to a node by its name
                )
            seen.add(node.name)


RULES = (
    Rule("GRA-17", _value_names, structural=True),
    Rule("PRO-05", _initializer_names, structural=True),
    Rule("GRA-23", _single_assignment, structural=True),
    Rule("NOD-05", _dangling_inputs, structural=True),
    Rule("NOD-12", _dangling_outputs, structural=True),
    Rule("GRA-03", _no_cycles, structural=True),
    Rule("NOD-35", _order),
    Rule("NAM-05", _node_names),
)
