"""GatherElements with constant indices: one element per index, taken along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from hwflow.display import show
from hwflow.frontend.context import Lowering, constant, refuse
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.views import View
from hwflow.onnxspec.reference import gather_defects
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import move_errors
from hwflow.operators.moves.moves import placed
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def gather_elements(state: Lowering, node: OnnxNode) -> View:
    """Lower GatherElements: for axis 1, element [i, j, k] is the operand's at [i, indices[i, j, k], k]."""
    shape = state.model.values[node.inputs[0]].shape
    axis = node.integer("axis") % len(shape)
    indices = constant(state, node, 1, "indices").array.astype(np.int64)
    fits = indices.ndim == len(shape) and all(
        a == axis or count <= size for a, (count, size) in enumerate(zip(indices.shape, shape, strict=True))
    )
    if not fits:
        raise refuse(
            node, "indices-shape",
            f"indices {show(node.inputs[1])} must have the {len(shape)} axes of {show(node.inputs[0])} and no more "
            f"places than {list(shape)} along those other than {axis}, not shape {list(indices.shape)}",
            "correct the constant",
        )
    size = shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise refuse(
            node, "gather-indices",
            f"indices must lie in [{-size}, {size - 1}], not in [{indices.min()}, {indices.max()}]",
            "correct the constant",
        )
    part = tuple(slice(None) if a == axis else slice(count) for a, count in enumerate(indices.shape))

    def move(array: Any) -> Any:
        return np.take_along_axis(array[part], indices % size, axis)

    return placed(state, node, state.view(node.inputs[0]), shape, move)


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow another axis than that of frames, with equal indices in each frame."""
    indices = build.first(node.inputs[1]) if build.is_fixed(node.inputs[1]) else None
    if indices is None or node.integer("axis") % len(build.shape(node.inputs[0])) == 0:
        return False
    copy.input[1] = indices
    return True


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    if not build.is_fixed(node.inputs[1]):
        return False
    axis = node.integer("axis")
    copy.input[1] = build.with_leading_axis(node.inputs[1])
    set_attribute(copy, "axis", axis + 1 if axis >= 0 else axis)
    return True


RECORDS = (
    Operator(
        "GatherElements", lower=gather_elements, honours=attributes("axis"),
        limits=f"constant indices, {phrases.AXES}", becomes=("reindex",), frames=BatchingRule(_independent, _batched),
        error=move_errors.moved, mended=gather_defects.GATHER_ELEMENTS, moves=True
    ),
)
