"""Convert constant weights to integers with one exact scale per output, whatever scales the model has on which axes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd, lcm
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import refuse
from hwflow.frontend.views import (
    Constant,
    HostInput,
    QuantizedConstant,
    View,
    as_array,
    varying_axes,
)
from hwflow.ir.graph import Fractions, IntArray
from hwflow.onnxspec.graphs.operator_facts import OperatorFacts, facts_of
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes.dialects import ML_DOMAIN

MAX_BITS = 40
"""The greatest width of the integers of weights with several scales per output, at a common scale."""

MAX_FLOAT_BITS = 16
"""The greatest width of the integers of unquantized weights. Those of linear models of ai.onnx.ml are attributes, which
no quantizer can stand behind: :data:`MAX_BITS` is theirs."""

_DEFINED = re.compile(r" in the definition of node '.*' \((?P<operator>\w+)\)$")


@dataclass(frozen=True)
class Weights:
    """real = scale[output] * integers; ``integers`` is [outputs, ...], int64; no scale is 0."""

    integers: IntArray
    scale: Fractions

    @property
    def are_signs(self) -> bool:
        """Whether every weight is 1 or -1."""
        return bool((np.abs(self.integers) == 1).all())


def integer_weights(
    node: OnnxNode, view: View, name: str, axis: int, input_scale: Fractions | None = None
) -> Weights:
    """Convert the weights ``view`` (value ``name``), moving outputs from ``axis`` to the front.

    ``input_scale`` (broadcasts over the weights as in the model, one element along ``axis``): the scales of their
    factors, where these are several; it multiplies the weights. Real weights are converted to one scale per output,
    exactly.
    """
    if isinstance(view, Constant):
        weights = _of_floats(node, view.array, name, axis)
        if input_scale is None:
            return weights
        scale = weights.scale.reshape([-1 if a == axis else 1 for a in range(view.array.ndim)])
        view = QuantizedConstant(np.moveaxis(weights.integers, 0, axis), scale, as_array(Fraction(0)))
    if not isinstance(view, QuantizedConstant):
        what = "a float graph input" if isinstance(view, HostInput) else "computed at run time"
        raise refuse(
            node, "constant-weights", f"weights {show(name)} must be constant, not {what}",
            "make them an initializer, or leave the node to the host, before the first or after the last quantizer",
        )
    integers, scale = _without_zero_point(node, view, name)
    if input_scale is not None:
        scale = as_array(scale * input_scale)
    if varying_axes(scale) <= {axis}:
        return _of_one_scale(np.moveaxis(integers, axis, 0), scale)
    return _of_many_scales(
        node, np.moveaxis(integers, axis, 0), np.moveaxis(np.broadcast_to(scale, integers.shape), axis, 0), name
    )


def _without_zero_point(node: OnnxNode, view: QuantizedConstant, name: str) -> tuple[IntArray, Fractions]:
    denominator = lcm(*(z.denominator for z in view.zero_point.reshape(-1)))
    largest = max(abs(z) for z in view.zero_point.reshape(-1)) + int(np.abs(view.integers).max(initial=0))
    if ceil(largest * denominator).bit_length() >= MAX_BITS:
        raise refuse(
            node, "weight-zero-point",
            f"the zero points of weights {show(name)} must leave integers of at most {MAX_BITS} bits, not of "
            f"{ceil(largest * denominator).bit_length() + 1}",
            "use zero points that are small integers",
        )
    zero_point = np.array(
        [int(z * denominator) for z in view.zero_point.reshape(-1)], dtype=np.int64
    ).reshape(view.zero_point.shape)
    if denominator == 1:
        return view.integers - zero_point, view.scale
    return denominator * view.integers - zero_point, as_array(view.scale / denominator)


def _of_one_scale(integers: IntArray, scale: Fractions) -> Weights:
    scales: Fractions = np.broadcast_to(scale.reshape(-1), (len(integers),)).copy()
    for output in range(len(scales)):
        if scales[output] == 0:  # every weight of the output is 0
            scales[output] = Fraction(1)
            integers = integers.copy()
            integers[output] = 0
    return Weights(integers, scales)


def _of_many_scales(node: OnnxNode, integers: IntArray, scale: Fractions, name: str) -> Weights:
    """Convert to one scale per output: the greatest common divisor of its weights."""
    result = np.zeros(integers.shape, dtype=np.int64)
    scales = np.empty(len(integers), dtype=object)
    most = 0
    for output in range(len(integers)):
        row, factors = integers[output].reshape(-1), scale[output].reshape(-1)
        distinct = {id(s): s for s in factors if s != 0}
        denominator = lcm(*(s.denominator for s in distinct.values()))
        multiples = {key: int(s * denominator) for key, s in distinct.items()}
        values = [int(w) * multiples.get(id(s), 0) for w, s in zip(row, factors, strict=True)]
        common = gcd(*values) or 1
        values = [v // common for v in values]
        scales[output] = Fraction(common, denominator)
        most = max(most, *(v.bit_length() + 1 for v in values))
        if most <= MAX_BITS:
            result[output] = np.array(values, dtype=np.int64).reshape(integers.shape[1:])
    if most > MAX_BITS:
        raise refuse(
            node, "weight-scales",
            f"the scales of weights {show(name)} within one output (and those of their factors) must "
            f"have a common divisor that makes the weights integers of at most {MAX_BITS} bits, not of {most}",
            "use one scale per output, or scales that are powers of two apart",
        )
    return Weights(result, scales)


def _of_floats(node: OnnxNode, array: Any, name: str, axis: int) -> Weights:
    """Convert weights without a quantizer that are small multiples of a common divisor per output."""
    most = MAX_BITS if _are_attributes(node) else MAX_FLOAT_BITS
    rows = np.moveaxis(np.asarray(array, dtype=np.float64), axis, 0)
    integers, scales = np.zeros(rows.shape, dtype=np.int64), np.empty(len(rows), dtype=object)
    for output, row in enumerate(rows):
        exponent = _least_exponent(row)
        shifted = np.ldexp(row, -exponent)
        if not np.isfinite(shifted).all() or np.abs(shifted).max(initial=0) >= 1 << 53:
            raise _unquantized(node, name)
        whole = shifted.astype(np.int64)
        common = int(np.gcd.reduce(np.abs(whole), axis=None)) or 1
        integers[output] = whole // common
        if np.abs(integers[output]).max(initial=0) >= 1 << (most - 1):
            raise _unquantized(node, name)
        scales[output] = Fraction(common) * Fraction(2) ** exponent
    return Weights(integers, scales)


def _least_exponent(row: Any) -> int:
    """Return the greatest e such that every element is an integer multiple of 2**e."""
    nonzero = row[(row != 0) & np.isfinite(row)]
    if not nonzero.size:
        return 0
    mantissa, exponent = np.frexp(nonzero)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent - 53 + trailing).min())


def _owner(node: OnnxNode) -> OperatorFacts | None:
    """Return the facts of the operator of ai.onnx.ml in whose definition the node is; None if it is in none."""
    outer = _DEFINED.search(node.context)
    facts = None if outer is None else facts_of(ML_DOMAIN, outer["operator"])
    return facts if facts is not None and facts.name else None


def _are_attributes(node: OnnxNode) -> bool:
    """Tell whether the weights are attributes of a linear model, in whose definition the node is."""
    owner = _owner(node)
    return owner is not None and owner.exact_weights


def _unquantized(node: OnnxNode, name: str) -> Exception:
    message = f"weights {show(name)} must be quantized (by a DequantizeLinear or a Quant), not float"
    remedy = "quantize the weights too" if _owner(node) is None else "quantize the float model (see 'hwflow quantize')"
    if _are_attributes(node):
        message = (
            f"weights {show(name)} must be multiples of a number for each output, by integers of at most {MAX_BITS} "
            "bits, not of more"
        )
        remedy = f"round the attribute, or {remedy}"
    return refuse(node, "quantized-weights", message, remedy)
