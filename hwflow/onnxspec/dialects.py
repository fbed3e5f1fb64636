"""Operators of the quantized dialects that have no ONNX schema: how their outputs' shapes follow from their inputs'.

The table holds what is known; a value made by another operator of a dialect domain needs a declared shape (value_info).
Sources: the QONNX operator definitions; the contrib operator documentation of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hwflow.onnxspec.model import Attribute, ValueInfo

QONNX_DOMAINS = frozenset({"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"})
MICROSOFT_DOMAIN = "com.microsoft"
DIALECT_DOMAINS = QONNX_DOMAINS | {MICROSOFT_DOMAIN}

# One (shape, element type name) for the first output; every operator in the table has one output.
Result = tuple[tuple[int, ...], str]
Inputs = Sequence[ValueInfo | None]
ShapeRule = Callable[[Inputs, Mapping[str, Attribute]], Result]


class ShapeError(ValueError):
    """The inputs' shapes do not fit the operator; the text is a sentence "X must be Y, not Z"."""


def _input(inputs: Inputs, position: int) -> ValueInfo:
    info = inputs[position] if position < len(inputs) else None
    if info is None:
        raise ShapeError(f"input {position} must be there, but it is absent")
    return info


def _integer(attributes: Mapping[str, Attribute], name: str, default: int) -> int:
    value = attributes.get(name, default)
    if not isinstance(value, int):
        raise ShapeError(f"attribute '{name}' must be an integer, not {value!r}")
    return value


def _same(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    x = _input(inputs, 0)
    return x.shape, x.dtype


def _quantize(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    zero_point = inputs[2] if len(inputs) > 2 else None
    return _input(inputs, 0).shape, "uint8" if zero_point is None else zero_point.dtype


def _dequantize(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    return _input(inputs, 0).shape, _input(inputs, 1).dtype


def _binary(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    a, b = _input(inputs, 0), _input(inputs, 3)
    try:
        return tuple(np.broadcast_shapes(a.shape, b.shape)), a.dtype
    except ValueError:
        raise ShapeError(f"the inputs must broadcast, not {list(a.shape)} with {list(b.shape)}") from None


def _concat(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    parts = [_input(inputs, i) for i in range(2, len(inputs), 3)]
    if not parts:
        raise ShapeError("the operator must have at least one tensor to concatenate, not none")
    rank = len(parts[0].shape)
    axis = _integer(attributes, "axis", 0)
    if not -rank <= axis < rank:
        raise ShapeError(f"attribute 'axis' must be in [{-rank}, {rank - 1}], not {axis}")
    axis %= rank
    around = {p.shape[:axis] + p.shape[axis + 1 :] for p in parts}
    if len(around) != 1 or any(len(p.shape) != rank for p in parts):
        shapes = ", ".join(str(list(p.shape)) for p in parts)
        raise ShapeError(f"the inputs must agree on all axes but {axis}, not {shapes}")
    shape = list(parts[0].shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    return tuple(shape), _input(inputs, 1).dtype


def _gemm(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    a, b = _input(inputs, 0).shape, _input(inputs, 3).shape
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"A and B must have 2 dimensions, not {list(a)} and {list(b)}")
    m, k = (a[1], a[0]) if _integer(attributes, "transA", 0) else a
    kb, n = (b[1], b[0]) if _integer(attributes, "transB", 0) else b
    if k != kb:
        raise ShapeError(f"the inner dimensions of A and B must be equal, not {k} and {kb}")
    zero_point = inputs[8] if len(inputs) > 8 else None
    return (m, n), "float32" if zero_point is None else zero_point.dtype


def _global_pool(inputs: Inputs, attributes: Mapping[str, Attribute]) -> Result:
    x = _input(inputs, 0)
    if len(x.shape) < 3:
        raise ShapeError(f"the input must have at least 3 dimensions, not {len(x.shape)}")
    ones = (1,) * (len(x.shape) - 2)
    if _integer(attributes, "channels_last", 0):
        return (x.shape[0], *ones, x.shape[-1]), x.dtype
    return (*x.shape[:2], *ones), x.dtype


_QONNX: dict[str, ShapeRule] = {name: _same for name in ("Quant", "IntQuant", "FloatQuant", "BipolarQuant", "Trunc")}
_MICROSOFT: dict[str, ShapeRule] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "QLinearAdd": _binary,
    "QLinearMul": _binary,
    "QLinearSigmoid": _same,
    "QLinearLeakyRelu": _same,
    "QLinearSoftmax": _same,
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _global_pool,
    "QGemm": _gemm,
}


def shape_rule(domain: str, op_type: str) -> ShapeRule | None:
    """The rule for an operator of a dialect domain, None if there is none."""
    if domain in QONNX_DOMAINS:
        return _QONNX.get(op_type)
    return _MICROSOFT.get(op_type) if domain == MICROSOFT_DOMAIN else None
