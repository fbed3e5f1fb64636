"""One node of a dialect, evaluated by ONNX's reference evaluator with hwflow's operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hwflow.onnxspec import dialect_operators
from tests.onnxspec.build import node

Array = np.ndarray[Any, Any]


def proto(domain: str, op: str, inputs: list[Array | None], kind: int, **attributes: Any) -> onnx.ModelProto:
    """A model of one node: input x is the node's first input, the others are constants; output y of type ``kind``."""
    names = ["" if array is None else f"i{k}" for k, array in enumerate(inputs)]
    first = next(k for k, array in enumerate(inputs) if array is not None and array.ndim > 1)
    moving = inputs[first]
    assert moving is not None
    element = helper.np_dtype_to_tensor_dtype(moving.dtype)
    graph = helper.make_graph(
        [node(op, names, ["y"], domain=domain, **attributes)], "graph",
        [helper.make_tensor_value_info(f"i{first}", element, moving.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(a, f"i{k}") for k, a in enumerate(inputs) if a is not None and k != first],
    )
    opsets = [helper.make_opsetid("", 19)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def feeds(inputs: list[Array | None]) -> dict[str, Array]:
    return next({f"i{k}": array} for k, array in enumerate(inputs) if array is not None and array.ndim > 1)


def evaluate(domain: str, op: str, inputs: list[Array | None], **attributes: Any) -> Array:
    model = proto(domain, op, inputs, onnx.TensorProto.FLOAT, **attributes)
    evaluator = ReferenceEvaluator(model, new_ops=dialect_operators.operators())
    return np.asarray(evaluator.run(None, feeds(inputs))[0])
