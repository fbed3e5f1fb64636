"""Where the axis of frames goes: rules for operators that process the entries of any axis independently.

A rule takes the axis of the frames in each input of a node, None for one that is fixed, and returns the axis in its
results; None where the operator does not keep frames apart, or it cannot tell. All frames are of size 1 here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from hwflow.frontend.frames.frame_model import Build
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

Axes: TypeAlias = Sequence[int | None]
Follow: TypeAlias = Callable[[Build, OnnxNode, Axes], int | None]


def broadcast(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through operands that broadcast."""
    rank = len(build.shape(node.result))
    found = set()
    for name, axis in zip(node.inputs, axes, strict=True):
        if axis is not None:
            found.add(axis + rank - len(build.shape(name)))
    if len(found) != 1:
        return None
    (result,) = found
    fixed = (name for name, axis in zip(node.inputs, axes, strict=True) if name and axis is None)
    return result if all(_one(build.shape(name), result - rank) for name in fixed) else None


def _one(shape: tuple[int, ...], axis: int) -> bool:
    """Tell whether an operand is the same for all entries of an axis, counted from the end (below 0)."""
    return -axis > len(shape) or shape[axis] == 1


def transposed(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a Transpose."""
    order = node.integers("perm") or tuple(range(len(build.shape(node.inputs[0]))))[::-1]
    return None if axes[0] is None else order.index(axes[0])


def reshaped(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a Reshape or Flatten: frames stay behind as many elements. A Reshape says which axis is that of
    the frames by -1, or by 0 where it stays."""
    before, after, axis = build.shape(node.inputs[0]), build.shape(node.result), _first(axes)
    if axis is None:
        return None
    given = _integers(build, node)
    there = [place for place, size in enumerate(after) if size == 1 and prod(after[:place]) == prod(before[:axis])]
    if given is not None and len(given) == len(after):
        open_ = [place for place in there if given[place] == -1 or (given[place] == 0 and place == axis)]
        there = open_ or there
    return there[0] if len(there) == 1 else None


def squeezed(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a Squeeze."""
    axis, given = _first(axes), _integers(build, node)
    kept = [] if given is None else _kept(len(build.shape(node.inputs[0])), given)
    return kept.index(axis) if axis is not None and axis in kept else None


def unsqueezed(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through an Unsqueeze."""
    axis, given = _first(axes), _integers(build, node)
    return None if axis is None or given is None else _kept(len(build.shape(node.result)), given)[axis]


def _first(axes: Axes) -> int | None:
    """Return the axis of the first input, if it is the only one with frames."""
    return None if any(axis is not None for axis in axes[1:]) else axes[0]


def _integers(build: Build, node: OnnxNode) -> list[int] | None:
    """Return the axes or the shape that a node is given, None if these are not constant."""
    if len(node.inputs) < 2 or not node.inputs[1]:
        return [*node.integers("axes")] or None
    return [int(v) for v in build.constant(node.inputs[1])] if build.is_constant(node.inputs[1]) else None


def _kept(rank: int, others: Sequence[int]) -> list[int]:
    """Return the axes of a value that are not ``others``, which may count from the end."""
    return [axis for axis in range(rank) if axis not in {other % rank for other in others}]


def first_along(default: int) -> Follow:
    """Return the rule of an attribute ``axis`` of the first input, the only stream; the results have its rank."""

    def follow(build: Build, node: OnnxNode, axes: Axes) -> int | None:
        rank = len(build.shape(node.inputs[0]))
        apart = node.integer("axis", default) % rank != axes[0] and rank == len(build.shape(node.result))
        return axes[0] if apart and not any(axis is not None for axis in axes[1:]) else None

    return follow


def gathered(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a Gather of data by fixed indices."""
    axis = node.integer("axis") % len(build.shape(node.inputs[0]))
    if axes[0] is None or axes[1] is not None or axis == axes[0]:
        return None
    return axes[0] if axes[0] < axis else axes[0] - 1 + len(build.shape(node.inputs[1]))


def joined(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a Concat."""
    rank, found = len(build.shape(node.result)), {axis for axis in axes if axis is not None}
    return found.pop() if len(found) == 1 and node.integer("axis") % rank not in found else None


def quantized(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a quantizer with fixed scales and zero points, per tensor or along another axis."""
    rank, scale = len(build.shape(node.inputs[0])), build.shape(node.inputs[1])
    if any(axis is not None for axis in axes[1:]) or len(scale) > 1:
        return None
    return axes[0] if scale in ((), (1,)) or node.integer("axis", 1) % rank != axes[0] else None


def multiplied(build: Build, node: OnnxNode, axes: Axes) -> int | None:
    """Follow through a MatMul: frames are rows, columns or whole matrices."""
    ranks = [len(build.shape(name)) for name in node.inputs]
    if min(ranks) < 2:
        return None
    found = set()
    for place, axis in enumerate(axes):
        if axis is not None:
            summed = ranks[place] - (1 if place == 0 else 2)
            if axis == summed:
                return None
            found.add(axis - ranks[place])
    if len(found) != 1:
        return None
    (end,) = found  # counted from the end
    streams = sum(axis is not None for axis in axes)
    others = [build.shape(name) for name, axis in zip(node.inputs, axes, strict=True) if axis is None]
    if (end >= -2 and streams > 1) or (end < -2 and not all(_one(shape, end) for shape in others)):
        return None
    return end + len(build.shape(node.result))
