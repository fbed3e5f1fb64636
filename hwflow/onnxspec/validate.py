"""Validation: the registry of rules."""

from __future__ import annotations

import os

import onnx

from hwflow.errors import Finding
from hwflow.onnxspec import external, rules_graph, rules_model, rules_operators
from hwflow.onnxspec.rules import Context, Rule, run_rules

# A clause becomes a check by one entry in the RULES of the file of its subject. `external` comes last.
RULES: tuple[Rule, ...] = (*rules_model.RULES, *rules_graph.RULES, *rules_operators.RULES, *external.RULES)


def validate(model: onnx.ModelProto, path: str | os.PathLike[str]) -> list[Finding]:
    """All findings about ``model``, in the order of the graph; empty if there is nothing to say.

    ``path`` is the file the model comes from (clauses about files beside the model look there). ``model`` is not
    changed. Nothing is raised: what onnx's checker and shape inference raise becomes a finding.
    """
    return run_rules(RULES, Context(model, path))


def structural_findings(model: onnx.ModelProto) -> list[Finding]:
    """Findings of the rules without which the graph cannot be walked."""
    return run_rules((rule for rule in RULES if rule.structural), Context(model))
