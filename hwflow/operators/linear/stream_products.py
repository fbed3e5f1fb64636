"""Matrix products of two streams: exact sums of products of integers, their zero points subtracted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, made, refuse
from hwflow.frontend.views import Reals, as_array, compact, fractions, uniform
from hwflow.ir.graph import Fractions
from hwflow.ir.node_attributes import MatrixProductAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point


def product_of_streams(
    state: Lowering, node: OnnxNode, left: Reals, right: Reals, names: Sequence[str], *, last: bool = True
) -> Reals:
    """Return left @ right of frames [..., M, K] and [..., K, N]; other axes broadcast. ``names``: of the operands, in
    messages; ``last``: the result is the node's."""
    inner = left.shape[-1]
    factors = [_whole(state, node, each) for each in (left, right)]
    for name, factor, axis in zip(names, factors, (-1, -2), strict=True):
        if factor.scale.ndim >= -axis and factor.scale.shape[axis] > 1:
            raise refuse(
                node, "summed-scale", f"input {show(name)} must have one scale along the axis that is summed over, not "
                f"{factor.scale.shape[axis]}", "quantize it per tensor before the matrix product",
            )
    zeros = [int(zero) if (zero := uniform(each.zero_point)) is not None else 0 for each in factors]
    a, b = factors
    before = tuple(dict.fromkeys((*a.nodes, *b.nodes)))
    value = state.add(
        node, [a.value, b.value], MatrixProductAttributes(tuple(zeros), inner), before,
        origin=state.real_origin(node) if last else "",
    )
    greatest = [_greatest(each, zero) for each, zero in zip(factors, zeros, strict=True)]
    if None not in greatest:
        state.reach[value] = inner * (greatest[0] or 0) * (greatest[1] or 0)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return made(value, shape, _scale(a.scale, b.scale), fractions(0), node)


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
