"""Hardmax: 1 at the first greatest element along an axis, 0 elsewhere."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from hwflow.frontend.context import Lowering, made, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, fractions
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ReshapeAttributes
from hwflow.onnxspec.reference import evaluator_defects
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import step
from hwflow.operators.float_errors.step_errors import Errors, Step
from hwflow.operators.moves.ranking import first_greatest
from hwflow.operators.moves.reshapes import reshaped
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def hardmax(state: Lowering, node: OnnxNode) -> View:
    """Lower Hardmax along any axis of a frame; before operator set 13 along all axes from one on."""
    view = reals(state, node, 0)
    rank, shape = len(state.model.values[node.inputs[0]].shape), view.shape
    flat = node.version < 13
    axis = node.integer("axis", 1 if flat else -1) % rank
    if axis == 0:
        raise refuse(
            node, "frame-axis", "axis must lie within a frame, not be the frame axis 0", "work within a frame"
        )
    if flat and axis < rank - 1:
        view = reshaped(state, node, view, (*shape[: axis - 1], prod(shape[axis - 1 :])))
    place = first_greatest(state, node, view, axis - 1)
    count = view.shape[axis - 1]
    numbers = np.arange(count).reshape([count if at == axis - 1 else 1 for at in range(len(view.shape))])
    places = np.broadcast_to(numbers, view.shape)
    origin = state.real_origin(node)
    hot = step(state, node, Simple("equal"), [place, places], origin=origin if view.shape == shape else "")
    value = hot.value
    if view.shape != shape:
        value = state.add(node, [value], ReshapeAttributes(shape), origin=origin)
    return replace(made(value, shape, fractions(1), fractions(0), node), low=0, high=1)


def _error(step: Step) -> Errors:
    """Bound Hardmax: by 1 where another element of the row may be the greatest."""
    x, reach = step.value(0).astype(np.float64), step.error(0)
    axis = int(step.attributes.get("axis", -1 if step.region.version >= 13 else 1)) % x.ndim
    if step.region.version < 13:
        axes_of_row: tuple[int, ...] = tuple(range(axis, x.ndim))
    else:
        axes_of_row = (axis,)
    may_be = x + reach >= (x - reach).max(axis=axes_of_row, keepdims=True)
    several = may_be.sum(axis=axes_of_row, keepdims=True) > 1
    unsure: Errors = (may_be & several & (reach > 0)).astype(np.float64)
    return unsure


RECORDS = (
    Operator(
        "Hardmax", lower=hardmax, honours=attributes("axis"), limits=phrases.RANKED, needs=(Integers, Reals),
        becomes=("elementwise", "top_k"), frames=axes.along(-1, before=(13, 1)), error=_error, tame=True,
        mended=evaluator_defects.HARDMAX
    ),
)
