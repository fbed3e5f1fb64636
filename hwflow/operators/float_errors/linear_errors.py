"""Error bounds of sums, products and quotients, with u, E and gamma as in
``hwflow.operators.float_errors.analysis``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwflow.onnxspec.dialect_operators.norm_operators import fused_matmul as fused
from hwflow.onnxspec.reference.evaluation import AnyArray
from hwflow.operators.float_errors.step_errors import Errors, NoBound, Step, gamma, is_integer, magnitude


def products(
    step: Step, terms: int, bilinear: Callable[[AnyArray, AnyArray], AnyArray], more_roundings: int = 0
) -> Errors:
    """Bound a sum of ``terms`` products of inputs 0 and 1, without a bias; ``bilinear`` is the same sum in float64."""
    x, w = magnitude(step.value(0)), magnitude(step.value(1))
    e_x, e_w = step.error(0), step.error(1)
    result: Errors = bilinear(x, gamma(terms + more_roundings, step.unit) * w + e_w) + bilinear(e_x, w + e_w)
    return result + terms * step.tiny


def conv(step: Step) -> Errors:
    weights = step.value(1)
    terms = int(np.prod(weights.shape[1:], dtype=np.int64))
    return _with_bias(step, terms)


def conv_transpose(step: Step) -> Errors:
    """Bound ConvTranspose: a sum has at most (channels / group) * kernel size terms."""
    weights = step.value(1)
    terms = int(np.prod(weights.shape, dtype=np.int64)) // (weights.shape[1] * int(step.attributes.get("group", 1)))
    return _with_bias(step, terms)


def _with_bias(step: Step, terms: int) -> Errors:
    """Bound a convolution whose sums have so many terms, and its bias per channel."""
    error = products(step, terms, lambda x, w: step.again([x, w]))
    if step.has(2):
        axes = (1,) * (step.value(1).ndim - 2)
        error = error + step.error(2).reshape(-1, *axes) + step.unit * magnitude(step.output)
    return error


def matmul(step: Step) -> Errors:
    return products(step, step.value(0).shape[-1], np.matmul)


def fused_matmul(step: Step) -> Errors:
    """Bound alpha times a product of operands whose axes are brought into another order first; the evaluator rounds it
    once from float64, another one may round each step."""
    alpha = abs(float(step.attributes.get("alpha", 1.0)))
    plain = {**step.attributes, "alpha": 1.0}

    def bilinear(a: AnyArray, b: AnyArray) -> AnyArray:
        return fused([a.astype(np.float64), b.astype(np.float64)], plain)

    terms = max(step.value(0).shape)
    return alpha * products(step, terms, bilinear, more_roundings=2) + step.tiny


def gemm(step: Step) -> Errors:
    alpha, beta = (abs(float(step.attributes.get(name, 1.0))) for name in ("alpha", "beta"))
    trans_a, trans_b = (bool(step.attributes.get(name, 0)) for name in ("transA", "transB"))

    def bilinear(a: AnyArray, b: AnyArray) -> AnyArray:
        result: AnyArray = (a.T if trans_a else a) @ (b.T if trans_b else b)
        return result

    terms = step.value(0).shape[0 if trans_a else 1]
    error = alpha * products(step, terms, bilinear, more_roundings=int(alpha != 1))
    if alpha != 1:
        error = error + step.tiny
    if step.has(2) and beta:
        error = error + beta * step.error(2) + step.unit * magnitude(step.output)
        if beta != 1:
            error = error + step.unit * beta * magnitude(step.value(2)) + step.tiny
    return error


def add(step: Step) -> Errors:
    """Add and Sub: E(a) + E(b) + u|y|; integers are not rounded, nor is an infinite operand."""
    error = step.error(0) + step.error(1)
    if is_integer(step.output):
        return error
    masks = np.isinf(step.value(0)) | np.isinf(step.value(1))  # of attention: no finite number changes infinity
    return np.where(masks, 0.0, error + step.unit * magnitude(step.output))


def mul(step: Step) -> Errors:
    """Bound Mul: |a| E(b) + |b| E(a) + E(a) E(b) + u|y|; integers are not rounded."""
    a, b, e_a, e_b = magnitude(step.value(0)), magnitude(step.value(1)), step.error(0), step.error(1)
    error = a * e_b + (b + e_b) * e_a
    return error if is_integer(step.output) else error + step.rounded()


def div(step: Step) -> Errors:
    """Bound Div: |A / B - a / b| <= (E(a) + |a / b| E(b)) / (|b| - E(b)), plus u|a / b|. Infinity where b may be 0;
    integers must be exact."""
    if is_integer(step.output):
        step.exact(0, 1)
        return np.zeros(step.output.shape)
    b, e_a, e_b = magnitude(step.value(1)), step.error(0), step.error(1)
    q = magnitude(step.output)
    room = b - e_b
    with np.errstate(all="ignore"):
        moved = np.where(room > 0, (e_a + (q * (1 + 2 * step.unit) + step.tiny) * e_b) / room, np.inf)
    return moved + step.rounded()


def _all(step: Step) -> list[int]:
    return [index for index in range(len(step.inputs)) if step.has(index)]


def extremum(step: Step) -> Errors:
    """Bound Min and Max: the greatest of the errors."""
    shape, result = step.output.shape, np.zeros(step.output.shape)
    for index in _all(step):
        result = np.maximum(result, np.broadcast_to(step.error(index), shape))
    return result


def total(step: Step) -> Errors:
    """Bound Sum of n values, from left to right: the sum of their errors, and gamma(n - 1) of their magnitudes."""
    places = _all(step)
    error = sum((step.error(index) for index in places), np.zeros(()))
    sizes = sum((magnitude(step.value(index)) for index in places), np.zeros(()))
    bound: Errors = np.broadcast_to(error + gamma(max(1, len(places) - 1), step.unit) * sizes, step.output.shape)
    return bound


def mean(step: Step) -> Errors:
    """Bound Mean: as Sum, divided by n, with one more rounding. The magnitudes are summed before the quotient."""
    return total(step) / len(_all(step)) + step.rounded()


def batch_normalization(step: Step) -> Errors:
    """Bound BatchNormalization: scale (x - mean) / sqrt(variance + epsilon) + bias, exact parameters, evaluated in this
    order.

    Errors: of the difference d, E(x) + u|d|, however much cancels; of the product p, |scale| times that, plus u|p|; of
    the root r, 2u|r| (variance + epsilon: u, halved by the root; the root: u; epsilon itself: u/2 where it is rounded);
    of the quotient q, the product's error over r, plus 3u|q|; of the sum, u|y|.
    """
    step.exact(1, 2, 3, 4)
    if step.attributes.get("training_mode", 0):
        raise NoBound
    x = step.value(0).astype(np.float64)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    scale, _, centre, variance = (step.value(index).astype(np.float64).reshape(shape) for index in (1, 2, 3, 4))
    root = np.sqrt(variance + step.attribute("epsilon", 1e-5))
    u = step.unit
    difference = x - centre
    product = scale * difference
    error = np.abs(scale) * (step.error(0) + u * np.abs(difference) + step.tiny) + u * np.abs(product) + step.tiny
    quotient = product / root
    result: Errors = error / root * (1 + 4 * u) + 4 * u * np.abs(quotient) + 2 * step.tiny + step.rounded()
    return result
