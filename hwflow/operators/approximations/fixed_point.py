"""Reals as integers of one scale and no zero point, whose fractions are rounded: factors whose sums of products are
approximated anyway."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np

from hwflow.display import show
from hwflow.frontend.approximation_bits import bits_above
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.error_bounds import ONE, Bound, added
from hwflow.frontend.views import Reals, as_array, fractions, uniform
from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.ir.integer_functions import Function, Multiplied, Shifted, Simple
from hwflow.ir.node_attributes import ElementwiseAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.clamped import broadcast_constant
from hwflow.operators.norms.based import MOST_BITS, based
from hwflow.types import Interval

_FINE = 60
"""Bits of products with scales, before what is not needed of them is dropped."""

_HALF = Fraction(1, 2)
_RIGHT = Shifted(left=False, bits=64)


def in_fixed_point(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view``, which has no functions, with one scale and a zero point of 0."""
    if uniform(view.scale) is not None:
        return based(state, node, view)
    before = state.bound(view.value)
    if before.interval is None:
        raise refuse(
            node, "quantized-operand", f"an operand of {node.op_type} must be of a known range, not a sum of any size",
            f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )
    name = state.approximations.fresh(node.name)
    size = Fraction(max(abs(before.interval.lo), abs(before.interval.hi), 1))
    offsets = as_array(view.scale * view.zero_point)
    most = max(size * max(abs(s) for s in view.scale.reshape(-1)), max(abs(v) for v in offsets.reshape(-1)))
    fine = bits_above(most) - _FINE  # log2 of the products' unit
    unit = max(fine, bits_above(2 * most) - min(state.precision.of(name), MOST_BITS))
    below = _FINE - bits_above(size)  # bits of a scale below that unit, whose products are added apart
    moved = _whole(as_array(offsets / Fraction(2) ** fine), view.shape)
    scales = as_array(view.scale / Fraction(2) ** fine)
    floors = as_array(np.frompyfunc(lambda v: Fraction(floor(v)), 1, 1)(scales))
    factors, others = _whole(floors, view.shape), _whole(as_array((scales - floors) * (1 << below)), view.shape)
    greatest = Fraction(int(np.max(np.abs(factors))) + 1)
    reach = int(greatest * (size + 1)) + int(np.max(np.abs(moved)))
    shift = unit - fine
    around, rest = Interval(-reach, reach), Interval(-int(size) - 1, int(size) + 1)

    def applied(
        function: Function, value: Value, constant: int | IntArray, interval: Interval, before: tuple[str, ...] = ()
    ) -> Value:
        attributes = ElementwiseAttributes(function, (None, constant), None)
        return state.add(node, [value], attributes, before, origin="", bound=Bound(interval))

    upper = applied(Multiplied(), view.value, factors, around, view.nodes)
    lower = applied(Multiplied(), view.value, others, rest.times(Interval(0, 1 << below)), view.nodes)
    lower = applied(_RIGHT, lower, below, rest)
    attributes = ElementwiseAttributes(Simple("add"), (None, None), None)
    value = state.add(node, [upper, lower], attributes, origin="", bound=Bound(around))
    value = applied(Simple("sub"), value, moved, around)
    if shift:
        value = applied(_RIGHT, value, shift, Interval(-(reach >> shift) - 1, reach >> shift))
    parts = Fraction(1, 1 << shift)
    own = (size / (1 << below) + 1) * _HALF + ONE  # of scales and offsets, and of what the lower products drop
    errors = added(before.times(greatest * parts), {name: own * parts + (ONE if shift else 0)})
    interval = state.bound(value).interval
    state.bounds[value] = Bound(interval, errors)
    return replace(
        view, value=value, scale=fractions(Fraction(2) ** unit), zero_point=fractions(0), nodes=(), low=None, high=None
    )


def _whole(reals: Fractions, shape: tuple[int, ...]) -> int | IntArray:
    """Return the integers next to numbers that broadcast over a frame."""
    whole = np.array([round(v) for v in reals.reshape(-1)], dtype=np.int64).reshape(reals.shape)
    return broadcast_constant(whole, shape)
