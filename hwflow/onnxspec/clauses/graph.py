"""Clauses about a graph's parts: inputs, outputs, initializers, single assignment."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.onnxspec.graph import INITIALIZERS, INPUTS, NODES, OUTPUTS, Scope, show
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
                    yield Hit(scope.at(section, index), f"{kind} {index}{scope.label}", message)


def _initializer_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        seen: set[str] = set()
        for index, name in enumerate(scope.initializers):
            position = scope.at(INITIALIZERS, index)
            if not name:
                message = "an initializer must have a name, but this one has none"
                yield Hit(position, f"initializer {index}{scope.label}", message, "give it a name")
            elif name in seen:
                message = f"initializer names must be distinct, but {show(name)} names more than one"
                yield Hit(position, f"initializer {show(name)}{scope.label}", message)
            seen.add(name)


def _defined_once(scope: Scope) -> bool:
    """Whether no value of the scope has two definitions, input and initializer of one name taken as one."""
    made = [name for node in scope.nodes for name in node.outputs if name]
    return (
        len(scope.made) == len(made)
        and scope.made.isdisjoint(scope.given)
        and len(set(scope.inputs)) == len(scope.inputs)
    )


def _single_assignment(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if _defined_once(scope):
            continue
        made: dict[str, str] = {}
        for index, name in enumerate(scope.inputs):
            if name and name in made:
                message = f"value {show(name)} must be defined once, but two inputs have that name"
                yield Hit(scope.at(INPUTS, index), f"input {show(name)}{scope.label}", message)
            made[name] = "the graph's input"
        made.update(dict.fromkeys(scope.initializers, "an initializer"))
        for index, node in enumerate(scope.nodes):
            for name in node.outputs:
                if not name:
                    continue
                if name in made or name in scope.outer:
                    other = made.get(name, "a graph around this one")
                    message = f"value {show(name)} must be defined once, but {other} defines it too"
                    yield Hit(scope.at(NODES, index), scope.where(index), message)
                else:
                    made[name] = scope.where(index)


RULES = (
    Rule("GRA-17", "MUST", _value_names, "give it a name", structural=True),
    Rule("PRO-05", "MUST", _initializer_names, _RENAME, structural=True),
    Rule("GRA-23", "MUST", _single_assignment, _RENAME, structural=True),
)
