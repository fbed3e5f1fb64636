"""ONNX models in exact rational arithmetic: a second implementation of what they mean, straight from the specification.

Reals are Fractions and integers are ints, in numpy object arrays; loops are plain. Rounds where the graph rounds, by
Python's own round half to even, and before the zero point is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from math import ceil, floor, inf, isinf
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]


def _fraction(value: Any) -> float | Fraction:
    return float(value) if isinf(value) else Fraction(float(value))


def objects(values: Any) -> Array:
    """Fractions for floats (infinities stay), ints for integers."""
    array = np.asarray(values)
    is_integer = array.dtype.kind in "iub" or str(array.dtype).lstrip("u").startswith("int")
    convert: Callable[[Any], Any] = int if is_integer else _fraction
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = convert(array[index])
    return result


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every value of the graph for one frame."""
    values = {t.name: objects(numpy_helper.to_array(t)) for t in model.graph.initializer}
    kinds = {t.name: t.data_type for t in model.graph.initializer}
    values |= {name: objects(array) for name, array in feeds.items()}
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] if name else None for name in node.input]
        if node.op_type == "QuantizeLinear":
            kind = kinds[node.input[2]] if len(node.input) > 2 else attributes.get("output_dtype", TensorProto.UINT8)
            values[node.output[0]] = _quantize(attributes, kind, *inputs)
        else:
            values[node.output[0]] = _OPERATORS[node.op_type](attributes, *inputs)
    return values


def bounds_of(kind: int) -> tuple[int, int]:
    name = TensorProto.DataType.Name(kind).lower()
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _along(attributes: Mapping[str, Any], x: Array, parameter: Array, index: tuple[int, ...]) -> Any:
    if parameter.size == 1:
        return parameter.reshape(-1)[0]
    return parameter[index[attributes.get("axis", 1) % x.ndim]]


def _quantize(attributes: Mapping[str, Any], kind: int, x: Array, scale: Array, zero: Array | None = None) -> Array:
    low, high = bounds_of(kind)
    result = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        offset = 0 if zero is None else _along(attributes, x, zero, index)
        level = round(Fraction(x[index]) / _along(attributes, x, scale, index)) + offset
        result[index] = max(low, min(high, level))
    return result


def _dequantize(attributes: Mapping[str, Any], x: Array, scale: Array, zero: Array | None = None) -> Array:
    result = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        offset = 0 if zero is None else _along(attributes, x, zero, index)
        result[index] = _along(attributes, x, scale, index) * (x[index] - offset)
    return result


def _windows(attributes: Mapping[str, Any], size: tuple[int, ...], kernel: tuple[int, ...]) -> list[list[list[int]]]:
    """For each axis and output position the input index of each tap; indices outside the image are padding."""
    strides, dilations = (attributes.get(name, [1, 1]) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0, 0, 0, 0])
    auto = attributes.get("auto_pad", b"NOTSET").decode()
    axes = []
    for axis in range(2):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        begin, end = pads[axis], pads[axis + 2]
        if auto == "VALID":
            begin = end = 0
        if auto.startswith("SAME"):
            count = ceil(Fraction(size[axis], strides[axis]))
            padding = max(0, (count - 1) * strides[axis] + reach - size[axis])
            begin = padding // 2 if auto == "SAME_UPPER" else padding - padding // 2
        else:
            exact = Fraction(size[axis] + begin + end - reach, strides[axis]) + 1
            count = floor(exact)
            if attributes.get("ceil_mode", 0) and auto == "NOTSET":
                count = ceil(exact)
                while (count - 1) * strides[axis] >= size[axis] + begin:  # starts in the padding at the end
                    count -= 1
        starts = [o * strides[axis] - begin for o in range(count)]
        axes.append([[start + k * dilations[axis] for k in range(kernel[axis])] for start in starts])
    return axes


def _conv(attributes: Mapping[str, Any], x: Array, w: Array, bias: Array | None = None) -> Array:
    height, width = x.shape[2:]
    rows, columns = _windows(attributes, (height, width), w.shape[2:])
    result = np.empty((x.shape[0], w.shape[0], len(rows), len(columns)), dtype=object)
    for n, m, i, j in np.ndindex(result.shape):
        total = Fraction(0) if bias is None else bias[m]
        for c, (ky, y), (kx, z) in product(range(w.shape[1]), enumerate(rows[i]), enumerate(columns[j])):
            if 0 <= y < height and 0 <= z < width:
                total += x[n, c, y, z] * w[m, c, ky, kx]
        result[n, m, i, j] = total
    return result


def _max_pool(attributes: Mapping[str, Any], x: Array) -> Array:
    height, width = x.shape[2:]
    rows, columns = _windows(attributes, (height, width), attributes["kernel_shape"])
    result = np.empty((*x.shape[:2], len(rows), len(columns)), dtype=object)
    for n, c, i, j in np.ndindex(result.shape):
        result[n, c, i, j] = max(
            x[n, c, y, z] for y, z in product(rows[i], columns[j]) if 0 <= y < height and 0 <= z < width
        )
    return result


def _gemm(attributes: Mapping[str, Any], a: Array, b: Array, c: Array | None = None) -> Array:
    alpha, beta = (Fraction(attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    b = b.T if attributes.get("transB", 0) else b
    result = _matmul(attributes, a, b) * alpha
    return result if c is None else result + c * beta


def _matmul(attributes: Mapping[str, Any], a: Array, b: Array) -> Array:
    result = np.empty((*a.shape[:-1], b.shape[1]), dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = sum((a[(*index[:-1], k)] * b[k, index[-1]] for k in range(len(b))), Fraction(0))
    return result


def _clip(attributes: Mapping[str, Any], x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    least = attributes.get("min", -inf) if low is None else low.reshape(-1)[0]
    most = attributes.get("max", inf) if high is None else high.reshape(-1)[0]
    result = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        bounded = min(max(x[index], least), most)
        result[index] = Fraction(bounded) if isinstance(x[index], Fraction) else int(bounded)
    return result


def _reshape(attributes: Mapping[str, Any], x: Array, shape: Array) -> Array:
    return x.reshape([x.shape[i] if size == 0 else int(size) for i, size in enumerate(shape.tolist())])


def _flatten(attributes: Mapping[str, Any], x: Array) -> Array:
    return x.reshape(int(np.prod(x.shape[: attributes.get("axis", 1)])), -1)


_OPERATORS: dict[str, Callable[..., Array]] = {
    "Add": lambda attributes, a, b: a + b,
    "Clip": _clip,
    "Conv": _conv,
    "DequantizeLinear": _dequantize,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "Identity": lambda attributes, x: x,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "Relu": lambda attributes, x: np.maximum(x, Fraction(0)),
    "Reshape": _reshape,
    "Squeeze": lambda attributes, x, axes: np.squeeze(x, tuple(axes.tolist())),
    "Transpose": lambda attributes, x: np.transpose(x, attributes.get("perm")),
    "Unsqueeze": lambda attributes, x, axes: np.expand_dims(x, tuple(axes.tolist())),
}
