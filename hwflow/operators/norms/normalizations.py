"""Normalizations of rows: each element, less the mean or not, over a root of the mean of squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hwflow.frontend.context import Handler, Lowering, exact_constant, finite, given, reals
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, as_array, compact, fractions
from hwflow.ir.graph import Fractions
from hwflow.numerics.functions.power import RootMultiply
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.elementwise.arithmetic import affine
from hwflow.operators.float_errors import norm_errors
from hwflow.operators.float_errors.step_errors import ErrorRule
from hwflow.operators.norms.approximations import based, quotient, reciprocal, root, square
from hwflow.operators.norms.rows import Rows, frame_axes
from hwflow.operators.record import Operator, attributes

_BECOMES = ("product", "quotient", "root", "scaled_add", "sum_pool2d")
_LIMITS = "constant scale and bias, before a quantizer; epsilon above 0"


def normalized(
    state: Lowering, node: OnnxNode, view: Reals, places: Sequence[int], epsilon: Fraction, *, centred: bool
) -> tuple[Reals, Reals]:
    """Divide each element of ``view``, less the mean of its row along ``places`` if ``centred``, by the root of the
    row's mean square and ``epsilon``; return that mean square of each row too."""
    rows = Rows(state, node, view.shape, places)
    whole = rows.prepared(view)
    distances = rows.centred(whole) if centred else based(state, node, whole)
    mean = _mean(rows, square(state, node, distances))
    spread = replace(mean, zero_point=as_array(mean.zero_point - epsilon / mean.scale))
    norms = root(state, node, spread)
    # No element is more than all of the row's squares.
    most = RootMultiply(Fraction(rows.count)).root(32)[1]
    return quotient(state, node, distances, rows.spread(norms), most=most), spread


def _mean(rows: Rows, view: Reals) -> Reals:
    sums = rows.total(view)
    return replace(sums, scale=as_array(sums.scale / rows.count), zero_point=as_array(sums.zero_point))


def _finished(node: OnnxNode, view: Reals, result: Reals) -> Reals:
    """Return the node's result, with which the host would continue from the anchor of ``view``."""
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def _scaled(state: Lowering, node: OnnxNode, view: Reals, places: tuple[int, int], shape: tuple[int, ...]) -> Reals:
    """Multiply by the constant input ``places[0]`` and add ``places[1]``, where they are given; both are reshaped to
    ``shape``, which broadcasts over a frame (the empty one: as they are)."""
    multiplier, addend = fractions(1), fractions(0)
    if given(node, places[0]):
        multiplier = exact_constant(state, node, places[0], "scale")
    if given(node, places[1]):
        addend = exact_constant(state, node, places[1], "bias")
    if shape:
        multiplier, addend = (v if v.size == 1 else v.reshape(shape) for v in (multiplier, addend))
    multiplier, addend = (_of_frame(v, len(view.shape)) for v in (multiplier, addend))
    return affine(view, node, multiplier, addend)


def _of_frame(values: Fractions, rank: int) -> Fractions:
    if values.size == 1:
        return values.reshape(())
    own = values.shape[-rank:] if values.ndim > rank else (1,) * (rank - values.ndim) + values.shape
    return compact(values.reshape(own))


def _from_axis(*, centred: bool) -> Handler:
    def handler(state: Lowering, node: OnnxNode) -> tuple[View, ...]:
        view = reals(state, node, 0)
        rank = len(state.model.values[node.inputs[0]].shape)
        places = frame_axes(node, range(node.integer("axis", -1) % rank, rank), rank)
        result, spread = normalized(state, node, view, places, finite(node, "epsilon", 1e-5), centred=centred)
        results = [_scaled(state, node, result, (1, 2), ())]
        rows = Rows(state, node, view.shape, places)
        if any(node.outputs[1:]):
            # 1 / sqrt(v) as sqrt(1 / v): small roots would have to be known to many more bits.
            results += [_mean(rows, rows.prepared(view)), root(state, node, reciprocal(state, node, spread))]
        return tuple(_finished(node, view, each) for each in results)

    return handler


def instance_normalization(state: Lowering, node: OnnxNode) -> View:
    """Lower InstanceNormalization: the rows are the channels' images."""
    view = reals(state, node, 0)
    places = range(1, len(view.shape))
    result, _ = normalized(state, node, view, places, finite(node, "epsilon", 1e-5), centred=True)
    shape = (-1, *(1,) * (len(view.shape) - 1))
    return _finished(node, view, _scaled(state, node, result, (1, 2), shape))


def _record(name: str, lower: Handler, error: ErrorRule, **facts: Any) -> Operator:
    return Operator(
        name, lower=lower, limits=_LIMITS, becomes=_BECOMES, needs=(Integers, Reals), approximates=True, error=error,
        whole=True, **facts,
    )


RECORDS = (
    _record(
        "InstanceNormalization", instance_normalization, norm_errors.normalization(norm_errors.images),
        honours=attributes("epsilon"), frames=axes.IMAGE, tame=True, sizes=size_facts.channel_vectors(1, 2),
    ),
    _record(
        "LayerNormalization", _from_axis(centred=True), norm_errors.normalization(norm_errors.from_axis),
        honours=attributes("axis", "epsilon", "stash_type"), frames=axes.along(-1), wild=True, unchecked=True,
        framewise=framewise.inner_axis,
    ),
    _record(
        "RMSNormalization", _from_axis(centred=False),
        norm_errors.normalization(norm_errors.from_axis, centred=False),
        honours=attributes("axis", "epsilon", "stash_type"), frames=axes.along(-1), framewise=framewise.inner_axis,
    ),
)
