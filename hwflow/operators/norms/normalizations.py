"""Normalizations of rows: each element, less the mean or not, over a root of the mean of squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hwflow.frontend.context import Handler, Lowering, exact_constant, finite, given, reals
from hwflow.frontend.facts import Limits
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
from hwflow.operators.norms.approximations import quotient, reciprocal, root, square
from hwflow.operators.norms.based import based
from hwflow.operators.norms.rows import Rows, frame_axes
from hwflow.operators.record import Operator, attributes

_BECOMES = ("product", "quotient", "root", "scaled_add", "sum_pool2d")
LIMITS = "constant scale and bias, before a quantizer; epsilon above 0"


def normalized(
    state: Lowering, node: OnnxNode, view: Reals, places: Sequence[int], epsilon: Fraction, *, centred: bool = True,
    outside: bool = False,
) -> tuple[Reals, Reals]:
    """Divide each element of ``view``, less the mean of its row along ``places`` if ``centred``, by the root of the
    row's mean square and ``epsilon``, which is added to the root instead if ``outside``; return that mean square of
    each row too."""
    rows = Rows(state, node, view.shape, places)
    whole = rows.prepared(view)
    distances = rows.centred(whole) if centred else based(state, node, whole)
    mean = _mean(rows, square(state, node, distances))
    spread = mean if outside else _plus(mean, epsilon)
    norms = root(state, node, spread)
    norms = rows.spread(_plus(norms, epsilon) if outside else norms)
    # No element is more than all of the row's squares. The sum of squares of integers is at least 1, or all are 0; that
    # of the distances, which are n times as large, at least n * (n - 1).
    apart = Fraction(max(1, rows.count - 1)) if centred else Fraction(1, rows.count)
    unit = min(abs(Fraction(scale)) for scale in distances.scale.reshape(-1))
    most, nonzero = (RootMultiply(number).root(32)[end] for number, end in ((Fraction(rows.count), 1), (apart, 0)))
    return quotient(state, node, distances, norms, Limits(most, None, unit * nonzero)), spread


def _mean(rows: Rows, view: Reals) -> Reals:
    sums = rows.total(view)
    return replace(sums, scale=as_array(sums.scale / rows.count), zero_point=as_array(sums.zero_point))


def _plus(view: Reals, addend: Fraction) -> Reals:
    return replace(view, zero_point=as_array(view.zero_point - addend / view.scale))


def finished(node: OnnxNode, view: Reals, result: Reals) -> Reals:
    """Return the node's result, with which the host would continue from the anchor of ``view``."""
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def scaled(
    state: Lowering, node: OnnxNode, view: Reals, places: tuple[int, int | None], shape: tuple[int, ...]
) -> Reals:
    """Multiply by the constant input ``places[0]`` and add ``places[1]``, where they are given; both are reshaped to
    ``shape``, which broadcasts over a frame (the empty one: as they are)."""
    multiplier, addend = fractions(1), fractions(0)
    if given(node, places[0]):
        multiplier = exact_constant(state, node, places[0], "scale")
    if places[1] is not None and given(node, places[1]):
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


def statistics(
    state: Lowering, node: OnnxNode, view: Reals, places: Sequence[int], spread: Reals
) -> tuple[Reals, Reals]:
    """Return the mean of each row, and one over the root of its mean square and epsilon, ``spread``."""
    rows = Rows(state, node, view.shape, places)
    # 1 / sqrt(v) as sqrt(1 / v): small roots would have to be known to many more bits.
    return _mean(rows, rows.prepared(view)), root(state, node, reciprocal(state, node, spread))


def from_axis(*, centred: bool) -> Handler:
    """Return the handler of a normalization of the axes from attribute ``axis`` on."""

    def handler(state: Lowering, node: OnnxNode) -> tuple[View, ...]:
        view = reals(state, node, 0)
        rank = len(state.model.values[node.inputs[0]].shape)
        places = frame_axes(node, range(node.integer("axis", -1) % rank, rank), rank)
        result, spread = normalized(state, node, view, places, finite(node, "epsilon", 1e-5), centred=centred)
        results = [scaled(state, node, result, (1, 2), ())]
        if any(node.outputs[1:]):
            mean, inverse = statistics(state, node, view, places, spread)
            results += [mean, inverse] if centred else [inverse]
        return tuple(finished(node, view, each) for each in results[: len(node.outputs)])

    return handler


def instance_normalization(state: Lowering, node: OnnxNode) -> View:
    """Lower InstanceNormalization: the rows are the channels' images."""
    view = reals(state, node, 0)
    places = range(1, len(view.shape))
    result, _ = normalized(state, node, view, places, finite(node, "epsilon", 1e-5), centred=True)
    shape = (-1, *(1,) * (len(view.shape) - 1))
    return finished(node, view, scaled(state, node, result, (1, 2), shape))


def _record(name: str, lower: Handler, error: ErrorRule, **facts: Any) -> Operator:
    return Operator(
        name, lower=lower, limits=LIMITS, becomes=_BECOMES, needs=(Integers, Reals), approximates=True, error=error,
        whole=True, **facts,
    )


RECORDS = (
    _record(
        "InstanceNormalization", instance_normalization, norm_errors.normalization(norm_errors.images),
        honours=attributes("epsilon"), frames=axes.IMAGE, tame=True, sizes=size_facts.channel_vectors(1, 2),
    ),
    _record(
        "LayerNormalization", from_axis(centred=True), norm_errors.normalization(norm_errors.from_axis),
        honours=attributes("axis", "epsilon", "stash_type"), frames=axes.along(-1), wild=True, unchecked=True,
        framewise=framewise.inner_axis,
    ),
    _record(
        "RMSNormalization", from_axis(centred=False),
        norm_errors.normalization(norm_errors.from_axis, centred=False),
        honours=attributes("axis", "epsilon", "stash_type"), frames=axes.along(-1), framewise=framewise.inner_axis,
    ),
)
