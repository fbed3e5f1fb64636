"""Clauses about nodes: what they read and make, their order, what subgraphs see."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.onnxspec.graph import NODES, OUTPUTS, find_cycle, is_sorted, show, topological_order
from hwflow.onnxspec.rules import Context, Hit, Rule


def _dangling_inputs(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        used = {name for node in scope.nodes for name in node.inputs}
        used.discard("")
        missing = used - scope.visible
        if not missing:
            continue
        for index, node in enumerate(scope.nodes):
            for name in dict.fromkeys(node.inputs):
                if name in missing:
                    yield Hit(
                        scope.at(NODES, index),
                        scope.where(index),
                        f"input {show(name)} must be a graph input, an initializer or the output of a node, "
                        "but nothing makes it",
                        f"add what makes {show(name)}, or read another value",
                    )


def _dangling_outputs(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        # An output of a subgraph may be a value of a graph around it.
        for index, name in enumerate(scope.outputs):
            if name and name not in scope.visible:
                yield Hit(
                    scope.at(OUTPUTS, index),
                    f"output {show(name)}{scope.label}",
                    f"output {show(name)} must be the output of a node, an input or an initializer, "
                    "but nothing makes it",
                    f"add what makes {show(name)}, or remove the output",
                )


def _no_cycles(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if is_sorted(scope.nodes, scope.given):
            continue
        left = topological_order(scope.nodes, scope.given)[1]
        if left:
            cycle = find_cycle(scope.nodes, left, scope.given)
            around = [scope.names[i] for i in [*cycle, cycle[0]]]
            if len(around) > 12:
                around = [*around[:6], "...", *around[-5:]]
            through = " -> ".join(show(name) if name != "..." else name for name in around)
            yield Hit(
                scope.at(NODES, cycle[0]),
                scope.where(cycle[0]),
                f"the graph must have no cycle, but there is one: {through}",
            )


def _order(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if is_sorted(scope.nodes, scope.given):
            continue
        maker: dict[str, int] = {}
        for index, node in enumerate(scope.nodes):
            for name in node.outputs:
                if name and name not in scope.given:
                    maker.setdefault(name, index)
        on_cycle = set(topological_order(scope.nodes, scope.given)[1])
        for index, node in enumerate(scope.nodes):
            if index in on_cycle:
                continue  # GRA-03 says it
            for name in dict.fromkeys(node.reads):
                if maker.get(name, -1) > index:
                    later = scope.where(maker[name])
                    yield Hit(
                        scope.at(NODES, index),
                        scope.where(index),
                        f"nodes must be in topological order, but {show(name)} is made later, by {later}",
                    )


RULES = (
    Rule("NOD-05", "MUST", _dangling_inputs, "add what makes the value", structural=True),
    Rule("NOD-12", "MUST", _dangling_outputs, "add what makes the value", structural=True),
    Rule(
        "GRA-03",
        "MUST",
        _no_cycles,
        "break the cycle: no node may read, directly or through others, what it makes",
        structural=True,
    ),
    Rule("NOD-35", "MUST", _order, "sort the nodes so that each one follows those it reads from"),
)
