"""Error bounds where integers become reals and reals become integers, in every dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hwflow.onnxspec.dialect_operators import microsoft_operators
from hwflow.onnxspec.dialect_operators.qonnx_operators import RealLevels
from hwflow.onnxspec.dialect_operators.quantizer_levels import MOST_TERMS, RELATIVE, Levels
from hwflow.onnxspec.dialect_operators.quantizer_levels import along as spread
from hwflow.operators.float_errors.step_errors import (
    INFLATION,
    Errors,
    NoBound,
    Rule,
    Step,
    along,
    is_integer,
    magnitude,
    tiny,
    unit,
)

_DOUBLE = 2.0**-50
"""A few roundings of float64, in which the dialects' operators compute."""


def dequantize(step: Step) -> Errors:
    """y = (q - zp) * s: the difference is exact while |q| and |q - zp| are at most 1/u, then u|y| + tiny (+ s E(q));
    beyond that the conversion and the difference round too: + 2 u s (|q| + |q - zp|) more."""
    q = step.value(0).astype(np.float64)
    scale = magnitude(along(step, 1))
    difference = q - along(step, 2).astype(np.float64) if step.has(2) else q
    single = 2.0**-24  # the evaluator's difference is a float32 whatever the scale's type is
    large = (np.abs(q) > 1 / single) | (np.abs(difference) > 1 / single)
    rounding = np.where(large, 2 * single * scale * (np.abs(q) + np.abs(difference)), 0.0)
    u = step.unit
    if step.output.dtype == np.float16:  # the product is rounded to float32 before it is converted
        u += 2 * single
    result: Errors = scale * step.error(0) + rounding + u * magnitude(step.output) + step.tiny
    return result


def quantize(step: Step) -> Errors:
    """What is rounded is the quotient, E = E(x) / s + u|x / s| + tiny; E(x) / s where it is exact: its product with s,
    of 48 bits and so exact in float64, is x. The integer's own bound is 0 unless a rounding boundary lies within E of
    the quotient."""
    if step.attributes.get("precision"):
        raise NoBound
    scale = along(step, 1)
    x = step.value(0)
    with np.errstate(all="ignore"):
        quotient = (x.astype(scale.dtype) if is_integer(x) else x) / scale  # as the evaluator does
    u, least = unit(quotient.dtype), tiny(quotient.dtype)
    level = quotient.astype(np.float64)
    own = u * np.abs(level) + least
    if is_integer(x):
        own = own + u * np.abs(level)
    exact = level * scale.astype(np.float64) == x.astype(np.float64)
    step.quotient = step.error(0) / magnitude(scale) + np.where(exact, 0.0, own)
    return _moved(np.rint, level, step.quotient)


def _moved(level: Callable[[Errors], Errors], quotient: Errors, error: Errors) -> Errors:
    """How far a level, a function that does not turn back, can move when the quotient moves by ``error``."""
    reach = np.where(error > 0, error * INFLATION + 2.0**-52 * np.abs(quotient), 0.0)
    least, middle, most = (level(at) for at in (quotient - reach, quotient, quotient + reach))
    result: Errors = np.maximum(np.abs(most - middle), np.abs(middle - least))
    return result


def of_integers(levels: Callable[..., Levels]) -> Rule:
    """An operator that reads integers, free of error, and exact parameters: its quotient errs relatively."""

    def rule(step: Step) -> Errors:
        step.exact(*range(len(step.inputs)))
        if step.node.op_type == "QLinearSoftmax" and step.value(0).size > MOST_TERMS:
            raise NoBound
        made = levels(step.inputs, step.attributes)
        step.quotient = RELATIVE * np.abs(made.quotient) + tiny(np.dtype(np.float32))
        return _moved(lambda at: made.integers(at).astype(np.float64), made.quotient, step.quotient)

    return rule


def quantize_contrib(step: Step) -> Errors:
    """com.microsoft's QuantizeLinear reads reals: E(x) / s, and the quotient is computed in float64."""
    step.exact(1, 2)
    made = microsoft_operators.LEVELS["QuantizeLinear"](step.inputs, step.attributes)
    axis = int(step.attributes.get("axis", 1))
    scale = spread(step.value(1), axis, step.value(0).ndim)
    step.quotient = step.error(0) / magnitude(scale) + _DOUBLE * np.abs(made.quotient) + tiny(np.dtype(np.float32))
    return _moved(lambda at: made.integers(at).astype(np.float64), made.quotient, step.quotient)


def dequantize_contrib(step: Step) -> Errors:
    """com.microsoft's DequantizeLinear computes in float64 and rounds once."""
    step.exact(1, 2)
    if step.error(0).any():
        raise NoBound
    return step.rounded()


def gemm_contrib(step: Step) -> Errors | Sequence[Errors]:
    """QGemm: integers, or without an output scale floats, rounded once from float64."""
    if step.has(7):
        return of_integers(microsoft_operators.LEVELS["QGemm"])(step)
    step.exact(*range(len(step.inputs)))
    return step.rounded() + RELATIVE * magnitude(step.output)


def exact_integers(step: Step) -> Errors:
    """Sums of products of exact integers, and their maxima."""
    step.exact(*range(len(step.inputs)))
    return np.zeros(step.output.shape)


def _quotient_error(step: Step) -> Errors:
    """The error of x / scale + zero point in float64: of the quotient, unless its product with the scale is x and exact
    (both of 24 bits); and of the sum, which is known (D. E. Knuth's two-sum)."""
    x, scale, zero_point = (step.value(index).astype(np.float64) for index in range(3))
    quotient = x / scale
    short = (quotient.astype(np.float32) == quotient) & (scale.astype(np.float32) == scale)
    divided = np.where(short & (quotient * scale == x), 0.0, 2.0**-52 * np.abs(quotient))
    total = quotient + zero_point
    part = total - quotient
    lost = (quotient - (total - part)) + (zero_point - part)
    result: Errors = divided + np.abs(lost)
    return result


def of_reals(levels: Callable[..., RealLevels]) -> Rule:
    """An operator of QONNX: its quotient is x / scale + zero point in float64 (x itself where a level is a count of
    thresholds or a sign), the result scale * (level - zero point), rounded to the type of x."""

    def rule(step: Step) -> Errors:
        step.exact(*range(1, len(step.inputs)))
        made = levels(step.inputs, step.attributes)
        error = step.error(0)
        if step.node.op_type not in ("BipolarQuant", "MultiThreshold"):
            scale = magnitude(step.value(1))
            error = error / scale + _quotient_error(step)
        step.quotient = np.broadcast_to(error, made.quotient.shape)
        return _moved(made.real, made.quotient, error) * (1 + _DOUBLE) + step.rounded(1.001)

    return rule


def matmul_contrib(step: Step) -> Errors:
    """MatMulIntegerToFloat: exact sums of integers; the scales' product and the bias in float64, rounded once. What is
    added to the bias is at most as large as the result and the bias together."""
    step.exact(*range(len(step.inputs)))
    bias = magnitude(step.value(6)) if step.has(6) else 0.0
    return step.rounded() + RELATIVE * (magnitude(step.output) + bias)
