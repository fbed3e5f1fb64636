"""Error bounds of elementwise functions f: |y - f(X)| <= |y - f(x)| + |f(x) - f(X)|, X exact and x computed.

The first part is the evaluator's own rounding. The error of numpy's exp, expm1, log, tanh and power is assumed to be at
most :data:`LIBRARY` roundings u (half a unit in the last place); the libraries that numpy builds on (glibc's libm; SVML
and numpy's own vector code) document 4 ulp or less, and tests compare the bounds with mpmath. Square roots, sums,
products and quotients are correctly rounded (IEEE 754). The second part is the change of f when x changes by E(x): the
difference between the ends of the interval if f is non-decreasing (evaluated in float64, whose error :data:`SLACK`
covers), else E(x) times the greatest slope.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwflow.operators.float_errors.step_errors import ErrorRule, Errors, NoBound, Step, magnitude

LIBRARY = 8
"""The error of numpy's transcendental functions in roundings u: 4 ulp."""

SLACK = 2.0**-44
"""The relative error of the functions of this module, evaluated in float64."""

Function = Callable[[Errors], Errors]


def _between(function: Function, step: Step) -> Errors:
    """Return the greatest change of a non-decreasing function; infinity where it is undefined in between."""
    x, error = step.value(0).astype(np.float64), step.error(0)
    with np.errstate(all="ignore"):
        least, middle, most = (function(at) for at in (x - error, x, x + error))
        moved = np.maximum(most - middle, middle - least)
        slack = SLACK * np.maximum(np.abs(least), np.abs(most))
        result: Errors = np.where(error > 0, np.where(np.isfinite(moved), moved, np.inf) + slack, 0.0)
    return np.where(np.isnan(result), np.inf, result)


def _rule(function: Function, terms: Callable[[Errors, Errors], Errors], slope: float | None = None) -> ErrorRule:
    """Return the rule of a function that is non-decreasing, or whose slope is at most ``slope``. ``terms``, of x and
    |y|, times u is the evaluator's own rounding."""

    def rule(step: Step) -> Errors:
        x, y = step.value(0).astype(np.float64), magnitude(step.output)
        with np.errstate(all="ignore"):
            own = step.unit * terms(x, y) + 2 * step.tiny
        return own + (_between(function, step) if slope is None else slope * step.error(0))

    return rule


def _sigmoid(x: Errors) -> Errors:
    small = np.exp(-np.abs(x))
    result: Errors = np.where(x < 0, small, 1.0) / (1.0 + small)
    return result


def _softplus(x: Errors) -> Errors:
    result: Errors = np.logaddexp(0.0, x)
    return result


def _softsign(x: Errors) -> Errors:
    result: Errors = x / (1 + np.abs(x))
    return result


def _tanh_slope(z: Errors) -> Errors:
    """Return an upper bound of 1 - tanh(z)**2, also for z with a relative error of 2**-8."""
    result: Errors = np.minimum(1.0, 4 * np.exp(-2 * np.abs(z) * (1 - 2.0**-8)))
    return result


def _erf_slope(z: Errors) -> Errors:
    """Return an upper bound of 2 / sqrt(pi) * exp(-z**2), also for z with a relative error of 2**-8."""
    result: Errors = 1.13 * np.exp(-((z * (1 - 2.0**-8)) ** 2))
    return result


_sigmoid_errors = _rule(_sigmoid, lambda x, y: (2 * LIBRARY + 4) * y)


def sigmoid(step: Step) -> Errors:
    """Bound Sigmoid: e = exp(-|x|) errs by LIBRARY u e; 1 + e by that and u; the quotient by both and one more.
    onnxruntime takes small results as 1 less the others."""
    return np.asarray(_sigmoid_errors(step)) + (2 * step.unit if step.runtime else 0.0)


tanh = _rule(np.tanh, lambda x, y: (LIBRARY + 1) * y)
exp = _rule(np.exp, lambda x, y: (LIBRARY + 1) * y)
log = _rule(np.log, lambda x, y: (LIBRARY + 1) * y)
square_root = _rule(lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0), lambda x, y: 2 * y)

sine = _rule(lambda x: x, lambda x, y: (LIBRARY + 1) * y, slope=1.0)
"""Of the sine and the cosine."""

