"""A small training model: linear regression by gradient descent, its derivative written as nodes.

Main graph: y = x w, with x [N, 2] and w [2, 1]. Algorithm graph: e = y - target, loss = mean(e^2),
w_new = w - rate * x^T e. Initialization graph: w_first = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.onnxspec.build import model, node, value

RATE = 0.05
WEIGHTS = np.array([[3.0], [-2.0]], np.float32)

FORWARD = [node("MatMul", ["x", "w"], ["y"], name="forward")]
BACKWARD = [
    node("Sub", ["y", "target"], ["e"], name="error"),
    node("Mul", ["e", "e"], ["squares"], name="square"),
    node("ReduceMean", ["squares"], ["loss"], name="mean", keepdims=0),
    node("Transpose", ["x"], ["x_t"], name="turn"),
    node("MatMul", ["x_t", "e"], ["gradient"], name="backward"),
    node("Mul", ["gradient", "rate"], ["change"], name="scale"),
]
UPDATE = node("Sub", ["w", "change"], ["w_new"], name="descend")
X, Y, TARGET = value("x", ["N", 2]), value("y", ["N", 1]), value("target", ["N", 1])
LOSS, W_NEW, W_FIRST = value("loss", []), value("w_new", [2, 1]), value("w_first", [2, 1])


def graph(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    constants: Mapping[str, Any] | None = None,
    **more: Any,
) -> onnx.GraphProto:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(nodes, name, inputs, outputs, tensors, doc_string="Made by a test.", **more)


def algorithm(
    nodes: Sequence[onnx.NodeProto] = (*BACKWARD, UPDATE),
    inputs: Sequence[onnx.ValueInfoProto] = (TARGET,),
    outputs: Sequence[onnx.ValueInfoProto] = (LOSS, W_NEW),
    constants: Mapping[str, Any] | None = None,
    name: str = "descent",
    **more: Any,
) -> onnx.GraphProto:
    return graph(name, nodes, inputs, outputs, {"rate": np.float32(RATE), **(constants or {})}, **more)


def initialization(
    nodes: Sequence[onnx.NodeProto] | None = None,
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (W_FIRST,),
    constants: Mapping[str, Any] | None = None,
    name: str = "zeros",
) -> onnx.GraphProto:
    first = [node("ConstantOfShape", ["w_shape"], ["w_first"], name="zero")] if nodes is None else nodes
    return graph(name, first, inputs, outputs, {"w_shape": np.array([2, 1]), **(constants or {})})


def training(
    algorithm: onnx.GraphProto | None = None,
    updates: Sequence[tuple[str, str]] = (),
    initialization: onnx.GraphProto | None = None,
    initial: Sequence[tuple[str, str]] = (),
) -> onnx.TrainingInfoProto:
    """Bindings are (key, value)."""
    info = onnx.TrainingInfoProto()
    if algorithm is not None:
        info.algorithm.CopyFrom(algorithm)
    if initialization is not None:
        info.initialization.CopyFrom(initialization)
    for key, bound in updates:
        info.update_binding.add(key=key, value=bound)
    for key, bound in initial:
        info.initialization_binding.add(key=key, value=bound)
    return info


def descent(
    algorithm_graph: onnx.GraphProto | None = None,
    updates: Sequence[tuple[str, str]] = (("w", "w_new"),),
    initialization_graph: onnx.GraphProto | None = None,
    initial: Sequence[tuple[str, str]] = (("w", "w_first"),),
) -> onnx.TrainingInfoProto:
    """The training information of this module's model, with what is given in the place of its parts."""
    return training(algorithm_graph or algorithm(), updates, initialization_graph or initialization(), initial)


def sgd(*infos: onnx.TrainingInfoProto, **main: Any) -> onnx.ModelProto:
    """The model with ``infos``, by default :func:`descent`; ``main`` goes to :func:`tests.onnxspec.build.model`."""
    main = {"nodes": FORWARD, "inputs": [X], "outputs": [Y], "constants": {}} | main
    main["constants"] = {"w": WEIGHTS, **main["constants"]}
    made = model(**main)
    made.training_info.extend(infos or [descent()])
    return made
