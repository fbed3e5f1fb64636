"""Powers of positive reals: exponentials of multiples of their logarithms."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log2

from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.error_bounds import Bound, added
from hwflow.frontend.views import Reals, as_array, uniform
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ElementwiseAttributes
from hwflow.numerics.functions.function import enclose
from hwflow.numerics.functions.smooth import Exp, Log
from hwflow.numerics.interval import Interval as RealInterval
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.approximations.fixed_point import in_fixed_point
from hwflow.operators.norms.based import based
from hwflow.operators.norms.exponentials import exponentials
from hwflow.operators.norms.logarithms import logarithm
from hwflow.types import Interval, IntType

_BITS = 128
"""Of constants: their roundings are nothing beside those of 60 bits."""

_MOST = 512
"""Bits of the greatest power: a worst case far above what a quantizer has steps for."""


def powered(state: Lowering, node: OnnxNode, view: Reals, exponent: Fraction) -> Reals:
    """Return a power of a stream without functions whose reals are known to be positive."""
    logarithms = logarithm(state, node, view)
    return exponential(state, node, replace(logarithms, scale=as_array(logarithms.scale * exponent)))


def exponential(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return e to the power of a stream without functions, of a known range and any sign: the greatest such power times
    an exponential of the distance to its exponent."""
    view = based(state, node, view)
    if uniform(view.scale) is None:
        view = in_fixed_point(state, node, view)
    interval, scale = state.bound(view.value).interval, uniform(view.scale)
    assert interval is not None and scale is not None
    last = interval.hi if scale > 0 else interval.lo
    if scale * last * Fraction(log2(2.7182818284590452)) > _MOST:
        raise refuse(
            node, "power-range",
            f"powers must be known to be at most 2**{_MOST}, not up to e**{float(scale * last):.3g}",
            "limit the base and the exponent by Clip",
        )
    reach = Interval(0, interval.hi - interval.lo)
    attributes = ElementwiseAttributes(
        Simple("sub"), (last, None) if scale > 0 else (None, last), IntType.holding(reach)
    )
    errors = state.bound(view.value).errors
    value = state.add(node, [view.value], attributes, view.nodes, origin="", bound=Bound(reach, errors))
    distances = replace(view, value=value, scale=as_array(-abs(view.scale)), nodes=(), low=None, high=None)
    powers = exponentials(state, node, distances)
    bound = state.bound(powers.value)
    off = Fraction((bound.magnitude or 1) / 2 ** (_BITS - 2))  # by what the constant is rounded
    first = next(iter(bound.errors))
    state.bounds[powers.value] = replace(bound, errors=added(bound.errors, {first: off}))
    return replace(powers, scale=as_array(powers.scale * constant(Exp(), scale * last)))


def constant(function: Exp | Log, argument: Fraction) -> Fraction:
    """Return a function's value to 128 bits."""
    found = enclose([function], RealInterval.point(argument), _BITS)
    assert isinstance(found.lo, Fraction)
    return found.lo
