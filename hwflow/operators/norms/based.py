"""What approximations begin with: integers with a zero point of 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hwflow.frontend.approximation_bits import bits_above
from hwflow.frontend.context import Lowering
from hwflow.frontend.error_bounds import ONE, added
from hwflow.frontend.views import Reals, as_array, fractions, uniform
from hwflow.ir.integer_functions import Simple, Times
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.clamped import applied, broadcast_constant

MOST_BITS = 60
"""The longest results: sums, products and differences of longer ones would not be exact in 62 bits."""


def based(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view``, which has no functions, with a zero point of 0; a fraction is rounded, far below the precision
    of what follows."""
    value, scale, zero_point = view.value, view.scale, view.zero_point
    if uniform(zero_point) == 0:
        return view
    errors: Mapping[str, Fraction] = {}
    if any(v.denominator != 1 for v in zero_point.reshape(-1)):
        name = state.approximations.fresh(node.name)
        magnitude = max(max(abs(v) for v in zero_point.reshape(-1)), state.bound(value).magnitude or ONE, ONE)
        shift = max(0, min(state.precision.of(name), MOST_BITS) - bits_above(magnitude))
        if shift:
            value = applied(state, node, value, Times(1 << shift), (None,), view.nodes)
        scaled = as_array(zero_point * (1 << shift))
        rounded = as_array(np.frompyfunc(round, 1, 1)(scaled))
        off = max(abs(v - r) for v, r in zip(scaled.reshape(-1), rounded.reshape(-1), strict=True))
        errors = {name: Fraction(off)} if off else {}
        zero_point, scale = rounded, as_array(scale / (1 << shift))
    offsets = np.array([int(v) for v in zero_point.reshape(-1)], dtype=np.int64).reshape(zero_point.shape)
    value = applied(state, node, value, Simple("sub"), (None, broadcast_constant(offsets, view.shape)), view.nodes)
    bound = state.bounds[value]
    state.bounds[value] = replace(bound, errors=added(bound.errors, errors))
    return replace(view, value=value, scale=scale, zero_point=fractions(0), nodes=(), low=None, high=None)
