"""Error bounds of quantizers and dequantizers of every dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hwflow.onnxspec.dialect_operators import microsoft_operators
from hwflow.onnxspec.dialect_operators.qonnx_operators import RealLevels
from hwflow.onnxspec.dialect_operators.quantizer_levels import MOST_TERMS, RELATIVE, Levels
from hwflow.onnxspec.dialect_operators.quantizer_levels import along as spread
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.scopes import plain_domain
from hwflow.operators.float_errors.step_errors import (
    INFLATION,
    Errors,
    NoBound,
    Step,
    along,
    is_integer,
    magnitude,
    tiny,
    unit,
)

_DOUBLE = 2.0**-50
"""The relative error of a few roundings in float64, in which the dialects' operators compute."""


def dequantize(step: Step) -> Errors:
    """Bound y = (q - zp) * s: the difference is exact while |q| and |q - zp| are at most 1/u, then u|y| + tiny (+ s
    E(q)); beyond that the conversion and the difference round too: + 2 u s (|q| + |q - zp|) more."""
    q = step.value(0).astype(np.float64)
    scale = magnitude(along(step, 1))
    difference = q - along(step, 2).astype(np.float64) if step.has(2) else q
    single = 2.0**-24  # the evaluator's difference is a float32 whatever the scale's type
    large = (np.abs(q) > 1 / single) | (np.abs(difference) > 1 / single)
    rounding = np.where(large, 2 * single * scale * (np.abs(q) + np.abs(difference)), 0.0)
    u = step.unit
    if step.output.dtype == np.float16:  # the product is rounded to float32 before the conversion
        u += 2 * single
    result: Errors = scale * step.error(0) + rounding + u * magnitude(step.output) + step.tiny
    return result


def quantize(step: Step) -> Errors:
    """Bound QuantizeLinear: the rounded quotient has the error E = E(x) / s + u|x / s| + tiny, or E(x) / s where the
    division is exact: its product with s, exact in float64 because of 48 bits, is x. The integer's own bound is 0
    unless a rounding boundary lies within E of the quotient."""
    if step.attributes.get("precision"):
        raise NoBound
    scale = along(step, 1)
    x = step.value(0)
    with np.errstate(all="ignore"):
        quotient = (x.astype(scale.dtype) if is_integer(x) else x) / scale  # the evaluator's integers round less
    u, least = unit(quotient.dtype), tiny(quotient.dtype)
    level = quotient.astype(np.float64)
    own = u * np.abs(level) + least
    if is_integer(x):
        own = own + u * np.abs(level)
    exact = level * scale.astype(np.float64) == x.astype(np.float64)
    step.quotient = step.error(0) / magnitude(scale) + np.where(exact, 0.0, own)
    return _moved(np.rint, level, step.quotient)


def _moved(level: Callable[[Errors], Errors], quotient: Errors, error: Errors) -> Errors:
    """Return the greatest change of a level, a monotone function, when the quotient changes by ``error``."""
    reach = np.where(error > 0, error * INFLATION + 2.0**-52 * np.abs(quotient), 0.0)
    least, middle, most = (level(at) for at in (quotient - reach, quotient, quotient + reach))
    result: Errors = np.maximum(np.abs(most - middle), np.abs(middle - least))
    return result


def of_integers(step: Step) -> Errors:
    """Bound operators on error-free integers with exact parameters: the quotient has a relative error."""
    step.exact(*range(len(step.inputs)))
    made = _levels(step)
    assert isinstance(made, Levels), "the result is integers"
    step.quotient = RELATIVE * np.abs(made.quotient) + tiny(np.dtype(np.float32))
    return _moved(lambda at: made.integers(at).astype(np.float64), made.quotient, step.quotient)


def of_softmax(step: Step) -> Errors:
    """Bound as :func:`of_integers`, for sums of at most MOST_TERMS elements; longer ones have no bound."""
    if step.value(0).size > MOST_TERMS:
        raise NoBound
    return of_integers(step)


def _levels(step: Step) -> Levels | RealLevels:
    """Evaluate the levels of the operator's record on the step's inputs."""
    levels = facts_of(plain_domain(step.node.domain), step.node.op_type).levels
    assert levels is not None, "the record states them"
    return levels(step.inputs, step.attributes)


def quantize_contrib(step: Step) -> Errors:
    """Bound com.microsoft's QuantizeLinear of reals: E(x) / s, and the quotient is computed in float64."""
    step.exact(1, 2)
    made = microsoft_operators.quantizer_levels(step.inputs, step.attributes)
    axis = int(step.attributes.get("axis", 1))
    scale = spread(step.value(1), axis, step.value(0).ndim)
    step.quotient = step.error(0) / magnitude(scale) + _DOUBLE * np.abs(made.quotient) + tiny(np.dtype(np.float32))
    return _moved(lambda at: made.integers(at).astype(np.float64), made.quotient, step.quotient)


def dequantize_contrib(step: Step) -> Errors:
    """Bound com.microsoft's DequantizeLinear, which computes in float64 and rounds once."""
    step.exact(1, 2)
    if step.error(0).any():
        raise NoBound
    return step.rounded()


def gemm_contrib(step: Step) -> Errors | Sequence[Errors]:
    """Bound QGemm: integers, or without an output scale floats, rounded once from float64."""
    if step.has(7):
        return of_integers(step)
    step.exact(*range(len(step.inputs)))
    return step.rounded() + RELATIVE * magnitude(step.output)


def exact_integers(step: Step) -> Errors:
    """Bound sums of products, and maxima, of exact integers: no error."""
    step.exact(*range(len(step.inputs)))
    return np.zeros(step.output.shape)


def _quotient_error(step: Step) -> Errors:
    """Return the error of x / scale + zero point in float64: that of the quotient, unless its product with the scale is
    exactly x (both of 24 bits); and that of the sum, which is known (D. E. Knuth's two-sum)."""
    x, scale, zero_point = (step.value(index).astype(np.float64) for index in range(3))
    quotient = x / scale
    short = (quotient.astype(np.float32) == quotient) & (scale.astype(np.float32) == scale)
    divided = np.where(short & (quotient * scale == x), 0.0, 2.0**-52 * np.abs(quotient))
    total = quotient + zero_point
    part = total - quotient
    lost = (quotient - (total - part)) + (zero_point - part)
    result: Errors = divided + np.abs(lost)
    return result


def of_quotients(step: Step) -> Errors:
    """Bound QONNX's quantizers: the quotient is x / scale + zero point in float64, the result scale * (level - zero
    point), rounded to the type of x."""
    return _of_reals(step, step.error(0) / magnitude(step.value(1)) + _quotient_error(step))


def of_thresholds(step: Step) -> Errors:
    """Bound QONNX levels that count thresholds or are signs: the quotient is x itself."""
    return _of_reals(step, step.error(0))


def _of_reals(step: Step, error: Errors) -> Errors:
    step.exact(*range(1, len(step.inputs)))
    made = _levels(step)
    assert isinstance(made, RealLevels), "the result is reals"
    step.quotient = np.broadcast_to(error, made.quotient.shape)
    return _moved(made.real, made.quotient, error) * (1 + _DOUBLE) + step.rounded(1.001)


def matmul_contrib(step: Step) -> Errors:
    """Bound MatMulIntegerToFloat: exact sums of integers; the scales' product and the bias in float64, rounded once.
    The other summand of the bias is at most the result plus the bias in magnitude."""
    step.exact(*range(len(step.inputs)))
    bias = magnitude(step.value(6)) if step.has(6) else 0.0
    return step.rounded() + RELATIVE * (magnitude(step.output) + bias)
