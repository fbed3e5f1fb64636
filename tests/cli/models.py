"""Small models that are refused, each for its own reason, and one that is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str]


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    shape: Shape,
    constants: dict[str, np.ndarray],
    out_shape: Shape | None = None,
) -> Path:
    """A model from float ``x`` to float ``y``."""
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape if out_shape is None else out_shape)],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
        doc_string="Made by a test.",
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9, domain="org.example")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


SCALE = {"scale": np.float32(0.5), "zero": np.int8(0)}


def _quantize(source: str, target: str, name: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("QuantizeLinear", [source, "scale", "zero"], [f"{name}_q"], f"{name}_quantize"),
        helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [target], f"{name}_dequantize"),
    ]


def relu(path: Path, shape: Shape = ("N", 4)) -> Path:
    """Quantize, Relu, quantize: compiles."""
    return save(
        path,
        [*_quantize("x", "a", "first"), helper.make_node("Relu", ["a"], ["b"], "relu"), *_quantize("b", "y", "last")],
        shape,
        SCALE,
    )


def unsupported(path: Path) -> Path:
    """Two operators that hwflow does not have, one twice, between quantizers."""
    nodes = [
        *_quantize("x", "a", "first"),
        helper.make_node("Bernoulli", ["a"], ["b"], "wave"),
        *_quantize("b", "c", "second"),
        helper.make_node("Det", ["c"], ["d"], "determinant"),
        *_quantize("d", "e", "third"),
        helper.make_node("Bernoulli", ["e"], ["f"], "ripple"),
        *_quantize("f", "y", "fourth"),
    ]
    return save(path, nodes, ["N", 3, 3], SCALE, ["N"])


def floating(path: Path) -> Path:
    """A dense layer in float32."""
    constants = {"w": np.ones((4, 4), np.float32), "b": np.zeros(4, np.float32)}
    return save(path, [helper.make_node("Gemm", ["x", "w", "b"], ["y"], "dense")], ["N", 4], constants)
