"""Float islands: any elementwise operators in any order and number, between two quantizers."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, log1p, tanh
from typing import Any

import numpy as np

from tests.dialects.nets import Net, Tensor

Function = Callable[[float], float]


def island(net: Net, x: Tensor, most: int = 4, affine_only: bool = False) -> Tensor:
    """``x`` behind up to ``most`` operators."""
    for _ in range(net.choices.integer(0, most)):
        x = net.choices.pick(_AFFINE if affine_only else _ANY)(net, x)
    return x


def _ranged(x: Tensor, name: str, *functions: Function) -> Tensor:
    """The range of the functions' values (one for each channel) where ``x`` lies, by samples."""
    samples = np.linspace(x.low, x.high, 65).tolist()
    values = [f(v) for f in functions for v in samples]
    low, high = min(values), max(values)
    return Tensor(name, x.shape, low, max(high, low + 1e-6), exact=False)


def _numbers(net: Net, x: Tensor, near: float, signed: bool = True) -> list[float]:
    """One number or one per channel, about as large as ``near``: short binary fractions or any float32."""
    count = x.channels if net.choices.chance(2) else 1
    result = []
    for _ in range(count):
        number = near * net.choices.integer(1, 16) / 8
        number = float(2.0 ** round(np.log2(abs(number) + 1e-9))) if net.choices.chance(3) else number
        result.append(float(np.float32(-number if signed and net.choices.chance(3) else number)))
    return result


def _magnitude(x: Tensor) -> float:
    return max(abs(x.low), abs(x.high), 1e-3)


def _arithmetic(op: str) -> Callable[[Net, Tensor], Tensor]:
    def apply(net: Net, x: Tensor) -> Tensor:
        numbers = _numbers(net, x, 1.0 if op in ("Mul", "Div") else _magnitude(x) / 4)
        constant = net.constant(net.spread(x, numbers))
        reverse = op in ("Add", "Mul", "Sub") and net.choices.chance(3)
        name = net.node(op, *((constant, x.name) if reverse else (x.name, constant)))

        def function(c: float) -> Function:
            table: dict[str, Function] = {
                "Add": lambda v: v + c,
                "Mul": lambda v: v * c,
                "Sub": lambda v: c - v if reverse else v - c,
                "Div": lambda v: v / c,
            }
            return table[op]

        return _ranged(x, name, *map(function, numbers))

    return apply


def _batch_normalization(net: Net, x: Tensor) -> Tensor:
    def numbers(near: float, signed: bool = True) -> list[float]:
        result = _numbers(net, x, near, signed)
        return (result * x.channels)[: x.channels]

    gamma, beta, mean = numbers(1.0), numbers(_magnitude(x) / 4), numbers(_magnitude(x) / 4)
    variance = numbers(1.0, signed=False)
    epsilon = net.choices.pick([1e-5, 0.0, 0.001])
    if net.choices.chance(2):  # deviations that are rational, so that ties stay ties
        variance, epsilon = [4.0 if v > 1 else 0.25 for v in variance], 0.0
    parameters = [net.constant(np.float32(values)) for values in (gamma, beta, mean, variance)]
    name = net.node("BatchNormalization", x.name, *parameters, epsilon=epsilon)

    def function(c: int) -> Function:
        return lambda v: (v - mean[c]) * gamma[c] / (variance[c] + epsilon) ** 0.5 + beta[c]

    return _ranged(x, name, *map(function, range(x.channels)))


def _plain(op: str, function: Function, **attributes: Any) -> Callable[[Net, Tensor], Tensor]:
    return lambda net, x: _ranged(x, net.node(op, x.name, **attributes), function)


def _leaky_relu(net: Net, x: Tensor) -> Tensor:
    alpha = net.choices.pick([0.125, 0.01, 0.5, -0.25, 2.0])
    return _ranged(x, net.node("LeakyRelu", x.name, alpha=alpha), lambda v: v if v >= 0 else alpha * v)


def _prelu(net: Net, x: Tensor) -> Tensor:
    slopes = _numbers(net, x, 0.25)
    array = np.asarray(slopes, np.float32)
    array = array.reshape(-1, *[1] * (len(x.shape) - 2)) if array.size > 1 else array.reshape(1)
    name = net.node("PRelu", x.name, net.constant(array))

    def function(s: float) -> Function:
        return lambda v: v if v >= 0 else s * v

    return _ranged(x, name, *map(function, slopes))


def clip(net: Net, x: Tensor, low: float | None, high: float | None) -> Tensor:
    """Clip; the bounds are inputs, one may be left out."""
    bounds = ["" if v is None else net.constant(np.float32(v)) for v in (low, high)]
    name = net.node("Clip", x.name, *(bounds if bounds[1] else bounds[:1]))
    least, most = -np.inf if low is None else low, np.inf if high is None else high
    result = _ranged(x, name, lambda v: min(max(v, least), most))
    return result


