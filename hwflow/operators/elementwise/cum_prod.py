"""CumProd: products of the elements along an axis up to each of them.

By doubling: each element is multiplied with the one 1, 2, 4, ... places before it along the axis, which by then is a
product of as many elements. (An accumulator would have to multiply within a cycle.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwflow.frontend.context import Lowering, made, refuse
from hwflow.frontend.context import reals as real_operand
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Integers, Reals, View, as_array, compact, fractions
from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.ir.integer_functions import Simple
from hwflow.ir.node_attributes import ProductAttributes, ReindexAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import step
from hwflow.operators.elementwise.lattice import plain, whole_zero_point
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, is_integer, magnitude
from hwflow.operators.linear.cum_sum import frame_axis
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases
from hwflow.types import Interval, IntType

MOST_BITS = 62


def cum_prod(state: Lowering, node: OnnxNode) -> View:
    """Lower CumProd along a constant axis of a frame; integers wrap as in ONNX, reals are exact."""
    axis, dtype = frame_axis(state, node), state.model.values[node.outputs[0]].dtype
    if dtype not in REAL_TYPES:
        operand = integers.operand(state, node, 0)
        assert isinstance(operand, Integers), "constants are folded"
        type_ = COMPUTED_TYPES[dtype]
        found = _products(state, node, operand.value, operand.shape, axis, lambda count: type_)
        return Integers(found, operand.shape, type_.min, type_.max)
    view = whole_zero_point(state, node, plain(state, node, real_operand(state, node, 0)))
    value, most = factors(state, node, view)
    terms = view.shape[axis] - node.integer("exclusive")

    def held(count: int) -> IntType | None:
        """Return the type to which products of so many elements wrap; None where they are exact."""
        return None if most is None else IntType.holding(Interval(-(most**count), most**count))

    longest = held(terms)
    if longest is not None and longest.bits > MOST_BITS:
        raise refuse(
            node, "product-bits",
            f"products along the axis must have at most {MOST_BITS} bits, not {longest.bits} (of {terms} elements)",
            "split the axis, with a QuantizeLinear and a DequantizeLinear behind the products of each part",
        )
    value = _products(state, node, value, view.shape, axis, held)
    return made(value, view.shape, _scales(node, view, axis), fractions(0), node)


def factors(state: Lowering, node: OnnxNode, view: Reals) -> tuple[Value, int | None]:
    """Return integers minus their zero points, which are integers, and the greatest magnitude; None where unknown."""
    zeros = np.array([int(zero) for zero in view.zero_point.reshape(-1)]).reshape(view.zero_point.shape)
    value = view.value
    if zeros.any():
        stream = Integers(value, view.shape, 0, 0)
        value = step(
            state, node, Simple("sub"), [stream, zeros if zeros.size > 1 else int(zeros.reshape(-1)[0])],
            before=view.nodes, origin="",
        ).value
    return value, _most(view, zeros)


def _most(view: Reals, zeros: IntArray) -> int | None:
    """Return the greatest magnitude of an integer minus its zero point; None where unknown."""
    if view.low is None or view.high is None:
        return None
    return max(abs(end - int(zero)) for end in (view.low, view.high) for zero in (zeros.min(), zeros.max()))


def _scales(node: OnnxNode, view: Reals, axis: int) -> Fractions:
    """Return the products of the scales."""
    whole = np.broadcast_to(view.scale, view.shape)
    whole = np.flip(whole, axis) if node.integer("reverse") else whole
    product = as_array(np.multiply.accumulate(whole, axis=axis))
    if node.integer("exclusive"):
        ones = np.broadcast_to(fractions([1]).reshape((1,) * len(view.shape)), product.take([0], axis=axis).shape)
        product = np.concatenate([ones, product.take(range(product.shape[axis] - 1), axis=axis)], axis=axis)
    return compact(np.flip(product, axis) if node.integer("reverse") else product)


def _products(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], axis: int,
    held: Callable[[int], IntType | None],
) -> Value:
    """Add the products. ``held``: returns the type to which products of so many elements wrap, None where exact."""
    size, reverse = shape[axis], bool(node.integer("reverse"))
    if node.integer("exclusive"):
        last = size <= 2
        if size == 1:  # 1 for any input
            return step(state, node, Simple("where"), [0, Integers(value, shape, 0, 0), 1]).value
        value = _shifted(state, node, value, shape, axis, 1, reverse, origin=None if last else "")
        if last:
            return value
    distance = 1
    while distance < size:
        other = _shifted(state, node, value, shape, axis, distance, reverse)
        type_ = held(min(2 * distance, size - node.integer("exclusive")))
        last = 2 * distance >= size
        made_of = ProductAttributes((0, 0), type_)
        value = state.add(node, [value, other], made_of, origin=None if last else "")
        distance *= 2
    return value


def _shifted(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], axis: int, distance: int, reverse: bool,
    origin: str | None = "",
) -> Value:
    """Shift the elements along the axis, or towards its start, filling with 1."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    kept = index.take(range(distance, shape[axis]) if reverse else range(shape[axis] - distance), axis=axis)
    width = [(0, 0)] * len(shape)
    width[axis] = (0, distance) if reverse else (distance, 0)
    moved = np.pad(kept, width, constant_values=-1)
    return state.add(node, [value], ReindexAttributes(moved, 1), origin=origin)


def _error(step: Step) -> Errors:
    """Bound products of n factors: the effect of the factors' errors, and gamma(n - 1) of the magnitudes; products of
    integers are exact."""
    step.exact(1)
    axis = step.value(1)
    if is_integer(step.output):
        step.exact(0)
        return np.zeros(step.output.shape)
    size, count = magnitude(step.value(0)), step.output.shape[int(axis)]
    most, middle = (step.again([v, axis]) for v in (size + step.error(0), size))
    result: Errors = most - middle + gamma(2 * count, step.unit) * most + count * step.tiny
    return result


RECORDS = (
    Operator(
        "CumProd", lower=cum_prod, honours=attributes("exclusive", "reverse"),
        limits=f"constant axis within a frame; reals whose products have at most {MOST_BITS} bits; {phrases.INTEGER}",
        becomes=("elementwise", "product", "reindex"), frames=axes.along_input(1), error=_error
    ),
)
