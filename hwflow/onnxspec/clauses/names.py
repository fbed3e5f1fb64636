"""Clauses about names: their form, and that each is unique in its namespace.

Values, whose namespace is also about single assignment, are in the file about graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hwflow.errors import Finding
from hwflow.onnxspec.graph import MODEL, NODES, Kind, Position, Scope, function_name, plain_domain, show
from hwflow.onnxspec.rules import Context, Hit, Rule, listed


def _are_identifiers(names: Iterable[str]) -> bool:
    # Python's identifiers, of ASCII characters, are C's.
    return all(name.isidentifier() and name.isascii() for name in names)


def _named(scope: Scope) -> Iterator[tuple[str, Iterable[str]]]:
    """The names of the scope by what they are names of, in the order of the file; "" is no name."""
    if scope.graph is not None:
        yield "graph", (scope.graph.name,)
    elif scope.function is not None:
        yield "function", (scope.function.name,)
    yield "node", (node.name for node in scope.nodes)
    values = dict.fromkeys((*scope.inputs, *scope.initializers))
    values.update(dict.fromkeys(name for node in scope.nodes for name in node.outputs))
    yield "value", values
    yield "attribute", (attribute.name for node in scope.nodes for attribute in node.attributes)


def _names_are_plain(scope: Scope) -> bool:
    """Whether all names of the scope are C identifiers, quickly."""
    own = scope.graph.name if scope.graph is not None else scope.function.name if scope.function is not None else ""
    names = {node.name for node in scope.nodes}
    names.update(scope.defined, (a.name for node in scope.nodes for a in node.attributes), (own,))
    names.discard("")
    return _are_identifiers(names)


def _identifiers(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        if _names_are_plain(scope):
            continue
        bad = {
            kind: [name for name in dict.fromkeys(names) if name and not _are_identifiers((name,))]
            for kind, names in _named(scope)
        }
        counts = [f"{len(names)} {kind} {'name' if len(names) == 1 else 'names'}" for kind, names in bad.items() if names]
        total = sum(map(len, bad.values()))
        yield Hit(
            scope.at(MODEL),
            scope.title,
            "names must be C identifiers (a letter or underscore, then letters, digits and underscores), but "
            f"{', '.join(counts)} {'is' if total == 1 else 'are'} not: "
            f"{listed(name for names in bad.values() for name in names)}",
        )


def _attribute_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        for index, node in enumerate(scope.nodes):
            if len(node.attributes) < 2:
                continue
            names = [attribute.name for attribute in node.attributes]
            if len(set(names)) == len(names):
                continue
            repeated = [name for name, count in Counter(names).items() if count > 1 and name]
            if repeated:
                message = f"the attributes of a node must have distinct names, but there more than once: {listed(repeated)}"
                yield Hit(scope.at(NODES, index), scope.where(index), message)


def _node_names(context: Context) -> Iterator[Hit]:
    for scope in context.scopes:
        names = [node.name for node in scope.nodes if node.name]
        if len(set(names)) == len(names):
            continue
        same: dict[str, list[int]] = {}
        for index, node in enumerate(scope.nodes):
            same.setdefault(node.name, []).append(index)
        for name, indices in same.items():
            if name and len(indices) > 1:
                second = indices[1]
                message = (
                    f"node names must be distinct in a graph, but {show(name)} names {len(indices)} nodes; "
                    f"they are called {listed(scope.names[index] for index in indices)} here"
                )
                yield Hit(scope.at(NODES, second), scope.where(second), message)


def _graph_names(context: Context) -> Iterator[Hit]:
    same: dict[str, list[Scope]] = {}
    for scope, graph in context.graphs:
        same.setdefault(graph.name, []).append(scope)
    for name, scopes in same.items():
        if name and len(scopes) > 1:
            second = scopes[1]
            message = f"graph names must be distinct in a model, but {show(name)} names {len(scopes)} graphs"
            yield Hit(second.at(MODEL), second.title, message)


def _operator_names(context: Context) -> Iterator[Hit]:
    seen: set[tuple[str, str, str]] = set()
    for scope in context.scopes:
        if scope.kind is Kind.FUNCTION and scope.function is not None:
            function = scope.function
            key = (plain_domain(function.domain), function.name, function.overload)
            if key in seen:
                message = (
                    f"operator names must be distinct in a domain, but more than one function is called "
                    f"{show(function_name(function))}"
                )
                yield Hit(scope.at(MODEL), scope.title, message)
            seen.add(key)


_PARTS = ("NAM-03", "NAM-04", "NAM-05", "NAM-06", "NAM-07")


def _scope_of(context: Context, position: Position, finding: Finding) -> Scope:
    """The scope that a finding about one of its parts is about."""
    inside = [scope for scope in context.scopes if scope.position == position[:-2]]
    # Several graphs of one node have one position; the text tells them apart.
    return next((scope for scope in inside if finding.where.endswith(scope.label)), context.scopes[0])


def _namespaces(context: Context) -> Iterator[Hit]:
    """Gathers what the clauses about the single namespaces have found, graph by graph."""
    by_scope: dict[Scope, list[Finding]] = {}
    for position, finding in context.found:
        if finding.rule in _PARTS:
            by_scope.setdefault(_scope_of(context, position, finding), []).append(finding)
    for scope, findings in by_scope.items():
        counts = Counter(finding.rule for finding in findings)
        clauses = ", ".join(f"{rule} ({counts[rule]})" for rule in _PARTS if rule in counts)
        yield Hit(
            scope.at(MODEL),
            scope.title,
            f"each name must be unique in its namespace, but findings of {clauses} say otherwise",
            severity="error" if any(finding.severity == "error" for finding in findings) else "warning",
        )


# Warnings: names that are no C identifiers, because nearly every exporter writes them and hwflow makes identifiers of
# them; names of nodes and graphs, because nothing refers to them. NAM-02 is the last: it gathers.
RULES = (
    Rule("NAM-01", "MUST", _identifiers, "rename them if another tool asks for it", severity="warning"),
    Rule("NAM-03", "MUST", _attribute_names, "remove all attributes of the name but the one meant", structural=True),
    Rule("NAM-05", "MUST", _node_names, "rename all but one of them", severity="warning"),
    Rule("NAM-06", "MUST", _graph_names, "rename all but one of them", severity="warning"),
    Rule("NAM-07", "MUST", _operator_names, "rename one of them, or give it an overload", structural=True),
    Rule("NAM-02", "MUST", _namespaces, "see the findings that it counts"),
)
