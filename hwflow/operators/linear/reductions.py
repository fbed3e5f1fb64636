"""ReduceSum, ReduceMean, ReduceMax, ReduceMin over any axes of a frame: global pools, with the reduced axes as
pixels."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

from hwflow.frontend.context import Handler, Lowering, constant_integers, given, made, reals, refuse
from hwflow.frontend.views import Integers, Masked, Moved, Reals, View, varying_axes
from hwflow.onnxspec.resolving.resolved_model import Attribute, OnnxNode
from hwflow.operators.elementwise.keys import summable, times
from hwflow.operators.elementwise.lattice import plain
from hwflow.operators.elementwise.ranks import alike
from hwflow.operators.linear.pools import greatest, sums_of_window, whole, window_sum
from hwflow.operators.moves.reshapes import reshaped, transposed
from hwflow.operators.norms.approximations import operand


def _reduce(operation: str) -> Handler:
    def handler(state: Lowering, node: OnnxNode) -> View:
        view = state.view(node.inputs[0])
        if isinstance(view, Masked) and operation == "max":
            return _greatest_unmasked(state, node, view)
        if not isinstance(view, Integers) or operation in ("sum", "mean"):
            view = reals(state, node, 0)
        return reduced(state, node, view, _stated(state, node), operation)

    return handler


def _greatest_unmasked(state: Lowering, node: OnnxNode, view: Masked) -> Masked:
    if _differs(view.reals, [axis - 1 for axis in reduced_places(state, node)]):
        raise refuse(
            node, "scale-range", "masked elements must have one scale along the axes, not several",
            "quantize them per tensor before the mask",
        )
    found = reduced(state, node, view.reals, _stated(state, node), "max")
    assert isinstance(found, Reals), "of reals"
    # The host has no integers for what is masked.
    return replace(view, reals=replace(found, anchor=view.reals.anchor, after=(*view.reals.after, node.name)))


def _stated(state: Lowering, node: OnnxNode) -> tuple[int, ...]:
    return constant_integers(state, node, 1, "axes") if given(node, 1) else node.integers("axes")


def reduced_places(state: Lowering, node: OnnxNode) -> list[int]:
    """Return the reduced axes of the whole shape; none for the identity."""
    return _axes(node, _stated(state, node), len(state.model.values[node.inputs[0]].shape))


def reduced(
    state: Lowering, node: OnnxNode, view: Integers | Reals, axes: Attribute, operation: str
) -> Integers | Reals:
    """Return the "sum", "mean", "max" or "min" of ``view`` over ``axes`` of the whole shape, as in the node."""
    places = _axes(node, axes, len(state.model.values[node.inputs[0]].shape))
    if not places:
        return view
    if operation in ("max", "min") and isinstance(view, Reals) and _differs(view, [axis - 1 for axis in places]):
        view = alike(state, node, plain(state, node, view))
    kept = [axis for axis in range(len(view.shape)) if axis + 1 not in places]
    keyed = None
    if operation in ("sum", "mean"):
        assert isinstance(view, Reals), "sums are of reals"
        keyed = summable(state, node, view, prod(view.shape[axis - 1] for axis in places), padded=False)
        view = view if keyed is not None else operand(state, node, view)
    image = as_image(state, node, keyed or view, kept, [axis - 1 for axis in places])
    shape = (image.shape[0], 1, 1)
    result: View
    if operation in ("max", "min"):
        result = greatest(state, node, image, whole(image.shape), shape, least=operation == "min")
    else:
        assert isinstance(image, Reals), "sums are of reals"
        sums = window_sum if keyed is None else sums_of_window
        result = sums(state, node, image, whole(image.shape), shape, origin="")
        if operation == "sum":
            result = times(result, Fraction(prod(image.shape[1:])))
    found = _result(state, node, result, state.frame_shape(node.outputs[0]))
    if keyed is None and isinstance(view, Reals) and isinstance(found, Reals) and operation != "min":
        table = state.facts.maxima if operation == "max" else state.facts.totals
        state.facts.note_rows(table, found, view, tuple(axis - 1 for axis in places))
    return found


reduce_max, reduce_mean, reduce_min, reduce_sum = (_reduce(name) for name in ("max", "mean", "min", "sum"))


def _differs(view: Reals, axes: list[int]) -> bool:
    """Tell whether scales, zero points or functions vary along some of these axes of a frame."""
    rank = len(view.shape)
    parameters = (v.reshape((1,) * (rank - v.ndim) + v.shape) for v in (view.scale, view.zero_point, *view.functions))
    return not varying_axes(*parameters).isdisjoint(axes)


def _axes(node: OnnxNode, found: Attribute, rank: int) -> list[int]:
    """Return the reduced axes of the whole shape; none for the identity."""
    assert isinstance(found, tuple)
    if not found and node.integer("noop_with_empty_axes"):
        return []
    axes = sorted({int(a) % rank for a in found if isinstance(a, int)} or range(rank))
    if axes[0] == 0:
        raise refuse(
            node, "frame-axis", f"axes must not include the frame axis 0, not be {list(found) or 'all of them'}",
            "reduce within a frame",
        )
    return axes


def as_image(
    state: Lowering, node: OnnxNode, view: Moved, kept: list[int], reduced: list[int]
) -> Moved:
    """Reshape ``view`` to an image: the kept axes are its channels, the others its pixels."""
    perm = (*kept, *reduced)
    channels = prod(view.shape[axis] for axis in kept)
    shape = (channels, 1, prod(view.shape) // channels)
    if perm != tuple(range(len(perm))):
        view = transposed(state, node, view, perm)
    return reshaped(state, node, view, shape)


def _result(state: Lowering, node: OnnxNode, view: View, shape: tuple[int, ...]) -> Integers | Reals:
    """Reshape the results, one per kept element."""
    assert isinstance(view, Integers | Reals), "results of hardware"
    origin = None if isinstance(view, Integers) or state.real_origin(node) else ""
    result = reshaped(state, node, view, shape, origin=origin)
    if isinstance(result, Integers) or result.functions:
        return result
    exact = made(result.value, shape, result.scale, result.zero_point, node)
    return replace(exact, low=result.low, high=result.high)