arc_sine = _rule(np.arcsin, lambda x, y: (LIBRARY + 1) * y)
arc_tangent = _rule(np.arctan, lambda x, y: (LIBRARY + 1) * y)
hyperbolic_sine = _rule(np.sinh, lambda x, y: (LIBRARY + 1) * y)
arsinh = _rule(np.arcsinh, lambda x, y: (LIBRARY + 1) * y)
arcosh = _rule(np.arccosh, lambda x, y: (LIBRARY + 1) * y)
artanh = _rule(np.arctanh, lambda x, y: (LIBRARY + 1) * y)
arc_cosine = _rule(lambda x: -np.arccos(x), lambda x, y: (LIBRARY + 1) * y)
"""It falls: its change is that of its negative."""


def hyperbolic_cosine(step: Step) -> Errors:
    """Bound cosh: it changes most away from 0."""
    x, error = magnitude(step.value(0)), step.error(0)
    with np.errstate(all="ignore"):
        most = np.cosh(x + error)
        moved = np.where(error > 0, np.where(np.isfinite(most), most - np.cosh(x) + SLACK * most, np.inf), 0.0)
    return moved + step.rounded(LIBRARY + 1)


def tangent(step: Step) -> Errors:
    """Bound tan: infinity where a quarter turn may lie in between, at which it has no value."""
    x, error = step.value(0).astype(np.float64), step.error(0)
    turns = [
        np.floor(end / np.pi + 0.5 + sign * 2.0**-40 * (1 + np.abs(x)))
        for end, sign in ((x - error, -1), (x + error, 1))
    ]
    moved = _between(np.tan, step)
    return np.where(error > 0, np.where(turns[0] == turns[1], moved, np.inf), 0.0) + step.rounded(LIBRARY + 1)


erf = _rule(lambda x: x, lambda x, y: 2 * y, slope=1.13)
"""Computed in float64, rounded once; the slope is at most 2 / sqrt(pi)."""

softplus = _rule(_softplus, lambda x, y: (2 * LIBRARY + 8) * y)
"""logaddexp(0, x) = max(0, x) + log1p(exp(-|x|)), each part within 2 LIBRARY u of itself."""

softsign = _rule(_softsign, lambda x, y: 4 * y)


def _mish_terms(x: Errors, y: Errors) -> Errors:
    """Bound x tanh(softplus(x)): an error of softplus moves tanh by its slope."""
    soft = _softplus(x)
    return np.abs(x) * (2 * LIBRARY + 8) * soft * _tanh_slope(soft) + (LIBRARY + 3) * y


mish = _rule(lambda x: x, _mish_terms, slope=1.1)
"""The slope of x tanh(softplus(x)) lies between -0.12 and 1.09."""


def reciprocal(step: Step) -> Errors:
    """Bound 1 / x: E(x) / (|x| (|x| - E(x))), infinity where x may be 0."""
    x, error = magnitude(step.value(0)), step.error(0)
    with np.errstate(all="ignore"):
        moved = np.where(x > error, error / (x * (x - error)), np.inf)
    return np.where(error > 0, moved, 0.0) + step.rounded()


def leaky_relu(step: Step) -> Errors:
    """Bound LeakyRelu: the product of alpha and x is rounded; the slope is 1 or |alpha|, the greater where x may have
    either sign."""
    return _two_slopes(step, np.full((), step.attribute("alpha", 0.01)), np.zeros(()))


def prelu(step: Step) -> Errors:
    """Bound as LeakyRelu, with a slope per element that may have an error itself."""
    slope = step.value(1).astype(np.float64)
    try:
        np.broadcast_shapes(slope.shape, step.value(0).shape)
    except ValueError:
        raise NoBound from None
    return _two_slopes(step, slope, magnitude(step.value(0)) * step.error(1) + step.error(0) * step.error(1))


def _two_slopes(step: Step, slope: Errors, more: Errors) -> Errors:
    x, error = step.value(0).astype(np.float64), step.error(0)
    greatest = np.where(x - error >= 0, 1.0, np.where(x + error < 0, np.abs(slope), np.maximum(1.0, np.abs(slope))))
    negative = np.where(x - error < 0, step.rounded(2) + more, 0.0)
    return greatest * error + negative


def thresholded_relu(step: Step) -> Errors:
    """Bound x where it is above alpha, else 0; the bound includes the jump where either is possible."""
    x, error = step.value(0).astype(np.float64), step.error(0)
    alpha = step.attribute("alpha", 1.0)
    either = np.abs(x - alpha) <= error
    return np.where(either & (error > 0), np.abs(x) + error, np.where(x > alpha, error, 0.0))


