"""Operators that move elements: each element of the result is one of the operand's, or a constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.display import show
from hwflow.frontend.context import (
    Lowering,
    Refusal,
    constant_integers,
    exact_constant,
    given,
    moved,
    reals,
    refuse,
)
from hwflow.frontend.views import (
    Constant,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    changed,
    compact,
    rearranged,
    uniform,
)
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.node_attributes import ReindexAttributes
from hwflow.numerics.functions.function import Elementwise, enclose
from hwflow.numerics.interval import Interval, NoSteps
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.lattice import ENCLOSURE_BITS, from_zero, plain, whole_zero_point

Move = Callable[[Any], Any]
"""Applies a node to an array of its operand's whole shape, the frame axis included."""


def slice_(state: Lowering, node: OnnxNode) -> View:
    """Lower Slice, with any steps, of axes other than the frame axis."""
    shape = state.model.values[node.inputs[0]].shape
    if node.version < 10:
        starts, ends = (node.integers(name) for name in ("starts", "ends"))
        axes, steps = node.integers("axes") or tuple(range(len(starts))), (1,) * len(starts)
    else:
        starts, ends = (constant_integers(state, node, index, what) for index, what in ((1, "starts"), (2, "ends")))
        axes = constant_integers(state, node, 3, "axes") if given(node, 3) else tuple(range(len(starts)))
        steps = constant_integers(state, node, 4, "steps") if given(node, 4) else (1,) * len(starts)
    picks = [slice(None)] * len(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        picks[axis % len(shape)] = _slice_of(shape[axis % len(shape)], start, end, step)
    return _moved(state, node, lambda array: array[tuple(picks)])


def _slice_of(size: int, start: int, end: int, step: int) -> slice:
    """Convert ONNX's bounds (operator Slice 13: negative ones count from the end, then all are clamped) to Python's."""
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


PAD_MODES = ("constant", "edge", "reflect", "wrap")


def pad(state: Lowering, node: OnnxNode, fill: Fraction | None = None) -> View:
    """Lower Pad in all its modes, of axes other than the frame axis. ``fill``: instead of the node's constant."""
    shape, (before, after) = state.model.values[node.inputs[0]].shape, _pads(state, node)
    mode = node.attributes.get("mode", "constant")
    if before[0] or after[0]:
        raise refuse(
            node, "frame-axis", f"the frame axis must not be padded, not by {[before[0], after[0]]}",
            "pad within a frame",
        )
    assert mode in PAD_MODES
    # numpy's edge mode gives a constant the scale of the nearest element.
    how: Any = "edge" if mode == "constant" else mode

    def move(array: Any) -> Any:
        return _padded(array, shape, before, after, mode=how)

    holes = pad_places(state, node)
    if mode != "constant" or not holes.any():
        return _moved(state, node, move)
    return _moved(state, node, move, holes, _pad_value(state, node) if fill is None else fill)


def pad_places(state: Lowering, node: OnnxNode) -> npt.NDArray[np.bool_]:
    """Return where a Pad adds elements, of the result's whole shape."""
    shape, (before, after) = state.model.values[node.inputs[0]].shape, _pads(state, node)
    places: npt.NDArray[np.bool_] = _padded(np.zeros(shape, dtype=bool), shape, before, after, constant_values=True)
    return places


def _pads(state: Lowering, node: OnnxNode) -> tuple[list[int], list[int]]:
    """Return how many elements a Pad adds before and after each axis."""
    rank = len(state.model.values[node.inputs[0]].shape)
    stated = node.integers("pads") or node.integers("paddings")
    pads = constant_integers(state, node, 1, "pads") if node.version >= 11 else stated
    axes = constant_integers(state, node, 3, "axes") if given(node, 3) else tuple(range(rank))
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis % rank], after[axis % rank] = pads[place], pads[place + len(axes)]
    return before, after


def _padded(array: Any, shape: tuple[int, ...], before: list[int], after: list[int], **how: Any) -> Any:
    crop = tuple(slice(max(0, -b), size - max(0, -a)) for b, a, size in zip(before, after, shape, strict=True))
    return np.pad(array[crop], [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)], **how)


def _pad_value(state: Lowering, node: OnnxNode) -> Fraction:
    if node.version < 11:
        value = node.attributes.get("value", 0.0)
        assert isinstance(value, int | float)
        return Fraction(value)
    if not given(node, 2):
        return Fraction(0)
    (value,) = exact_constant(state, node, 2, "the constant").reshape(-1)
    return Fraction(value)


