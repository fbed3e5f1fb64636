"""Max, Min, Sum, Mean, comparisons and Where of real tensors that integers carry: on multiples of one number.

Each real is ``scale * (integer - zero point)``; with the greatest number of which all scales and constants are
multiples taken for the scale, and no zero point, the integers have the order of the reals.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from hwflow.frontend import integers
from hwflow.frontend.context import Handler, Lowering, exact_constant, made, reals, refuse
from hwflow.frontend.lattice import plain, whole_zero_point
from hwflow.frontend.views import (
    Constant,
    Integers,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    fraction_gcd,
    fractions,
    uniform,
)
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Function, Simple, Times
from hwflow.onnxspec.model import OnnxNode

_MOST = 1 << 44  # with operands of 16 bits within 62

_COMPARISONS = {
    "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_or_equal", "Less": "less",
    "LessOrEqual": "less_or_equal",
}  # fmt: skip


def extreme(state: Lowering, node: OnnxNode) -> View:
    """Max and Min of any number of operands."""
    function: Function = MAXIMUM if node.op_type == "Max" else MINIMUM
    operands, scale = _aligned(state, node, range(len(node.inputs)))
    while len(operands) > 1:
        operands = [_step(state, node, function, operands[:2], origin="" if len(operands) > 2 else None), *operands[2:]]
    return _real(state, node, operands[0], scale)


def total(state: Lowering, node: OnnxNode) -> View:
    """Sum and Mean of any number of operands."""
    operands, scale = _aligned(state, node, range(len(node.inputs)))
    while len(operands) > 1:
        origin = "" if len(operands) > 2 else None
        operands = [_step(state, node, Simple("add"), operands[:2], origin=origin), *operands[2:]]
    return _real(state, node, operands[0], as_array(scale / len(node.inputs)) if node.op_type == "Mean" else scale)


def where(state: Lowering, node: OnnxNode) -> View:
    """Where: the condition is a bool tensor in hardware."""
    condition = state.view(node.inputs[0])
    if not isinstance(condition, Integers):
        raise refuse(
            node, "integer-operand", f"the condition '{node.inputs[0]}' must be computed in hardware",
            "compare quantized values",
        )
    operands, scale = _aligned(state, node, (1, 2))
    return _real(state, node, _step(state, node, Simple("where"), [condition, *operands]), scale)


def comparison(state: Lowering, node: OnnxNode) -> View:
    """Equal, Greater, GreaterOrEqual, Less, LessOrEqual: a bool tensor."""
    operands, _ = _aligned(state, node, (0, 1))
    return _step(state, node, Simple(_COMPARISONS[node.op_type]), operands)


def _aligned(
    state: Lowering, node: OnnxNode, places: range | tuple[int, ...]
) -> tuple[list[integers.Operand], Fractions]:
    """The operands as multiples of one number, and that number."""
    streams: dict[int, Reals] = {}
    constants: dict[int, Fractions] = {}
    for place in places:
        if isinstance(state.view(node.inputs[place]), Constant | QuantizedConstant):
            constants[place] = exact_constant(state, node, place, "the constant")
        else:
            view = plain(state, node, reals(state, node, place))
            streams[place] = whole_zero_point(state, node, view)
    scales = {place: uniform(view.scale) for place, view in streams.items()}
    numbers = [s for s in scales.values() if s]
    if None in scales.values() or not numbers:
        raise refuse(
            node, "one-scale", "each operand must have one scale, other than 0, not one a channel",
            "quantize per tensor",
        )
    values = [v for constant in constants.values() for v in constant.reshape(-1) if v]
    common = reduce(fraction_gcd, [abs(v) for v in (*numbers, *values)])
    greatest = max(abs(v) for v in (*numbers, *values)) / common
    if greatest >= _MOST:
        raise refuse(
            node, "common-scale",
            f"scales and constants must be multiples of one number, at most {_MOST} times as great, not "
            f"{float(greatest):.3g} times",
            "choose scales and constants that are multiples of a power of two",
        )
    operands: list[integers.Operand] = []
    for place in places:
        if place in constants:
            multiples = np.array([int(v / common) for v in constants[place].reshape(-1)], dtype=np.int64)
            whole: IntArray = multiples.reshape(constants[place].shape)
            operands.append(int(multiples[0]) if (multiples == multiples[0]).all() else whole)
            continue
        view, scale = streams[place], scales[place]
        assert scale is not None, "each stream has one scale"
        operands.append(_multiples(state, node, view, int(scale / common)))
    return operands, fractions(common)


def _multiples(state: Lowering, node: OnnxNode, view: Reals, factor: int) -> Integers:
    """``factor * (integer - zero point)`` of a view."""
    result = Integers(view.value, view.shape, 0, 0)
    if factor != 1:
        result = _step(state, node, Times(factor), [result], before=view.nodes, origin="")
    zeros = view.zero_point.reshape(-1)
    if any(z != 0 for z in zeros):
        values = np.array([int(z) * factor for z in zeros], dtype=np.int64).reshape(view.zero_point.shape)
        offset: int | IntArray = int(values.reshape(-1)[0]) if values.size == 1 else values
        result = _step(state, node, Simple("sub"), [result, offset], before=view.nodes, origin="")
    return result


def _step(
    state: Lowering, node: OnnxNode, function: Function, operands: list[integers.Operand], *,
    before: tuple[str, ...] = (), origin: str | None = None,
) -> Integers:
    """An exact function of operands whose shapes broadcast."""
    views = [v for v in operands if isinstance(v, Integers)]
    tensors = [v.shape for v in operands if isinstance(v, np.ndarray)]
    shape = np.broadcast_shapes(*((1, *v.shape) for v in views), *tensors)[1:]
    if origin is None:
        shape = state.frame_shape(node.outputs[0])
    streams = [integers.expanded(state, node, v, shape) for v in views]
    constants = tuple(None if isinstance(v, Integers) else integers.of_frame(v, shape) for v in operands)
    attributes = {"function": function, "constants": constants, "wrap": None}
    value = state.add("elementwise", node, [v.value for v in streams], attributes, before, origin=origin)
    return Integers(value, shape, 0, 1)


def _real(state: Lowering, node: OnnxNode, result: integers.Operand, scale: Fractions) -> Reals:
    assert isinstance(result, Integers), "some operand is a stream"
    return made(result.value, result.shape, scale, fractions(0), node)


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(_COMPARISONS, comparison), "Max": extreme, "Mean": total, "Min": extreme, "Sum": total,
    "Where": where,
}
"""Of operators that hardware has for integer tensors too."""
