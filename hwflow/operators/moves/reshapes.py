"""Operators that only change the shape or axis order of a frame: no hardware."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hwflow.display import show
from hwflow.frontend.context import Lowering, reals, refuse
from hwflow.frontend.views import Constant, Integers, Moved, QuantizedConstant, Reals, View, changed, relocated
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
    if isinstance(view, Constant | QuantizedConstant):
        return changed(view, lambda array: array.reshape(target))
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    origin = None if isinstance(view, Integers) else state.real_origin(node)
    return _after(reshaped(state, node, view, state.frame_shape(node.outputs[0]), origin=origin), node)


def _after(view: Integers | Reals, node: OnnxNode) -> Integers | Reals:
    return view if isinstance(view, Integers) else replace(view, after=(*view.after, node.name))


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
    if isinstance(view, Constant | QuantizedConstant):
        return changed(view, lambda array: array.transpose(perm))
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    if perm[0] != 0:
        raise refuse(
            node, "frame-axis", f"perm must leave the frame axis 0 first, not be {list(perm)}",
            "transpose within a frame",
        )
    axes = tuple(a - 1 for a in perm[1:]) or (0,)
    origin = None if isinstance(view, Integers) else state.real_origin(node)
    return _after(transposed(state, node, view, axes, origin=origin), node)


def reshaped(
    state: Lowering, node: OnnxNode, view: Moved, shape: tuple[int, ...], *, origin: str | None = ""
) -> Moved:
    """Return ``view`` in another shape of a frame; ``origin`` as for :meth:`Lowering.add`."""
    value = state.add(node, [view.value], ReshapeAttributes(shape), origin=origin)
    return relocated(view, value, shape, lambda array: array.reshape(shape))


def transposed(
    state: Lowering, node: OnnxNode, view: Moved, perm: tuple[int, ...], *, origin: str | None = ""
) -> Moved:
    """Return ``view`` with the axes of a frame in another order; ``origin`` as for :meth:`Lowering.add`."""
    value = state.add(node, [view.value], TransposeAttributes(perm), origin=origin)
    return relocated(view, value, tuple(view.shape[axis] for axis in perm), lambda array: array.transpose(perm))