def hard_sigmoid(step: Step) -> Errors:
    """Bound max(0, min(1, alpha x + beta)): product and sum are rounded; the clipped part has no error."""
    alpha, beta = step.attribute("alpha", 0.2), step.attribute("beta", 0.5)
    return _hard(step, alpha, beta)


def _hard(step: Step, alpha: float, beta: float) -> Errors:
    x = step.value(0).astype(np.float64)
    product = alpha * x
    inside = product + beta
    error = abs(alpha) * step.error(0) + step.unit * (2 * np.abs(product) + np.abs(inside)) + 2 * step.tiny
    error = error * (1 + 2.0**-9) + step.unit  # the sum is computed, and the clipping bound may be rounded
    least, middle, most = (np.clip(at, 0.0, 1.0) for at in (inside - error, inside, inside + error))
    result: Errors = np.maximum(most - middle, middle - least)
    return result


def hard_swish(step: Step) -> Errors:
    """Bound x max(0, min(1, x / 6 + 1 / 2)): |x| times the second factor's error, E(x) times the factor, and their
    product; 1/6 is rounded in the second factor."""
    x = magnitude(step.value(0))
    factor = np.clip(step.value(0).astype(np.float64) / 6 + 0.5, 0.0, 1.0)
    error = _hard(step, 1 / 6, 0.5)
    return x * error + step.error(0) * (factor + error) + step.rounded()


def elu(step: Step) -> Errors:
    """Bound alpha expm1(x) below 0; also as alpha (exp(x) - 1), whose difference cancels: LIBRARY u exp(x) more."""
    alpha = abs(step.attribute("alpha", 1.0))
    return _elu(step, alpha, 1.0, 1.0)


def selu(step: Step) -> Errors:
    alpha = abs(step.attribute("alpha", 1.6732632))
    return _elu(step, alpha, abs(step.attribute("gamma", 1.050701)), 1.0)


def celu(step: Step) -> Errors:
    """Bound max(0, x) + min(0, alpha expm1(x / alpha)): the quotient is rounded, which moves expm1 by u |x / alpha|
    exp."""
    alpha = abs(step.attribute("alpha", 1.0))
    return _elu(step, alpha, 1.0, alpha)


def _elu(step: Step, alpha: float, gamma: float, divisor: float) -> Errors:
    """Bound gamma x at and above 0, gamma alpha expm1(x / divisor) below; the slope is at most gamma max(1, alpha /
    divisor)."""
    x, error = step.value(0).astype(np.float64), step.error(0)
    power = np.exp(np.minimum(0.0, x) / divisor)
    below = alpha * gamma * power * (LIBRARY + 1 + 2 * np.abs(np.minimum(0.0, x)) / divisor)
    own = np.where(x - error < 0, step.unit * below, 0.0) + step.rounded(LIBRARY + 4)
    return gamma * max(1.0, alpha / divisor) * error + own


def gelu(step: Step) -> Errors:
    """Bound x (1 + erf(x / sqrt 2)) / 2, or with tanh(sqrt(2 / pi) (x + 0.044715 x**3)) in erf's place. The argument z
    errs by 4 u|z|, in the second form by 20 (a power and two constants), which moves erf or tanh by its slope; 1 + that
    cancels below 0, so its error is absolute. The slope of the whole lies between -0.13 and 1.13."""
    x, u = step.value(0).astype(np.float64), step.unit
    approximate = step.attributes.get("approximate", b"none") in (b"tanh", "tanh")
    if approximate:
        z = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        part, slope, roundings = np.abs(np.tanh(z)), _tanh_slope(z), 20
    else:
        z = x / np.sqrt(2)
        part, slope, roundings = np.minimum(1.0, 1.13 * np.abs(z)), _erf_slope(z), 4
    inner = u * (roundings * np.abs(z) * slope + (LIBRARY + 1) * part) + u * 2
    result: Errors = np.abs(x) / 2 * inner + step.rounded(4) + 1.13 * step.error(0)
    return result


