"""CumSum: prefix sums along an axis."""

from __future__ import annotations

import numpy as np

from hwflow.frontend.context import Lowering, constant, made, refuse
from hwflow.frontend.context import reals as real_operand
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Integers, Reals, View, as_array, compact, fractions
from hwflow.ir.graph import Fractions, Value
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import CumulativeSumAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import aligned, step
from hwflow.operators.elementwise.lattice import plain
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, is_integer, magnitude
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases
from hwflow.types import IntType


def cum_sum(state: Lowering, node: OnnxNode) -> View:
    """Lower CumSum along a constant axis of a frame; integers wrap as in ONNX."""
    axis = frame_axis(state, node)
    dtype = state.model.values[node.outputs[0]].dtype
    if dtype not in REAL_TYPES:
        operand = integers.operand(state, node, 0)
        assert isinstance(operand, Integers), "constants are folded"
        type_ = COMPUTED_TYPES[dtype]
        return Integers(_sums(state, node, operand.value, axis, type_), operand.shape, type_.min, type_.max)
    view = plain(state, node, real_operand(state, node, 0))
    scale = _whole_rank(view.scale, view.shape)
    if scale.shape[axis] > 1:  # summands of several scales: multiples of a common divisor
        (multiples,), unit = aligned(state, node, [view])
        assert isinstance(multiples, Integers), "of a stream"
        return made(_sums(state, node, multiples.value, axis, None), view.shape, unit, fractions(0), node)
    zeros = view.zero_point.reshape(-1)
    if all(zero.denominator == 1 for zero in zeros):
        value = _from_zero(state, node, view)
        return made(_sums(state, node, value, axis, None), view.shape, view.scale, fractions(0), node)
    # A sum has as many zero points as elements: together they are its own zero point.
    total = np.cumsum(np.broadcast_to(view.zero_point, view.shape), axis=axis)
    if node.integer("reverse"):
        total = np.flip(np.cumsum(np.flip(np.broadcast_to(view.zero_point, view.shape), axis), axis=axis), axis)
    if node.integer("exclusive"):
        total = total - np.broadcast_to(view.zero_point, view.shape)
    value = _sums(state, node, view.value, axis, None, view.nodes)
    return made(value, view.shape, view.scale, compact(as_array(total)), node)


def frame_axis(state: Lowering, node: OnnxNode) -> int:
    """Return the axis of a frame given by input 1, a constant."""
    rank = len(state.model.values[node.inputs[0]].shape)
    found = constant(state, node, 1, "axis").array
    if found.ndim:
        raise refuse(node, "axis-scalar", f"axis must be a scalar, not of shape {list(found.shape)}", "squeeze it")
    if not -rank <= int(found) < rank:
        raise refuse(
            node, "axis-range", f"axis must lie in [{-rank}, {rank - 1}], not be {int(found)}", "correct the constant"
        )
    axis = int(found) % rank
    if axis == 0:
        raise refuse(
            node, "frame-axis", "axis must lie within a frame, not be the frame axis 0",
            "work along an axis within a frame, or leave the node to the host: it carries on from frame to frame",
        )
    return axis - 1


def _sums(
    state: Lowering, node: OnnxNode, value: Value, axis: int, wrap: IntType | None, before: tuple[str, ...] = ()
) -> Value:
    made_of = CumulativeSumAttributes(
        axis=axis, exclusive=bool(node.integer("exclusive")), reverse=bool(node.integer("reverse")), wrap=wrap
    )
    return state.add(node, [value], made_of, before)


def _from_zero(state: Lowering, node: OnnxNode, view: Reals) -> Value:
    """Return the integers minus their zero points."""
    zeros = np.array([int(zero) for zero in view.zero_point.reshape(-1)]).reshape(view.zero_point.shape)
    if not zeros.any():
        return view.value
    operand = zeros if zeros.size > 1 else int(zeros.reshape(-1)[0])
    stream = Integers(view.value, view.shape, 0, 0)
    return step(state, node, Simple("sub"), [stream, operand], before=view.nodes, origin="").value


def _whole_rank(values: Fractions, shape: tuple[int, ...]) -> Fractions:
    return values.reshape((1,) * (len(shape) - values.ndim) + values.shape)


def _error(step: Step) -> Errors:
    """Bound CumSum: the sums of the errors, plus gamma(n - 1) times those of the magnitudes; integers are exact."""
    step.exact(1)
    axis = step.value(1)
    if is_integer(step.output):
        step.exact(0)
        return np.zeros(step.output.shape)
    error, sizes = (step.again([v, axis]) for v in (step.error(0), magnitude(step.value(0))))
    result: Errors = error + gamma(max(1, step.output.shape[int(axis)] - 1), step.unit) * sizes
    return result


RECORDS = (
    Operator(
        "CumSum", lower=cum_sum, honours=attributes("exclusive", "reverse"),
        limits=f"constant axis within a frame; reals, of several scales along it if these have a common divisor; "
        f"{phrases.INTEGER}",
        becomes=("cumulative_sum", "elementwise"), frames=axes.along_input(1), error=_error,
        integer_operands=True, accumulates=True
    ),
)
