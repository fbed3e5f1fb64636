"""GatherND, of constant indices or constant data: an element, or a slice, per index vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx

from hwflow.display import show
from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.frames.axes import BatchingRule
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.stream_types import COMPUTED_TYPES
from hwflow.frontend.views import Constant, Integers, View
from hwflow.ir.graph import IntArray
from hwflow.ir.integer_functions import Simple, Times
from hwflow.ir.node_attributes import ReindexAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.float_errors import move_errors
from hwflow.operators.linear.linear_work import Shapes
from hwflow.operators.moves.constant_tables import from_front, numbers_of, rows_of
from hwflow.operators.moves.moves import placed
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases


def gather_nd(state: Lowering, node: OnnxNode) -> View:
    """Lower GatherND: the last axis of the indices holds positions along the axes after the first ``batch_dims``, which
    both operands share."""
    shape, batch = state.model.values[node.inputs[0]].shape, node.integer("batch_dims")
    view, found = state.view(node.inputs[1]), state.model.values[node.inputs[1]].shape
    length = found[-1] if found else 0
    if not (0 <= batch < min(len(found), len(shape)) and 1 <= length <= len(shape) - batch):
        raise refuse(
            node, "indices-shape",
            f"indices {show(node.inputs[1])} must be vectors of 1 to {len(shape) - batch} positions after {batch} axes "
            f"shared with {show(node.inputs[0])}, not of shape {list(found)}",
            "correct the constant, or batch_dims",
        )
    if found[:batch] != shape[:batch]:
        raise refuse(
            node, "indices-shape",
            f"indices {show(node.inputs[1])} must have the first {batch} axes of {show(node.inputs[0])}, "
            f"{list(shape[:batch])}, not {list(found[:batch])}",
            "correct the constant, or batch_dims",
        )
    if not isinstance(view, Constant):
        return _by_numbers(state, node, shape, batch, found)
    indices = view.array.astype(np.int64)
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


def _by_numbers(
    state: Lowering, node: OnnxNode, shape: tuple[int, ...], batch: int, found: tuple[int, ...]
) -> View:
    """Take elements, or slices, of constant data of ``shape`` by index vectors of shape ``found``."""
    numbers = numbers_of(state, node)
    if batch == 0 and len(found) == 1:
        raise refuse(
            node, "frame-axis", "indices must have a frame axis in front of that of their vectors, not be one vector",
            "reshape to (frames, ...)",
        )
    sizes, element = shape[batch : batch + found[-1]], COMPUTED_TYPES["int64"]
    counts = found[1:-1] or (1,)

    def add(a: Integers, b: integers.Operand) -> Integers:
        return integers.step(state, node, Simple("add"), [a, b], element, last=False)

    total = None
    flat = np.arange(prod(found[1:])).reshape(*counts, found[-1])
    for place, size in enumerate(sizes):
        value = state.add(node, [numbers.value], ReindexAttributes(flat[..., place], 0), origin="")
        own = from_front(state, node, replace(numbers, value=value, shape=counts), size)
        stride = prod(sizes[place + 1 :])
        if stride > 1:
            own = integers.step(state, node, Times(stride), [own], element, last=False)
        total = own if total is None else add(total, own)
    assert total is not None, "index vectors have a position"
    if prod(shape[:batch]) > 1:
        own_place = np.arange(prod(shape[:batch])).reshape(*shape[:batch], *(1,) * (len(found) - 1 - batch))
        total = add(total, np.broadcast_to(own_place * prod(sizes), found[:-1])[0])
    return rows_of(state, node, total, lambda array: array.reshape(prod(shape[:batch]) * prod(sizes), -1))


def indexed(node: OnnxNode, shapes: Shapes) -> Mapping[int, int]:
    """Return the greatest size of an axis that the elements of input 1 index."""
    batch = node.integer("batch_dims")
    sizes = shapes(0)[batch : batch + (shapes(1) or (0,))[-1]]
    return {1: max(sizes)} if sizes else {}


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    """Allow frames as a shared axis, or indices that begin with the frame's number; the rest is equal in each frame."""
    name = node.inputs[1]
    if build.is_fixed(node.inputs[0]) and not build.is_fixed(name):
        shared = node.integer("batch_dims") > 0
        data = build.first(node.inputs[0]) if shared else node.inputs[0]
        copy.input[0] = data or node.inputs[0]
        return data is not None and (shared or len(build.shape(name)) > 1)
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
    if build.is_fixed(node.inputs[0]) and not build.is_fixed(name):
        if node.integer("batch_dims") > 0:
            copy.input[0] = build.with_leading_axis(node.inputs[0])
            set_attribute(copy, "batch_dims", node.integer("batch_dims") + 1)
        return True
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
        "GatherND", lower=gather_nd, honours=attributes("batch_dims"),
        limits=f"constant indices, {phrases.AXES}; or {phrases.TABLE}",
        becomes=("elementwise", "reindex", "table_lookup"), wild=True, frames=BatchingRule(_independent, _batched),
        error=move_errors.moved, indexed=indexed, moves=True
    ),
)
