"""Matrix products of two streams: exact sums of products of integers, their zero points subtracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, made, refuse
from hwflow.frontend.error_bounds import Bound, bound_of
from hwflow.frontend.views import Integers, Reals, as_array, compact, fractions, uniform
from hwflow.ir.graph import Fractions, Value
from hwflow.ir.integer_functions import Shifted, Simple
from hwflow.ir.node_attributes import ElementwiseAttributes, MatrixProductAttributes, ScaledAddAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import SHORT, aligned, in_common
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point
from hwflow.types import Interval, IntType

MOST_BITS = 32
"""Of an operand of one product: two multiplier blocks."""

PART = 17
"""Bits of a part of a longer operand: with a sign, those of a multiplier block."""


def product_of_streams(
    state: Lowering, node: OnnxNode, left: Reals, right: Reals, names: Sequence[str], *, last: bool = True
) -> Reals:
    """Return left @ right of frames [..., M, K] and [..., K, N]; other axes broadcast. ``names``: of the operands, in
    messages; ``last``: the result is the node's."""
    inner = left.shape[-1]
    factors = [
        _whole(state, node, _of_one_scale(state, node, each, axis)) for each, axis in ((left, -1), (right, -2))
    ]
    for name, factor, axis in zip(names, factors, (-1, -2), strict=True):
        if factor.scale.ndim >= -axis and factor.scale.shape[axis] > 1:
            raise refuse(
                node, "summed-scale", f"input {show(name)} must have one scale along the axis that is summed over, not "
                f"{factor.scale.shape[axis]}", "quantize it per tensor before the matrix product",
            )
    zeros = [int(zero) if (zero := uniform(each.zero_point)) is not None else 0 for each in factors]
    a, b = factors
    before = tuple(dict.fromkeys((*a.nodes, *b.nodes)))
    attributes = MatrixProductAttributes(tuple(zeros), inner)
    origin = state.real_origin(node) if last else ""
    value = _in_parts(state, node, [a.value, b.value], attributes, before) or state.add(
        node, [a.value, b.value], attributes, before, origin=origin
    )
    greatest = [_greatest(each, zero) for each, zero in zip(factors, zeros, strict=True)]
    if None not in greatest:
        state.reach[value] = inner * (greatest[0] or 0) * (greatest[1] or 0)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return made(value, shape, _scale(a.scale, b.scale), fractions(0), node)


def _of_one_scale(state: Lowering, node: OnnxNode, view: Reals, axis: int) -> Reals:
    """Return ``view`` as multiples of a common divisor of its scales, if they vary along ``axis`` and have one that is
    near them."""
    if view.scale.ndim < -axis or view.scale.shape[axis] == 1 or view.functions:
        return view
    if in_common([view])[1] >= SHORT:
        return view
    ((whole,), unit) = aligned(state, node, [view])
    assert isinstance(whole, Integers), "a stream"
    return replace(view, value=whole.value, scale=unit, zero_point=fractions(0), nodes=(), low=None, high=None)


def _in_parts(
    state: Lowering, node: OnnxNode, values: list[Value], attributes: MatrixProductAttributes, before: tuple[str, ...]
) -> Value | None:
    """Return a product with an approximated operand of more than :data:`MOST_BITS` bits, as the sum of products with
    its lowest :data:`PART` bits and with the others; None where both are short or exact."""
    bounds = [state.bound(value) for value in values]
    for place, bound in enumerate(bounds):
        if not bound.errors or bound.interval is None or attributes.offsets[place]:
            continue
        if IntType.holding(bound.interval).bits <= MOST_BITS:
            continue
        whole = bound_of(attributes, bounds)
        if whole is None:
            return None
        ends = Bound(Interval(bound.interval.lo >> PART, bound.interval.hi >> PART), dict(bound.errors))
        exact = Bound(Interval(0, (1 << PART) - 1))
        high, low = (
            state.add(
                node, [values[place]], ElementwiseAttributes(function, (None, constant), None), before, origin="",
                bound=part,
            )
            for function, constant, part in (
                (Shifted(left=False, bits=64), PART, ends), (Simple("and"), (1 << PART) - 1, exact),
            )
        )
        sums = []
        for part in (high, low):
            operands = [part if k == place else value for k, value in enumerate(values)]
            product = _in_parts(state, node, operands, attributes, ())
            sums.append(product or state.add(node, operands, attributes, origin=""))
        factors = ((1 << PART,), (1,))
        return state.add(node, sums, ScaledAddAttributes(0, factors), origin="", bound=whole)
    return None


def _whole(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view`` without functions, with one integer zero point."""
    view = whole_zero_point(state, node, plain(state, node, view))
    return view if uniform(view.zero_point) is not None else from_zero(state, node, view)


def _greatest(view: Reals, zero: int) -> int | None:
    """Return the greatest magnitude of the differences, if the integers' range is known."""
    if view.low is None or view.high is None:
        return None
    return max(abs(view.low - zero), abs(view.high - zero))


def _scale(left: Fractions, right: Fractions) -> Fractions:
    """Return the scale of the results: each row's times each column's."""
    return compact(as_array(left * right))
