"""Clauses about tensors whose data lies in files beside the model."""

from __future__ import annotations

from hwflow.onnxspec.rules import Rule

RULES: tuple[Rule, ...] = ()
