"""Clauses about shapes and dimension variables."""

from __future__ import annotations

from hwflow.onnxspec.rules import Rule

RULES: tuple[Rule, ...] = ()
