"""Normalizations and products of onnxruntime's transformers, for ONNX's reference evaluator; in float64.

Source: the contrib operators' documentation of onnxruntime (their schemas).
"""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.dialect_operators.call_arguments import Attributes, Inputs, maybe, need
from hwflow.onnxspec.dialect_operators.quantizer_levels import AnyArray, Floats


def _normalized(x: Floats, axes: tuple[int, ...], epsilon: float, *, centred: bool) -> tuple[Floats, Floats, Floats]:
    """Return x less its mean, or not, over the deviation; the mean; and one over the deviation."""
    mean = x.mean(axis=axes, keepdims=True)
    distance = x - mean if centred else x
    inverse = 1 / np.sqrt((distance**2).mean(axis=axes, keepdims=True) + epsilon)
    return distance * inverse, mean, inverse


def simplified_layer_normalization(inputs: Inputs, attributes: Attributes) -> tuple[AnyArray, ...]:
    """Compute x over the root of the mean of squares, times the scale; and one over that root of each row."""
    x = need(inputs, 0)
    axes = tuple(range(int(attributes.get("axis", -1)) % x.ndim, x.ndim))
    epsilon = float(np.float32(attributes.get("epsilon", 1e-5)))
    result, _, inverse = _normalized(x.astype(np.float64), axes, epsilon, centred=False)
    return np.asarray(result * need(inputs, 1)).astype(x.dtype), inverse.astype(np.float32)


def skip_layer_normalization(inputs: Inputs, attributes: Attributes) -> tuple[AnyArray, ...]:
    """Compute the normalized sum, mean and one over the deviation of each row, and the sum. Inputs: x, skip, scale,
    bias of the result, bias of the sum."""
    return _skipped(inputs, attributes, 3, 4, centred=True)


def skip_simplified_layer_normalization(inputs: Inputs, attributes: Attributes) -> tuple[AnyArray, ...]:
    """Compute the results of :func:`skip_layer_normalization`. Inputs: x, skip, scale, bias of the sum."""
    return _skipped(inputs, attributes, None, 3, centred=False)


def _skipped(
    inputs: Inputs, attributes: Attributes, shift: int | None, bias: int, *, centred: bool
) -> tuple[AnyArray, ...]:
    kind = need(inputs, 0).dtype
    total = need(inputs, 0).astype(np.float64) + need(inputs, 1)
    addend = maybe(inputs, bias)
    total = total if addend is None else total + addend
    epsilon = float(np.float32(attributes.get("epsilon", 1e-12)))
    result, mean, inverse = _normalized(total, (-1,), epsilon, centred=centred)
    result = result * need(inputs, 2)
    addend = None if shift is None else maybe(inputs, shift)
    result = result if addend is None else result + addend
    return result.astype(kind), mean.astype(np.float32), inverse.astype(np.float32), total.astype(kind)


def fused_matmul(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute alpha * A @ B; ``transA`` swaps the last two axes, ``transBatchA`` brings the first one before the
    last, before that."""
    a, b = (
        _turned(need(inputs, place).astype(np.float64), attributes, name) for place, name in enumerate(("A", "B"))
    )
    alpha = float(np.float32(attributes.get("alpha", 1.0)))
    return np.asarray(alpha * np.matmul(a, b)).astype(need(inputs, 0).dtype)


def _turned(x: Floats, attributes: Attributes, name: str) -> Floats:
    if attributes.get(f"transBatch{name}", 0):
        x = np.moveaxis(x, 0, -2)
    return np.swapaxes(x, -1, -2) if attributes.get(f"trans{name}", 0) and x.ndim > 1 else x
