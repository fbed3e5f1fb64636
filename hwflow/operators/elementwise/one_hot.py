"""OneHot: indices, spread over a new axis, are compared with the places along it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hwflow.frontend.context import Lowering, constant, exact_constant, made, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Integers, Reals, View, fractions
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ReindexAttributes
from hwflow.numerics.rounding import Rounding
from hwflow.onnxspec.reference import one_hot_definition
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import step
from hwflow.operators.float_errors.step_errors import Errors, Step
from hwflow.operators.quantizers.quantizers import Quantization, requantize
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def one_hot(state: Lowering, node: OnnxNode) -> View:
    """Lower OneHot with constant depth and values; the new axis lies within a frame."""
    target, dtype = state.model.values[node.outputs[0]].shape, state.model.values[node.outputs[0]].dtype
    axis = node.integer("axis", -1) % len(target)
    if axis == 0:
        raise refuse(
            node, "frame-axis", "axis must lie within a frame, not be the frame axis 0",
            "put the new axis behind the first one, and transpose on the host",
        )
    constant(state, node, 1, "depth")
    depth = target[axis]
    if dtype not in COMPUTED_TYPES and dtype not in REAL_TYPES:
        raise refuse(
            node, "element-type", f"values must be real, integers of at most 64 bits or bool, not {dtype}",
            "give values of another type",
        )
    off, on = exact_constant(state, node, 2, "values").reshape(-1)
    spread = _spread(state, node, _from_front(state, node, _indices(state, node, depth), depth), target, axis)
    places = np.arange(depth).reshape([-1 if place == axis else 1 for place in range(1, len(target))])
    places = np.broadcast_to(places, spread.shape)
    last = (dtype in REAL_TYPES and off != on) or (off, on) == (0, 1)
    hot = step(state, node, Simple("equal"), [spread, places], origin=None if last else "")
    if dtype in REAL_TYPES:
        return _real(state, node, hot, off, on)
    type_ = COMPUTED_TYPES[dtype]
    if not last:
        hot = step(state, node, Simple("where"), [hot, int(on), int(off)])
    return Integers(hot.value, hot.shape, type_.min, type_.max)


def _indices(state: Lowering, node: OnnxNode, depth: int) -> Integers:
    """Return the indices as integers: reals are truncated, as by the cast to int64, and saturate outside the range."""
    view = state.view(node.inputs[0])
    if isinstance(view, Integers) or state.model.values[node.inputs[0]].dtype in COMPUTED_TYPES:
        found = integers.operand(state, node, 0)
        if isinstance(found, Integers):
            return found
    view = reals(state, node, 0)
    q = Quantization(fractions(1), fractions(0), -depth - 1, depth, Rounding.ROUND_TO_ZERO)
    return Integers(requantize(state, node, view, q, origin=""), view.shape, q.low, q.high)


def _from_front(state: Lowering, node: OnnxNode, view: Integers, depth: int) -> Integers:
    """Convert negative indices, which count from the end."""
    if view.low >= 0:
        return view
    negative = step(state, node, Simple("less"), [view, 0], origin="")
    moved = step(state, node, Simple("add"), [view, depth], origin="")
    return step(state, node, Simple("where"), [negative, moved, view], origin="")


def _spread(state: Lowering, node: OnnxNode, view: Integers, target: tuple[int, ...], axis: int) -> Integers:
    """Repeat each index along the new axis of ``target``."""
    shape = state.model.values[node.inputs[0]].shape
    index = np.expand_dims(np.arange(int(np.prod(shape))).reshape(shape), axis)
    index = np.broadcast_to(index, target)[0]
    if index.size == 1:
        return replace(view, shape=index.shape)
    value = state.add(node, [view.value], ReindexAttributes(index, 0), origin="")
    return replace(view, value=value, shape=index.shape)


def _real(state: Lowering, node: OnnxNode, hot: Integers, off: Fraction, on: Fraction) -> Reals:
    """Return the reals of 0 and 1, which represent ``off`` and ``on``."""
    if off == on:
        never = step(state, node, Simple("and"), [hot, 0], origin=state.real_origin(node))
        result = made(never.value, hot.shape, fractions(1), fractions(-off), node)
    else:
        result = made(hot.value, hot.shape, fractions(on - off), fractions(-off / (on - off)), node)
    return replace(result, low=0, high=1)


def _error(step: Step) -> Errors:
    """Bound OneHot: the error of the values, plus their difference where the truncated index is uncertain."""
    step.exact(1)
    off, on = step.value(2).astype(np.float64)
    index, reach = step.value(0).astype(np.float64), step.error(0)
    unsure = (reach > 0) & (np.trunc(index - reach) != np.trunc(index + reach))
    error = np.expand_dims(unsure, int(step.attributes.get("axis", -1))) * abs(on - off) + step.error(2).max()
    result: Errors = np.broadcast_to(error, step.output.shape).astype(np.float64)
    return result


RECORDS = (
    Operator(
        "OneHot", lower=one_hot, honours=attributes("axis"),
        limits=f"constant depth and values; reals as indices are cut off; {phrases.AXES}",
        becomes=("elementwise", "reindex"), needs=(Integers, Reals), frames=axes.along(-1, added=1), error=_error,
        mended=one_hot_definition.ONE_HOT
    ),
)
