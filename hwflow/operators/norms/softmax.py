"""Softmax: exponentials of the distance to the greatest element, over their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hwflow.display import show
from hwflow.frontend.context import Lowering, reals, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View, as_array
from hwflow.numerics.functions.smooth import Exp
from hwflow.onnxspec.reference import evaluator_defects, framewise
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import function_errors
from hwflow.operators.norms.approximations import quotient, tabulated
from hwflow.operators.norms.rows import Rows, below_greatest, frame_axes, same_sign
from hwflow.operators.record import Operator, attributes

MOST_RANGE = 1 << 16
"""The greatest distance, in integers, of which exponentials are tabulated."""


def softmax(state: Lowering, node: OnnxNode) -> View:
    """Lower Softmax along any axis; before operator set 13 along all axes from one on."""
    rank = len(state.model.values[node.inputs[0]].shape)
    places: Sequence[int] = (node.integer("axis", -1),)
    if node.version < 13:
        places = range(node.integer("axis", 1) % rank, rank)
    return divided(state, node, reals(state, node, 0), frame_axes(node, places, rank))


def divided(state: Lowering, node: OnnxNode, view: Reals, places: tuple[int, ...]) -> Reals:
    """Return the softmax of ``view`` along axes of a frame."""
    rows = Rows(state, node, view.shape, places)
    powers = exponentials(rows, rows.prepared(view))
    sums = rows.spread(rows.total(powers))
    # One of the summands is 1, and each is a part of the sum.
    result = quotient(state, node, powers, sums, most=Fraction(1), least=Fraction(1))
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def exponentials(rows: Rows, view: Reals) -> Reals:
    """Return the exponential of each element less the greatest of its row."""
    state, node = rows.state, rows.node
    falling = same_sign(node, view) < 0
    bound = state.bound(view.value)
    if bound.interval is None or bound.errors or bound.interval.hi - bound.interval.lo >= MOST_RANGE:
        raise refuse(
            node, "quantized-operand", f"the input of {node.op_type} must be quantized to at most 16 bits, not left in "
            "float", f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )
    ends = rows.spread(rows.extreme(view, least=falling))
    distances = below_greatest(state, node, view, ends, rows.axes)
    found = tabulated(state, node, replace(distances, functions=(as_array(Exp()),)))
    assert found is not None, "few enough, and an exponential is defined everywhere"
    return found


RECORDS: tuple[Operator, ...] = (
    Operator(
        "Softmax", lower=softmax, honours=attributes("axis"), limits="of reals of at most 16 bits, before a quantizer",
        becomes=("elementwise", "max_pool2d", "quotient", "requantize", "sum_pool2d"), needs=(Integers, Reals),
        approximates=True, whole=True, frames=axes.along(-1, before=(13, 1)),
        error=function_errors.softmax, tame=True, framewise=framewise.inner_axis, mended=evaluator_defects.SOFTMAX,
        keeps_rank=True,
    ),
)
