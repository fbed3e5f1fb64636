"""Clauses about training information."""

from __future__ import annotations

from hwflow.onnxspec.rules import Rule

RULES: tuple[Rule, ...] = ()
