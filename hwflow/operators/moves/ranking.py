"""ArgMax, ArgMin and TopK: indices and values of the greatest elements along an axis of the frame.

The integers of quantized reals have the reals' order if scale (positive) and zero point are constant along the axis.
Otherwise the elements are first converted to multiples of a common divisor
(:mod:`hwflow.operators.elementwise.alignment`), or to ranks among all possible values
(:mod:`hwflow.operators.elementwise.ranks`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hwflow.frontend.context import Lowering, constant_integers, made, reals, refuse
from hwflow.frontend.views import Integers, Reals, View, as_array, compact, fractions, uniform
from hwflow.ir.graph import Value
from hwflow.ir.integer_functions import Shifted, Simple
from hwflow.ir.node_attributes import ReshapeAttributes, Take, TopKAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import SHORT, in_common, in_order, step
from hwflow.operators.elementwise.lattice import plain
from hwflow.operators.elementwise.ranks import alike
from hwflow.types import Interval, IntType

MAX_K = 64
"""The greatest k: each element is compared with the k best so far in one cycle."""


@dataclass(frozen=True)
class _Ordered:
    """Integers in the order of the operand's elements along the axis, or (``falling``) the reverse order. ``reals``:
    the operand, where the integers represent it."""

    value: Value
    falling: bool
    reals: Reals | None
    integers: Integers | None


def arg_max(state: Lowering, node: OnnxNode) -> View:
    """Lower ArgMax to an int64 tensor."""
    return _arg_extreme(state, node, least=False)


def arg_min(state: Lowering, node: OnnxNode) -> View:
    """Lower ArgMin to an int64 tensor."""
    return _arg_extreme(state, node, least=True)


def _arg_extreme(state: Lowering, node: OnnxNode, *, least: bool) -> View:
    shape, axis = _axis(state, node, default=0)
    source = _ordered(state, node, state.view(node.inputs[0]), axis, scaled=False)
    attributes = TopKAttributes(
        axis=axis, k=1, least=least != source.falling, last=bool(node.integer("select_last_index")), take=Take.INDEX
    )
    before = source.reals.nodes if source.reals is not None else ()
    target = state.frame_shape(node.outputs[0])
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    value = state.add(node, [source.value], attributes, before, origin=None if target == kept else "")
    if target != kept:
        value = state.add(node, [value], ReshapeAttributes(target))
    return Integers(value, target, 0, shape[axis] - 1)


def first_greatest(state: Lowering, node: OnnxNode, view: Reals, axis: int) -> Integers:
    """Return the place of the first greatest element of ``view`` along an axis of its frame, which gets length 1."""
    source = _ordered(state, node, view, axis, scaled=False)
    attributes = TopKAttributes(axis=axis, k=1, least=source.falling, last=False, take=Take.INDEX)
    before = source.reals.nodes if source.reals is not None else ()
    value = state.add(node, [source.value], attributes, before, origin="")
    return Integers(value, (*view.shape[:axis], 1, *view.shape[axis + 1 :]), 0, view.shape[axis] - 1)


def top_k(state: Lowering, node: OnnxNode) -> tuple[View, ...]:
    """Lower TopK with constant k to values and int64 indices, always in the order of ``sorted``."""
    shape, axis = _axis(state, node, default=-1)
    k = _count(state, node)
    values, places = _used(state, node)
    source = _ordered(state, node, state.view(node.inputs[0]), axis, scaled=values)
    least = (node.integer("largest", 1) == 0) != source.falling
    take = Take.BOTH if values and places else Take.VALUE if values else Take.INDEX
    target = (*shape[:axis], k, *shape[axis + 1 :])
    before = source.reals.nodes if source.reals is not None else ()
    made_of = TopKAttributes(axis=axis, k=k, least=least, last=False, take=take)
    origin = {"both": "", "value": None, "index": node.outputs[1]}[take]
    result = state.add(node, [source.value], made_of, before, origin=origin)
    best = place = result
    if take is Take.BOTH:
        bits = IntType.holding(Interval(0, shape[axis] - 1)).bits  # bits of an index
        both = Integers(result, target, 0, 0)
        best = step(state, node, Shifted(False, 64), [both, bits]).value
        place = step(state, node, Simple("and"), [both, (1 << bits) - 1], origin=node.outputs[1]).value
    return _values(node, source, best, target), Integers(place, target, 0, shape[axis] - 1)


def _values(node: OnnxNode, source: _Ordered, value: Value, shape: tuple[int, ...]) -> View:
    if source.integers is not None:
        return Integers(value, shape, source.integers.low, source.integers.high)
    view = source.reals
    assert view is not None, "of reals or of integers"
    if view.functions:  # ranks
        return replace(view, value=value, shape=shape)
    return replace(made(value, shape, view.scale, view.zero_point, node), low=view.low, high=view.high)


def _axis(state: Lowering, node: OnnxNode, default: int) -> tuple[tuple[int, ...], int]:
    """Return the frame's shape, and the axis within it."""
    whole = state.model.values[node.inputs[0]].shape
    axis = node.integer("axis", default) % len(whole)
    if axis == 0:
        raise refuse(
            node, "frame-axis", "axis must lie within a frame, not be the frame axis 0",
            "work along an axis within a frame, or leave the node to the host: it compares frames with each other",
        )
    return whole[1:], axis - 1


