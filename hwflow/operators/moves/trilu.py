"""Trilu: keep the elements of each matrix on one side of a diagonal; the others become the real 0.

Elements keep their places: a constant of the frame's shape selects the element or the integer that represents 0.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, constant_integers, given, made, moved, refuse
from hwflow.frontend.context import reals as real_operand
from hwflow.frontend.frames import axes
from hwflow.frontend.views import (
    Functions,
    Integers,
    QuantizedConstant,
    View,
    as_array,
    fractions,
)
from hwflow.ir.graph import IntArray
from hwflow.ir.integer_functions import Simple
from hwflow.numerics.functions.function import enclose
from hwflow.numerics.interval import Interval, NoSteps
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import aligned, step
from hwflow.operators.elementwise.lattice import ENCLOSURE_BITS, plain
from hwflow.operators.float_errors import move_errors
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def trilu(state: Lowering, node: OnnxNode) -> View:
    """Lower Trilu with a constant ``k``; the frame axis must not be one of the matrices' two."""
    view = state.view(node.inputs[0])
    shape = state.model.values[node.inputs[0]].shape
    kept = _kept(state, node, shape)
    if isinstance(view, QuantizedConstant):
        return _of_constant(node, view, kept)
    if len(shape) < 3:
        raise refuse(
            node, "frame-axis", f"matrices must lie within a frame, not have the frame axis, as those of {list(shape)}",
            "give the input an axis of frames in front of the matrices' two",
        )
    kept = kept[0]
    if kept.all():
        return view
    if isinstance(view, Integers):
        chosen = step(state, node, Simple("where"), [kept, view, 0])
        return Integers(chosen.value, view.shape, min(view.low, 0), max(view.high, 0))
    view = real_operand(state, node, 0)
    if not all(map(_keeps_zero, view.functions)):
        view = plain(state, node, view)
    if any(zero.denominator != 1 for zero in view.zero_point.reshape(-1)):  # no integer represents 0
        (multiples,), unit = aligned(state, node, [view])
        chosen = step(state, node, Simple("where"), [kept, multiples, 0])
        return made(chosen.value, view.shape, unit, fractions(0), node)
    zeros = np.array([int(zero) for zero in view.zero_point.reshape(-1)]).reshape(view.zero_point.shape)
    operands = [kept, Integers(view.value, view.shape, 0, 0), zeros if zeros.size > 1 else int(zeros.reshape(-1)[0])]
    before = () if view.functions else view.nodes
    chosen = step(state, node, Simple("where"), operands, before=before, origin=state.real_origin(node))
    if view.functions:
        result = moved(view, node, chosen.value, view.shape, as_array)
    else:
        result = made(chosen.value, view.shape, view.scale, view.zero_point, node)
    if view.low is None or view.high is None:
        return result
    return replace(result, low=min(view.low, int(zeros.min())), high=max(view.high, int(zeros.max())))


def _kept(state: Lowering, node: OnnxNode, shape: tuple[int, ...]) -> IntArray:
    """Return 1 where an element of a tensor of ``shape`` is kept, else 0."""
    rows, columns = shape[-2:]
    k = 0
    if given(node, 1):
        (k,) = constant_integers(state, node, 1, "k")
    k = min(max(k, -rows - 1), columns + 1)  # beyond, nothing changes
    side = np.triu if node.integer("upper", 1) else np.tril
    return np.broadcast_to(side(np.ones((rows, columns), dtype=np.int64), k), shape)


def _of_constant(node: OnnxNode, view: QuantizedConstant, kept: IntArray) -> QuantizedConstant:
    if any(zero.denominator != 1 for zero in view.zero_point.reshape(-1)):
        raise refuse(
            node, "zero-point-fraction", "the zero points of a constant must be integers, to represent 0",
            "compute the triangle before quantizing the constant",
        )
    zeros = np.array([int(zero) for zero in view.zero_point.reshape(-1)]).reshape(view.zero_point.shape)
    return replace(view, integers=np.where(kept, view.integers, zeros))


def _keeps_zero(functions: Functions) -> bool:
    """Tell whether all of these functions map 0 to 0."""
    return all(function is None or _at_zero(function) == 0 for function in set(functions.reshape(-1)))


def _at_zero(function: Any) -> Any:
    try:
        return enclose([function], Interval.point(Fraction(0)), ENCLOSURE_BITS).exact
    except NoSteps:
        return None


RECORDS = (
    Operator(
        "Trilu", lower=trilu, honours=attributes("upper"), limits=f"constant k, {phrases.MOVED}",
        becomes=("elementwise",), frames=axes.MATRICES, error=move_errors.moved
    ),
)
