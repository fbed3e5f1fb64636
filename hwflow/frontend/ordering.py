"""Max, Min, Sum, Mean, comparisons and Where of real tensors that integers carry: on multiples of one number.

Each real is ``scale * (integer - zero point)``; with the greatest number of which all scales and constants are
multiples taken for the scale, and no zero point, the integers have the order of the reals.
"""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.frontend import integers
from hwflow.frontend.alignment import aligned, step
from hwflow.frontend.context import Handler, Lowering, exact_constant, made, reals, refuse
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, Reals, View, as_array, fractions
from hwflow.ir.graph import Fractions
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Function, Simple
from hwflow.onnxspec.model import OnnxNode

_COMPARISONS = {
    "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_or_equal", "Less": "less",
    "LessOrEqual": "less_or_equal",
}  # fmt: skip


def extreme(state: Lowering, node: OnnxNode) -> View:
    """Max and Min of any number of operands."""
    function: Function = MAXIMUM if node.op_type == "Max" else MINIMUM
    operands, scale = _aligned(state, node, range(len(node.inputs)))
    while len(operands) > 1:
        operands = [step(state, node, function, operands[:2], origin="" if len(operands) > 2 else None), *operands[2:]]
    return _real(state, node, operands[0], scale)


def total(state: Lowering, node: OnnxNode) -> View:
    """Sum and Mean of any number of operands."""
    operands, scale = _aligned(state, node, range(len(node.inputs)))
    while len(operands) > 1:
        origin = "" if len(operands) > 2 else None
        operands = [step(state, node, Simple("add"), operands[:2], origin=origin), *operands[2:]]
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
    return _real(state, node, step(state, node, Simple("where"), [condition, *operands]), scale)


def comparison(state: Lowering, node: OnnxNode) -> View:
    """Equal, Greater, GreaterOrEqual, Less, LessOrEqual: a bool tensor."""
    operands, _ = _aligned(state, node, (0, 1))
    return step(state, node, Simple(_COMPARISONS[node.op_type]), operands)


def _aligned(
    state: Lowering, node: OnnxNode, places: range | tuple[int, ...]
) -> tuple[list[integers.Operand], Fractions]:
    """The operands as multiples of one number, and that number."""
    operands: list[Reals | Fractions] = []
    for place in places:
        if isinstance(state.view(node.inputs[place]), Constant | QuantizedConstant):
            operands.append(exact_constant(state, node, place, "the constant"))
        else:
            operands.append(reals(state, node, place))
    return aligned(state, node, operands)


def _real(state: Lowering, node: OnnxNode, result: integers.Operand, scale: Fractions) -> Reals:
    assert isinstance(result, Integers), "some operand is a stream"
    return made(result.value, result.shape, scale, fractions(0), node)


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(_COMPARISONS, comparison), "Max": extreme, "Mean": total, "Min": extreme, "Sum": total,
    "Where": where,
}
"""Of operators that hardware has for integer tensors too."""
