"""Operators of the quantized dialects for ONNX's reference evaluator, which lacks them.

They are written from the operators' definitions in float64 numpy, independently of hwflow's own arithmetic, so that
``compare`` has a reference. One module per dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hwflow.onnxspec.dialect_operators.quantizer_levels import AnyArray, Levels
from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, all_facts, facts_of
from hwflow.onnxspec.shapes.dialects import DIALECT_DOMAINS

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


def operators() -> list[type[OpRun]]:
    """Return the operators for ``onnx.reference.ReferenceEvaluator(new_ops=...)``."""
    return [*_made()]


def can_run(domain: str, name: str) -> bool:
    """Tell whether the reference evaluator can run an operator: ONNX's own, and those of :func:`operators`."""
    return domain in ("", "ai.onnx.ml") or (domain in DIALECT_DOMAINS and _runs(facts_of(domain, name)))


def _runs(operator: OperatorFacts) -> bool:
    return operator.evaluate is not None or operator.levels is not None


@cache
def _made() -> tuple[type[OpRun], ...]:
    return tuple(
        _operator(domain, operator)
        for (domain, _), operator in all_facts()
        if domain in DIALECT_DOMAINS and _runs(operator)
    )


def _operator(domain: str, operator: OperatorFacts) -> type[OpRun]:
    """Return an operator class; the evaluator finds it by its domain and name."""
    from onnx.reference.op_run import OpRun  # the reference evaluator is slow to import

    def call(self: OpRun, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray, ...]:
        result = _result(operator, inputs, attributes)
        return result[: len(self.output)] if isinstance(result, tuple) else (np.asarray(result),)

    return type(operator.name, (OpRun,), {"op_domain": domain, "_run": call})


def _result(
    operator: OperatorFacts, inputs: Sequence[AnyArray | None], attributes: dict[str, Any]
) -> AnyArray | tuple[AnyArray, ...]:
    if operator.evaluate is not None:
        return operator.evaluate(inputs, attributes)
    assert operator.levels is not None
    levels = operator.levels(inputs, attributes)
    if isinstance(levels, Levels):
        return levels.array()
    x = inputs[0]
    assert x is not None  # else there were no levels
    return np.asarray(levels.real()).astype(x.dtype)
