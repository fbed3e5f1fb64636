"""The float operators of ONNX on exact reals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.dialects.exact import exact_windows, reals
from tests.dialects.exact.exact_call import Array, Call, Integers, Operator, along, array_of, each, objects, plain
from tests.dialects.exact.reals import Number

HALF = Fraction(1, 2)


def _unary(function: Callable[[Number], Number]) -> Operator:
    return lambda call: each(function, call.input(0))


def _relu(x: Number) -> Number:
    return x if x > 0 else type(x)(0) if not isinstance(x, reals.Real) else Fraction(0)


def _leaky_relu(call: Call) -> Array:
    alpha = call.real("alpha", 0.01)
    return each(lambda x: x if x >= 0 else x * alpha, call.input(0))


def _thresholded_relu(call: Call) -> Array:
    alpha = call.real("alpha", 1.0)
    return each(lambda x: x if x > alpha else Fraction(0), call.input(0))


def _prelu(call: Call) -> Array:
    return each(lambda x, slope: x if x >= 0 else x * slope, call.input(0), call.input(1))


def _clip(attributes: Mapping[str, Any], x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    least = attributes.get("min", -inf) if low is None else low.reshape(-1)[0]
    most = attributes.get("max", inf) if high is None else high.reshape(-1)[0]

    def clip(v: Number) -> Number:
        v = v if v > least else least
        v = v if v < most else most
        return Fraction(v) if isinstance(v, float) else v

    return each(clip, x)


def _unit_clip(x: Number) -> Number:
    return Fraction(0) if x <= 0 else Fraction(1) if x >= 1 else x


def _hard_sigmoid(call: Call) -> Array:
    alpha, beta = call.real("alpha", 0.2), call.real("beta", 0.5)
    return each(lambda x: _unit_clip(x * alpha + beta), call.input(0))


def _hard_swish(x: Number) -> Number:
    return x * _unit_clip(x * Fraction(1, 6) + HALF)


def _swish(call: Call) -> Array:
    alpha = call.real("alpha", 1.0)
    return each(lambda x: x * reals.sigmoid(x * alpha), call.input(0))


def _elu(call: Call) -> Array:
    alpha = call.real("alpha", 1.0)
    return each(lambda x: x if x >= 0 else (reals.exp(x) - 1) * alpha, call.input(0))


def _selu(call: Call) -> Array:
    alpha = call.real("alpha", 1.67326319217681884765625)
    gamma = call.real("gamma", 1.05070102214813232421875)
    return each(lambda x: gamma * (x if x >= 0 else (reals.exp(x) - 1) * alpha), call.input(0))


def _celu(call: Call) -> Array:
    alpha = call.real("alpha", 1.0)
    return each(lambda x: x if x >= 0 else (reals.exp(x / alpha) - 1) * alpha, call.input(0))


def _gelu(call: Call) -> Array:
    def by_erf(x: Number) -> Number:
        return x * HALF * (1 + reals.erf(x / reals.sqrt(Fraction(2)))) if _known_zero(x) is False else Fraction(0)

    def by_tanh(x: Number) -> Number:
        if _known_zero(x):
            return Fraction(0)
        inner = reals.sqrt(2 / reals.PI) * (x + Fraction("0.044715") * x * x * x)
        return x * HALF * (1 + reals.tanh(inner))

    return each(by_tanh if call.text("approximate", "none") == "tanh" else by_erf, call.input(0))


def _known_zero(x: Number) -> bool:
    return not isinstance(x, reals.Real) and x == 0


def _mish(x: Number) -> Number:
    return Fraction(0) if _known_zero(x) else x * reals.tanh(reals.softplus(x))


def _pow(call: Call) -> Array:
    return each(lambda x, exponent: reals.power(x, Fraction(exponent)), call.input(0), call.input(1))


def _batch_normalization(call: Call) -> Array:
    x = call.input(0)
    scale, bias, mean, variance = (along(call.input(i), 1, x.ndim) for i in range(1, 5))
    epsilon = call.real("epsilon", 1e-5)
    deviation = each(lambda v: reals.sqrt(v + epsilon), variance)
    return each(lambda v, s, b, m, d: (v - m) * s / d + b, x, scale, bias, mean, deviation)


def _cast(call: Call) -> Array | Integers:
    to = call.attributes["to"]
    if to in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return Integers(each(lambda x: x if isinstance(x, reals.Real) else Fraction(x), call.input(0)), to)
    return Integers(each(lambda x: x if isinstance(x, int) else reals.rounded(x, "DOWN"), call.input(0)), to)


def _gemm(call: Call) -> Array:
    a, b = call.input(0), call.input(1)
    a, b = (m.T if call.attributes.get(name, 0) else m for m, name in ((a, "transA"), (b, "transB")))
    result = matmul(a, b) * call.real("alpha", 1.0)
    return result if not call.has(2) else result + call.input(2) * call.real("beta", 1.0)


def matmul(a: Array, b: Array) -> Array:
    """As numpy's matmul, of two dimensions and more."""
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    right = np.broadcast_to(b, (*stack, *b.shape[-2:]))
    result = np.empty((*stack, a.shape[-2], b.shape[-1]), dtype=object)
    for *s, i, j in np.ndindex(result.shape):
        total: Number = Fraction(0)
        for k in range(a.shape[-1]):
            total = total + left[(*s, i, k)] * right[(*s, k, j)]
        result[(*s, i, j)] = total
    return result


def softmax(x: Array, axis: int) -> Array:
    exponentials = each(reals.exp, x)
    total = np.add.reduce(exponentials, axis=axis, keepdims=True)
    return each(lambda e, t: e / t, exponentials, array_of(total))


