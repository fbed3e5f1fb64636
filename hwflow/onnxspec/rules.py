"""What a rule is: one clause of the specification (or one of hwflow's own) as a function over a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx

from hwflow.errors import Finding
from hwflow.onnxspec.graph import Position, Scope, scopes


class Context:
    """The model under test, what the rules share about it, and what the rules before have found."""

    def __init__(self, model: onnx.ModelProto, path: str | os.PathLike[str] | None = None) -> None:
        self.model = model
        self.path = None if path is None else Path(path)
        self.found: list[tuple[Position, Finding]] = []

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """See :func:`hwflow.onnxspec.graph.scopes`; the main graph is the first."""
        return tuple(scopes(self.model))

    @cached_property
    def functions(self) -> frozenset[tuple[str, str]]:
        """(domain, name) of the functions local to the model."""
        return frozenset((f.domain, f.name) for f in self.model.functions)

    @property
    def has_errors(self) -> bool:
        """Whether a rule before this one has found an error."""
        return any(finding.severity == "error" for _, finding in self.found)


@dataclass(frozen=True)
class Hit:
    """One violation: :class:`hwflow.errors.Finding` without the rule, with the position that orders it."""

    position: Position
    where: str
    message: str
    remedy: str
    severity: str = "error"


@dataclass(frozen=True)
class Rule:
    """``id`` is a clause id of the specification or the name of a rule of hwflow's own.

    A ``structural`` rule is one that :func:`hwflow.onnxspec.resolve` needs to hold to walk the graph at all.
    """

    id: str
    check: Callable[[Context], Iterator[Hit]]
    structural: bool = False


def run_rules(rules: Iterable[Rule], context: Context) -> list[Finding]:
    """All findings of ``rules``, in the order of the graph; at the same position in the order of the rules."""
    for rule in rules:
        for hit in list(rule.check(context)):
            finding = Finding(rule.id, hit.where, hit.message, hit.remedy, hit.severity)
            context.found.append((hit.position, finding))
    return [finding for _, finding in sorted(context.found, key=lambda item: item[0])]
