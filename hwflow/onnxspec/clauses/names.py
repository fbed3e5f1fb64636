"""Clauses about the names of graphs, nodes and attributes."""

from __future__ import annotations

from collections.abc import Iterator

from hwflow.onnxspec.graph import NODES, show
from hwflow.onnxspec.rules import Context, Hit, Rule


def _node_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if tuple(node.name for node in scope.nodes) == scope.names:
            continue  # each has a name of its own
        seen: set[str] = set()
        for index, node in enumerate(scope.nodes):
            if node.name and node.name in seen:
                yield Hit(
                    scope.at(NODES, index),
                    scope.where(index),
                    f"node names must be distinct, but {show(node.name)} names an earlier node too; "
                    f"this one is called {show(scope.names[index])} here",
                )
            seen.add(node.name)


RULES = (
    # A warning: nothing refers to a node by its name.
    Rule("NAM-05", "MUST", _node_names, "rename one of them", severity="warning"),
)
