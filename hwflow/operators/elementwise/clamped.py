"""Relu and Clip of sums as exact limits of the integers, where the limits are integers or short fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np

from hwflow.frontend.context import Lowering
from hwflow.frontend.views import Functions, Reals, as_array, compact
from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Function, Times
from hwflow.ir.node_attributes import ElementwiseAttributes
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Clip, Relu
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

MOST_FACTOR = 1 << 16
"""The greatest factor of the integers that makes fractional limits integers."""


def clamped(state: Lowering, node: OnnxNode, view: Reals) -> Reals | None:
    """Return ``view`` with its functions replaced by limits of its integers, of any range.

    None where a function is no Relu or Clip, or limits need a factor above :data:`MOST_FACTOR`.
    """
    limits = limits_of(view)
    if limits is None:
        return None
    factor = factor_of(limits)
    if factor > MOST_FACTOR or any(abs(v * factor) > LIMIT for _, at in limits for v in at.reshape(-1)):
        return None
    value = view.value
    if factor > 1:
        value = applied(state, node, value, Times(factor), (None,), view.nodes)
    for function, at in limits:
        constant = np.array([int(v * factor) for v in at.reshape(-1)], dtype=np.int64).reshape(at.shape)
        value = applied(state, node, value, function, (None, broadcast_constant(constant, view.shape)), view.nodes)
    return replace(
        view, value=value, scale=compact(as_array(view.scale / factor)),
        zero_point=compact(as_array(view.zero_point * factor)), functions=(), nodes=(),
    )


def limits_of(view: Reals) -> list[tuple[Function, Fractions]] | None:
    """Return the limits of the integers that are equivalent to the functions, in order; None where a function is no
    Relu or Clip, or has a limit in some channels only.

    The real scale * (q - zero point) is at a limit where q is zero point + limit / scale.
    """
    if any(s == 0 for s in view.scale.reshape(-1)):
        return None
    limits: list[tuple[Function, Fractions]] = []
    for functions in view.functions:
        for is_upper in (False, True):
            reals = [_limit(f, is_upper) for f in functions.reshape(-1)]
            if any(v is None for v in reals):
                if any(v is not None for v in reals):
                    return None  # some channels have a limit, others none
                continue
            at = as_array(view.zero_point + _like(reals, functions) / view.scale)
            falling = {bool(s < 0) for s in view.scale.reshape(-1)}
            if len(falling) > 1:
                return None
            limits.append((MINIMUM if is_upper != falling.pop() else MAXIMUM, at))
        if any(not isinstance(f, Relu | Clip) for f in functions.reshape(-1) if f is not None):
            return None
    return limits


def factor_of(limits: Sequence[tuple[Function, Fractions]]) -> int:
    """Return the factor of the integers that makes all limits integers."""
    return lcm(*(v.denominator for _, at in limits for v in at.reshape(-1)))


def _limit(function: Elementwise | None, is_upper: bool) -> Fraction | None:
    if isinstance(function, Relu):
        return None if is_upper else Fraction(0)
    if not isinstance(function, Clip):
        return None
    limit = function.high if is_upper else function.low
    if not is_upper and limit is not None and function.high is not None:
        limit = min(limit, function.high)  # ONNX: the upper one wins
    return None if limit is None else Fraction(limit)


def _like(values: Sequence[Fraction | None], functions: Functions) -> Fractions:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result.reshape(functions.shape)


def broadcast_constant(values: IntArray, shape: tuple[int, ...]) -> int | IntArray:
    """Return one number, or an array of a frame's shape."""
    first = int(values.reshape(-1)[0])
    return first if (values == first).all() else np.broadcast_to(values, shape)


def applied(
    state: Lowering, node: OnnxNode, value: Value, function: Function, constants: tuple[int | IntArray | None, ...],
    before: tuple[str, ...],
) -> Value:
    """Add a node for ``function`` of the integers ``value`` and of constants."""
    attributes = ElementwiseAttributes(function, constants, None)
    return state.add(node, [value], attributes, before, origin="")
