"""Operators of domain com.microsoft, as written by onnxruntime's static quantizer, for ONNX's reference evaluator.

Source: the contrib operators' documentation of onnxruntime (their schemas). Where that says "quantize", it is ONNX's
QuantizeLinear, which rounds before it adds the zero point; onnxruntime itself does not always (see
``hwflow.onnxspec.reference.runtime_differences``). All of it is computed in float64. What "levels" names is what an
operator rounds.
"""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.dialect_operators.call_arguments import Attributes, Inputs, maybe, need
from hwflow.onnxspec.dialect_operators.quantized_windows import Windows, window_maxima, window_sums
from hwflow.onnxspec.dialect_operators.quantizer_levels import (
    AnyArray,
    Floats,
    Levels,
    along,
    centred,
    requantized,
    scalar,
)


def _real(inputs: Inputs, index: int) -> Floats:
    """Return scale * (q - zero point) of inputs ``index`` to ``index`` + 2: exact in float64 (9 bits times 24)."""
    scale = scalar(need(inputs, index + 1)).astype(np.float64)
    result: Floats = scale * centred(need(inputs, index), maybe(inputs, index + 2))
    return result


def _out(inputs: Inputs, real: Floats, index: int, like: int = 0) -> Levels:
    """Quantize ``real`` by scale and zero point of inputs ``index`` and ``index`` + 1."""
    return requantized(real, need(inputs, index), maybe(inputs, index + 1), need(inputs, like).dtype)


def sum_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute A + B."""
    return _out(inputs, _real(inputs, 0) + _real(inputs, 3), 6)


def product_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute A * B."""
    return _out(inputs, _real(inputs, 0) * _real(inputs, 3), 6)


def leaky_relu_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute x, or alpha * x where it is negative."""
    x = _real(inputs, 0)
    alpha = float(np.float32(attributes.get("alpha", 0.01)))
    return _out(inputs, np.where(x < 0, alpha * x, x), 3)


def sigmoid_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute 1 / (1 + exp(-x))."""
    x = _real(inputs, 0)
    small = np.exp(-np.abs(x))  # never overflows
    return _out(inputs, np.where(x < 0, small, 1.0) / (1.0 + small), 3)


def softmax_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute Softmax along one axis, before operator set 13 along all from that one on."""
    q = need(inputs, 0)
    later = int(attributes.get("opset", 13)) >= 13
    axis = int(attributes.get("axis", -1 if later else 1)) % max(1, q.ndim)
    x = _real(inputs, 0)
    flat = x if later else x.reshape(int(np.prod(q.shape[:axis], dtype=np.int64)), -1)
    over = axis if later else 1
    powers = np.exp(flat - flat.max(axis=over, keepdims=True))
    return _out(inputs, (powers / powers.sum(axis=over, keepdims=True)).reshape(q.shape), 3)


def average_pool_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute means of windows."""
    last = bool(attributes.get("channels_last", 0))
    x = centred(need(inputs, 0), maybe(inputs, 2))
    if last:
        x = np.moveaxis(x, -1, 1)
    windows = Windows.of(x.shape[2:], attributes["kernel_shape"], attributes)
    counts = windows.counts(bool(attributes.get("count_include_pad", 0)))
    mean = window_sums(x, windows) * scalar(need(inputs, 1)).astype(np.float64) / counts
    return _out(inputs, np.moveaxis(mean, 1, -1) if last else mean, 3)


