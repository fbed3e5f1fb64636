"""Reals that no integers carry exactly, in fixed point: tables of functions, quotients and roots of streams.

Each is rounded to as many bits as :class:`hwflow.frontend.approximation_bits.Precision` says, and its error goes on
with the integers' bound (:mod:`hwflow.frontend.error_bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from hwflow.frontend.approximation_bits import bits_above
from hwflow.frontend.context import Lowering, Refusal, approximated, refuse, require_behind
from hwflow.frontend.error_bounds import ONE, ZERO, Bound, added
from hwflow.frontend.facts import UNLIMITED, Limits
from hwflow.frontend.views import Reals, as_array, compact, fractions, uniform
from hwflow.ir.graph import Fractions, Value
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Magnitude, Simple, Times
from hwflow.ir.node_attributes import (
    ElementwiseAttributes,
    ProductAttributes,
    QuotientAttributes,
    RequantizeAttributes,
    RootAttributes,
)
from hwflow.numerics.functions.combination import Combination
from hwflow.numerics.functions.function import Elementwise, enclose
from hwflow.numerics.functions.piecewise import Abs, Affine, Clip, Relu
from hwflow.numerics.functions.power import Pow, Reciprocal, RootMultiply, Sqrt
from hwflow.numerics.functions.smooth import Exp, Log, Tanh
from hwflow.numerics.interval import Interval as RealInterval
from hwflow.numerics.interval import NoSteps
from hwflow.numerics.requantizers.stages import StepStage
from hwflow.numerics.requantizers.step_function import StepFunction
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.approximations.real_powers import powered
from hwflow.operators.elementwise.clamped import applied, clamped
from hwflow.operators.elementwise.lattice import MAX_POINTS, plain
from hwflow.operators.moves.channels import Channels
from hwflow.operators.norms.based import MOST_BITS, based
from hwflow.operators.norms.exponentials import exponentials
from hwflow.operators.norms.logarithms import logarithm
from hwflow.types import Interval

_SCALE_BITS = 96
"""Relative precision of a scale that is a root."""

_HALF = Fraction(1, 2)


def operand(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view`` without functions, exactly if possible, else approximated."""
    if not view.functions:
        return view
    key = (view.value, view.shape, *map(id, (view.scale, view.zero_point, *view.functions)))
    if key not in state.evaluated:  # with the view itself, so that its arrays stay alive
        state.evaluated[key] = view, _operand(state, node, view)
    return state.evaluated[key][1]


