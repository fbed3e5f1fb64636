"""Operators of the quantized dialects for ONNX's reference evaluator, which knows none of them.

They are written from the operators' definitions, in float64 numpy and apart from hwflow's own arithmetic, so that
``compare`` has something to compare with. One module for each dialect holds what its operators compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hwflow.onnxspec.dialect_operators import microsoft_operators, qonnx_operators
from hwflow.onnxspec.dialect_operators.quantizer_levels import AnyArray
from hwflow.onnxspec.shapes.dialects import MICROSOFT_DOMAIN, QONNX_DOMAINS

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun

_Run = Callable[[Sequence[AnyArray | None], dict[str, Any]], AnyArray]


def operators() -> list[type[OpRun]]:
    """For ``onnx.reference.ReferenceEvaluator(new_ops=...)``."""
    return [*_made()]


def can_run(domain: str, name: str) -> bool:
    """Whether the reference evaluator can run an operator: it has all of ONNX's own, and those of :func:`operators`."""
    return domain in ("", "ai.onnx.ml") or (domain, name) in _NAMES


def _runs() -> Iterator[tuple[str, str, _Run]]:
    """Domain and name of each operator, and what computes it."""
    yield from ((domain, name, run) for domain in sorted(QONNX_DOMAINS) for name, run in qonnx_operators.RUN.items())
    yield from ((MICROSOFT_DOMAIN, name, run) for name, run in microsoft_operators.RUN.items())


@cache
def _made() -> tuple[type[OpRun], ...]:
    return tuple(_operator(*run) for run in _runs())


def _operator(domain: str, name: str, run: _Run) -> type[OpRun]:
    """An operator class; the evaluator finds it by its domain and name."""
    from onnx.reference.op_run import OpRun  # the reference evaluator is slow to import

    def call(self: OpRun, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
        return (np.asarray(run(inputs, attributes)),)

    return type(name, (OpRun,), {"op_domain": domain, "_run": call})


_NAMES = frozenset((domain, name) for domain, name, _ in _runs())
