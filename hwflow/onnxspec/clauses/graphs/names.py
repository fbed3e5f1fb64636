"""Clauses about names: their form, and their uniqueness per namespace.

Violations by values, attributes and functions also violate other clauses, whose files find them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from hwflow.display import show
from hwflow.errors import Finding, Severity
from hwflow.onnxspec.clauses.graphs.attributes import repeated_names
from hwflow.onnxspec.clauses.graphs.operators import calls_function
from hwflow.onnxspec.clauses.models.functions import repeated_functions
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule, listed
from hwflow.onnxspec.clauses.values.shapes import RENAME_VARIABLES, wrong_variables
from hwflow.onnxspec.graphs.scopes import MODEL, NODES, Scope


def _are_identifiers(names: Sequence[str]) -> bool:
    """Tell whether all are C identifiers, that is, ASCII identifiers of Python."""
    return all(map(str.isidentifier, names)) and "".join(names).isascii()


def _own_name(scope: Scope) -> tuple[str, str]:
    """Return the kind and the name of the scope."""
    if scope.function is not None:
        return "function", scope.function.name
    return "graph", scope.graph.name if scope.graph is not None else ""


def _identifiers(context: Context) -> Iterator[Hit]:
    for scope, forms in context.node_forms:
        kind, own = _own_name(scope)
        outputs = chain.from_iterable([node.outputs for node in scope.nodes])
        named: dict[str, Iterable[str]] = {  # in the order of the file
            kind: (own,),
            "node": [node.name for node in scope.nodes],
            "value": chain(scope.inputs, scope.initializers, outputs),
            "attribute": [attribute.name for form in forms.forms for attribute in form.attributes],
            "operator": [form.op_type for form in forms.forms if not calls_function(context, form)],
        }
        bad: dict[str, list[str]] = {}
        for what, every in named.items():
            names = list(filter(None, every))  # "" is no name
            if not _are_identifiers(names):
                bad[what] = [name for name in dict.fromkeys(names) if not (name.isidentifier() and name.isascii())]
        if not bad:
            continue
        counts = [f"{len(names)} {what} {'name' if len(names) == 1 else 'names'}" for what, names in bad.items()]
        examples = listed(chain.from_iterable(bad.values()))
        verb = "is" if sum(map(len, bad.values())) == 1 else "are"
        yield Hit(
            scope.at(MODEL),
            scope.title,
            "names must be C identifiers (a letter or underscore, then letters, digits and underscores), but "
            f"{', '.join(counts)} {verb} not: {examples}",
        )
    for hit in wrong_variables(context):
        yield replace(hit, remedy=RENAME_VARIABLES)


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


_PARTS = ("NAM-03", "NAM-04", "NAM-05", "NAM-06", "NAM-07")


def _namespaces(context: Context) -> Iterator[Hit]:
    """Collect the findings of the clauses about single namespaces, graph by graph."""
    parts = [(position, finding) for position, finding in context.found if finding.rule in _PARTS]
    if not parts:
        return
    scopes = {scope.position: scope for scope in context.scopes}
    by_scope: dict[Scope, list[Finding]] = {}
    for position, finding in parts:
        # About the graph itself, or a place in it: the last two numbers, see Scope.at.
        scope = scopes.get(position) or scopes.get(position[:-2]) or context.scopes[0]
        by_scope.setdefault(scope, []).append(finding)
    for scope, findings in by_scope.items():
        counts = Counter(finding.rule for finding in findings)
        clauses = ", ".join(f"{rule} ({counts[rule]})" for rule in _PARTS if rule in counts)
        errors = any(finding.severity == Severity.ERROR for finding in findings)
        yield Hit(
            scope.at(MODEL),
            scope.title,
            f"each name must be unique in its namespace, but findings of {clauses} say otherwise",
            severity=Severity.ERROR if errors else Severity.WARNING,
        )


# Pedantic: names that are no C identifiers, because nearly every exporter writes them and hwflow converts them.
# Warnings: names of nodes and graphs, because nothing refers to them. NAM-02 comes last: it collects.
RULES = (
    Rule(
        "NAM-01", "MUST", _identifiers, "rename them if another tool asks for it", severity=Severity.WARNING,
        pedantic=True,
    ),
    Rule("NAM-03", "MUST", repeated_names, "remove all but one of them"),
    Rule("NAM-05", "MUST", _node_names, "rename all but one of them", severity=Severity.WARNING),
    Rule("NAM-06", "MUST", _graph_names, "rename all but one of them", severity=Severity.WARNING),
    Rule("NAM-07", "MUST", repeated_functions, "rename one of them"),
    Rule("NAM-02", "MUST", _namespaces, "see the findings that it counts"),
)
