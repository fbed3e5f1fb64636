"""Small quantized networks made here, for tests of the whole flow."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def dense_network(path: Path, widths: tuple[int, ...] = (12, 8, 4), seed: int = 1) -> Path:
    """A dense network ``widths[0]`` -> ... -> ``widths[-1]`` in QDQ: uint8 activations with zero point 128, int8
    weights per channel, int32 biases, Relu between; float input ``x`` and output ``y``, frames ``N``."""
    rng = np.random.default_rng(seed)
    nodes, initializers = [], []

    def constant(name: str, array: np.ndarray) -> str:
        initializers.append(numpy_helper.from_array(array, name))
        return name

    def quantize(name: str, source: str, scale: float, zero_point: int) -> str:
        s, z = constant(f"{name}_scale", np.float32(scale)), constant(f"{name}_zero", np.uint8(zero_point))
        nodes.append(helper.make_node("QuantizeLinear", [source, s, z], [f"{name}_q"], f"{name}_quantize"))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", s, z], [f"{name}_d"], f"{name}_dequantize"))
        return f"{name}_d"

    x_scale = 0.031
    value = quantize("x", "x", x_scale, 128)
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        weights = rng.integers(-127, 128, (outputs, inputs)).astype(np.int8)
        scales = rng.uniform(0.002, 0.01, outputs).astype(np.float32)
        bias = rng.integers(-500, 500, outputs).astype(np.int32)
        w, b = constant(f"w{layer}", weights), constant(f"b{layer}", bias)
        ws = constant(f"w{layer}_scale", scales)
        bs = constant(f"b{layer}_scale", (scales * np.float32(x_scale)).astype(np.float32))
        nodes.append(helper.make_node("DequantizeLinear", [w, ws], [f"{w}_d"], f"{w}_dequantize", axis=0))
        nodes.append(helper.make_node("DequantizeLinear", [b, bs], [f"{b}_d"], f"{b}_dequantize", axis=0))
        nodes.append(
            helper.make_node("Gemm", [value, f"{w}_d", f"{b}_d"], [f"dense{layer}"], f"dense{layer}", transB=1)
        )
        last = layer == len(widths) - 2
        if not last:
            nodes.append(helper.make_node("Relu", [f"dense{layer}"], [f"relu{layer}"], f"relu{layer}"))
        x_scale = 0.02 * (layer + 1)
        value = quantize(f"act{layer}", f"dense{layer}" if last else f"relu{layer}", x_scale, 117 if last else 0)
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes,
        "small dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", widths[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", widths[-1]])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path
