"""Constant data gathered by numbers that are computed, or given, at run time: rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, made, refuse, require_finite
from hwflow.frontend.stream_types import COMPUTED_TYPES
from hwflow.frontend.views import (
    Anchor,
    Constant,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    compact,
    fraction_gcd,
    fractions,
)
from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Function, Simple
from hwflow.ir.node_attributes import ReshapeAttributes, TableLookupAttributes
from hwflow.numerics.functions.piecewise import Ranked
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers

Rows = Callable[[Any], Any]
"""Arranges an array of the data's whole shape as [rows, columns]."""

MAX_BITS = 16
"""The largest width of integers for reals that have a common divisor; wider ones are numbered instead."""


def numbers_of(state: Lowering, node: OnnxNode) -> Integers:
    """Return the indices of ``node``, computed or given at run time; refuse data that are so, too."""
    data = state.view(node.inputs[0])
    if not isinstance(data, Constant | QuantizedConstant):
        raise refuse(
            node, "constant-parameter",
            f"data {show(node.inputs[0])} or indices {show(node.inputs[1])} must be constant, not both computed at run "
            "time: a stream passes once",
            "multiply by a OneHot of the indices, or gather on the host",
        )
    found = integers.operand(state, node, 1)
    assert isinstance(found, Integers), "constant nodes are folded"
    return found


def from_front(state: Lowering, node: OnnxNode, numbers: Integers, size: int) -> Integers:
    """Return indices of an axis of ``size`` counted from its front: those beyond are the nearest."""
    element = COMPUTED_TYPES[state.model.values[node.inputs[1]].dtype]

    def apply(function: Function, operands: list[integers.Operand]) -> Integers:
        return integers.step(state, node, function, operands, element, last=False)

    if numbers.low >= 0:
        return apply(MINIMUM, [numbers, size - 1])
    front = apply(MINIMUM, [apply(MAXIMUM, [numbers, 0]), size - 1])
    behind = apply(MAXIMUM, [apply(MINIMUM, [numbers, -1]), -size])
    negative = apply(Simple("less"), [numbers, 0])
    return apply(Simple("where"), [negative, apply(Simple("add"), [behind, size]), front])


def rows_of(state: Lowering, node: OnnxNode, numbers: Integers, rows: Rows) -> View:
    """Return for each of ``numbers`` a row of the constant input 0 of ``node``, arranged by ``rows``. Numbers below 0
    count from the end; those beyond give the nearest row."""
    view = state.view(node.inputs[0])
    shape = state.frame_shape(node.outputs[0])
    if isinstance(view, QuantizedConstant):
        whole = view.integers.shape
        scale, zero_point = (rows(np.broadcast_to(v, whole)) for v in (view.scale, view.zero_point))
        if (scale == scale[:1]).all() and (zero_point == zero_point[:1]).all():
            table = rows(view.integers)
            value = _looked_up(state, node, numbers, table, shape, state.real_origin(node))
            over_frame = [_over_frame(v[0], shape) for v in (scale, zero_point)]
            result = made(value, shape, over_frame[0], over_frame[1], node)
            return replace(result, low=int(table.min()), high=int(table.max()))
        return _real_rows(state, node, numbers, rows(view.real()), shape)
    assert isinstance(view, Constant), "other data are refused"
    dtype = state.model.values[node.outputs[0]].dtype
    if dtype in COMPUTED_TYPES:
        type_ = COMPUTED_TYPES[dtype]
        value = _looked_up(state, node, numbers, rows(view.array.astype(np.int64)), shape, None)
        return Integers(value, shape, type_.min, type_.max)
    if dtype == "string":
        raise refuse(node, "text", "data must be numbers, not strings", "leave the node to the host: read its indices")
    require_finite(node, 0, "data", view.array)
    return _real_rows(state, node, numbers, fractions(rows(view.array)), shape)


def _looked_up(
    state: Lowering, node: OnnxNode, numbers: Integers, table: IntArray, shape: tuple[int, ...], origin: str | None
) -> Value:
    """Add the nodes that give the rows, as a frame of ``shape``."""
    value = state.add(node, [numbers.value], TableLookupAttributes(table), origin="")
    return state.add(node, [value], ReshapeAttributes(shape), origin=origin)


def _over_frame(columns: Fractions, shape: tuple[int, ...]) -> Fractions:
    """Return parameters of the columns as parameters of a frame of ``shape``, whose elements are rows in turn."""
    count = int(np.prod(shape)) // len(columns)
    return compact(as_array(np.broadcast_to(columns, (count, len(columns))).reshape(shape)))


def _real_rows(
    state: Lowering, node: OnnxNode, numbers: Integers, table: Fractions, shape: tuple[int, ...]
) -> Reals:
    """Return rows of reals of different scales: multiples of their common divisor where these are short, else the
    numbers of their levels, in rising order."""
    levels = sorted(set(table.reshape(-1)))
    divisor = reduce(fraction_gcd, levels, Fraction(0)) or Fraction(1)
    longest = max(abs(levels[0]), abs(levels[-1])) / divisor
    origin = state.real_origin(node)
    if longest < 1 << MAX_BITS - 1:
        multiples = np.frompyfunc(lambda x: int(x / divisor), 1, 1)(table).astype(np.int64)
        value = _looked_up(state, node, numbers, multiples, shape, origin)
        result = made(value, shape, fractions(divisor), fractions(0), node)
        return replace(result, low=int(multiples.min()), high=int(multiples.max()))
    number = {level: place for place, level in enumerate(levels)}
    ranks = np.frompyfunc(number.__getitem__, 1, 1)(table).astype(np.int64)
    value = _looked_up(state, node, numbers, ranks, shape, "")
    ranked = np.empty((), dtype=object)
    ranked[()] = Ranked(tuple(levels))
    one, zero = fractions(1), fractions(0)
    return Reals(
        value, shape, one, zero, Anchor(node.inputs[1], numbers.value, one, zero), (ranked,), (node.name,),
        (node.name,), 0, len(levels) - 1,
    )
