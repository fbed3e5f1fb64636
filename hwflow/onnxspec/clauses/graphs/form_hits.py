"""Map the complaints of rules about node forms back to the nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from hwflow.errors import Severity
from hwflow.onnxspec.clauses.rules import Context, Hit, at_node
from hwflow.onnxspec.graphs.node_forms import NodeForm
from hwflow.onnxspec.graphs.scopes import Scope


class Complaint(NamedTuple):
    """A violation by a form: :class:`hwflow.onnxspec.clauses.rules.Hit` without the place."""

    message: str
    remedy: str | None = None
    severity: Severity | None = None


def form_hits(context: Context, check: Callable[[Scope, NodeForm], Iterable[Complaint]]) -> Iterator[Hit]:
    """Yield the complaints of ``check`` about each form of a scope, for each node of that form."""
    for scope, forms in context.node_forms:
        complaints: dict[Hashable, list[Complaint]] = {}
        for key, form in forms.by_key.items():
            found = list(check(scope, form))
            if found:
                complaints[key] = found
        if complaints:
            for index, key in enumerate(forms.keys):
                for complaint in complaints.get(key, ()):
                    yield at_node(scope, index, *complaint)
