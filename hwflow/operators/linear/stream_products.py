"""Matrix products of two streams: exact sums of products of integers, their zero points subtracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, Refusal, made, refuse
from hwflow.frontend.views import Integers, Reals, as_array, compact, fractions, uniform
from hwflow.ir.graph import Fractions
from hwflow.ir.node_attributes import MatrixProductAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.approximations.fixed_point import in_fixed_point
from hwflow.operators.approximations.wide_products import product_in_parts
from hwflow.operators.elementwise.alignment import SHORT, aligned, in_common
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point


def product_of_streams(
    state: Lowering, node: OnnxNode, left: Reals, right: Reals, names: Sequence[str], *, last: bool = True
) -> Reals:
    """Return left @ right of frames [..., M, K] and [..., K, N]; other axes broadcast. ``names``: of the operands, in
    messages; ``last``: the result is the node's."""
    inner = left.shape[-1]
    factors = [
        _factor(state, node, each, axis, name)
        for each, axis, name in zip((left, right), (-1, -2), names, strict=True)
    ]
    zeros = [int(zero) if (zero := uniform(each.zero_point)) is not None else 0 for each in factors]
    a, b = factors
    before = tuple(dict.fromkeys((*a.nodes, *b.nodes)))
    attributes = MatrixProductAttributes(tuple(zeros), inner)
    origin = state.real_origin(node) if last else ""
    parts = product_in_parts(state, node, [a.value, b.value], attributes, before)
    value, dropped = parts or (state.add(node, [a.value, b.value], attributes, before, origin=origin), 0)
    greatest = [_greatest(each, zero) for each, zero in zip(factors, zeros, strict=True)]
    if None not in greatest:
        state.reach[value] = inner * (greatest[0] or 0) * (greatest[1] or 0)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    scale = _scale(a.scale, b.scale)
    return made(value, shape, as_array(scale * (1 << dropped)) if dropped else scale, fractions(0), node)


def _factor(state: Lowering, node: OnnxNode, view: Reals, axis: int, name: str) -> Reals:
    """Return ``view`` with one integer zero point, and one scale along the axis that is summed over: exactly if
    possible, else in fixed point."""
    try:
        found = _whole(state, node, _of_one_scale(state, node, view, axis))
        if found.scale.ndim < -axis or found.scale.shape[axis] == 1:
            return found
        raise refuse(
            node, "summed-scale", f"input {show(name)} must have one scale along the axis that is summed over, not "
            f"{found.scale.shape[axis]}", "quantize it per tensor before the matrix product",
        )
    except Refusal:
        if node.name in state.at_end or state.bound(view.value).interval is None:
            raise
        return in_fixed_point(state, node, plain(state, node, view))


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
