"""Quantized operators of ONNX and of com.microsoft in exact arithmetic.

Every one that makes integers is QuantizeLinear of its real result: rounds half to even, then adds the zero point, then
saturates. (onnxruntime's own kernels of some com.microsoft operators round after the zero point; no document says so.)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.dialects.exact import exact_windows, reals
from tests.dialects.exact.exact_call import Array, Call, Integers, Operator, along, each, saturated
from tests.dialects.exact.exact_functions import matmul, softmax

NO_ZERO_POINT = np.array(0, dtype=object)


def _parameter(call: Call, parameter: Array, x: Array) -> Array:
    """Of a (De)QuantizeLinear: for the tensor, for each index of the axis, or for each block along it."""
    axis = call.attributes.get("axis", 1)
    block = call.attributes.get("block_size", 0)
    if block and parameter.ndim == x.ndim:
        repeated = np.repeat(parameter, block, axis)
        return repeated.take(range(x.shape[axis]), axis)
    return along(parameter, axis, x.ndim)


def _quantized(real: Array, scale: Any, zero_point: Any, kind: int) -> Integers:
    """Scale and zero point broadcast over the tensor."""
    scale, zero_point = (np.asarray(v, dtype=object) for v in (scale, zero_point))

    def level(x: Any, s: Any, z: Any) -> int:
        return saturated(reals.rounded(x / Fraction(s)) + z, kind)

    return Integers(each(level, real, scale, zero_point), kind)


def _dequantized(levels: Array, scale: Any, zero_point: Any) -> Array:
    scale, zero_point = (np.asarray(v, dtype=object) for v in (scale, zero_point))
    return each(lambda q, s, z: s * (q - z), levels, scale, zero_point)


def _quantize_linear(call: Call) -> Integers:
    x = call.input(0)
    zero_point = call.optional(2)
    kind = call.attributes.get("output_dtype", 0) or TensorProto.UINT8
    if zero_point is not None:
        kind = call.kind(2)
    scale = _parameter(call, call.input(1), x)
    zero = NO_ZERO_POINT if zero_point is None else _parameter(call, zero_point, x)
    return _quantized(each(_exact, x), scale, zero, kind)


def _exact(x: Any) -> Any:
    return Fraction(x) if isinstance(x, int) else x


def _dequantize_linear(call: Call) -> Array:
    x, zero_point = call.input(0), call.optional(2)
    zero = NO_ZERO_POINT if zero_point is None else _parameter(call, zero_point, x)
    return _dequantized(x, _parameter(call, call.input(1), x), zero)


def _real(call: Call, position: int) -> Array:
    """A tensor with scale and zero point behind it, for the whole tensor."""
    zero = call.optional(position + 2)
    return _dequantized(call.input(position), call.scalar(position + 1), 0 if zero is None else zero.reshape(-1)[0])


def _to_levels(call: Call, real: Array, position: int) -> Integers:
    """Scale and zero point, for the whole tensor, of what comes out. Without a zero point: unsigned bytes, 0."""
    if not call.has(position + 1):
        return _quantized(real, call.scalar(position), 0, call.kind(0))
    return _quantized(real, call.scalar(position), call.scalar(position + 1), call.kind(position + 1))


def _q_linear_conv(call: Call) -> Integers:
    x, w = _real(call, 0), call.input(3)
    scale, zero = (along(call.input(i), 0, w.ndim) for i in (4, 5))
    real = exact_windows.conv(call.attributes, x, _dequantized(w, scale, zero))
    if call.has(8):  # int32, of scale x_scale * w_scale
        bias = each(lambda b, s: b * s * call.scalar(1), call.input(8), along(call.input(4), 0, 1))
        real = each(lambda v, b: v + b, real, along(bias, 1, real.ndim) if bias.size > 1 else bias.reshape(()))
    return _to_levels(call, real, 6)


def _operand(call: Call, position: int, column: bool) -> Array:
    """Of a QLinearMatMul: parameters may be one for each row of the first operand, or column of the second."""
    x = call.input(position)
    axis = -1 if column else -2

    def spread(p: Array) -> Array:
        return p if p.ndim == x.ndim and p.ndim > 1 else along(p, axis, x.ndim)

    zero = call.optional(position + 2)
    return _dequantized(x, spread(call.input(position + 1)), NO_ZERO_POINT if zero is None else spread(zero))


def _q_linear_matmul(call: Call) -> Integers:
    return _to_levels(call, matmul(_operand(call, 0, False), _operand(call, 3, True)), 6)


def _offset(call: Call, position: int, axis: int, x: Array) -> Array:
    zero = call.optional(position)
    if zero is None:
        return x
    spread = zero if zero.ndim == x.ndim and zero.ndim > 1 else along(zero, axis, x.ndim)
    return each(lambda v, z: v - z, x, spread)


def _int32(array: Array) -> Integers:
    """Sums of products of bytes: those that overflow 32 bits are nobody's model."""
    result = each(int, array)
    assert all(-(2**31) <= v < 2**31 for v in result.reshape(-1))
    return Integers(result, TensorProto.INT32)


def _conv_integer(call: Call) -> Integers:
    x, w = call.input(0), call.input(1)
    x, w = _offset(call, 2, 0, x), _offset(call, 3, 0, w)
    return _int32(exact_windows.conv(call.attributes, x, w))


