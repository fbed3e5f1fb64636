"""Operators that only change the shape or axis order of a frame: no hardware."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, moved, reals, refuse
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, View, compact
from hwflow.ir.node_attributes import ReshapeAttributes, TransposeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode


def reshape(state: Lowering, node: OnnxNode) -> View:
    """Lower Reshape, Flatten, Squeeze, Unsqueeze to a new shape of each frame."""
    view = state.view(node.inputs[0])
    source_shape = state.model.values[node.inputs[0]].shape
    target = state.model.values[node.outputs[0]].shape
    if prod(source_shape) != prod(target):  # shape inference cannot tell while the number of frames is open
        raise refuse(
            node, "reshape-size",
            f"the result must have as many elements as input {show(node.inputs[0])} has in one frame, "
            f"{prod(source_shape)}, not {prod(target)} {list(target)}",
            "reshape each frame, with all of its elements, to (frames, ...)",
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
    value = state.add("reshape", node, [view.value], ReshapeAttributes(shape), origin=origin)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    old = view.shape
    return moved(view, node, value, shape, lambda v: _reshaped(v, old, shape))


def _reshaped(values: Any, source: tuple[int, ...], target: tuple[int, ...]) -> Any:
    if values.size == 1:
        return values.reshape(())
    return compact(np.broadcast_to(values, source).reshape(target))


def transpose(state: Lowering, node: OnnxNode) -> View:
    """Lower Transpose of constants, or one that leaves the frame axis first."""
    view = state.view(node.inputs[0])
    rank = len(state.model.values[node.inputs[0]].shape)
    given = node.attributes.get("perm", ())
    assert isinstance(given, tuple)
    perm = tuple(int(a) for a in given) or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):  # onnx accepts it
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
            node, "frame-axis", f"perm must leave the frame axis 0 first, not be {list(perm)}",
            "transpose within a frame",
        )
    axes = tuple(a - 1 for a in perm[1:]) or (0,)
    origin = None if isinstance(view, Integers) else state.real_origin(node)
    value = state.add("transpose", node, [view.value], TransposeAttributes(axes), origin=origin)
    shape = tuple(view.shape[a] for a in axes)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    return moved(view, node, value, shape, lambda v: _transposed(v, axes))


def _transposed(values: Any, perm: tuple[int, ...]) -> Any:
    return values.reshape(()) if values.size == 1 else values.transpose(perm)
