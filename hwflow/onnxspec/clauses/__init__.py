"""The clauses of the ONNX IR specification as rules, grouped by subject."""

from __future__ import annotations

from hwflow.onnxspec.clauses.graphs import arity, attributes, graph_parts, names, nodes, operators, optional_outputs
from hwflow.onnxspec.clauses.ml import operator_rules
from hwflow.onnxspec.clauses.models import functions, history, model, onnx_checks, opsets, training
from hwflow.onnxspec.clauses.rules import Rule
from hwflow.onnxspec.clauses.values import external_data, metadata, shapes, stated_types, tensors

# A clause becomes a check by an entry in the RULES of its subject's file. Rules see the findings of earlier ones:
# `names` and `graph.LATE_RULES` collect them, and `onnx_checks` runs only where no other rule objects.
RULES: tuple[Rule, ...] = (
    *model.RULES,
    *opsets.RULES,
    *metadata.RULES,
    *graph_parts.RULES,
    *nodes.RULES,
    *attributes.RULES,
    *operators.RULES,
    *arity.RULES,
    *optional_outputs.RULES,
    *operator_rules.RULES,
    *functions.RULES,
    *stated_types.RULES,
    *operator_rules.LATE_RULES,
    *tensors.RULES,
    *external_data.RULES,
    *training.RULES,
    *history.RULES,
    *names.RULES,
    *shapes.RULES,
    *graph_parts.LATE_RULES,
    *onnx_checks.RULES,
)
