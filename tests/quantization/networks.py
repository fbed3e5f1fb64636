"""Small float networks to be quantized, built node by node with chosen weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]


class Network:
    """A float32 model from ``x`` to ``y``; methods add a node and return the name of its result."""

    def __init__(self, shape: Sequence[int | str], opset: int = 13, ir_version: int = 8, kind: int = TensorProto.FLOAT):
        self.opset, self.ir_version = opset, ir_version
        self.input = helper.make_tensor_value_info("x", kind, shape)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.float32, name: str = "") -> str:
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, op: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        result = result or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [result], f"{op.lower()}{len(self.nodes)}", **attributes))
        return result

    def model(self, output: str, shape: Sequence[int | str]) -> onnx.ModelProto:
        """Where ``output`` is the output ``y``, of ``shape``."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    names[i] = "y" if name == output else name
        inputs = [self.input]
        if self.ir_version < 4:  # initializers must be inputs, too
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in self.constants]
        graph = helper.make_graph(
            self.nodes, "net", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            self.constants, doc_string="Made by a test.",
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=self.ir_version, domain="org.example"
        )
        onnx.checker.check_model(model)
        return model

    def save(self, path: Path, output: str, shape: Sequence[int | str]) -> Path:
        onnx.save(self.model(output, shape), path)
        return path


def thirds(path: Path) -> Path:
    """Which third of a 6-vector has the largest sum: a dense layer with Relu whose rows differ in size by factors of
    four, and one that undoes that. ``y`` holds the three sums where they are positive.
    """
    network = Network(["N", 6])
    sums = np.kron(np.eye(3), np.ones((2, 1)))  # [6, 3]
    sizes = np.array([1.0, 4.0, 16.0])
    hidden = network.node("Gemm", "x", network.constant(sums * sizes, name="w1"), network.constant(np.zeros(3)))
    hidden = network.node("Relu", hidden)
    y = network.node("Gemm", hidden, network.constant(np.diag(1 / sizes), name="w2"), network.constant(np.zeros(3)))
    return network.save(path, y, ["N", 3])


def thirds_data(path: Path, frames: int = 60) -> Path:
    """Frames of :func:`thirds` and their labels, each winner ahead by 0.5 of about 2: seven of 128 steps of a sum."""
    rng = np.random.default_rng(3)
    label = np.arange(frames) % 3
    x = rng.random((frames, 6)) * 0.75
    x[np.arange(frames), 2 * label] += 1.0
    x[np.arange(frames), 2 * label + 1] += 0.75 + 0.5 - 0.25
    np.savez(path, x=x.astype(np.float32), label=label)
    return path