def _matmul_integer(call: Call) -> Integers:
    a, b = call.input(0), call.input(1)
    return _int32(matmul(_offset(call, 2, -2, a), _offset(call, 3, -1, b)))


def _q_linear_add(call: Call) -> Integers:
    return _to_levels(call, each(lambda a, b: a + b, _real(call, 0), _real(call, 3)), 6)


def _q_linear_mul(call: Call) -> Integers:
    return _to_levels(call, each(lambda a, b: a * b, _real(call, 0), _real(call, 3)), 6)


def _pooled(call: Call, mean: Any) -> Integers:
    real = _real(call, 0)
    last = call.attributes.get("channels_last", 0)
    pooled = mean(np.moveaxis(real, -1, 1) if last else real)
    return _to_levels(call, np.moveaxis(pooled, 1, -1) if last else pooled, 3)


def _q_linear_average_pool(call: Call) -> Integers:
    return _pooled(call, lambda x: exact_windows.average_pool(call.attributes, x))


def _q_linear_global_average_pool(call: Call) -> Integers:
    return _pooled(call, exact_windows.global_average_pool)


def _q_linear_sigmoid(call: Call) -> Integers:
    return _to_levels(call, each(reals.sigmoid, _real(call, 0)), 3)


def _q_linear_leaky_relu(call: Call) -> Integers:
    alpha = call.real("alpha", 0.01)
    return _to_levels(call, each(lambda x: x if x >= 0 else x * alpha, _real(call, 0)), 3)


def _q_linear_softmax(call: Call) -> Integers:
    return _to_levels(call, softmax(_real(call, 0), call.attributes.get("axis", -1)), 3)


def _q_linear_concat(call: Call) -> Integers:
    parts = [_real(call, i) for i in range(2, len(call.inputs), 3)]
    return _to_levels(call, np.concatenate(parts, call.attributes["axis"]), 0)


def _q_linear_reduce_mean(call: Call) -> Integers:
    x = _real(call, 0)
    axes = tuple(call.attributes.get("axes") or range(x.ndim))
    count = int(np.prod([x.shape[axis] for axis in axes]))
    sums = np.sum(x, axis=axes, keepdims=bool(call.attributes.get("keepdims", 1)))
    return _to_levels(call, each(lambda v: Fraction(v) / count, np.asarray(sums, dtype=object)), 3)


def _q_linear_where(call: Call) -> Integers:
    return _to_levels(call, each(lambda c, a, b: a if c else b, call.input(0), _real(call, 1), _real(call, 4)), 7)


def _nhwc_max_pool(call: Call) -> Array:
    return np.moveaxis(exact_windows.max_pool(call.attributes, np.moveaxis(call.input(0), -1, 1)), 1, -1)


def _q_gemm(call: Call) -> Array | Integers:
    """C is int32 of scale alpha * a_scale * b_scale; without a scale of Y the result is float."""
    a, b = call.input(0), call.input(3)
    scale, zero = call.input(4).reshape(-1), call.input(5).reshape(-1)
    a = _dequantized(a, call.scalar(1), call.scalar(2))
    transposed = bool(call.attributes.get("transB", 0))
    b = _dequantized(b, along(scale, 0 if transposed else 1, 2), along(zero, 0 if transposed else 1, 2))
    a = a.T if call.attributes.get("transA", 0) else a
    alpha = call.real("alpha", 1.0)
    real = matmul(a, b.T if transposed else b) * alpha
    if call.has(6):
        unit = along(scale, 1, 2) * (call.scalar(1) * alpha)
        real = real + each(lambda c, s: c * s, call.input(6), np.asarray(unit, dtype=object))
    return _to_levels(call, real, 7) if call.has(7) else real


def _matmul_integer_to_float(call: Call) -> Array:
    """A, B, their scales, their zero points (also one per row of A, a column of B), a bias."""

    def operand(position: int, axis: int) -> Array:
        q = call.input(position)
        scale = call.input(position + 2)
        scale = scale if scale.ndim == q.ndim > 1 else along(scale, axis, q.ndim)
        return each(lambda v, s: v * s, _offset(call, position + 4, axis, q), scale)

    real = matmul(operand(0, -2), operand(1, -1))
    return each(lambda v, b: v + b, real, call.input(6)) if call.has(6) else real


QUANTIZERS: dict[str, Operator] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _q_linear_conv,
    "QLinearMatMul": _q_linear_matmul,
    "QuantizeLinear": _quantize_linear,
}

MICROSOFT: dict[str, Operator] = {
    "DequantizeLinear": _dequantize_linear,
    "MatMulIntegerToFloat": _matmul_integer_to_float,
    "QGemm": _q_gemm,
    "QLinearAdd": _q_linear_add,
    "QLinearAveragePool": _q_linear_average_pool,
    "QLinearConcat": _q_linear_concat,
    "QLinearGlobalAveragePool": _q_linear_global_average_pool,
    "QLinearLeakyRelu": _q_linear_leaky_relu,
    "QLinearMul": _q_linear_mul,
    "QLinearReduceMean": _q_linear_reduce_mean,
    "QLinearWhere": _q_linear_where,
    "NhwcMaxPool": _nhwc_max_pool,
    "QLinearSigmoid": _q_linear_sigmoid,
    "QLinearSoftmax": _q_linear_softmax,
    "QuantizeLinear": _quantize_linear,
}
