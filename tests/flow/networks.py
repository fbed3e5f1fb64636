"""Small quantized networks made here, for tests of the whole flow."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.models import Builder


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


def two_convolutions(folder: Path, side: int = 6, seed: int = 3) -> Path:
    """Convolutions 3x3 with pads of 3, 16 and 6 channels, the second one with stride 2 in rows, each with a Relu in
    QDQ: uint8 activations, int8 weights per channel."""
    rng = np.random.default_rng(seed)
    made = Builder()
    value, before = made.requantize(made.input("x", ["N", 3, side, side]), 0.03, 128), 3
    for number, (channels, strides) in enumerate(((16, [1, 1]), (6, [2, 1]))):
        weights = made.weights(rng.integers(-127, 128, (channels, before, 3, 3)), 0.01)
        value = made.node("Relu", made.node("Conv", value, weights, pads=[1, 1, 1, 1], strides=strides))
        value = made.requantize(value, (0.03, 0.11)[number])
        before = channels
    made.output(value)
    return made.save(folder)


def conv_network(path: Path, side: int = 8, channels: int = 6, outputs: int = 5, seed: int = 2) -> Path:
    """A convolution 3x3 with pads, Relu, a 2x2 maximum pool and a dense layer in QDQ, of ``side`` x ``side`` images
    with 2 channels: uint8 activations, int8 weights per channel; float input ``x`` and output ``y``."""
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    initializers = []

    def constant(name: str, array: np.ndarray) -> str:
        initializers.append(numpy_helper.from_array(array, name))
        return name

    def node(operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], f"{output}_node", **attributes))
        return output

    def quantize(name: str, source: str, scale: float, zero_point: int, output: str) -> str:
        parameters = [constant(f"{name}_scale", np.float32(scale)), constant(f"{name}_zero", np.uint8(zero_point))]
        quantized = node("QuantizeLinear", [source, *parameters], f"{name}_q")
        return node("DequantizeLinear", [quantized, *parameters], output)

    def weights(name: str, shape: tuple[int, ...]) -> str:
        values = constant(name, rng.integers(-127, 128, shape).astype(np.int8))
        scale = constant(f"{name}_scale", rng.uniform(0.002, 0.01, shape[0]).astype(np.float32))
        return node("DequantizeLinear", [values, scale], f"{name}_d", axis=0)

    value = quantize("x", "x", 0.031, 128, "x_d")
    value = node("Conv", [value, weights("w0", (channels, 2, 3, 3))], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    value = node("Relu", [value], "relu")
    value = quantize("hidden", value, 0.02, 0, "hidden_d")
    value = node("MaxPool", [value], "pool", kernel_shape=[2, 2], strides=[2, 2])
    value = quantize("pooled", value, 0.02, 0, "pooled_d")
    value = node("Flatten", [value], "flat")
    value = node("Gemm", [value, weights("w1", (outputs, channels * (side // 2) ** 2))], "dense", transB=1)
    quantize("result", value, 0.06, 117, "y")
    graph = helper.make_graph(
        nodes,
        "small conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", outputs])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def integer_network(path: Path, kind: str = "uint8", inputs: int = 16, outputs: int = 6, seed: int = 4) -> Path:
    """One MatMulInteger with int8 weights, its sums as they are: no multiplier but its own."""
    b = Builder()
    weights = np.random.default_rng(seed).integers(-128, 128, (inputs, outputs))
    b.output(b.node("MatMulInteger", b.input("x", ["N", inputs], kind), b.constant(weights, "int8"), name="sums"))
    return b.save(path.parent, path.name)


def requantizer_network(path: Path, channels: int = 6, seed: int = 1) -> Path:
    """A dense layer whose sums go through functions of all shapes: a sigmoid (rises, no line), a negation (falls), and
    a product with a hard sigmoid (falls, then rises); float outputs of their own."""
    rng = np.random.default_rng(seed)
    b = Builder()
    x = b.dequantize(b.quantize(b.input("x", ["N", 20]), 0.05, 128, name="q"), 0.05, 128)
    weights = b.weights(rng.integers(-120, 121, (20, channels)).tolist(), 0.01)
    sums = b.node("MatMul", x, weights, name="dense")
    bent = b.node("Mul", sums, b.node("HardSigmoid", sums, name="hard"), name="bent")
    b.output(
        b.quantize(b.node("Sigmoid", sums, name="sigmoid"), 1 / 255, 0, name="risen"),
        b.quantize(b.node("Neg", sums, name="negative"), 0.5, 128, name="fallen"),
        b.quantize(bent, 0.05, 20, name="both"),
    )
    return b.save(path.parent, path.name)