def _clip(net: Net, x: Tensor) -> Tensor:
    low = x.low + (x.high - x.low) * net.choices.integer(0, 4) / 8
    high = x.high - (x.high - x.low) * net.choices.integer(0, 3) / 8
    return clip(net, x, *net.choices.pick([(low, high), (low, None), (None, high), (0.0, 6.0)]))


def _hard_sigmoid(net: Net, x: Tensor) -> Tensor:
    alpha, beta = net.choices.pick([(0.2, 0.5), (0.125, 0.5), (0.25, -1.0), (-0.25, 0.5)])
    name = net.node("HardSigmoid", x.name, alpha=alpha, beta=beta)
    return _ranged(x, name, lambda v: min(1.0, max(0.0, alpha * v + beta)))


def _sigmoid_of(v: float) -> float:
    return 1 / (1 + exp(-v)) if v > -700 else 0.0


def _elu(net: Net, x: Tensor) -> Tensor:
    alpha = net.choices.pick([1.0, 0.5, -0.5])
    name = net.node("Elu", x.name, alpha=alpha)
    return _ranged(x, name, lambda v: v if v >= 0 else alpha * (exp(v) - 1))


def _gelu(net: Net, x: Tensor) -> Tensor:
    """The operator of opset 20, or as exporters before it wrote it: x * 0.5 * (1 + Erf(x / sqrt(2)))."""
    def function(v: float) -> float:
        return v / 2 * (1 + erf(v / 2**0.5))

    if net.opset >= 20 and not net.choices.chance(3):
        attributes = {"approximate": "tanh"} if net.choices.chance(2) else {}
        return _ranged(x, net.node("Gelu", x.name, **attributes), function)
    inner = net.node("Erf", net.node("Div", x.name, net.constant(np.float32(2**0.5))))
    half = net.node("Mul", x.name, net.constant(np.float32(0.5)))
    return _ranged(x, net.node("Mul", half, net.node("Add", inner, net.constant(np.float32(1)))), function)


def _hard_swish(net: Net, x: Tensor) -> Tensor:
    def function(v: float) -> float:
        return v * min(1.0, max(0.0, v / 6 + 0.5))

    if net.opset >= 14:
        return _ranged(x, net.node("HardSwish", x.name), function)
    return _ranged(x, net.node("Mul", x.name, net.node("HardSigmoid", x.name, alpha=0.125)), function)


def _silu(net: Net, x: Tensor) -> Tensor:
    name = net.node("Mul", x.name, net.node("Sigmoid", x.name))
    return _ranged(x, name, lambda v: v * _sigmoid_of(v))


def _sqrt(net: Net, x: Tensor) -> Tensor:
    x = clip(net, x, 0.0, None) if net.choices.chance(2) else _ranged(x, net.node("Abs", x.name), abs)
    return _ranged(x, net.node("Sqrt", x.name), lambda v: v**0.5)


def _reciprocal(net: Net, x: Tensor) -> Tensor:
    x = clip(net, x, net.choices.pick([0.5, 0.125, 1.0]), None)
    return _ranged(x, net.node("Reciprocal", x.name), lambda v: 1 / v)


def _pow(net: Net, x: Tensor) -> Tensor:
    exponent = net.choices.pick([2.0, 3.0, 1.0, 0.5, 1.5, -1.0])
    if exponent not in (1.0, 2.0, 3.0):
        x = clip(net, x, 0.25, None)
    if _magnitude(x) > 1e4:
        return x
    return _ranged(x, net.node("Pow", x.name, net.constant(np.float32(exponent))), lambda v: v**exponent)


def _cast(net: Net, x: Tensor) -> Tensor:
    return _ranged(x, net.node("Cast", x.name, to=1), lambda v: v)


_AFFINE = (
    _arithmetic("Mul"), _arithmetic("Add"), _batch_normalization, _arithmetic("Sub"), _arithmetic("Div"),
    _plain("Neg", lambda v: -v), _plain("Identity", lambda v: v), _plain("Dropout", lambda v: v), _cast,
)

_ANY = (
    *_AFFINE,
    _plain("Relu", lambda v: max(v, 0.0)),
    _leaky_relu,
    _prelu,
    _clip,
    _plain("Sigmoid", _sigmoid_of),
    _plain("Tanh", tanh),
    _hard_sigmoid,
    _hard_swish,
    _elu,
    _gelu,
    _plain("Softplus", lambda v: max(v, 0.0) + log1p(exp(-abs(v)))),
    _plain("Erf", erf),
    _sqrt,
    _reciprocal,
    _pow,
    _plain("Round", lambda v: float(round(v))),
    _plain("Floor", lambda v: float(np.floor(v))),
    _plain("Ceil", lambda v: float(np.ceil(v))),
    _plain("Abs", abs),
    _plain("Sign", lambda v: float(np.sign(v))),
    _silu,
)
