"""GatherElements, of constant indices or constant data: one element per index, taken along one axis."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx

from hwflow.display import show
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.stream_types import COMPUTED_TYPES
from hwflow.frontend.views import Constant, View
from hwflow.ir.integer_functions import Simple
from hwflow.onnxspec.reference import gather_defects
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.float_errors import move_errors
from hwflow.operators.moves.constant_tables import from_front, numbers_of, rows_of
from hwflow.operators.moves.gather import indexed
from hwflow.operators.moves.moves import placed
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def gather_elements(state: Lowering, node: OnnxNode) -> View:
    """Lower GatherElements: for axis 1, element [i, j, k] is the operand's at [i, indices[i, j, k], k]."""
    shape = state.model.values[node.inputs[0]].shape
    axis = node.integer("axis") % len(shape)
    view = state.view(node.inputs[1])
    if not isinstance(view, Constant):
        return _by_numbers(state, node, shape, axis)
    indices = view.array.astype(np.int64)
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


def _by_numbers(state: Lowering, node: OnnxNode, shape: tuple[int, ...], axis: int) -> View:
    """Take elements of constant data: of each vector along ``axis`` those that the indices beside it name."""
    numbers, counts, size = numbers_of(state, node), state.model.values[node.inputs[1]].shape, shape[axis]
    if axis == 0 or shape[0] != 1:
        raise refuse(
            node, "frame-axis", f"data {show(node.inputs[0])} must be the same for each frame, not of shape "
            f"{list(shape)} indexed along axis {axis}", "give the data a first axis of length 1, and index another one"
        )
    part = tuple(slice(None) if a == axis else slice(count) for a, count in enumerate(counts))
    others = tuple(1 if a == axis else count for a, count in enumerate(counts))
    vectors = np.broadcast_to(np.arange(prod(others)).reshape(others), counts)[0] * size
    places = from_front(state, node, numbers, size)
    if prod(others) > 1:
        element = COMPUTED_TYPES["int64"]
        places = integers.step(state, node, Simple("add"), [places, vectors], element, last=False)
    return rows_of(state, node, places, lambda array: np.moveaxis(array[part], axis, -1).reshape(-1, 1))


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow another axis than that of frames, with equal indices, or equal constant data, in each frame."""
    fixed = build.is_fixed(node.inputs[0])
    if fixed and node.integer("axis") % len(build.shape(node.inputs[0])) > 0:
        data = build.first(node.inputs[0])
        copy.input[0] = data or node.inputs[0]
        return data is not None
    indices = build.first(node.inputs[1]) if build.is_fixed(node.inputs[1]) else None
    if indices is None or node.integer("axis") % len(build.shape(node.inputs[0])) == 0:
        return False
    copy.input[1] = indices
    return True


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    axis = node.integer("axis")
    for place in (0, 1):
        if build.is_fixed(node.inputs[place]):
            copy.input[place] = build.with_leading_axis(node.inputs[place])
    set_attribute(copy, "axis", axis + 1 if axis >= 0 else axis)
    return True


RECORDS = (
    Operator(
        "GatherElements", lower=gather_elements, honours=attributes("axis"),
        limits=f"constant indices, {phrases.AXES}; or {phrases.TABLE}",
        becomes=("elementwise", "reindex", "table_lookup"), frames=BatchingRule(_independent, _batched),
        error=move_errors.moved, mended=gather_defects.GATHER_ELEMENTS, indexed=indexed, moves=True
    ),
)
