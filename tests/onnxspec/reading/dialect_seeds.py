"""Small models in the dialects of quantized networks, which between them use every operator that the front end knows:
what the fuzzer damages beside fuzz_seeds.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from tests.onnxspec.build import model, node, value

U8, I8, I32, FLOAT = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.FLOAT
MICROSOFT, QONNX = "com.microsoft", "qonnx.custom_op.general"
OPSETS = {"": 21, MICROSOFT: 1, QONNX: 1, "qonnx.custom_op.channels_last": 1}

# Scales and zero points that the seeds share.
COMMON: Mapping[str, Any] = {
    "s": np.float32(0.25), "t": np.float32(0.3), "u": np.float32(0.7), "z": np.uint8(128), "k": np.int8(0),
    "a": np.int8(-3),
}  # fmt: skip
MATRIX = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
KERNEL = (np.arange(18, dtype=np.int8) - 9).reshape(2, 1, 3, 3)


def _model(
    nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto],
    more: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    constants = {**COMMON, **(more or {})}
    used = {name for n in nodes for name in n.input}
    domains = {n.domain for n in nodes} | {""}
    return model(
        nodes, inputs, outputs, {name: array for name, array in constants.items() if name in used},
        opsets={domain: version for domain, version in OPSETS.items() if domain in domains},
    )


def old_spellings() -> onnx.ModelProto:
    """Quantizers in the default domain, operators with channels last."""
    last = "qonnx.custom_op.channels_last"
    four = {"f": np.float32(4), "o": np.float32(0), "w": KERNEL.astype(np.float32).transpose(0, 2, 3, 1)}
    more = {**four, "c": np.ones(2, np.float32)}
    nodes = [
        node("Quant", ["x", "s", "o", "f"], ["q"], signed=1, narrow=0, rounding_mode="ROUND"),
        node("Conv", ["q", "w"], ["e"], domain=last, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["e", "c", "c", "c", "c"], ["n"], domain=last),
        node("Quant", ["n", "s", "o", "f"], ["r"], signed=1, narrow=0, rounding_mode="ROUND"),
        node("MaxPool", ["r"], ["y"], domain=last, kernel_shape=[2, 2], strides=[2, 2]),
    ]
    return _model(nodes, [value("x", ["N", 4, 4, 1])], [value("y", ["N", 2, 2, 2])], more)


def qlinear_convolution() -> onnx.ModelProto:
    """QLinearConv with a scale per channel, QLinearMatMul."""
    more = {
        "w": KERNEL, "ws": np.array([0.5, 0.125], np.float32), "wz": np.zeros(2, np.int8),
        "b": np.array([5, -7], np.int32), "m": np.ones((8, 3), np.int8),
    }  # fmt: skip
    nodes = [
        node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "t", "z", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Flatten", ["c"], ["f"]),
        node("QLinearMatMul", ["f", "t", "z", "m", "s", "k", "u", "z"], ["y"]),
    ]
    return _model(nodes, [value("x", ["N", 1, 4, 4], U8)], [value("y", ["N", 3], U8)], more)


def integer_products() -> onnx.ModelProto:
    """ConvInteger and MatMulInteger, a Cast, a scale, and a quantizer between them."""
    more = {"w": KERNEL, "m": np.ones((8, 3), np.int8), "wz": np.array([1, -1], np.int8)}
    nodes = [
        node("ConvInteger", ["x", "w", "z", "wz"], ["c"], pads=[0, 0, 1, 1], strides=[2, 2]),
        node("Cast", ["c"], ["d"], to=FLOAT),
        node("Mul", ["d", "t"], ["e"]),
        node("Relu", ["e"], ["r"]),
        node("QuantizeLinear", ["r", "u", "z"], ["q"]),
        node("Flatten", ["q"], ["f"]),
        node("MatMulInteger", ["f", "m", "z"], ["y"]),
    ]
    return _model(nodes, [value("x", ["N", 1, 4, 4], U8)], [value("y", ["N", 3], I32)], more)


def microsoft_streams() -> onnx.ModelProto:
    """Sums, products, functions and pools of quantized images."""
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], domain=MICROSOFT),
        node("QLinearAdd", ["q", "s", "z", "c", "t", "z", "u", "z"], ["a1"], domain=MICROSOFT),
        node("QLinearMul", ["a1", "u", "z", "q", "s", "z", "t", "z"], ["b"], domain=MICROSOFT),
        node("QLinearLeakyRelu", ["b", "t", "z", "u", "z"], ["l"], alpha=0.125, domain=MICROSOFT),
        node("QLinearSigmoid", ["l", "u", "z", "s", "z"], ["g"], domain=MICROSOFT),
        node(
            "QLinearAveragePool", ["g", "s", "z", "t", "z"], ["p"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=0,
            domain=MICROSOFT,
        ),
        node("QLinearConcat", ["u", "z", "p", "t", "z", "p", "s", "z"], ["j"], axis=1, domain=MICROSOFT),
        node("QLinearGlobalAveragePool", ["j", "u", "z", "t", "z"], ["v"], channels_last=0, domain=MICROSOFT),
        node("DequantizeLinear", ["v", "t", "z"], ["y"], domain=MICROSOFT),
    ]
    constant = np.array([120, 140], np.uint8).reshape(1, 2, 1, 1)
    return _model(nodes, [value("x", ["N", 2, 4, 4])], [value("y", ["N", 4, 1, 1])], {"c": constant})


def microsoft_dense() -> onnx.ModelProto:
    """QGemm, then what the host computes: QLinearSoftmax, QLinearReduceMean, QLinearWhere."""
    more = {
        "w": MATRIX, "ws": np.array([0.5, 0.25, 0.125, 1], np.float32), "wz": np.zeros(4, np.int8),
        "b": np.arange(4, dtype=np.int32), "o": np.array([True, False, True, True]), "e": np.uint8([7]),
    }  # fmt: skip
    nodes = [
        node("QGemm", ["x", "s", "z", "w", "ws", "wz", "b", "t", "z"], ["g"], transB=1, alpha=1.5, domain=MICROSOFT),
        node("QLinearSoftmax", ["g", "t", "z", "s", "z"], ["p"], axis=-1, opset=13, domain=MICROSOFT),
        node("QLinearWhere", ["o", "p", "s", "z", "e", "s", "z", "t", "z"], ["h"], domain=MICROSOFT),
        node("QLinearReduceMean", ["h", "t", "z", "s", "z"], ["y"], axes=[1], keepdims=1, domain=MICROSOFT),
    ]
    return _model(nodes, [value("x", ["N", 4], U8)], [value("y", ["N", 1], U8)], more)


def real_product() -> onnx.ModelProto:
    """QGemm without an output scale, ArgMax on the host."""
    nodes = [
        node("QGemm", ["x", "s", "z", "w", "t", "k"], ["g"], domain=MICROSOFT),
        node("ArgMax", ["g"], ["y"], axis=1, keepdims=1),
    ]
    return _model(nodes, [value("x", ["N", 4], U8)], [value("y", ["N", 1], TensorProto.INT64)], {"w": MATRIX})


def qonnx_quantizers() -> onnx.ModelProto:
    """Quant, IntQuant, Trunc, MultiThreshold, BatchNormalization."""
    f = np.float32
    more = {
        "zero": f(0), "eight": f(8), "four": f(4), "w": f(KERNEL) / 8, "ws": f([0.125, 0.25]).reshape(2, 1, 1, 1),
        "g": f([1, -2]), "mean": f([0.5, 0]), "var": f([1, 4]), "th": f([[-1, 0, 1, 2], [-2, 0.5, 1, 3]]),
    }  # fmt: skip
    nodes = [
        node("Quant", ["x", "s", "zero", "eight"], ["q"], signed=1, narrow=0, rounding_mode="ROUND", domain=QONNX),
        node("IntQuant", ["w", "ws", "zero", "four"], ["wq"], signed=1, narrow=1, domain=QONNX),
        node("Conv", ["q", "wq"], ["c"], kernel_shape=[3, 3]),
        node("BatchNormalization", ["c", "g", "mean", "mean", "var"], ["n"], epsilon=1e-5),
        node("MultiThreshold", ["n", "th"], ["m"], out_scale=0.5, out_bias=-1.0, out_dtype="UINT3", domain=QONNX),
        node("Quant", ["m", "t", "zero", "eight"], ["r"], signed=0, rounding_mode="FLOOR", domain=QONNX),
        node("Trunc", ["r", "t", "zero", "eight", "four"], ["y"], rounding_mode="FLOOR", domain=QONNX),
    ]
    return _model(nodes, [value("x", ["N", 1, 4, 4])], [value("y", ["N", 2, 2, 2])], more)


def bipolar() -> onnx.ModelProto:
    """BipolarQuant of weights and activations; the second Trunc form."""
    f = np.float32
    more = {"w": f(MATRIX), "zero": f(0), "eight": f(8), "four": f(4), "big": f(4.0)}
    nodes = [
        node("BipolarQuant", ["x", "s"], ["q"], domain=QONNX),
        node("BipolarQuant", ["w", "t"], ["wq"], domain=QONNX),
        node("MatMul", ["q", "wq"], ["m"]),
        node("Quant", ["m", "s", "zero", "eight"], ["r"], domain=QONNX),
        node("Trunc", ["r", "s", "zero", "eight", "big", "four"], ["y"], signed=1, narrow=0, domain=QONNX),
    ]
    return _model(nodes, [value("x", ["N", 4])], [value("y", ["N", 4])], more)


def island() -> onnx.ModelProto:
    """Float operators of every kind between two quantizers."""
    f = np.float32
    more = {
        "slope": f([0.1, -0.2]).reshape(2, 1, 1), "two": f(2), "low": f(-1), "high": f(4), "half": f(0.5),
        "g": f([1, -2]), "mean": f([0.5, 0]), "var": f([1, 4]), "never": np.bool_(False),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("PRelu", ["d", "slope"], ["e"]),
        node("Pow", ["e", "two"], ["f"]),
        node("BatchNormalization", ["f", "g", "mean", "mean", "var"], ["g1"], epsilon=1e-5),
        node("Cast", ["g1"], ["h"], to=TensorProto.FLOAT16),
        node("Cast", ["h"], ["h1"], to=FLOAT),
        node("Dropout", ["h1", "half", "never"], ["i"]),
        node("Clip", ["i", "low", "high"], ["j"]),
        node("Gelu", ["j"], ["l"], approximate="none"),
        node("HardSigmoid", ["l"], ["m"], alpha=0.25, beta=0.5),
        node("Mul", ["m", "l"], ["n"]),
        node("LeakyRelu", ["n"], ["o"], alpha=0.1),
        node("QuantizeLinear", ["o", "t", "z"], ["y"]),
    ]
    return _model(nodes, [value("x", ["N", 2, 2, 2])], [value("y", ["N", 2, 2, 2], U8)], more)


def functions() -> onnx.ModelProto:
    """One chain of the remaining functions of one operand."""
    names = (
        "Abs", "Sqrt", "Exp", "Softplus", "Log", "Tanh", "Erf", "Elu", "Softsign", "Selu", "Celu", "Mish", "HardSwish",
        "ThresholdedRelu", "Neg", "Sigmoid", "Reciprocal", "Floor", "Ceil", "Round", "Sign",
    )  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    ]
    ends = []
    for number, start in enumerate(range(0, len(names), 3)):
        last = "d"
        for name in names[start : start + 3]:
            nodes.append(node(name, [last], [f"v{name}"]))
            last = f"v{name}"
        nodes.append(node("QuantizeLinear", [last, "t", "z"], [f"y{number}"]))
        ends.append(value(f"y{number}", ["N", 4], U8))
    return _model(nodes, [value("x", ["N", 4])], ends)


def pools_and_sums() -> onnx.ModelProto:
    """AveragePool, GlobalAveragePool, ReduceMean, Concat, residual Add and Mul in QDQ; Softmax on the host."""
    more = {"axes": np.array([2, 3]), "shape": np.array([0, 4])}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("AveragePool", ["d"], ["p"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
        node("QuantizeLinear", ["p", "t", "z"], ["pq"]),
        node("DequantizeLinear", ["pq", "t", "z"], ["pd"]),
        node("Add", ["pd", "d"], ["a1"]),
        node("Mul", ["pd", "d"], ["b"]),
        node("QuantizeLinear", ["a1", "u", "z"], ["aq"]),
        node("DequantizeLinear", ["aq", "u", "z"], ["ad"]),
        node("QuantizeLinear", ["b", "s", "z"], ["bq"]),
        node("DequantizeLinear", ["bq", "s", "z"], ["bd"]),
        node("Concat", ["ad", "bd"], ["c"], axis=1),
        node("MaxPool", ["c"], ["mp"], kernel_shape=[2, 2]),
        node("GlobalAveragePool", ["mp"], ["g"]),
        node("ReduceMean", ["mp", "axes"], ["r"], keepdims=1),
        node("Sub", ["g", "r"], ["w"]),
        node("QuantizeLinear", ["w", "s", "z"], ["wq"]),
        node("DequantizeLinear", ["wq", "s", "z"], ["wd"]),
        node("Reshape", ["wd", "shape"], ["v"]),
        node("Softmax", ["v"], ["y"], axis=-1),
    ]
    return _model(nodes, [value("x", ["N", 2, 4, 4])], [value("y", ["N", 4])], more)


def blocked() -> onnx.ModelProto:
    """Weights with one scale per block, and one per axis; Transpose, Gemm with a bias."""
    more = {
        "w": MATRIX, "ws": np.exp2(-np.arange(8, dtype=np.float32)).reshape(2, 4), "wz": np.zeros((2, 4), np.int8),
        "b": np.arange(4, dtype=np.int32), "bs": np.float32(0.125),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0, block_size=2),
        node("DequantizeLinear", ["b", "bs"], ["bd"]),
        node("Transpose", ["wd"], ["wt"], perm=[1, 0]),
        node("Gemm", ["d", "wt", "bd"], ["g"], alpha=0.5, beta=2.0, transB=1),
        node("QuantizeLinear", ["g", "t", "a"], ["y"]),
    ]
    return _model(nodes, [value("x", ["N", 4])], [value("y", ["N", 4], I8)], more)


def dialect_seeds() -> list[onnx.ModelProto]:
    """All of them."""
    return [
        qlinear_convolution(), integer_products(), microsoft_streams(), microsoft_dense(), real_product(),
        qonnx_quantizers(), bipolar(), island(), functions(), pools_and_sums(), blocked(), old_spellings(),
    ]  # fmt: skip