def tile(state: Lowering, node: OnnxNode) -> View:
    """Lower Tile within a frame."""
    repeats = constant_integers(state, node, 1, "repeats")
    if node.version < 6:  # inputs: count and axis
        (axis,), rank = constant_integers(state, node, 2, "axis"), len(state.model.values[node.inputs[0]].shape)
        repeats = tuple(repeats[0] if place == axis % rank else 1 for place in range(rank))
    return _moved(state, node, lambda array: np.tile(array, repeats))


def expand(state: Lowering, node: OnnxNode) -> View:
    """Lower Expand: axes of length 1 are repeated, new ones come first."""
    shape = constant_integers(state, node, 1, "shape")
    source = state.view(node.inputs[0])
    found = _moved(state, node, lambda array: np.broadcast_to(array, np.broadcast_shapes(array.shape, shape)))
    if isinstance(found, Reals) and isinstance(source, Reals) and len(found.shape) == len(source.shape):
        state.facts.repeated[found.value] = source
    return found


def depth_to_space(state: Lowering, node: OnnxNode) -> View:
    """Lower DepthToSpace in both modes."""
    _, channels, height, width = state.model.values[node.inputs[0]].shape
    block = node.integer("blocksize")
    if node.attributes.get("mode", "DCR") == "CRD":
        split, order = (1, channels // block**2, block, block, height, width), (0, 1, 4, 2, 5, 3)
    else:
        split, order = (1, block, block, channels // block**2, height, width), (0, 3, 4, 1, 5, 2)
    shape = (1, channels // block**2, height * block, width * block)
    return _moved(state, node, lambda array: array.reshape(split).transpose(order).reshape(shape))


def space_to_depth(state: Lowering, node: OnnxNode) -> View:
    """Lower SpaceToDepth in both modes."""
    _, channels, height, width = state.model.values[node.inputs[0]].shape
    block = node.integer("blocksize")
    split = (1, channels, height // block, block, width // block, block)
    shape = (1, channels * block**2, height // block, width // block)
    order = (0, 1, 3, 5, 2, 4) if node.attributes.get("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return _moved(state, node, lambda array: array.reshape(split).transpose(order).reshape(shape))


def split(state: Lowering, node: OnnxNode) -> tuple[View, ...]:
    """Lower Split along an axis of the frame: one view per output."""
    shape = state.model.values[node.inputs[0]].shape
    axis = node.integer("axis") % len(shape)
    sizes = [state.model.values[name].shape[axis] for name in node.outputs]
    views = []
    start = 0
    for place, size in enumerate(sizes):
        views.append(_moved(state, node, _part(axis, start, size), output=place))
        start += size
    return tuple(views)


def _part(axis: int, start: int, size: int) -> Move:
    picks = (slice(None),) * axis + (slice(start, start + size),)
    return lambda array: array[picks]


def _moved(
    state: Lowering, node: OnnxNode, move: Move, holes: Any = None, fill: Fraction = Fraction(0), *, output: int = 0
) -> View:
    """Apply ``move`` to the operand; where ``holes`` (of the result's whole shape) is set, put the real ``fill``."""
    whole = state.model.values[node.inputs[0]].shape
    return placed(state, node, state.view(node.inputs[0]), whole, move, holes, fill, output=output)


def placed(
    state: Lowering, node: OnnxNode, view: View, whole: tuple[int, ...], move: Move, holes: Any = None,
    fill: Fraction = Fraction(0), *, output: int = 0,
) -> View:
    """Return output ``output`` of ``node``: ``view``, of ``whole`` shape, after ``move``; where ``holes`` (of the
    result's whole shape) is set, the real ``fill``."""
    if isinstance(view, Constant | QuantizedConstant):
        return _moved_constant(node, view, move, holes)
    index = move(np.arange(prod(whole)).reshape(whole))
    if index.shape[:1] != (1,):
        raise refuse(
            node, "frame-axis", f"the result must keep the frame axis first, not have shape {list(index.shape)}",
            "work within a frame",
        )
    if not isinstance(view, Integers | Reals):
        view = reals(state, node, 0)
    number = 0
    if holes is not None and holes.any():
        if isinstance(view, Reals):
            view = _fillable(state, node, view, fill)
        number = _integer_fill(node, view, fill)
        index = np.where(holes, -1, index)
    name = node.outputs[output]
    origin = name if isinstance(view, Integers) or state.real_origin(node) else ""
    return _placed(state, node, view, whole, move, index, number, origin)


def _fillable(state: Lowering, node: OnnxNode, view: Reals, fill: Fraction) -> Reals:
    """Return ``view`` without functions; or with them, if they have no table, map 0 to 0, and ``fill`` is 0."""
    try:
        return plain(state, node, view)
    except Refusal:
        if fill != 0 or not all(_keeps_zero(function) for step in view.functions for function in step.reshape(-1)):
            raise
        return view


def _keeps_zero(function: Elementwise | None) -> bool:
    try:
        return function is None or enclose([function], Interval.point(Fraction(0)), ENCLOSURE_BITS).exact == 0
    except NoSteps:  # undefined there
        return False


def with_zero(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return ``view`` with an integer that means 0 in every place, to insert zeros among its elements."""
    view = _fillable(state, node, view, Fraction(0))
    zero = uniform(view.zero_point)
    if zero is not None and zero.denominator == 1:
        return view
    return from_zero(state, node, whole_zero_point(state, node, view))


def broadcast(
    state: Lowering, node: OnnxNode, view: Reals, whole: tuple[int, ...], target: tuple[int, ...]
) -> Reals:
    """Broadcast ``view`` from the whole shape ``whole`` to ``target`` (ONNX: multidirectional broadcasting)."""
    if whole == target:
        return view

    def move(array: Any) -> Any:
        return np.broadcast_to(array, target)

    result = _placed(state, node, view, whole, move, move(np.arange(prod(whole)).reshape(whole)), 0, "")
    assert isinstance(result, Reals), "reals stay reals"
    return result


def with_constant(state: Lowering, node: OnnxNode, place: int, what: str) -> tuple[Reals, Fractions]:
    """Return the operands of an elementwise operator on a stream and a constant of any kind, input ``place`` of two
    (``what`` in messages): see :func:`over_constant`."""
    real = exact_constant(state, node, place, what)
    name = node.inputs[1 - place]
    return over_constant(state, node, reals(state, node, 1 - place), name, f"{what} {show(node.inputs[place])}", real)


def over_constant(
    state: Lowering, node: OnnxNode, view: Reals, name: str, what: str, constant: Fractions
) -> tuple[Reals, Fractions]:
    """Broadcast ``view``, the value ``name``, with a ``constant`` (``what`` in messages); return it and the constant,
    which has the rank of a frame and is compact."""
    whole = state.model.values[name].shape
    excess = constant.ndim - len(whole)
    if excess > 0:  # axes of length 1: the result's first axis is the frame axis
        raise refuse(
            node, "frame-axis",
            f"{what} must have no axes in front of the frame axis of {show(name)}, not shape {list(constant.shape)}",
            f"reshape it to {list(constant.shape[excess:])}",
        )
    view = broadcast(state, node, view, whole, np.broadcast_shapes(whole, constant.shape))
    rank = len(view.shape)
    # A constant of the stream's rank has the frame axis, of length 1, first.
    own = constant.shape[-rank:] if constant.ndim > rank else (1,) * (rank - constant.ndim) + constant.shape
    return view, compact(constant.reshape(own))


def _placed(
    state: Lowering, node: OnnxNode, view: Integers | Reals, whole: tuple[int, ...], move: Move, index: IntArray,
    number: int, origin: str,
) -> Integers | Reals:
    """Gather the elements of ``view``, of ``whole`` shape, by ``index``, with ``number`` where that is -1."""
    shape = index.shape[1:] or (1,)
    value = state.add(node, [view.value], ReindexAttributes(index.reshape(shape), number), origin=origin)
    if isinstance(view, Integers):
        return Integers(value, shape, min(view.low, number), max(view.high, number))
    old = view.shape

    def move_parameters(values: Any) -> Any:
        return rearranged(values, old, lambda array: move(array.reshape(whole)).reshape(shape))

    result = moved(view, node, value, shape, move_parameters)
    if view.low is None or view.high is None:
        return result
    return replace(result, low=min(view.low, number), high=max(view.high, number))


def _integer_fill(node: OnnxNode, view: Integers | Reals, fill: Fraction) -> int:
    """Return the integer that represents ``fill``."""
    if isinstance(view, Integers):
        wanted = fill
    else:
        zero, scale = uniform(view.zero_point), uniform(view.scale)
        if zero is None or (scale is None and fill != 0) or scale == 0:
            raise refuse(
                node, "pad-scale",
                "a padded tensor must have one zero point, and one scale unless padded with 0, not one per channel",
                "quantize per tensor before the node",
            )
        wanted = zero if scale is None else zero + fill / scale
    if wanted.denominator != 1:
        raise refuse(
            node, "pad-value", f"the constant must be a multiple of the operand's scale, not {float(fill):.9g}",
            "pad with a number that the preceding quantizer can represent",
        )
    return int(wanted)


def _moved_constant(node: OnnxNode, view: Constant | QuantizedConstant, move: Move, holes: Any) -> View:
    if isinstance(view, Constant) or (holes is not None and holes.any()):
        raise refuse(
            node, "stream-operand", f"input {show(node.inputs[0])} must be computed at run time, not be a constant",
            "fold the node",
        )
    return changed(view, move)
