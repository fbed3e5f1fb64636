"""Softmax: exponentials of the distance to the greatest element, over their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hwflow.display import show
from hwflow.frontend.context import Lowering, reals, refuse
from hwflow.frontend.facts import Limits
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Masked, Reals, View
from hwflow.onnxspec.reference import evaluator_defects, framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import function_errors
from hwflow.operators.norms.approximations import quotient
from hwflow.operators.norms.exponentials import exponentials
from hwflow.operators.norms.masked import widest
from hwflow.operators.norms.rows import Rows, below_greatest, frame_axes, same_sign
from hwflow.operators.record import Operator, attributes


def softmax(state: Lowering, node: OnnxNode) -> View:
    """Lower Softmax along any axis; before operator set 13 along all axes from one on."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Masked):
        view = reals(state, node, 0)
    return divided(state, node, view, softmax_axes(state, node, node.version))


def softmax_axes(state: Lowering, node: OnnxNode, version: int) -> tuple[int, ...]:
    """Return the axes of a frame that ``axis`` stands for in a version of ai.onnx."""
    rank = len(state.model.values[node.inputs[0]].shape)
    places: Sequence[int] = (node.integer("axis", -1),)
    if version < 13:
        places = range(node.integer("axis", 1) % rank, rank)
    return frame_axes(node, places, rank)


def divided(state: Lowering, node: OnnxNode, view: Reals | Masked, places: tuple[int, ...]) -> Reals:
    """Return the softmax of ``view`` along axes of a frame."""
    source = view.reals if isinstance(view, Masked) else view
    rows = Rows(state, node, source.shape, places)
    _, powers = powers_of_rows(rows, view)
    sums = rows.total(powers)
    state.facts.note_rows(state.facts.totals, sums, powers, rows.axes)
    # One of the summands is 1, and each is a part of the sum.
    result = quotient(state, node, powers, rows.spread(sums), Limits(Fraction(1), Fraction(1)))
    if not isinstance(view, Masked):
        state.facts.quotients[result.value] = result, powers, sums
    return replace(result, anchor=source.anchor, after=tuple(dict.fromkeys((*source.after, node.name))))


def powers_of_rows(rows: Rows, view: Reals | Masked) -> tuple[Reals, Reals]:
    """Return each element less the greatest of its row, and the exponential of that; of a masked one 0."""
    state, node = rows.state, rows.node
    reals = view.reals if isinstance(view, Masked) else rows.prepared(view)
    bound = state.bound(reals.value)
    if bound.interval is None:
        raise refuse(
            node, "quantized-operand", f"the input of {node.op_type} must be of a known range, not a sum of any size",
            f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )
    falling = same_sign(node, reals) < 0
    beyond = None
    if isinstance(view, Masked):
        rows.require_alike(reals)
        beyond = widest(state, view) + 1
    ends = rows.spread(rows.extreme(reals, least=falling))
    distances = below_greatest(state, node, reals, ends, rows.axes)
    return distances, exponentials(state, node, distances, beyond)


_LIMITS = (
    "of reals of known ranges, before a quantizer; masks by constants or by bool streams, of minus infinity or numbers "
    "far below; a row that a stream masks altogether by minus infinity, which has no result in ONNX, gets equal ones"
)

RECORDS: tuple[Operator, ...] = (
    Operator(
        "Softmax", lower=softmax, honours=attributes("axis"), limits=_LIMITS,
        becomes=("elementwise", "max_pool2d", "product", "quotient", "requantize", "sum_pool2d"),
        needs=(Integers, Reals), approximates=True, whole=True, frames=axes.along(-1, before=(13, 1)),
        error=function_errors.softmax, tame=True, framewise=framewise.inner_axis, mended=evaluator_defects.SOFTMAX,
        keeps_rank=True,
    ),
)
