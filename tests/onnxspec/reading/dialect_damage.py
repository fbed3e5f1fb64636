"""Damage to quantized models that leaves them well-formed ONNX: other constants, operands, attributes, operators."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_TYPES = (
    np.float32, np.float32, np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.int64, np.bool_,
)  # fmt: skip
_VALUES = (
    0.0, -0.0, 1.0, -1.0, 2.5, 3.0, 16.0, 17.0, 32.0, 33.0, 0.1, 255.0, 256.0, -128.0, 65535.0, 1e-38, 1e38, 1e-45,
    1e30, 1e-5, float("nan"), float("inf"), float("-inf"), 2.0**31, -(2.0**31), 2.0**62,
)  # fmt: skip
_CODES = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16,
    TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING, TensorProto.UINT4,
)  # fmt: skip
_SIZES = (0, 1, 2, 3, 4, 5, 8, 1 << 10, 1 << 40)
_INTEGERS = (0, 1, -1, 2, 3, -2, 4, 5, 16, 100, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
_TEXTS = ("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "ROUND", "floor", "UP", "NHWC", "NCHW", "tanh", "UINT2")
_NAMES = (
    "axis", "axes", "keepdims", "channels_last", "kernel_shape", "strides", "pads", "dilations", "auto_pad", "group",
    "ceil_mode", "count_include_pad", "block_size", "saturate", "output_dtype", "precision", "transA", "transB",
    "alpha", "beta", "gamma", "epsilon", "opset", "signed", "narrow", "rounding_mode", "out_scale", "out_bias",
    "data_layout", "out_dtype", "to", "approximate", "perm", "training_mode", "min", "max", "storage_order",
)  # fmt: skip
_MICROSOFT = (
    "QuantizeLinear", "DequantizeLinear", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu",
    "QLinearSoftmax", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearReduceMean",
    "QLinearWhere", "QGemm", "Unknown",
)  # fmt: skip
_QONNX = ("Quant", "IntQuant", "FloatQuant", "BipolarQuant", "Trunc", "MultiThreshold", "Unknown")
_STANDARD = (
    "QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "Conv",
    "MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "PRelu", "Pow", "BatchNormalization", "Clip", "Relu", "Concat",
    "AveragePool", "MaxPool", "GlobalAveragePool", "ReduceMean", "Softmax", "Cast", "Identity", "Flatten", "Transpose",
    "Min", "Where",
)  # fmt: skip
_OPERATORS = {
    "": _STANDARD, "com.microsoft": _MICROSOFT, "qonnx.custom_op.general": _QONNX, "onnx.brevitas": _QONNX,
    "finn.custom_op.general": _QONNX,
    "qonnx.custom_op.channels_last": ("AveragePool", "BatchNormalization", "Conv", "GlobalAveragePool", "MaxPool"),
}  # fmt: skip


def _array(rng: random.Random, like: tuple[int, ...]) -> Any:
    shape = rng.choice([
        (), (1,), (2,), (4,), (0,), (1, 1), (2, 1, 1), (1, 2, 1, 1), (2, 1, 1, 1), (1, 1, 4, 4), (1, 4), (4, 1),
        (1, 0), like, like, like, like, like[::-1], (1, *like), like[1:],
    ])  # fmt: skip
    size = int(np.prod(shape, dtype=np.int64))
    if rng.random() < 0.5:
        values = [rng.choice(_VALUES)] * size
    else:
        values = [rng.choice(_VALUES) if rng.random() < 0.3 else rng.uniform(-4, 4) for _ in range(size)]
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).reshape(shape).astype(rng.choice(_TYPES))


def _replace(graph: onnx.GraphProto, index: int, tensor: onnx.TensorProto) -> None:
    graph.initializer[index].CopyFrom(tensor)


def _constant(rng: random.Random, graph: onnx.GraphProto) -> None:
    """Another value, shape or type of an initializer."""
    if not graph.initializer:
        return
    index = rng.randrange(len(graph.initializer))
    old = graph.initializer[index]
    if rng.random() < 0.05:
        tensor = helper.make_tensor(old.name, TensorProto.STRING, [1], [b"a"])
    elif rng.random() < 0.5 and old.data_type in (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8):
        array = numpy_helper.to_array(old).copy()
        low, high = (0, 255) if array.dtype == np.uint8 else (-128, 127)
        if array.size:
            place = rng.randrange(array.size)
            value = rng.choice(_VALUES) if array.dtype == np.float32 else rng.choice((low, high, 0))
            array.reshape(-1)[place if rng.random() < 0.5 else slice(None)] = value
        tensor = numpy_helper.from_array(array, old.name)
    else:
        tensor = numpy_helper.from_array(_array(rng, tuple(min(d, 64) for d in old.dims if d >= 0)), old.name)
    _replace(graph, index, tensor)


def _operand(rng: random.Random, graph: onnx.GraphProto) -> None:
    """Another operand: none, one more, one less, another value."""
    node = rng.choice(graph.node)
    names = [info.name for info in graph.input] + [t.name for t in graph.initializer]
    for before in graph.node:  # the values that are there already, so that the order stays
        if before is node:
            break
        names.extend(before.output)
    inputs = list(node.input)
    place = rng.randrange(len(inputs) + 1)
    action = rng.choice(["set", "set", "set", "empty", "insert", "remove", "append"])
    if action == "append" or place == len(inputs):
        inputs.append(rng.choice([*names, ""]))
    elif action == "insert":
        inputs.insert(place, rng.choice(names))
    elif action == "remove":
        del inputs[place]
    else:
        inputs[place] = "" if action == "empty" else rng.choice(names)
    del node.input[:]
    node.input.extend(inputs)


def _attribute(rng: random.Random, graph: onnx.GraphProto) -> None:
    """Another value or type of an attribute, none, or one more."""
    node = rng.choice(graph.node)
    present = [a.name for a in node.attribute]
    name = rng.choice(present) if present and rng.random() < 0.6 else rng.choice(_NAMES)
    others = [a for a in node.attribute if a.name != name]
    if rng.random() < 0.8:
        count = rng.choice([0, 1, 2, 2, 3, 4, 4])
        made: list[Callable[[], Any]] = [
            lambda: rng.choice(_INTEGERS), lambda: float(np.float32(rng.choice(_VALUES))), lambda: rng.choice(_TEXTS),
            lambda: [rng.choice(_INTEGERS[:8]) for _ in range(count)] or [1],
            lambda: [float(rng.choice(_VALUES[:12])) for _ in range(count)] or [1.0],
            lambda: numpy_helper.from_array(_array(rng, (2,)), "t"),
        ]  # fmt: skip
        with np.errstate(all="ignore"):
            others.append(helper.make_attribute(name, rng.choice(made)()))
    kept = [onnx.AttributeProto() for _ in others]
    for copy, old in zip(kept, others, strict=True):
        copy.CopyFrom(old)
    del node.attribute[:]
    node.attribute.extend(kept)


def _operator(rng: random.Random, graph: onnx.GraphProto) -> None:
    """Another operator, of the same domain or of another."""
    node = rng.choice(graph.node)
    if rng.random() < 0.3:
        node.domain = rng.choice(list(_OPERATORS))
    if rng.random() < 0.8 or node.op_type not in _OPERATORS[node.domain]:
        node.op_type = rng.choice(_OPERATORS[node.domain])


def _interface(rng: random.Random, graph: onnx.GraphProto) -> None:
    """Another type or shape of an input, with the outputs' sizes left open; or an initializer turned into an input."""
    if rng.random() < 0.4 and graph.initializer:
        index = rng.randrange(len(graph.initializer))
        old = graph.initializer[index]
        graph.input.append(helper.make_tensor_value_info(old.name, old.data_type, list(old.dims)))
        del graph.initializer[index]
        return
    kind = graph.input[0].type.tensor_type
    if rng.random() < 0.5:
        kind.elem_type = rng.choice(_CODES)
    else:
        dims = kind.shape.dim
        action = rng.choice(["set", "set", "add", "remove"])
        if action == "set" and dims:
            rng.choice(dims).dim_value = rng.choice(_SIZES)
        elif action == "add":
            dims.add(dim_value=rng.choice(_SIZES))
        elif dims:
            del dims[rng.randrange(len(dims))]
    _open_outputs(graph)


def _open_outputs(graph: onnx.GraphProto) -> None:
    for info in graph.output:
        for size in info.type.tensor_type.shape.dim:
            size.Clear()


def _rewired(rng: random.Random, graph: onnx.GraphProto) -> None:
    """Two operands of a node, or all of two nodes, in each other's place."""
    node = rng.choice(graph.node)
    if len(node.input) > 1:
        first, second = rng.sample(range(len(node.input)), 2)
        node.input[first], node.input[second] = node.input[second], node.input[first]


_ACTIONS = (
    _constant, _constant, _constant, _constant, _operand, _operand, _attribute, _attribute, _operator, _interface,
    _rewired,
)  # fmt: skip


def damaged(rng: random.Random, model: onnx.ModelProto) -> bytes:
    """One to three of the above; every domain is imported, the outputs' sizes are mostly left open."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(_ACTIONS)(rng, copy.graph)
    if rng.random() < 0.8:
        _open_outputs(copy.graph)
    present = {opset.domain for opset in copy.opset_import}
    copy.opset_import.extend(helper.make_opsetid(domain, 1) for domain in _OPERATORS if domain not in present)
    return copy.SerializeToString()