def _softmax(call: Call) -> Array:
    return softmax(call.input(0), call.attributes.get("axis", -1))


def _place_of(best: Callable[..., Number]) -> Operator:
    def place(call: Call) -> Integers:
        x, axis = call.input(0), call.attributes.get("axis", 0)
        moved = np.moveaxis(x, axis, -1)
        result = np.empty(moved.shape[:-1], dtype=object)
        for index in np.ndindex(result.shape):
            candidates = moved[index].tolist()
            equal = [place for place, value in enumerate(candidates) if value == best(candidates)]
            result[index] = equal[-1 if call.attributes.get("select_last_index", 0) else 0]
        result = np.expand_dims(result, axis) if call.attributes.get("keepdims", 1) else result
        return Integers(result, TensorProto.INT64)

    return place


def _reshape(attributes: Mapping[str, Any], x: Array, shape: Array) -> Array:
    return x.reshape([x.shape[i] if size == 0 else int(size) for i, size in enumerate(shape.tolist())])


def _flatten(attributes: Mapping[str, Any], x: Array) -> Array:
    return x.reshape(int(np.prod(x.shape[: attributes.get("axis", 1)])), -1)


def _axes(call: Call) -> tuple[int, ...]:
    axes = call.input(1).tolist() if call.has(1) else call.attributes["axes"]
    return tuple(int(a) for a in axes)


def _reduce_sum(call: Call) -> Array:
    """Over axes that are given."""
    keepdims = bool(call.attributes.get("keepdims", 1))
    return array_of(np.add.reduce(call.input(0), axis=_axes(call), keepdims=keepdims))


def _reduce_mean(call: Call) -> Array:
    total = _reduce_sum(call)
    return each(lambda v: v * Fraction(total.size, call.input(0).size), total)


def _constant(call: Call) -> Array | Integers:
    from onnx import numpy_helper

    for name, value in call.attributes.items():
        if name == "value":
            return Integers(objects(numpy_helper.to_array(value)), value.data_type)
        if name.startswith("value_float"):
            return Integers(objects(np.asarray(value, np.float32)), TensorProto.FLOAT)
        if name.startswith("value_int"):
            return Integers(objects(np.asarray(value, np.int64)), TensorProto.INT64)
    raise NotImplementedError(list(call.attributes))


def _arithmetic(function: Callable[[Number, Number], Number]) -> Operator:
    return lambda call: each(function, call.input(0), call.input(1))


FUNCTIONS: dict[str, Operator] = {
    "Abs": _unary(abs),
    "Add": _arithmetic(lambda a, b: a + b),
    "ArgMax": _place_of(max),
    "ArgMin": _place_of(min),
    "AveragePool": plain(exact_windows.average_pool),
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Ceil": _unary(lambda x: Fraction(reals.rounded(x, "CEIL"))),
    "Celu": _celu,
    "Clip": plain(_clip),
    "Concat": lambda call: np.concatenate([call.input(i) for i in range(len(call.inputs))], call.attributes["axis"]),
    "Constant": _constant,
    "Conv": plain(exact_windows.conv),
    "Div": _arithmetic(lambda a, b: a * reals.reciprocal(b)),
    "Dropout": lambda call: call.input(0),
    "Elu": _elu,
    "Erf": _unary(reals.erf),
    "Exp": _unary(reals.exp),
    "Flatten": plain(_flatten),
    "Floor": _unary(lambda x: Fraction(reals.rounded(x, "FLOOR"))),
    "Gelu": _gelu,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda call: exact_windows.global_average_pool(call.input(0)),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary(_hard_swish),
    "Identity": lambda call: call.input(0),
    "LeakyRelu": _leaky_relu,
    "Log": _unary(reals.log),
    "MatMul": lambda call: matmul(call.input(0), call.input(1)),
    "Greater": lambda call: Integers(
        each(lambda a, b: int(a > b), call.input(0), call.input(1)), TensorProto.BOOL
    ),
    "Max": _arithmetic(lambda a, b: a if a > b else b),
    "MaxPool": plain(exact_windows.max_pool),
    "Min": _arithmetic(lambda a, b: a if a < b else b),
    "Mish": _unary(_mish),
    "Mul": _arithmetic(lambda a, b: a * b),
    "Neg": _unary(lambda x: -x),
    "PRelu": _prelu,
    "Pow": _pow,
    "Reciprocal": _unary(reals.reciprocal),
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
    "Relu": _unary(_relu),
    "Reshape": plain(_reshape),
    "Resize": lambda call: exact_windows.resize(call.attributes, call.input(0), call.input(2)),
    "Round": _unary(lambda x: Fraction(reals.rounded(x))),
    "Selu": _selu,
    "Sigmoid": _unary(reals.sigmoid),
    "Sign": _unary(lambda x: Fraction(reals.sign(x))),
    "Softmax": _softmax,
    "Softplus": _unary(reals.softplus),
    "Softsign": _unary(lambda x: x / (1 + abs(x))),
    "Sqrt": _unary(reals.sqrt),
    "Squeeze": lambda call: np.squeeze(call.input(0), _axes(call)),
    "Sub": _arithmetic(lambda a, b: a - b),
    "Swish": _swish,
    "Tanh": _unary(reals.tanh),
    "ThresholdedRelu": _thresholded_relu,
    "Transpose": plain(lambda attributes, x: np.transpose(x, attributes.get("perm"))),
    "Unsqueeze": lambda call: np.expand_dims(call.input(0), _axes(call)),
    "Where": lambda call: each(lambda c, a, b: a if c else b, *(call.input(k) for k in range(3))),
}
