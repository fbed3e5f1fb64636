"""Gather: parts of a frame at constant indices, or rows of constant data at indices known at run time."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import onnx

from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.frames import axes, following
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.views import Constant, View
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import move_errors
from hwflow.operators.linear.linear_work import Shapes
from hwflow.operators.moves.constant_tables import numbers_of, rows_of
from hwflow.operators.moves.moves import placed
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def gather(state: Lowering, node: OnnxNode) -> View:
    """Lower Gather along an axis of the frame, or of constant data."""
    shape = state.model.values[node.inputs[0]].shape
    axis = node.integer("axis") % len(shape)
    view = state.view(node.inputs[1])
    if not isinstance(view, Constant):
        return _by_numbers(state, node, shape, axis)
    indices, size = view.array.astype(np.int64), shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise refuse(
            node, "gather-indices",
            f"indices must lie in [{-size}, {size - 1}], not in [{indices.min()}, {indices.max()}]",
            "correct the constant",
        )
    return placed(
        state, node, state.view(node.inputs[0]), shape, lambda array: np.take(array, indices % size, axis=axis)
    )


def _by_numbers(state: Lowering, node: OnnxNode, shape: tuple[int, ...], axis: int) -> View:
    """Take entries of constant data of ``shape`` along its ``axis``; axes in front of it have one entry."""
    numbers = numbers_of(state, node)
    if prod(shape[:axis]) != 1 or (axis > 0 and state.model.values[node.inputs[1]].shape[:1] != (1,)):
        raise refuse(
            node, "frame-axis",
            f"the result must keep the frame axis of the indices first, not behind {axis} axes of the data",
            "transpose the data so that axis is 0, and the result likewise",
        )
    return rows_of(state, node, numbers, lambda array: array.reshape(shape[axis], -1))


def indexed(node: OnnxNode, shapes: Shapes) -> Mapping[int, int]:
    """Return the size of the axis that the elements of input 1 index."""
    shape = shapes(0)
    return {1: shape[node.integer("axis") % len(shape)]}


_DATA = axes.along(0)


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow data of frames along another axis, or indices of frames along the first axis of fixed data."""
    if not build.is_fixed(node.inputs[0]):
        return _DATA.independent(build, node, copy)
    return node.integer("axis") % len(build.shape(node.inputs[0])) == 0 and build.shape(node.inputs[1]) != ()


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Let the new axis stay in front: where fixed data have axes in front of the indexed one, they come back by a
    Transpose."""
    data = node.inputs[0]
    if not build.is_fixed(data):
        assert _DATA.batched is not None
        return _DATA.batched(build, node, copy)
    rank, count = len(build.shape(data)), len(build.shape(node.inputs[1]))
    axis = node.integer("axis") % rank
    if axis == 0:
        return True
    order = [axis, *(other for other in range(rank) if other != axis)]
    copy.input[0] = build.transposed(data, order)
    set_attribute(copy, "axis", 0)
    places: list[int] = [*range(1 + count, 1 + count + axis), *range(1, 1 + count)]
    build.result_transposed(copy, 0, [0, *places, *range(1 + count + axis, count + rank)])
    return True


RECORDS = (
    Operator(
        names.GATHER, lower=gather, honours=attributes("axis"),
        limits=f"constant indices, {phrases.AXES}; or {phrases.TABLE}", becomes=("reindex", "table_lookup"),
        frames=BatchingRule(_independent, _batched, follow=following.gathered), error=move_errors.moved,
        proportional=True, moves=True, indexed=indexed
    ),
)
