"""Operators that move elements: no hardware for reshapes and transposes; Concat joins streams."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, integer, made, moved, reals, refuse
from hwflow.frontend.lattice import plain
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, Reals, View, compact
from hwflow.ir.graph import Fractions
from hwflow.onnxspec.model import OnnxNode


def reshape(state: Lowering, node: OnnxNode) -> View:
    """Reshape, Flatten, Squeeze, Unsqueeze: a new shape of each frame."""
    view = state.view(node.inputs[0])
    source_shape = state.model.values[node.inputs[0]].shape
    target = state.model.values[node.outputs[0]].shape
    if prod(source_shape) != prod(target):  # inference says nothing while the number of frames is open
        raise refuse(
            node, "reshape-size",
            f"the result must have as many elements as input '{node.inputs[0]}' has in one frame, "
            f"{prod(source_shape)}, not {prod(target)} {list(target)}",
            "correct the shape",
        )
    if isinstance(view, Constant):
        return Constant(view.array.reshape(target))
    if isinstance(view, QuantizedConstant):
        source = view.integers.shape
        scale, zero_point = (_reshaped(v, source, target) for v in (view.scale, view.zero_point))
        return QuantizedConstant(view.integers.reshape(target), scale, zero_point)
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    shape = state.frame_shape(node.outputs[0])
    origin = None if isinstance(view, Integers) else state.real_origin(node)
    value = state.add("reshape", node, [view.value], {"shape": shape}, origin=origin)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    old = view.shape
    return moved(view, node, value, shape, lambda v: _reshaped(v, old, shape))


def _reshaped(values: Any, source: tuple[int, ...], target: tuple[int, ...]) -> Any:
    if values.size == 1:
        return values.reshape(())
    return compact(np.broadcast_to(values, source).reshape(target))


def transpose(state: Lowering, node: OnnxNode) -> View:
    """Transpose of constants, or one that leaves the frame axis in front."""
    view = state.view(node.inputs[0])
    rank = len(state.model.values[node.inputs[0]].shape)
    given = node.attributes.get("perm", ())
    assert isinstance(given, tuple)
    perm = tuple(int(a) for a in given) or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):  # onnx lets it pass
        raise refuse(
            node, "transpose-perm", f"perm must be a permutation of the {rank} axes, not {list(perm)}",
            "correct the attribute",
        )
    if isinstance(view, Constant):
        return Constant(view.array.transpose(perm))
    if isinstance(view, QuantizedConstant):
        scale, zero_point = (_transposed(v, perm) for v in (view.scale, view.zero_point))
        return QuantizedConstant(view.integers.transpose(perm), scale, zero_point)
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    if perm[0] != 0:
        raise refuse(
            node, "frame-axis", f"perm must leave the frame axis 0 in front, not be {list(perm)}",
            "transpose within a frame",
        )
    axes = tuple(a - 1 for a in perm[1:]) or (0,)
    origin = None if isinstance(view, Integers) else state.real_origin(node)
    value = state.add("transpose", node, [view.value], {"perm": axes}, origin=origin)
    shape = tuple(view.shape[a] for a in axes)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    return moved(view, node, value, shape, lambda v: _transposed(v, axes))


def _transposed(values: Any, perm: tuple[int, ...]) -> Any:
    return values.reshape(()) if values.size == 1 else values.transpose(perm)


def concat(state: Lowering, node: OnnxNode) -> View:
    """Concat of constants, of integer tensors, or of reals, along an axis of the frame."""
    views = [state.view(name) for name in node.inputs]
    rank = len(state.model.values[node.outputs[0]].shape)
    axis = integer(node, "axis") % rank
    if all(isinstance(v, Constant) for v in views):
        return Constant(np.concatenate([v.array for v in views if isinstance(v, Constant)], axis=axis))
    if len(views) == 1:
        return views[0]
    if all(isinstance(v, Integers) for v in views):
        integers = [v for v in views if isinstance(v, Integers)]
        shape = state.frame_shape(node.outputs[0])
        value = state.add("concat", node, [v.value for v in integers], {"axis": axis - 1})
        return Integers(value, shape, min(v.low for v in integers), max(v.high for v in integers))
    return joined(state, node, [reals(state, node, index) for index in range(len(views))], axis - 1)


def joined(state: Lowering, node: OnnxNode, views: list[Reals], axis: int) -> Reals:
    """Reals next to each other along ``axis`` of a frame, each with its own scale."""
    views = [plain(state, node, view) for view in views]
    shape = list(views[0].shape)
    shape[axis] = sum(view.shape[axis] for view in views)
    before = tuple(dict.fromkeys(name for view in views for name in view.nodes))
    value = state.add(
        "concat", node, [view.value for view in views], {"axis": axis}, before, origin=state.real_origin(node)
    )
    scale = _joined([(v.scale, v.shape) for v in views], axis)
    zero_point = _joined([(v.zero_point, v.shape) for v in views], axis)
    result = made(value, tuple(shape), scale, zero_point, node)
    lows, highs = [v.low for v in views], [v.high for v in views]
    if None in lows or None in highs:
        return result
    return Reals(
        result.value, result.shape, scale, zero_point, result.anchor,
        low=min(v for v in lows if v is not None), high=max(v for v in highs if v is not None),
    )


def _joined(parts: list[tuple[Fractions, tuple[int, ...]]], axis: int) -> Fractions:
    wide = []
    for values, shape in parts:
        full = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
        target = list(full.shape)
        target[axis] = shape[axis]
        wide.append(np.broadcast_to(full, target))
    rank = len(parts[0][1])
    common = [max(w.shape[a] for w in wide) for a in range(rank)]
    aligned = [np.broadcast_to(w, [w.shape[a] if a == axis else common[a] for a in range(rank)]) for w in wide]
    return compact(np.concatenate(aligned, axis=axis))
