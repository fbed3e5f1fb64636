"""Validation: all rules on one model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx

from hwflow.errors import Finding
from hwflow.onnxspec.clauses import RULES
from hwflow.onnxspec.clauses.rules import Context, Options, Rule, run_rules
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
    """All findings about ``model``, in the order of the graph; empty if there is nothing to say.

    ``path`` is the file the model comes from (clauses about files beside the model look there); ``pedantic`` adds
    remarks of form (:func:`is_remark`), ``trusted`` are folders as in :class:`hwflow.onnxspec.clauses.rules.Options`.
    ``model`` is not changed. Nothing is raised: what onnx's checker and shape inference raise becomes a finding.
    """
    return validate_scopes(model, path, pedantic=pedantic, trusted=trusted)[0]


def validate_scopes(
    model: onnx.ModelProto,
    path: str | os.PathLike[str] | None = None,
    *,
    pedantic: bool = False,
    trusted: Sequence[str | os.PathLike[str]] = (),
) -> tuple[list[Finding], tuple[Scope, ...]]:
    """What :func:`validate` gives, and the scopes that it read the model into: reading them takes a while."""
    context = Context(model, path, Options(tuple(Path(folder) for folder in trusted)))
    found = _run(RULES, context)
    return found if pedantic else [finding for finding in found if not is_remark(finding)], context.scopes


def is_remark(finding: Finding) -> bool:
    """Whether a finding is about form alone, and left out unless ``pedantic`` asks for it."""
    return finding.rule in _PEDANTIC


def _run(rules: Iterable[Rule], context: Context) -> list[Finding]:
    return text_findings(context.model, context.scopes) or run_rules(rules, context)


def structural_findings(model: onnx.ModelProto) -> list[Finding]:
    """Findings of the rules without which the graph cannot be walked."""
    return _run((rule for rule in RULES if rule.structural), Context(model))
