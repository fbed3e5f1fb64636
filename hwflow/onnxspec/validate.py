"""Validate a model against all rules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import onnx

from hwflow.errors import Finding
from hwflow.onnxspec.clauses import RULES
from hwflow.onnxspec.clauses.rules import Context, Options, run_rules
from hwflow.onnxspec.graphs.scopes import Scope
from hwflow.onnxspec.reading.text import text_findings

_PEDANTIC = frozenset(rule.id for rule in RULES if rule.pedantic)


def validate(
    model: onnx.ModelProto,
    path: str | os.PathLike[str] | None = None,
    *,
    pedantic: bool = False,
    trusted: Sequence[str | os.PathLike[str]] = (),
) -> list[Finding]:
    """Return all findings about ``model``, in the order of the graph.

    ``path``: the model's file (clauses about external files use its folder); ``pedantic`` adds remarks on form
    (:func:`is_remark`); ``trusted``: folders as in :class:`hwflow.onnxspec.clauses.rules.Options`. ``model`` is not
    changed. Nothing is raised: errors of onnx's checker and shape inference become findings.
    """
    return validate_scopes(model, path, pedantic=pedantic, trusted=trusted)[0]


def validate_scopes(
    model: onnx.ModelProto,
    path: str | os.PathLike[str] | None = None,
    *,
    pedantic: bool = False,
    trusted: Sequence[str | os.PathLike[str]] = (),
) -> tuple[list[Finding], tuple[Scope, ...]]:
    """Return the result of :func:`validate`, and the model's scopes, which are expensive to read."""
    context = Context(model, path, Options(tuple(Path(folder) for folder in trusted)))
    found = text_findings(context.model, context.scopes) or run_rules(RULES, context)
    return found if pedantic else [finding for finding in found if not is_remark(finding)], context.scopes


def is_remark(finding: Finding) -> bool:
    """Tell whether a finding concerns form alone, and is omitted unless ``pedantic``."""
    return finding.rule in _PEDANTIC
