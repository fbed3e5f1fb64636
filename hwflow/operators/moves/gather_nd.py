"""GatherND with constant indices: an element, or a slice, of a frame per index vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from hwflow.display import show
from hwflow.frontend.context import Lowering, constant, refuse
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.views import View
from hwflow.ir.graph import IntArray
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import move_errors
from hwflow.operators.moves.moves import placed
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def gather_nd(state: Lowering, node: OnnxNode) -> View:
    """Lower GatherND: the last axis of the indices holds positions along the axes after the first ``batch_dims``, which
    both operands share."""
    shape, batch = state.model.values[node.inputs[0]].shape, node.integer("batch_dims")
    indices = constant(state, node, 1, "indices").array.astype(np.int64)
    length = indices.shape[-1] if indices.ndim else 0
    if not (0 <= batch < min(indices.ndim, len(shape)) and 1 <= length <= len(shape) - batch):
        raise refuse(
            node, "indices-shape",
            f"indices {show(node.inputs[1])} must be vectors of 1 to {len(shape) - batch} positions after {batch} axes "
            f"shared with {show(node.inputs[0])}, not of shape {list(indices.shape)}",
            "correct the constant, or batch_dims",
        )
    if indices.shape[:batch] != shape[:batch]:
        raise refuse(
            node, "indices-shape",
            f"indices {show(node.inputs[1])} must have the first {batch} axes of {show(node.inputs[0])}, "
            f"{list(shape[:batch])}, not {list(indices.shape[:batch])}",
            "correct the constant, or batch_dims",
        )
    places = []
    for place, size in enumerate(shape[batch : batch + length]):
        own = indices[..., place]
        if own.size and (own.min() < -size or own.max() >= size):
            raise refuse(
                node, "gather-indices",
                f"indices along axis {batch + place} must lie in [{-size}, {size - 1}], not in "
                f"[{own.min()}, {own.max()}]",
                "correct the constant",
            )
        places.append(own % size)
    shared = np.indices(indices.shape[:-1], sparse=True)[:batch]

    def move(array: Any) -> Any:
        return array[(*shared, *places)]

    return placed(state, node, state.view(node.inputs[0]), shape, move)


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow frames as a shared axis, or indices that begin with the frame's number; the rest is equal in each frame."""
    name = node.inputs[1]
    if node.integer("batch_dims") > 0:
        first = build.first(name) if build.is_fixed(name) else None
        if first is not None:
            copy.input[1] = first
        return first is not None
    if not build.is_constant(name) or build.constant(name).ndim < 2:
        return False
    indices: IntArray = build.constant(name).astype(np.int64)
    count = build.shape(node.inputs[0])[0]
    own = np.arange(len(indices)).reshape(-1, *(1,) * (indices.ndim - 2))
    numbers, rest = indices[..., 0], indices[..., 1:]
    if len(indices) != count or (numbers % count != own).any() or (rest != rest[:1]).any():
        return False
    of_one = np.concatenate([np.zeros_like(indices[:1, ..., :1]), rest[:1]], axis=-1)
    copy.input[1] = build.add(name, of_one, build.resolved.values[name].dtype)
    return True


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    name = node.inputs[1]
    if not build.is_constant(name) or not build.shape(name):
        return False
    if node.version >= 12:
        copy.input[1] = build.with_leading_axis(name)
        set_attribute(copy, "batch_dims", node.integer("batch_dims") + 1)
        return True
    indices = build.constant(name)[np.newaxis]  # no axes are shared: each index vector begins with the frame's number
    whole = np.concatenate([np.zeros_like(indices[..., :1]), indices], axis=-1)
    copy.input[1] = build.add(name, whole, build.resolved.values[name].dtype)
    return True


RECORDS = (
    Operator(
        "GatherND", lower=gather_nd, honours=attributes("batch_dims"), limits=f"constant indices, {phrases.AXES}",
        becomes=("reindex",), wild=True, frames=BatchingRule(_independent, _batched), error=move_errors.moved,
        moves=True
    ),
)
