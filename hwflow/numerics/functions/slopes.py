"""How far a function moves at most where its argument moves: Lipschitz bounds over intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Piecewise
from hwflow.numerics.functions.power import Pow, Reciprocal, RootMultiply, Sqrt
from hwflow.numerics.functions.smooth import (
    Celu,
    Elu,
    Erf,
    Exp,
    Gelu,
    HardSwish,
    Log,
    Mish,
    Selu,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
)
from hwflow.numerics.interval import Interval, NoSteps

BITS = 64
"""Relative precision of the ends of intervals."""

ONE = Fraction(1)

_GREATEST: dict[type[Elementwise], Fraction] = {
    Erf: Fraction(1129, 1000), Gelu: Fraction(1129, 1000), HardSwish: Fraction(3, 2), Mish: Fraction(109, 100),
    Sigmoid: Fraction(1, 4), Softplus: ONE, Softsign: ONE, Tanh: ONE,
}  # fmt: skip
"""The greatest slope anywhere: 2 / sqrt(pi) < 1.129 of erf; that of gelu is 1.1290 with erf (where x is the root of 2)
and 1.1289 with tanh; that of mish 1.0885."""


def greatest_slope(functions: Iterable[Elementwise], x: Interval) -> Fraction | None:
    """Return a bound of |f(a) - f(b)| / |a - b| over a and b in ``x``, of the composed functions; None if none is known
    (a function jumps, or is steeper than any bound near an end of its domain)."""
    result = ONE
    for function in functions:
        slope = _slope(function, x)
        if slope is None:
            return None
        result *= slope
        try:
            x = function.enclose(x, BITS).limited(BITS)
        except NoSteps:
            return None
    return result


def _slope(function: Elementwise, x: Interval) -> Fraction | None:
    if type(function) in _GREATEST:
        return _GREATEST[type(function)]
    if isinstance(function, Piecewise):
        slopes = [abs(Fraction(multiplier)) for multiplier, _ in function.pieces()[0]]
        return None if any(function.jumps()) else max(slopes)
    if isinstance(function, Elu):
        return max(ONE, abs(Fraction(function.alpha)))
    if isinstance(function, Selu):
        return abs(Fraction(function.gamma)) * max(ONE, abs(Fraction(function.alpha)))
    if isinstance(function, Celu):
        return ONE if function.alpha > 0 else None
    if isinstance(function, RootMultiply):
        return function.root(BITS)[1]
    derivative = _DERIVATIVES.get(type(function))
    return None if derivative is None else _greatest(derivative(function), x)


def _greatest(derivative: Elementwise | tuple[Fraction, Elementwise], x: Interval) -> Fraction | None:
    factor, function = derivative if isinstance(derivative, tuple) else (ONE, derivative)
    try:
        values = function.enclose(x, BITS).limited(BITS)
    except NoSteps:
        return None
    ends = [abs(end) for end in (values.lo, values.hi) if isinstance(end, Fraction)]
    return abs(factor) * max(ends) if len(ends) == 2 else None


def _of_power(exponent: Fraction) -> tuple[Fraction, Elementwise]:
    return exponent, Pow(exponent - 1)


_DERIVATIVES: dict[type[Elementwise], Callable[..., Elementwise | tuple[Fraction, Elementwise]]] = {
    Exp: lambda function: function,
    Log: lambda function: Reciprocal(),
    Reciprocal: lambda function: Pow(Fraction(-2)),
    Sqrt: lambda function: _of_power(Fraction(1, 2)),
    Pow: lambda function: _of_power(Fraction(function.exponent)),
}
