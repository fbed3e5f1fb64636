"""MaxUnpool with constant indices: elements are scattered to their indices, zeros elsewhere."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx

from hwflow.display import show
from hwflow.frontend.context import Lowering, constant, constant_integers, given, reals, refuse
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build
from hwflow.frontend.views import Constant, QuantizedConstant, View
from hwflow.ir.graph import IntArray
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import move_errors
from hwflow.operators.moves.moves import placed, with_zero
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def max_unpool(state: Lowering, node: OnnxNode) -> View:
    """Lower MaxUnpool. Indices count through the tensor inferred from the window's attributes, which lies at the start
    of every axis of ``output_shape``; the last of elements with the same index wins (as in the reference evaluator)."""
    shape = state.model.values[node.inputs[0]].shape
    if len(shape) < 3:
        raise refuse(
            node, "pool-rank",
            f"input {show(node.inputs[0])} must have frames, channels and spatial axes, not {len(shape)} axes",
            "reshape it to (frames, channels, ...)",
        )
    indices = constant(state, node, 1, "indices").array.astype(np.int64)
    if indices.shape != shape:
        raise refuse(
            node, "indices-shape",
            f"indices {show(node.inputs[1])} must have the shape {list(shape)} of a frame of {show(node.inputs[0])}, "
            f"not {list(indices.shape)}",
            "correct the constant, or export the model with a batch of 1",
        )
    inner = _inferred(node, shape)
    if min(inner) < 1:
        raise refuse(
            node, "unpool-window",
            f"kernel_shape, strides and pads must infer an image of at least one pixel, not {list(inner[2:])}",
            "correct the attributes",
        )
    target = state.model.values[node.outputs[0]].shape
    if given(node, 2):
        target = constant_integers(state, node, 2, "output_shape")
    if len(target) != len(shape) or any(size < least for size, least in zip(target, inner, strict=False)):
        raise refuse(
            node, "unpool-shape",
            f"output_shape must be at least {list(inner)}, which kernel_shape, strides and pads infer, not "
            f"{list(target)}",
            "correct it, or the attributes",
        )
    if indices.min() < 0 or indices.max() >= prod(inner):
        raise refuse(
            node, "unpool-indices",
            f"indices must lie in [0, {prod(inner) - 1}], not in [{indices.min()}, {indices.max()}]",
            "correct the constant",
        )
    places = np.full(prod(inner), -1)
    places[indices.reshape(-1)] = np.arange(indices.size)
    whole = np.full(target, -1)
    whole[tuple(slice(size) for size in inner)] = places.reshape(inner)
    holes = whole == -1
    # A zero takes the scale of its channel.
    channel = np.minimum(np.arange(target[1]), shape[1] - 1).reshape(1, -1, *(1,) * (len(target) - 2))
    source = np.where(holes, channel * prod(shape[2:]), whole)

    def move(array: Any) -> Any:
        return array.reshape(-1)[source]

    view = state.view(node.inputs[0])
    if not isinstance(view, Constant | QuantizedConstant) and holes.any():
        view = with_zero(state, node, reals(state, node, 0))
    return placed(state, node, view, shape, move, holes)


def _inferred(node: OnnxNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the pre-pooling shape that indices refer to: MaxPool with these attributes turns it into ``shape``. (Shape
    inference checks the attributes' lengths.)"""
    axes = len(shape) - 2
    kernel, strides, pads = (node.integers(name) for name in ("kernel_shape", "strides", "pads"))
    strides, pads = strides or (1,) * axes, pads or (0,) * 2 * axes
    image = ((size - 1) * strides[a] + kernel[a] - pads[a] - pads[a + axes] for a, size in enumerate(shape[2:]))
    return (*shape[:2], *image)


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow frames whose indices, counted from the frame's start, equal those of the first."""
    name, shape = node.inputs[1], build.shape(node.inputs[0])
    stated = node.inputs[2] if len(node.inputs) > 2 else ""
    if not build.is_constant(name) or build.shape(name) != shape or len(shape) < 3:
        return False
    indices: IntArray = build.constant(name).astype(np.int64)
    own = indices - prod(_inferred(node, shape)[1:]) * np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    if (own != own[:1]).any():
        return False
    copy.input[1] = build.add(name, own[:1])
    if stated:
        if not build.is_constant(stated) or build.constant(stated)[0] != shape[0]:
            return False
        copy.input[2] = build.add(stated, np.array([1, *build.constant(stated)[1:]]))
    return True


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Turn the members of a batch, whose elements may be mixed, into channels of one frame."""
    name, shape, result = node.inputs[1], build.shape(node.inputs[0]), build.shape(node.result)
    stated = node.inputs[2] if len(node.inputs) > 2 else ""
    if not build.is_constant(name) or build.shape(name) != shape or len(shape) < 3 or result[:2] != shape[:2]:
        return False
    copy.input[0] = build.reshaped(node.inputs[0], (-1, shape[0] * shape[1], *shape[2:]))
    copy.input[1] = build.add(name, build.constant(name).reshape(1, -1, *shape[2:]))
    if stated:
        if not build.is_constant(stated):
            return False
        copy.input[2] = build.add(stated, np.array([1, result[0] * result[1], *result[2:]]))
    build.result_in(copy, 0, (-1, *result))
    return True


RECORDS = (
    Operator(
        "MaxUnpool", lower=max_unpool, honours=attributes("kernel_shape", "pads", "strides"),
        limits=f"constant indices, {phrases.MOVED}", becomes=("reindex",), shape_input=2,
        frames=BatchingRule(_independent, _batched), error=move_errors.moved
    ),
)
