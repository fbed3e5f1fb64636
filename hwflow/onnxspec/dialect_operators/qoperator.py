"""ONNX's own operators on quantized integers (QOperator format), by their specification.

They replace those of the reference evaluator, whose defects are in
``hwflow.onnxspec.reference.evaluator_defects``. Products of integers are exact; quotients are computed in float64.
Source: ONNX's Operators.md (QLinearConv 10, QLinearMatMul 21, ConvInteger 10, MatMulInteger 10).
"""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.dialect_operators.call_arguments import Attributes, Inputs, maybe, need
from hwflow.onnxspec.dialect_operators.quantized_windows import convolve
from hwflow.onnxspec.dialect_operators.quantizer_levels import (
    AnyArray,
    Floats,
    Levels,
    along,
    centred,
    requantized,
    scalar,
)


def _less(q: AnyArray, zero_point: AnyArray | None, axis: int) -> Floats:
    """Return q - zero point, which has one element or one per index of ``axis``."""
    return centred(q, None if zero_point is None else along(zero_point, axis, q.ndim))


def qlinear_conv(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute QLinearConv: x, scale, zero point; w, scale, zero point (also per output channel); y scale, zero point;
    bias, int32 with scale x scale * w scale. Padding is real 0, so it pads with x's zero point."""
    x, w = need(inputs, 0), need(inputs, 3)
    sums = convolve(centred(x, maybe(inputs, 2)), _less(w, maybe(inputs, 5), 0), attributes)
    bias = maybe(inputs, 8)
    if bias is not None:
        sums = sums + along(bias, 1, x.ndim).astype(np.float64)
    scale = scalar(need(inputs, 1)).astype(np.float64) * along(need(inputs, 4), 1, x.ndim).astype(np.float64)
    return requantized(scale * sums, need(inputs, 6), maybe(inputs, 7), x.dtype)


def _rows(parameter: AnyArray | None, rank: int) -> AnyArray | None:
    """Return a parameter of matrix A: one element, one per row ([M]), or [..., M, 1]."""
    return parameter if parameter is None or parameter.ndim > 1 else along(parameter, rank - 2, rank)


def qlinear_matmul(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute QLinearMatMul: a, scale, zero point (also per row); b, scale, zero point (also per column); y scale and
    zero point (also per row)."""
    a, b = need(inputs, 0), need(inputs, 3)
    sums = np.matmul(centred(a, _rows(maybe(inputs, 2), a.ndim)), centred(b, maybe(inputs, 5)))
    rows, columns = _rows(need(inputs, 1), a.ndim), need(inputs, 4)
    assert rows is not None
    real = sums * (rows.astype(np.float64) * columns.astype(np.float64))
    scale, zero_point = _rows(need(inputs, 6), a.ndim), _rows(maybe(inputs, 7), a.ndim)
    assert scale is not None
    return requantized(np.asarray(real), scale, zero_point, a.dtype)


def conv_integer(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute ConvInteger: x, w, x zero point, w zero point (also per output channel); sums of products, int32."""
    x, w = need(inputs, 0), need(inputs, 1)
    sums = convolve(centred(x, maybe(inputs, 2)), _less(w, maybe(inputs, 3), 0), attributes)
    return _int32(sums)


def matmul_integer(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute MatMulInteger: a, b, a zero point (also per row), b zero point (also per column); sums of products,
    int32."""
    a, b = need(inputs, 0), need(inputs, 1)
    sums = np.matmul(centred(a, _rows(maybe(inputs, 2), a.ndim)), centred(b, maybe(inputs, 3)))
    return _int32(np.asarray(sums))


def _int32(sums: Floats) -> AnyArray:
    """Convert to int32; overflow wraps around."""
    return sums.astype(np.int64).astype(np.int32)