def nhwc_max_pool(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute maxima of windows, of integers."""
    x = np.moveaxis(need(inputs, 0), -1, 1)
    return np.moveaxis(window_maxima(x, Windows.of(x.shape[2:], attributes["kernel_shape"], attributes)), 1, -1)


def global_average_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute means of images."""
    rank = need(inputs, 0).ndim
    axes = tuple(range(1, rank - 1)) if attributes.get("channels_last", 0) else tuple(range(2, rank))
    return _out(inputs, _mean(inputs, axes, keep=True), 3)


def mean_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute means along axes."""
    rank = need(inputs, 0).ndim
    axes = tuple(int(axis) % rank for axis in attributes.get("axes") or range(rank))
    return _out(inputs, _mean(inputs, axes, keep=bool(attributes.get("keepdims", 1))), 3)


def _mean(inputs: Inputs, axes: tuple[int, ...], keep: bool) -> Floats:
    sums = centred(need(inputs, 0), maybe(inputs, 2)).sum(axis=axes, keepdims=keep)
    count = int(np.prod([need(inputs, 0).shape[axis] for axis in axes], dtype=np.int64))
    result: Floats = np.asarray(sums * scalar(need(inputs, 1)).astype(np.float64) / count)
    return result


def joined_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Join tensors; inputs: a scale and a zero point, then three per tensor."""
    parts = [_real(inputs, index) for index in range(2, len(inputs), 3)]
    real = np.concatenate(parts, axis=int(attributes["axis"]))
    return requantized(real, need(inputs, 0), maybe(inputs, 1), need(inputs, 2).dtype)


def chosen_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Return X where the condition holds, else Y."""
    return _out(inputs, np.where(need(inputs, 0), _real(inputs, 1), _real(inputs, 4)), 7, like=1)


def _gemm_real(inputs: Inputs, attributes: Attributes) -> Floats:
    """Return alpha * A scale * B scale * (sums of integer products + C); C is in units of the product's scale."""
    a, b = centred(need(inputs, 0), maybe(inputs, 2)), need(inputs, 3)
    a = a.T if attributes.get("transA", 0) else a
    scale, zero = need(inputs, 4), maybe(inputs, 5)
    outputs = 0 if attributes.get("transB", 0) else 1  # the axis of B that becomes the columns of the result
    weights = b.astype(np.float64) - (0.0 if zero is None else along(zero, outputs, 2).astype(np.float64))
    sums = a @ (weights.T if attributes.get("transB", 0) else weights)
    bias = maybe(inputs, 6)
    if bias is not None:
        sums = sums + bias.astype(np.float64)
    factor = scalar(need(inputs, 1)).astype(np.float64) * along(scale, 1, 2).astype(np.float64)
    result: Floats = float(np.float32(attributes.get("alpha", 1.0))) * factor * sums
    return result


def gemm_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute QGemm where there is an output scale."""
    return _out(inputs, _gemm_real(inputs, attributes), 7)


def gemm(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute QGemm: without an output scale the result is float32."""
    if maybe(inputs, 7) is None:
        return _gemm_real(inputs, attributes).astype(np.float32)
    return gemm_levels(inputs, attributes).array()


def quantizer_levels(inputs: Inputs, attributes: Attributes) -> Levels:
    """Compute x / scale."""
    x, zero = need(inputs, 0), maybe(inputs, 2)
    axis = int(attributes.get("axis", 1))
    scale = along(need(inputs, 1), axis, x.ndim)
    zero = np.zeros((), np.uint8) if zero is None else along(zero, axis, x.ndim)
    return Levels(x.astype(np.float64) / scale.astype(np.float64), zero, zero.dtype)


def dequantize(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute scale * (q - zero point)."""
    q, scale = need(inputs, 0), need(inputs, 1)
    axis = int(attributes.get("axis", 1))
    zero = maybe(inputs, 2)
    difference = q.astype(np.float64) - (0.0 if zero is None else along(zero, axis, q.ndim).astype(np.float64))
    return np.asarray(along(scale, axis, q.ndim).astype(np.float64) * difference).astype(scale.dtype)


def matmul_to_float(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute A scale (also one per row) * B scale (also one per column) * sums of integer products, and a bias."""
    factors, scales = [], []
    for index, axis in ((0, -2), (1, -1)):
        q, zero = need(inputs, index), maybe(inputs, index + 4)
        factors.append(q.astype(np.float64) - (0.0 if zero is None else along(zero, axis, q.ndim).astype(np.float64)))
        scales.append(along(need(inputs, index + 2), axis, q.ndim).astype(np.float64))
    bias = maybe(inputs, 6)
    real = np.matmul(*factors) * (scales[0] * scales[1]) + (0.0 if bias is None else bias.astype(np.float64))
    return np.asarray(real).astype(need(inputs, 2).dtype)
