"""Clauses about metadata, documentation and device annotations."""

from __future__ import annotations

from hwflow.onnxspec.rules import Rule

RULES: tuple[Rule, ...] = ()
