"""Divisors that a Where keeps from being 0: x / Where(d == 0, 1, d)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from hwflow.frontend.approximation_bits import bits_above
from hwflow.frontend.context import Lowering
from hwflow.frontend.error_bounds import ONE, Bound
from hwflow.frontend.views import Reals, as_array, fractions, uniform
from hwflow.ir.integer_functions import Simple, Times
from hwflow.ir.node_attributes import ElementwiseAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.clamped import applied
from hwflow.operators.norms.based import MOST_BITS, based
from hwflow.types import Interval


def guarded_divisor(state: Lowering, node: OnnxNode, view: Reals) -> tuple[Reals, Fraction] | None:
    """Return ``view`` with a zero point of 0, and how far its reals are from 0 at least, if it is a stream where that
    is not 0, else a constant; None for others. The stream's scale need not divide the constant, whose integer is
    rounded."""
    found = state.facts.unless_zero(view)
    if found is None:
        return None
    other, constant = found
    scale, zero, bound = uniform(other.scale), uniform(other.zero_point), state.bound(other.value)
    if (
        other.shape != view.shape or other.functions or not scale or zero is None or zero.denominator != 1
        or bound.interval is None or bound.errors
    ):
        return None
    other = based(state, node, other)
    bound = state.bound(other.value)
    assert bound.interval is not None, "known before"
    shift, instead, errors = _rounded(state, node, constant / scale, bound.magnitude or ONE)
    unit = 1 << shift
    zeros = state.add(
        node, [other.value], ElementwiseAttributes(Simple("equal"), (None, 0), None), other.nodes, origin="",
        bound=Bound(Interval(0, 1)),
    )
    value = applied(state, node, other.value, Times(unit), (None,), other.nodes) if shift else other.value
    limits = Interval(bound.interval.lo * unit, bound.interval.hi * unit).hull(Interval(instead, instead))
    value = state.add(
        node, [zeros, value], ElementwiseAttributes(Simple("where"), (None, instead, None), None), origin="",
        bound=Bound(limits, errors),
    )
    result = replace(
        other, value=value, scale=as_array(other.scale / unit), zero_point=fractions(0), nodes=(), low=None, high=None
    )
    return result, abs(scale) * min(unit, abs(instead)) / unit


def _rounded(
    state: Lowering, node: OnnxNode, number: Fraction, most: Fraction
) -> tuple[int, int, Mapping[str, Fraction]]:
    """Return by how many bits integers of magnitude ``most`` are to be shifted, the integer for ``number`` beside them,
    and how far it is off."""
    if number.denominator == 1:
        return 0, int(number), {}
    name = state.approximations.fresh(node.name)
    shift = max(1, min(state.precision.of(name), MOST_BITS) - bits_above(max(most, abs(number))))
    while not round(number * (1 << shift)):
        shift += 1
    rounded = round(number * (1 << shift))
    return shift, rounded, {name: abs(number * (1 << shift) - rounded)}
