"""How far the reference evaluator's floats can be from the exact reals: a running error analysis of a region.

Each value of a region gets a bound on |computed - exact|, where "exact" is the region in real arithmetic on the same
integer inputs (scales, float weights and biases are exact: a float32 is a rational number) and "computed" is what the
evaluator's numpy arithmetic gives. The bound is derived node by node from computed magnitudes; nothing is estimated.

Model of arithmetic (IEEE 754, round to nearest): fl(a op b) = (a op b)(1 + d) + t with |d| <= u and |t| <= tiny, where
u = 2**-24 for float32 and tiny is the least normal number (so that evaluators which flush subnormals are covered);
hence also |fl(a op b) - (a op b)| <= u |fl(a op b)| + tiny. A sum of K products in any order, with or without fused
multiply-add, deviates by at most gamma(K) * sum |x_i w_i|, gamma(K) = K u / (1 - K u) (N. J. Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, sections 2.2 and 3.1; each product is rounded once and goes through
at most K - 1 additions). With E the bound of a value, x and w computed:

* DequantizeLinear, y = (q - zp) * s: the difference is exact while |q| and |q - zp| are at most 1/u, so E = u|y| + tiny
  (+ s E(q)); beyond that the conversion and the difference round too: + 2 u s (|q| + |q - zp|) more.
* Conv, MatMul, Gemm: sum x w against sum X W (exact):
  gamma(K) S(|x|, |w|) + S(|x|, E(w)) + S(E(x), |w| + E(w)) + K tiny, S the same operator in float64 on magnitudes;
  a bias adds E(b) + u|y|; Gemm's alpha and beta scale and, unless they are 1, round once more.
* Add: E(a) + E(b) + u|y|.
* Relu and Clip do not round and do not decrease: E(y) is how far y can move when x moves by E(x), 0 where they
  saturate. MaxPool: the greatest E in the window. Reshape and its like move E.
* QuantizeLinear: what is rounded is the quotient, E = E(x) / s + u|x / s| + tiny (``quotients`` has it: the only place
  where a float error can change an integer). Rounding to even, zero point and saturation are exact afterwards; the
  integer's own bound is 0 unless a rounding boundary lies within E of the quotient.

The bounds are computed in float64 with a relative error below (K + 8) 2**-53; :data:`INFLATION` covers it where
K < 2**30, and the last bits in which a second evaluation (another batch, another order of summation) may differ.
A node without a rule has no bound (None), nor has what depends on it; but a node of constants free of error is exact
(hwflow folds those with the same evaluator).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from hwflow.onnxspec.reference import AnyArray, Region

Errors = npt.NDArray[np.float64]

INFLATION = 1 + 2.0**-20


@dataclass
class Bounds:
    """Of each value by name: what was computed (``values``), the bound on its error (``errors``: same shape), and for
    the result of a QuantizeLinear the bound on the error of the quotient before rounding, in levels (``quotients``).

    None: no bound is known; ``unbounded`` names the operators that have no rule."""

    values: dict[str, AnyArray]
    errors: dict[str, Errors | None] = field(default_factory=dict)
    quotients: dict[str, Errors | None] = field(default_factory=dict)
    unbounded: set[str] = field(default_factory=set)


@dataclass
class _Step:
    """One node: inputs and output as computed, bounds of the inputs; "" inputs are None."""

    region: Region
    node: onnx.NodeProto
    inputs: list[AnyArray | None]
    errors: list[Errors | None]
    output: AnyArray
    attributes: Mapping[str, Any]
    constant: bool  # it depends on no feed
    quotient: Errors | None = None

    def value(self, index: int) -> AnyArray:
        array = self.inputs[index]
        assert array is not None, f"{self.node.op_type} needs input {index}"
        return array

    def error(self, index: int) -> Errors:
        error = self.errors[index]
        assert error is not None, f"{self.node.op_type} needs input {index}"
        return error

    def has(self, index: int) -> bool:
        return len(self.inputs) > index and self.inputs[index] is not None

    @property
    def unit(self) -> float:
        return _unit(self.output.dtype)


_Rule = Callable[[_Step], Errors]


class _NoBound(Exception):
    """Raised by a rule: this case has no bound."""


def analyse(region: Region, feeds: Mapping[str, AnyArray]) -> Bounds:
    """Bounds for every value of ``region`` on exact ``feeds``, all frames at once: one only unless it is framewise."""
    bounds = Bounds(region.values(feeds))
    for name, array in bounds.values.items():
        bounds.errors[name] = np.zeros(np.shape(array))
    depends = set(region.feeds)
    for node in region.nodes:
        constant = not depends.intersection(node.input)
        if not constant:
            depends.update(node.output)
        inputs = [bounds.values.get(name) if name else None for name in node.input]
        errors = [bounds.errors[name] if name else None for name in node.input]
        for name in node.output:
            bounds.errors[name] = None
        if any(name and error is None for name, error in zip(node.input, errors, strict=True)):
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        output = node.output[0]
        step = _Step(region, node, inputs, errors, np.asarray(bounds.values[output]), attributes, constant)
        try:
            bounds.errors[output] = _bounded(step) * INFLATION
        except _NoBound:
            bounds.unbounded.add(node.op_type)
        if node.op_type == "QuantizeLinear":
            bounds.quotients[output] = None if step.quotient is None else step.quotient * INFLATION
    return bounds


def _bounded(step: _Step) -> Errors:
    rule = RULES.get(step.node.op_type) if step.node.domain in ("", "ai.onnx") else None
    if rule is not None:
        return rule(step)
    exact = all(error is None or not error.any() for error in step.errors)
    if not (step.constant and exact and len(step.node.output) == 1):
        raise _NoBound
    return np.zeros(step.output.shape)


def _unit(dtype: np.dtype[Any]) -> float:
    if dtype not in (np.float16, np.float32):  # what quantized models compute in; bounds are computed in float64
        raise _NoBound
    return float(np.finfo(dtype).eps) / 2


def _tiny(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).tiny)


def _gamma(terms: int, unit: float) -> float:
    if terms * unit >= 0.5:
        raise _NoBound
    return terms * unit / (1 - terms * unit)


def _magnitude(array: AnyArray) -> Errors:
    return np.abs(array.astype(np.float64))


def _along(step: _Step, index: int) -> AnyArray:
    """Scale or zero point, shaped to broadcast over input 0."""
    array, rank = step.value(index), step.value(0).ndim
    if step.attributes.get("block_size") or array.ndim > 1 or step.error(index).any():
        raise _NoBound
    if array.size == 1:
        return array.reshape(())
    shape = [1] * rank
    shape[step.attributes.get("axis", 1)] = -1
    return array.reshape(shape)


def _dequantize(step: _Step) -> Errors:
    q = step.value(0).astype(np.float64)
    scale = _magnitude(_along(step, 1))
    difference = q - _along(step, 2).astype(np.float64) if step.has(2) else q
    single = 2.0**-24  # the evaluator's difference is a float32 whatever the scale's type is
    large = (np.abs(q) > 1 / single) | (np.abs(difference) > 1 / single)
    rounding = np.where(large, 2 * single * scale * (np.abs(q) + np.abs(difference)), 0.0)
    unit = step.unit
    if step.output.dtype == np.float16:  # the product is rounded to float32 before it is converted
        unit += 2 * single
    result: Errors = scale * step.error(0) + rounding + unit * _magnitude(step.output) + _tiny(step.output.dtype)
    return result


def _quantize(step: _Step) -> Errors:
    if step.attributes.get("precision"):
        raise _NoBound
    scale = _along(step, 1)
    with np.errstate(all="ignore"):
        quotient = step.value(0) / scale  # as the evaluator does
    unit, tiny = _unit(quotient.dtype), _tiny(quotient.dtype)
    level = quotient.astype(np.float64)
    step.quotient = step.error(0) / _magnitude(scale) + unit * np.abs(level) + tiny
    reach = step.quotient * INFLATION
    middle = np.rint(level)
    error: Errors = np.maximum(np.rint(level + reach) - middle, middle - np.rint(level - reach))
    return error


def _products(
    step: _Step, terms: int, bilinear: Callable[[AnyArray, AnyArray], AnyArray], more_roundings: int = 0
) -> Errors:
    """A sum of ``terms`` products of inputs 0 and 1, without a bias; ``bilinear`` is the same sum in float64."""
    x, w = _magnitude(step.value(0)), _magnitude(step.value(1))
    e_x, e_w = step.error(0), step.error(1)
    result: Errors = bilinear(x, _gamma(terms + more_roundings, step.unit) * w + e_w) + bilinear(e_x, w + e_w)
    return result + terms * _tiny(step.output.dtype)


def _conv(step: _Step) -> Errors:
    weights = step.value(1)
    terms = int(np.prod(weights.shape[1:], dtype=np.int64))
    error = _products(step, terms, lambda x, w: step.region.again(step.node, [x, w]))
    if step.has(2):
        error = error + step.error(2).reshape(-1, *(1,) * (weights.ndim - 2)) + step.unit * _magnitude(step.output)
    return error


def _matmul(step: _Step) -> Errors:
    return _products(step, step.value(0).shape[-1], np.matmul)


def _gemm(step: _Step) -> Errors:
    alpha, beta = (abs(float(step.attributes.get(name, 1.0))) for name in ("alpha", "beta"))
    trans_a, trans_b = (bool(step.attributes.get(name, 0)) for name in ("transA", "transB"))

    def bilinear(a: AnyArray, b: AnyArray) -> AnyArray:
        result: AnyArray = (a.T if trans_a else a) @ (b.T if trans_b else b)
        return result

    terms = step.value(0).shape[0 if trans_a else 1]
    error = alpha * _products(step, terms, bilinear, more_roundings=int(alpha != 1))
    if alpha != 1:
        error = error + _tiny(step.output.dtype)
    if step.has(2) and beta:
        error = error + beta * step.error(2) + step.unit * _magnitude(step.output)
        if beta != 1:
            error = error + step.unit * beta * _magnitude(step.value(2)) + _tiny(step.output.dtype)
    return error


def _add(step: _Step) -> Errors:
    return step.error(0) + step.error(1) + step.unit * _magnitude(step.output)


def _identity(step: _Step) -> Errors:
    return step.error(0)


def _monotone(step: _Step) -> Errors:
    if any(e is not None and e.any() for e in step.errors[1:]):  # a limit that is not exact
        raise _NoBound
    x, reach = step.value(0).astype(np.float64), step.error(0) * INFLATION
    least, middle, most = (
        step.region.again(step.node, [moved, *step.inputs[1:]]) for moved in (x - reach, x, x + reach)
    )
    result: Errors = np.maximum(most - middle, middle - least)
    return result


def _moved(step: _Step) -> Errors:
    moved: Errors = step.region.again(step.node, [step.error(0), *step.inputs[1:]]).astype(np.float64)
    return moved


RULES: Mapping[str, _Rule] = {
    "Add": _add,
    "Clip": _monotone,
    "Conv": _conv,
    "DequantizeLinear": _dequantize,
    "Flatten": _moved,
    "Gemm": _gemm,
    "Identity": _identity,
    "MatMul": _matmul,
    "MaxPool": _moved,
    "QuantizeLinear": _quantize,
    "Relu": _monotone,
    "Reshape": _moved,
    "Squeeze": _moved,
    "Transpose": _moved,
    "Unsqueeze": _moved,
}


def operators() -> Sequence[str]:
    """ONNX operators that have a rule."""
    return tuple(RULES)