def power(step: Step) -> Errors:
    """Bound x**p: numpy's power, and |p| |x|**(p - 1) E at the end of [|x| - E, |x| + E] where it is greatest. Unless p
    is an integer, x must not be negative. An error of p is a relative one of e to the power of it times |log x|; x is
    then positive."""
    p = step.value(1).astype(np.float64)
    x, error = step.value(0).astype(np.float64), step.error(0)
    whole = p == np.rint(p)
    size = np.abs(x)
    with np.errstate(all="ignore"):
        low, high = np.maximum(size - error, 0.0), size + error
        slope = np.abs(p) * np.maximum(low ** (p - 1), high ** (p - 1))
        moved = np.where(p == 0, 0.0, slope * error)
        # a root's slope at 0 is infinite, but its change is not
        root = (p > 0) & (p < 1)
        moved = np.where(root, np.maximum(high**p - size**p, size**p - low**p) * (1 + SLACK) + SLACK * high**p, moved)
    moved = np.where(error > 0, moved, 0.0)
    defined = whole | (x - error >= 0) | ((x >= 0) & (error == 0))
    inexact = np.broadcast_to(step.error(1), moved.shape)
    if (inexact > 0).any():
        defined &= (inexact == 0) | (x - error > 0)
        with np.errstate(all="ignore"):
            steep = np.maximum(np.abs(np.log(low)), np.abs(np.log(high)))
            relative = np.where(inexact > 0, np.expm1(inexact * steep * (1 + SLACK)), 0.0)
            moved = moved + (np.abs(step.output) * (1 + SLACK) + moved) * relative
    return np.where(defined & ~np.isnan(moved), moved, np.inf) + step.rounded(LIBRARY + 1)


def _exponents(step: Step, axis: int | tuple[int, ...]) -> tuple[Errors, int]:
    """Return the relative error of each element of a softmax along ``axis``, and the number of its summands.

    The difference to the greatest is rounded, and has the errors of its operands; exp, sum (of n) and quotient follow.
    An error d of an exponent is a relative error of exp(d) - 1 of the power, and of the sum at most that of the
    greatest d.
    """
    x, error = step.value(0).astype(np.float64), step.error(0)
    distance = np.abs(x - x.max(axis=axis, keepdims=True))
    d = error + step.unit * distance
    terms = int(np.prod([x.shape[a] for a in np.atleast_1d(axis)], dtype=np.int64))
    with np.errstate(over="ignore"):
        relative = np.expm1(d + d.max(axis=axis, keepdims=True)) + (2 * LIBRARY + 2 * terms + 4) * step.unit
    return relative, terms


def _softmax_axes(step: Step) -> int | tuple[int, ...]:
    rank = step.value(0).ndim
    if step.region.version >= 13:
        return int(step.attributes.get("axis", -1)) % rank
    return tuple(range(int(step.attributes.get("axis", 1)) % rank, rank))


def softmax(step: Step) -> Errors:
    """Bound the shares p / S of a row's powers p = exp(x - m), m its greatest element, S their sum.

    With the operands' errors E, m is between the greatest x - E and the greatest x + E; an exponent errs by that, E and
    u|x - m|, and a power of a number far below the others by next to nothing, whatever E is (of masked elements). S
    errs by the sum of the powers' errors. Exp, sum and quotient round. No share is below 0 or above 1.
    """
    axes = _softmax_axes(step)
    x, error = step.value(0).astype(np.float64), step.error(0)
    error = np.where(np.isneginf(x) & np.isfinite(error), 0.0, error)
    terms = int(np.prod([x.shape[a] for a in np.atleast_1d(axes)], dtype=np.int64))
    with np.errstate(over="ignore", invalid="ignore"):
        greatest = x.max(axis=axes, keepdims=True)
        low, high = ((x + sign * error).max(axis=axes, keepdims=True) for sign in (-1, 1))
        distance = x - greatest
        moved = error + np.maximum(high - greatest, greatest - low) + step.unit * np.abs(distance)
        power = np.exp(distance)
        rounded = (2 * LIBRARY + 2 * terms + 4) * step.unit
        change = np.where(np.isneginf(x), 0.0, np.exp(np.minimum(distance + moved, 700.0)) - power)
        total = power.sum(axis=axes, keepdims=True)
        of_sum = change.sum(axis=axes, keepdims=True) / total
        share = power / total
        result = 1.25 * (change / total + share * (of_sum + rounded)) + (terms + 2) * step.tiny
        return np.where(of_sum + rounded < 0.2, np.minimum(result, 1.0), np.where(np.isnan(share), np.nan, 1.0))


def log_softmax(step: Step) -> Errors:
    """Bound log(softmax): its relative error r moves the logarithm by r / (1 - r); where softmax is subnormal, no
    bound."""
    relative, _ = _exponents(step, _softmax_axes(step))
    y = step.output.astype(np.float64)
    with np.errstate(all="ignore"):
        moved = np.where(relative * 1.25 < 0.5, relative * 2.5, np.inf)
    normal = y > np.log(step.tiny) + 2
    return np.where(normal, moved, np.inf) + step.rounded(LIBRARY + 1)
