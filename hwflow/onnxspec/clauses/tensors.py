"""Clauses about tensor values: element types, number and range of stored elements."""

from __future__ import annotations

from hwflow.onnxspec.rules import Rule

RULES: tuple[Rule, ...] = ()