def _count(state: Lowering, node: OnnxNode) -> int:
    if node.version < 10:
        k = node.integer("k")
    else:
        (k,) = constant_integers(state, node, 1, "k")
    if k > MAX_K:
        raise refuse(
            node, "top-count",
            f"k must be at most {MAX_K}, not {k}: each element is compared with the k best so far at once",
            "ask for fewer, or leave the node to the host after the last quantizer",
        )
    return k


def _used(state: Lowering, node: OnnxNode) -> tuple[bool, bool]:
    """Tell which of the outputs are read; both if none is."""
    read = {name for other in state.model.nodes for name in other.inputs} | {*state.model.outputs}
    values, places = (name in read for name in node.outputs)
    return (values, places) if values or places else (True, True)


def _ordered(state: Lowering, node: OnnxNode, view: View, axis: int, *, scaled: bool) -> _Ordered:
    """Order ``view`` along the axis; ``scaled``: the values are needed, not only their order."""
    if isinstance(view, Integers):
        return _Ordered(view.value, False, None, view)
    view = plain(state, node, view if isinstance(view, Reals) else reals(state, node, 0))
    scale, zero_point = (_along(values, view.shape) for values in (view.scale, view.zero_point))
    if scale.shape[axis] == zero_point.shape[axis] == 1:
        falling = uniform(as_array(scale < 0))
        if falling is not None and (scale != 0).all():
            return _Ordered(view.value, bool(falling), view, None)
    elif not scaled and scale.shape[axis] == 1 and (scale != 0).all():
        # Parameters that are equal along the axis do not change the order.
        sign, falling = as_array(scale / abs(scale)), uniform(as_array(scale < 0))
        first = zero_point.take([0], axis=axis)
        moved = replace(
            view, scale=fractions(1) if falling else compact(sign), zero_point=as_array(zero_point - first)
        )
        return _Ordered(in_order(state, node, moved).value, bool(falling), replace(view, nodes=()), None)
    if scaled or (view.low is not None and in_common([view])[1] >= SHORT):
        exact = alike(state, node, view)
        return _Ordered(exact.value, False, replace(exact, nodes=()), None)
    return _Ordered(in_order(state, node, view).value, False, replace(view, nodes=()), None)


def _along(values: Any, shape: tuple[int, ...]) -> Any:
    """Return values that broadcast over a frame with the frame's rank."""
    return compact(values.reshape((1,) * (len(shape) - values.ndim) + values.shape))
