"""Optimizers of ai.onnx.preview.training for the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference.op_run import OpRun
from onnx.reference.ops.aionnx_preview_training import load_op

TRAINING_DOMAIN = "ai.onnx.preview.training"

# Tensors per optimized tensor: itself, its gradient, and the optimizer's state of it.
_TENSORS = {"Adagrad": 3, "Adam": 4, "Momentum": 3}


def optimizers(version: int) -> list[type[OpRun]]:
    """Return operators for ``onnx.reference.ReferenceEvaluator(new_ops=...)`` by the specification: each result has the
    type of the optimized tensor.

    The evaluator's own (onnx 1.23.2) give float64 for a float32 tensor where the step counter takes part (it is an
    int64, and numpy promotes), and round float64 to float32 where Adam has several tensors.
    """
    return [_typed(name, count, version) for name, count in _TENSORS.items()]


def _typed(name: str, count: int, version: int) -> type[OpRun]:
    own: Any = load_op(TRAINING_DOMAIN, name, version)

    def run(self: OpRun, *data: npt.NDArray[Any], **attributes: Any) -> tuple[npt.NDArray[Any], ...]:
        rate, step, tensors = data[0], data[1], data[2:]
        each = len(tensors) // count
        results = [own._run(self, rate, step, *tensors[i::each], **attributes) for i in range(each)]
        # First all new tensors, then the optimizer states, kind by kind.
        return tuple(
            np.asarray(result).astype(tensors[i].dtype)
            for kind in zip(*results, strict=True)
            for i, result in enumerate(kind)
        )

    schema = onnx.defs.get_schema(name, version, TRAINING_DOMAIN)
    return type(name, (own,), {"op_domain": TRAINING_DOMAIN, "op_schema": schema, "_run": run})
