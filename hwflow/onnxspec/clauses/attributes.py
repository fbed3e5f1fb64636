"""Clauses about attributes of nodes."""

from __future__ import annotations

from hwflow.onnxspec.rules import Rule

RULES: tuple[Rule, ...] = ()
