"""The clauses of the ONNX IR specification as rules, grouped by subject."""

from __future__ import annotations

from hwflow.onnxspec.clauses import (
    arity,
    attributes,
    external_data,
    functions,
    graph,
    history,
    model,
    names,
    nodes,
    onnx_checks,
    operators,
    opsets,
    optional_outputs,
    shapes,
    storage,
    tensors,
    training,
    types,
)
from hwflow.onnxspec.rules import Rule

# A clause becomes a check by one entry in the RULES of the file of its subject. Rules see what those before them found:
# `names` and `graph.LATE_RULES` gather, and `onnx_checks` runs where nothing else has an objection.
RULES: tuple[Rule, ...] = (
    *model.RULES,
    *opsets.RULES,
    *storage.RULES,
    *graph.RULES,
    *nodes.RULES,
    *attributes.RULES,
    *operators.RULES,
    *arity.RULES,
    *optional_outputs.RULES,
    *functions.RULES,
    *types.RULES,
    *tensors.RULES,
    *external_data.RULES,
    *training.RULES,
    *history.RULES,
    *names.RULES,
    *shapes.RULES,
    *graph.LATE_RULES,
    *onnx_checks.RULES,
)
