"""Concat of streams and constants along an axis of a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, Refusal, made, reals, require_finite
from hwflow.frontend.views import (
    Constant,
    Functions,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    compact,
    elementwise,
    fractions,
)
from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ConcatAttributes, ReindexAttributes
from hwflow.numerics.functions.piecewise import Affine
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.alignment import step
from hwflow.operators.elementwise.lattice import plain


def concat(state: Lowering, node: OnnxNode) -> View:
    """Lower Concat of constants, of integer tensors, or of reals, along an axis of the frame."""
    views = [state.view(name) for name in node.inputs]
    axis = node.integer("axis", 1) % len(state.model.values[node.result].shape)  # default 1 before operator set 4
    if all(isinstance(v, Constant) for v in views):
        return Constant(np.concatenate([v.array for v in views if isinstance(v, Constant)], axis=axis))
    full = {i: v for i, v in enumerate(views) if not (isinstance(v, Constant) and v.array.size == 0)}
    views = list(full.values())
    if len(views) == 1:
        return views[0]
    if all(isinstance(v, Constant | Integers) for v in views):
        parts = [_whole(v) for v in views if isinstance(v, Constant | Integers)]
        value = _side_by_side(state, node, parts, axis - 1)
        low, high = _ends(parts)
        return Integers(value, state.frame_shape(node.result), low, high)
    operands: list[Reals | Constant | QuantizedConstant] = []
    for index, view in full.items():
        if isinstance(view, Constant):
            require_finite(node, index, "the constant", view.array)
        operands.append(view if isinstance(view, Constant | QuantizedConstant) else reals(state, node, index))
    return joined(state, node, operands, axis - 1)


def joined(
    state: Lowering, node: OnnxNode, views: Sequence[Reals | Constant | QuantizedConstant], axis: int
) -> Reals:
    """Concatenate reals along ``axis`` of a frame, each with its own scale; some of them are streams.

    A constant has integers with a scale like a stream, or is a function of zeros. Functions of streams that are not
    tabulated stay functions before the next quantizer."""
    parts = [_part(state, node, view) for view in views]
    streams = [part.view for part in parts if part.view is not None]
    first, before = streams[0], tuple(dict.fromkeys(name for view in streams for name in view.nodes))
    count = max(len(part.functions) for part in parts)
    shapes = [part.integers.shape for part in parts]
    value = _side_by_side(
        state, node, [part.integers for part in parts], axis, before, "" if count else state.real_origin(node)
    )
    scale, zero_point = (
        _joined([getattr(part, name) for part in parts], shapes, axis) for name in ("scale", "zero_point")
    )
    functions = tuple(
        _joined([part.functions[i] if i < len(part.functions) else _identity() for part in parts], shapes, axis)
        for i in range(count)
    )
    shape = tuple(sum(s[a] for s in shapes) if a == axis else size for a, size in enumerate(shapes[0]))
    result = made(value, shape, scale, zero_point, node)
    if functions:  # the host would continue with the node itself, which needs all of its inputs
        result = replace(result, anchor=first.anchor, functions=functions, after=(*first.after, node.name))
    if any(view.low is None for view in streams):
        return result
    low, high = _ends([part.integers for part in parts])
    return replace(result, low=low, high=high)


@dataclass(frozen=True)
class _Part:
    """One operand: its integers and their meaning. ``view``: its stream, if it is one."""

    integers: Integers | IntArray
    scale: Fractions
    zero_point: Fractions
    functions: tuple[Functions, ...] = ()
    view: Reals | None = None


def _part(state: Lowering, node: OnnxNode, view: Reals | Constant | QuantizedConstant) -> _Part:
    if isinstance(view, Reals):
        with suppress(Refusal):  # a later quantizer may do what a table cannot
            view = plain(state, node, view)
        low, high = (0, 0) if view.low is None or view.high is None else (view.low, view.high)
        return _Part(Integers(view.value, view.shape, low, high), view.scale, view.zero_point, view.functions, view)
    if isinstance(view, QuantizedConstant):
        scale, zero_point = (v.reshape(v.shape[1:]) for v in (view.scale, view.zero_point))
        return _Part(_frame(view.integers), scale, zero_point)
    real = _frame(fractions(view.array))
    zeros = np.zeros(real.shape, dtype=np.int64)
    return _Part(zeros, fractions(1), fractions(0), (elementwise(Affine, fractions(0), real),))


def _frame(array: Any) -> Any:
    """Return a constant without its frame axis, of length 1."""
    return array.reshape(array.shape[1:] or (1,))


def _whole(view: Constant | Integers) -> Integers | IntArray:
    return view if isinstance(view, Integers) else _frame(view.array.astype(np.int64))


def _ends(parts: Iterable[Integers | IntArray]) -> tuple[int, int]:
    """Return the minimum and maximum of all integers."""
    ends = [(v.low, v.high) if isinstance(v, Integers) else (int(v.min()), int(v.max())) for v in parts]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _identity() -> Functions:
    return np.array(None, dtype=object)


def _side_by_side(
    state: Lowering, node: OnnxNode, parts: Sequence[Integers | IntArray], axis: int, before: tuple[str, ...] = (),
    origin: str | None = None,
) -> Value:
    """Concatenate the integers of streams and constants along ``axis`` of a frame: the streams first, then the
    constants are inserted."""
    streams = [part for part in parts if isinstance(part, Integers)]
    constants = [part for part in parts if not isinstance(part, Integers)]
    value = streams[0].value
    if len(streams) > 1:
        value = state.add(
            node, [v.value for v in streams], ConcatAttributes(axis), before,
            origin="" if constants else origin,
        )
    if not constants:
        return value
    ends = np.cumsum([stream.shape[axis] for stream in streams])
    together = [ends[-1] if a == axis else size for a, size in enumerate(streams[0].shape)]
    places = iter(np.split(np.arange(np.prod(together)).reshape(together), ends[:-1], axis=axis))
    index = np.concatenate(
        [next(places) if isinstance(v, Integers) else np.full(v.shape, -1) for v in parts], axis=axis
    )
    fill = int(constants[0].reshape(-1)[0])
    alike = all((constant == fill).all() for constant in constants)
    attributes = ReindexAttributes(index, fill)
    value = state.add(node, [value], attributes, before, origin=origin if alike else "")
    if alike:
        return value
    known = np.concatenate([np.full(v.shape, fill) if isinstance(v, Integers) else v for v in parts], axis=axis)
    stream = Integers(value, index.shape, 0, 0)
    is_known = np.where(index == -1, 1, 0)
    return step(state, node, Simple("where"), [is_known, known, stream], before=before, origin=origin).value


def _joined(parts: Sequence[Any], shapes: Sequence[tuple[int, ...]], axis: int) -> Any:
    """Concatenate along ``axis`` values that broadcast over the parts' ``shapes``, as one that broadcasts over all."""
    wide = []
    for values, shape in zip(parts, shapes, strict=True):
        full = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
        wide.append(np.broadcast_to(full, [shape[a] if a == axis else size for a, size in enumerate(full.shape)]))
    common = [max(w.shape[a] for w in wide) for a in range(len(shapes[0]))]
    aligned = [np.broadcast_to(w, [w.shape[a] if a == axis else common[a] for a in range(w.ndim)]) for w in wide]
    return compact(np.concatenate(aligned, axis=axis))
