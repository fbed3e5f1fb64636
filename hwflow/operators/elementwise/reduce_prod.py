"""ReduceProd: products over axes of a frame, of pairs, then of pairs of these, and so on."""

from __future__ import annotations

from math import prod

import numpy as np

from hwflow.frontend.context import Lowering, made, refuse
from hwflow.frontend.context import reals as real_operand
from hwflow.frontend.frames import axes
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import Integers, View, as_array, compact, fractions
from hwflow.ir.graph import IntArray, Value
from hwflow.ir.node_attributes import ProductAttributes, ReindexAttributes, ReshapeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.cum_prod import MOST_BITS, factors
from hwflow.operators.elementwise.lattice import plain, whole_zero_point
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, is_integer, magnitude
from hwflow.operators.linear.reductions import reduced_places
from hwflow.operators.record import Operator, attributes
from hwflow.operators.records import phrases
from hwflow.types import Interval, IntType


def reduce_prod(state: Lowering, node: OnnxNode) -> View:
    """Lower ReduceProd; integers wrap as in ONNX, reals are exact."""
    places, target = [axis - 1 for axis in reduced_places(state, node)], state.frame_shape(node.outputs[0])
    if not places:
        return state.view(node.inputs[0])
    dtype = state.model.values[node.outputs[0]].dtype
    if dtype not in REAL_TYPES:
        operand, type_ = integers.operand(state, node, 0), COMPUTED_TYPES[dtype]
        assert isinstance(operand, Integers), "constants are folded"
        value = _product(state, node, operand.value, _groups(operand.shape, places), type_, target)
        return Integers(value, target, type_.min, type_.max)
    view = whole_zero_point(state, node, plain(state, node, real_operand(state, node, 0)))
    value, most = factors(state, node, view)
    groups = _groups(view.shape, places)
    count = groups.shape[1]
    held = IntType.holding(Interval(-(most**count), most**count)) if most is not None else None
    if held is not None and held.bits > MOST_BITS:
        raise refuse(
            node, "product-bits",
            f"products must have at most {MOST_BITS} bits, not {held.bits} (of {count} elements)",
            "multiply parts of the axes, with a QuantizeLinear and a DequantizeLinear behind the products of each part",
        )
    value = _product(state, node, value, groups, None, target)
    scales = as_array(np.broadcast_to(view.scale, view.shape).reshape(-1)[groups].prod(axis=1))
    return made(value, target, compact(scales.reshape(target)), fractions(0), node)


def _groups(shape: tuple[int, ...], places: list[int]) -> IntArray:
    """Return the flat indices [results, factors] of the factors of each result."""
    kept = [axis for axis in range(len(shape)) if axis not in places]
    count = prod(shape[axis] for axis in places)
    return np.arange(prod(shape)).reshape(shape).transpose(*kept, *places).reshape(-1, count)


def _product(
    state: Lowering, node: OnnxNode, value: Value, groups: IntArray, wrap: IntType | None, target: tuple[int, ...]
) -> Value:
    """Add the products of the elements in each row of ``groups``, which wrap to a type or (None) are exact."""
    while groups.shape[1] > 1:
        half = -(-groups.shape[1] // 2)
        pairs = (groups[:, :half], np.pad(groups[:, half:], ((0, 0), (0, groups.shape[1] % 2)), constant_values=-1))
        streams = [state.add(node, [value], ReindexAttributes(part, 1), origin="") for part in pairs]
        value = state.add(node, streams, ProductAttributes((0, 0), wrap), origin="")
        groups = np.arange(groups.shape[0] * half).reshape(-1, half)
    return state.add(node, [value], ReshapeAttributes(target))


def _error(step: Step) -> Errors:
    """Bound products of n factors: the effect of the factors' errors, and gamma(n - 1) of the magnitudes; products of
    integers are exact."""
    step.exact(*range(1, len(step.inputs)))
    if is_integer(step.output):
        step.exact(0)
        return np.zeros(step.output.shape)
    size, rest = magnitude(step.value(0)), step.inputs[1:]
    count = max(1, size.size // max(1, step.output.size))
    most, middle = (step.again([v, *rest]) for v in (size + step.error(0), size))
    result: Errors = most - middle + gamma(2 * count, step.unit) * most + count * step.tiny
    return result


RECORDS = (
    Operator(
        "ReduceProd", lower=reduce_prod, honours=attributes("axes", "keepdims", "noop_with_empty_axes"),
        limits=f"axes within a frame; reals whose products have at most {MOST_BITS} bits; {phrases.INTEGER}",
        becomes=("product", "reindex"), frames=axes.reduce(), error=_error, proportional=True
    ),
)