def _operand(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    if view.value in state.facts.zeros and _are_exponentials(view):
        return exponentials(state, node, view)
    try:
        found = plain(state, node, view)
        if len(view.functions) == 1:
            base, facts = replace(view, functions=()), state.facts
            if _squares(view.functions[0]):
                facts.squares[found.value] = found, base
            elif all(isinstance(f, Abs) for f in view.functions[0].reshape(-1)):
                facts.magnitudes[found.value] = found, base
        return found
    except Refusal as refusal:
        if len(view.functions) == 1 and _squares(view.functions[0]):
            return square(state, node, replace(view, functions=()))
        if node.name in state.at_end:
            raise
        ways = (tabulated, _evaluated) if view.low is not None else (_evaluated, tabulated)
        rounded = ways[0](state, node, view) or ways[1](state, node, view)
        if rounded is None:
            raise refusal from None
        if all(isinstance(f, Exp) for f in view.functions[-1].reshape(-1)):
            state.facts.powers[rounded.value] = rounded, replace(view, functions=view.functions[:-1])
        return rounded


def _are_exponentials(view: Reals) -> bool:
    """Tell whether ``view`` is nothing but exponentials of multiples of its integers."""
    (functions, *more) = view.functions
    return (
        not more and uniform(view.zero_point) == 0 and all(s < 0 for s in view.scale.reshape(-1))
        and all(isinstance(f, Exp) for f in functions.reshape(-1))
    )


def _squares(functions: Fractions) -> bool:
    """Tell whether functions square their arguments."""
    return all(
        (isinstance(f, Pow) and f.exponent == 2) or (isinstance(f, Combination) and f.op == "mul"
        and not f.left and not f.right) for f in functions.reshape(-1)
    )


def tabulated(state: Lowering, node: OnnxNode, view: Reals) -> Reals | None:
    """Return the functions of the integers ``low`` to ``high`` of ``view`` in fixed point; None where there are too
    many or a function is undefined."""
    before = state.bound(view.value)
    if view.low is None and before.interval is not None:
        view = replace(view, low=before.interval.lo, high=before.interval.hi)
    if view.low is None or view.high is None or view.high - view.low >= MAX_POINTS or before.errors:
        return None
    name = state.approximations.fresh(node.name)
    bits = min(state.precision.of(name), MOST_BITS)
    channels = Channels(view.shape, view.scale, view.zero_point, *view.functions)
    columns = list(zip(*(channels.column(v) for v in (view.scale, view.zero_point, *view.functions)), strict=True))
    try:
        known = {key: _values(view.low, view.high, key, bits) for key in dict.fromkeys(columns)}
    except NoSteps:
        return None
    unit, tables, error = fixed_point(known, bits)
    stages = {key: (StepStage(StepFunction.of_table(view.low, table)),) for key, table in tables.items()}
    value = channels.add(
        state, node, [view.value], lambda axis: RequantizeAttributes(axis, tuple(stages[key] for key in columns)),
        view.nodes, origin="",
    )
    state.bounds[value] = replace(state.bounds[value], errors={name: error})
    if all(low >= 0 for values in known.values() for low, _ in values) and view.low <= 0 <= view.high:
        axes = state.facts.zeros.get(view.value, ())
        at_zero = min(values[-view.low][0] for values in known.values()) if axes else ZERO
        state.facts.floors[value] = axes, at_zero
    found = _carried(view, node, value, fractions(unit))
    if len(view.functions) == 1 and all(isinstance(f, Exp) for f in view.functions[0].reshape(-1)):
        state.facts.powers[value] = found, replace(view, functions=())
    return found


_Enclosed = list[tuple[Fraction, Fraction]]
"""A lower and an upper bound of each value of a table."""


def fixed_point(
    known: Mapping[tuple[Any, ...], _Enclosed], bits: int
) -> tuple[Fraction, dict[tuple[Any, ...], list[int]], Fraction]:
    """Round tables of values to one unit, of which the greatest value has ``bits`` bits. Return the unit, the integers
    and by how much, in units, they may be off: half, and what the enclosures leave open, rounded up."""
    every = [ends for values in known.values() for ends in values]
    unit = Fraction(2) ** (bits_above(max(max(-low, high) for low, high in every)) - bits)
    wide = max(high - low for low, high in every) / unit
    tables = {key: [round(low / unit) for low, _ in values] for key, values in known.items()}
    return unit, tables, _HALF + Fraction(ceil(wide * _FINE), _FINE)


_FINE = 1 << 30


def _values(low: int, high: int, column: tuple[Any, ...], bits: int) -> _Enclosed:
    """Enclose the functions' values for the integers ``low`` to ``high``; parts that nearly cancel leave less than
    ``bits`` bits."""
    scale, zero_point, *functions = column
    chain: list[Elementwise] = [f for f in functions if f is not None]
    result = []
    for q in range(low, high + 1):
        value = enclose(chain, RealInterval.point(scale * (q - zero_point)), bits + 32)
        if not (isinstance(value.lo, Fraction) and isinstance(value.hi, Fraction)):
            raise NoSteps("be at most 2**16384 in magnitude, but a value is not")
        result.append((value.lo, value.hi))
    return result


def _carried(view: Reals, node: OnnxNode, value: Value, scale: Fractions) -> Reals:
    """Return the approximated result of ``node``, with which the host would continue from the anchor of ``view``."""
    after = tuple(dict.fromkeys((*view.after, node.name)))
    return Reals(value, view.shape, scale, fractions(0), view.anchor, after=after)


def quotient(
    state: Lowering, node: OnnxNode, dividend: Reals, divisor: Reals, limits: Limits = UNLIMITED
) -> Reals:
    """Divide two streams of one shape without functions. ``limits``: facts about them that intervals do not show. The
    quotient is 0 where the dividend is, if a divisor of 0 is possible there alone (``nonzero``)."""
    require_behind(
        state, node, "stream-division",
        "the divisor must be a constant, not computed at run time, where no quantizer says how precise the quotient "
        "must be", "quantize the quotient, or leave it to the host",
    )
    dividend, divisor = based(state, node, dividend), based(state, node, divisor)
    dividend, divisor = _signed(state, node, dividend, _positive(state, node, divisor), limits)
    a, b = state.bound(dividend.value), state.bound(divisor.value)
    assert a.interval is not None and b.interval is not None
    scales = as_array(abs(divisor.scale)).reshape(-1)
    least, most = limits.least, limits.most
    if limits.nonzero is not None and not a.errors:
        least = limits.nonzero if least is None else max(least, limits.nonzero)
        if b.interval.lo <= b.error:
            value = applied(state, node, divisor.value, MAXIMUM, (None, 1), divisor.nodes)
            divisor = replace(divisor, value=value, nodes=())
    smallest = max(b.interval.lo - b.error, ZERO if least is None else least / max(scales))
    if smallest - b.error <= 0:
        raise refuse(
            node, "divisor-zero", "the divisor must be known to differ from 0, not lie in "
            f"[{float(min(scales) * b.interval.lo):.3g}, {float(max(scales) * b.interval.hi):.3g}]",
            "add a positive epsilon to it, subtract the maximum before Exp, or quantize the divisor's Reciprocal",
        )
    name = state.approximations.fresh(node.name)
    size = Fraction(max(abs(a.interval.lo), abs(a.interval.hi)))
    greatest = size / (smallest - b.error)
    if most is not None:
        unit = min(abs(x) for x in as_array(dividend.scale / divisor.scale).reshape(-1) if x)
        if not a.errors:  # a quotient of 0 is exact, another one has a dividend of at least 1
            smallest = max(smallest, unit / most)
        greatest = min(greatest, (most / unit * smallest + a.error) / (smallest - b.error))
    fraction = max(0, min(state.precision.of(name), MOST_BITS) - bits_above(greatest))
    limit = greatest * (1 << fraction)
    attributes = QuotientAttributes(fraction, max(1, int(limit).bit_length()))
    factor = Fraction(2 << fraction)  # of the result's unit
    errors = added(a.times(factor / smallest), b.times(greatest * factor / smallest), {name: ONE})
    end = int(2 * limit) + 1
    start = -end if a.interval.lo < 0 else 2 * int(Fraction(a.interval.lo << fraction, b.interval.hi))
    value = state.add(
        node, [dividend.value, divisor.value], attributes, dividend.nodes + divisor.nodes, origin="",
        bound=Bound(Interval(start, end), errors),
    )
    return _carried(dividend, node, value, compact(as_array(dividend.scale / divisor.scale / factor)))


def _positive(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return a divisor whose integers are positive: negated where they are all negative."""
    bound = state.bound(view.value)
    assert bound.interval is not None
    if bound.interval.hi >= 0:
        return view
    value = applied(state, node, view.value, Times(-1), (None,), view.nodes)
    return replace(view, value=value, scale=as_array(-view.scale), nodes=())


def _signed(
    state: Lowering, node: OnnxNode, dividend: Reals, divisor: Reals, limits: Limits
) -> tuple[Reals, Reals]:
    """Return dividend and divisor, or, where the divisor has both signs and is never 0, its magnitude and the dividend
    with its sign."""
    bound = state.bound(divisor.value)
    assert bound.interval is not None
    steepest = max(abs(s) for s in divisor.scale.reshape(-1))
    if bound.interval.lo >= 0 or limits.least is None or limits.least <= bound.error * steepest:
        return dividend, divisor
    size = applied(state, node, divisor.value, Magnitude(), (None,), divisor.nodes)
    size = applied(state, node, size, MAXIMUM, (None, 1), ())
    return _of_sign(state, node, divisor.value, dividend), replace(divisor, value=size, nodes=())


def _of_sign(state: Lowering, node: OnnxNode, sign: Value, view: Reals) -> Reals:
    """Return ``view``, whose zero point is 0, negated where ``sign`` is negative."""
    below = state.add(
        node, [sign], ElementwiseAttributes(Simple("less"), (None, 0), None), origin="", bound=Bound(Interval(0, 1))
    )
    opposite = applied(state, node, view.value, Times(-1), (None,), ())
    value = state.add(
        node, [below, opposite, view.value], ElementwiseAttributes(Simple("where"), (None, None, None), None),
        view.nodes, origin="",
    )
    return replace(view, value=value, nodes=(), low=None, high=None)


def root(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Take the square root of a stream without functions that is not negative."""
    bound = state.bound(view.value)
    zero, scale = uniform(view.zero_point), uniform(view.scale)
    if zero is None or scale is None or scale <= 0 or bound.interval is None:
        view = based(state, node, view)
        bound, zero = state.bound(view.value), ZERO
        if any(s <= 0 for s in view.scale.reshape(-1)):
            raise refuse(node, "root-sign", "the scales of a root's input must be positive", "quantize it before")
    assert bound.interval is not None and zero is not None
    smallest, largest = bound.interval.lo - zero, bound.interval.hi - zero
    if smallest < 0:
        raise refuse(
            node, "root-sign", "the input of a root must be known not to be negative, not down to "
            f"{float(smallest * max(view.scale.reshape(-1))):.3g}", "add an epsilon to it, or put a Relu before it",
        )
    name = state.approximations.fresh(node.name)
    bits = min(state.precision.of(name), MOST_BITS)
    fraction = max(0, bits - (bits_above(Fraction(largest)) + 1) // 2)
    offset = -zero * (1 << 2 * fraction)
    addend = -(-offset.numerator // offset.denominator)  # up: the radicand does not become negative
    if bound.errors and not smallest:
        raise refuse(
            node, "root-sign", "the approximated input of a root must be known to be positive, not down to 0",
            "add a positive epsilon to it",
        )
    enough = state.precision.within(bound.errors, smallest / 2)  # else the next lowering will have it so
    floor = (smallest - bound.error if enough else smallest / 2) * (1 << 2 * fraction)
    steep = lower_root(floor)  # of the least radicand, in units of 2**-fraction
    errors = dict(bound.times(Fraction(1 << 2 * fraction) / steep)) if bound.errors else {}
    own = ONE
    if addend != offset:
        own += (addend - offset) / steep if steep > 1 else 2
    top = 2 * int(RootMultiply(Fraction(largest)).root(64)[1] * (1 << fraction)) + 3 if largest else 1
    roots = as_array(np.frompyfunc(lambda s: RootMultiply(s).root(_SCALE_BITS), 1, 1)(view.scale))
    if any(low != high for low, high in roots.reshape(-1)):
        own += Fraction(top, 1 << _SCALE_BITS - 2)
    value = state.add(
        node, [view.value], RootAttributes(fraction, addend), view.nodes, origin="",
        bound=Bound(Interval(2 * int(steep), top), added(errors, {name: own})),
    )
    unit = Fraction(2 << fraction)
    found = _carried(view, node, value, compact(as_array(np.frompyfunc(lambda r: r[0] / unit, 1, 1)(roots))))
    state.facts.roots[value] = found, view
    return found


def lower_root(number: Fraction) -> Fraction:
    """Return a number at most the square root, within ``2**-60`` of it."""
    return RootMultiply(number).root(60)[0] if number > 0 else ZERO


def square(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Multiply a stream without functions with itself."""
    zero = uniform(view.zero_point)
    if zero is None or zero.denominator != 1:
        view, zero = based(state, node, view), ZERO
    attributes = ProductAttributes((int(zero), int(zero)))
    value = state.add(node, [view.value, view.value], attributes, view.nodes, origin="")
    found = _carried(view, node, value, as_array(view.scale * view.scale))
    state.facts.squares[value] = found, view
    return found


def _evaluated(state: Lowering, node: OnnxNode, view: Reals) -> Reals | None:
    """Apply the functions of ``view`` one after the other to integers that are too many for a table; None where one has
    no hardware."""
    current = replace(view, functions=())
    for functions in view.functions:
        found = _applied(state, node, current, functions)
        if found is None:
            return None
        current = found
    return current


def _applied(state: Lowering, node: OnnxNode, view: Reals, functions: Fractions) -> Reals | None:
    every = functions.reshape(-1).tolist()
    if all(isinstance(f, Affine) for f in every):
        multiplier, addend = (
            as_array(np.frompyfunc(lambda f, part=part: Fraction(getattr(f, part)), 1, 1)(functions))
            for part in ("multiplier", "addend")
        )
        if any(v == 0 for v in multiplier.reshape(-1)):
            return None
        scale = compact(as_array(view.scale * multiplier))
        return replace(view, scale=scale, zero_point=compact(as_array(view.zero_point - addend / scale)))
    function = every[0]
    if any(f != function for f in every):
        return None
    if isinstance(function, Combination):
        return _combined(state, node, view, function)
    exponent = function.exponent if isinstance(function, Pow) else None
    if isinstance(function, Sqrt) or exponent == _HALF:
        return root(state, node, view)
    if isinstance(function, Reciprocal) or exponent == -1:
        return reciprocal(state, node, view)
    if exponent == -_HALF:
        return reciprocal(state, node, root(state, node, view))
    if isinstance(function, Log):
        return logarithm(state, node, view)
    if isinstance(function, Tanh):
        return _hyperbolic_tangent(state, node, view)
    if isinstance(function, Clip | Relu):
        return _limited(state, node, view, function)
    if exponent == 2:
        return square(state, node, view)
    if isinstance(function, Abs):
        return magnitude(state, node, view)
    if exponent is not None and exponent not in (0, 1):
        return _power(state, node, view, Fraction(exponent))
    return None



def _power(state: Lowering, node: OnnxNode, view: Reals, exponent: Fraction) -> Reals:
    """Return a power: of a whole exponent by products, where these are short; of another by logarithms of positive
    reals."""
    whole, base = abs(exponent), based(state, node, view)
    size = state.bound(base.value).magnitude
    if whole.denominator != 1 or size is None or bits_above(size) * whole > MOST_BITS:
        return powered(state, node, view, exponent)
    found = square(state, node, base)
    for _ in range(2, int(whole)):
        value = state.add(node, [found.value, base.value], ProductAttributes((0, 0)), (), origin="")
        found = _carried(view, node, value, as_array(found.scale * base.scale))
    return found if exponent > 0 else reciprocal(state, node, found)


def magnitude(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return the absolute values of a stream without functions."""
    centred = based(state, node, view)
    value = applied(state, node, centred.value, Magnitude(), (None,), centred.nodes)
    scale = as_array(abs(centred.scale))
    found = replace(centred, value=value, scale=scale, nodes=(), low=None, high=None)
    state.facts.magnitudes[value] = found, view
    return found


def reciprocal(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Divide 1 by a stream without functions."""
    view = _positive(state, node, based(state, node, view))
    found = quotient(state, node, one_like(state, node, view), view)
    state.facts.reciprocals[found.value] = found, view
    return found


def _hyperbolic_tangent(state: Lowering, node: OnnxNode, view: Reals) -> Reals | None:
    """Return (1 - e) / (1 + e) with the sign of ``view``, e the exponential of -2 times its magnitude."""
    if uniform(view.scale) is None or state.bound(view.value).interval is None:
        return None
    view = based(state, node, view)
    size = applied(state, node, view.value, Magnitude(), (None,), view.nodes)
    distances = replace(view, value=size, scale=as_array(-2 * abs(view.scale)), nodes=())
    powers = exponentials(state, node, distances)
    one = int(1 / powers.scale.reshape(-1)[0])
    parts = [
        replace(powers, value=applied(state, node, powers.value, Simple(name), constants, ()))
        for name, constants in (("sub", (one, None)), ("add", (None, one)))
    ]
    tangent = quotient(state, node, parts[0], parts[1], Limits(most=ONE, least=ONE))
    found = _of_sign(state, node, view.value, tangent)
    return found if view.scale.reshape(-1)[0] > 0 else replace(found, scale=as_array(-found.scale))


def _limited(state: Lowering, node: OnnxNode, view: Reals, function: Clip | Relu) -> Reals | None:
    """Limit integers, exactly if possible; else the limits are rounded to their unit."""
    scale, zero = uniform(view.scale), uniform(view.zero_point)
    ends = (ZERO, None) if isinstance(function, Relu) else (function.low, function.high)
    found = None
    if scale is None or zero is None or scale <= 0 or not state.bound(view.value).errors:
        found = clamped(state, node, replace(view, functions=(as_array(function),)))
    if found is None:
        found = _rounded_limits(state, node, view, ends)
    if found is not None and ends[0] is not None and ends[0] >= 0 and ends[1] is None:
        state.facts.limited[found.value] = found, view, ends[0]
    return found


def _rounded_limits(
    state: Lowering, node: OnnxNode, view: Reals, ends: tuple[Fraction | None, Fraction | None]
) -> Reals | None:
    scale, zero = uniform(view.scale), uniform(view.zero_point)
    if scale is None or zero is None or scale <= 0:
        return None
    value, name = view.value, state.approximations.fresh(node.name)
    for end, limit in zip(ends, (MAXIMUM, MINIMUM), strict=True):
        if end is not None:
            value = applied(state, node, value, limit, (None, round(Fraction(end) / scale + zero)), view.nodes)
    bound = state.bounds[value]
    state.bounds[value] = replace(bound, errors=added(bound.errors, {name: _HALF}))
    return replace(view, value=value, nodes=(), low=None, high=None)


def _combined(state: Lowering, node: OnnxNode, view: Reals, function: Combination) -> Reals | None:
    """Apply a product or a quotient of two chains of functions."""
    chains = [tuple(as_array(f) for f in chain) for chain in (function.left, function.right)]
    if function.op not in ("mul", "div"):
        return None
    left = _evaluated(state, node, replace(view, functions=chains[0]))
    if left is None:
        return None
    if function.left == function.right and function.op == "mul":
        return square(state, node, left)
    right = _evaluated(state, node, replace(view, functions=chains[1]))
    if right is None:
        return None
    if function.op == "div":
        limits = state.facts.limits(left, right)
        return quotient(state, node, left, limits.norm or right, limits)
    left, right = based(state, node, left), based(state, node, right)
    value = state.add(node, [left.value, right.value], ProductAttributes((0, 0)), left.nodes + right.nodes, origin="")
    return _carried(view, node, value, as_array(left.scale * right.scale))


def one_like(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return a stream of ones of the shape of ``view``, a divisor of positive integers: their minimum with 1."""
    if state.bound(view.value).interval is None:
        raise approximated(node)
    value = applied(state, node, view.value, MINIMUM, (None, 1), view.nodes)
    state.bounds[value] = Bound(Interval(1, 1))  # or the divisor may be 0, and is refused
    return replace(view, value=value, scale=fractions(1), zero_point=fractions(0), nodes=(), low=None, high=None)
