"""Max, Min, Sum, Mean, comparisons and Where of quantized reals: on multiples of a common divisor, or on ranks.

Each real is ``scale * (integer - zero point)``. With the greatest common divisor of all scales and constants as the
scale, and no zero point, the integers have the order of the reals. So do the ranks among all possible reals
(:mod:`hwflow.operators.elementwise.ranks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from hwflow.display import show
from hwflow.frontend.context import Handler, Lowering, Refusal, behind, exact_constant, made, reals, refuse
from hwflow.frontend.views import (
    Constant,
    Integers,
    Masked,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    fractions,
    uniform,
)
from hwflow.ir.graph import Fractions
from hwflow.ir.integer_functions import MAXIMUM, Function, Simple
from hwflow.numerics.functions.piecewise import Clip
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import SHORT, aligned, in_common, step
from hwflow.operators.elementwise.lattice import plain
from hwflow.operators.elementwise.ranks import Ranks, ranked
from hwflow.operators.norms.masked import equal_infinity, selected


def extreme(function: Function) -> Handler:
    """Return the handler of Max or Min, of any number of operands."""

    def handler(state: Lowering, node: OnnxNode) -> View:
        given = _operands(state, node, range(len(node.inputs)))
        try:
            operands, meaning = _comparable(state, node, given)
        except Refusal:
            limited = _limited(state, node, given, function)
            if limited is None:
                raise
            return limited
        while len(operands) > 1:
            operands = [step(state, node, function, operands[:2], origin=_origin(operands, meaning)), *operands[2:]]
        return _real(node, operands[0], meaning)

    return handler


def _limited(
    state: Lowering, node: OnnxNode, operands: Sequence[Reals | Fractions], function: Function
) -> Reals | None:
    """Return a stream limited by one constant number, whatever functions were before; None for other operands."""
    streams = [(place, each) for place, each in enumerate(operands) if isinstance(each, Reals)]
    numbers = [uniform(each) for each in operands if not isinstance(each, Reals)]
    if len(operands) != 2 or len(streams) != 1 or numbers[0] is None:
        return None
    (place, view), limit = streams[0], numbers[0]
    if state.model.values[node.inputs[place]].shape != state.model.values[node.result].shape:
        return None
    return behind(view, node, as_array(Clip(limit, None) if function == MAXIMUM else Clip(None, limit)))


def total(state: Lowering, node: OnnxNode) -> View:
    """Lower Sum of any number of operands."""
    return _real(node, *_summed(state, node))


def mean(state: Lowering, node: OnnxNode) -> View:
    """Lower Mean of any number of operands."""
    result, scale = _summed(state, node)
    return _real(node, result, as_array(scale / len(node.inputs)))


def _summed(state: Lowering, node: OnnxNode) -> tuple[integers.Operand, Fractions]:
    operands, scale = aligned(state, node, _operands(state, node, range(len(node.inputs))))
    while len(operands) > 1:
        operands = [step(state, node, Simple("add"), operands[:2], origin=_origin(operands, scale)), *operands[2:]]
    return operands[0], scale


def where(state: Lowering, node: OnnxNode) -> View:
    """Lower Where; the condition is a bool tensor in hardware, or a constant."""
    condition = state.view(node.inputs[0])
    if isinstance(condition, Constant) and len(set(condition.array.reshape(-1).tolist())) == 1:
        taken, shapes = node.inputs[1 if condition.array.any() else 2], state.model.values
        if isinstance(state.view(taken), Reals | Masked) and shapes[taken].shape == shapes[node.outputs[0]].shape:
            return identity_of(state.view(taken), node)
    if isinstance(condition, Constant | Integers):
        masked = selected(state, node, [state.view(name) for name in node.inputs[1:]], condition)
        if masked is not None:
            return masked
    operands = _operands(state, node, (1, 2))
    result = chosen(state, node, operands)
    if isinstance(condition, Integers) and isinstance(operands[1], Reals):
        instead = None if isinstance(operands[0], Reals) else uniform(operands[0])
        state.facts.note_guarded(result, condition.value, operands[1], instead)
    return result


def identity_of(view: View, node: OnnxNode) -> View:
    """Return reals that ``node`` leaves as they are."""
    if isinstance(view, Masked):
        return replace(view, reals=replace(view.reals, after=(*view.reals.after, node.name)))
    assert isinstance(view, Reals)
    return replace(view, after=(*view.after, node.name))


def chosen(state: Lowering, node: OnnxNode, branches: Sequence[Reals | Fractions]) -> Reals:
    """Choose one of two branches, by the node's first input."""
    condition = state.view(node.inputs[0])
    if not isinstance(condition, Constant | Integers):
        raise refuse(
            node, "integer-operand", f"the condition {show(node.inputs[0])} must be computed in hardware",
            "compare quantized values",
        )
    operands, meaning = _comparable(state, node, branches)
    operands = [integers.operand(state, node, 0), *operands]
    return _real(node, step(state, node, Simple("where"), operands, origin=_origin([], meaning)), meaning)


def comparison(function: Function) -> Handler:
    """Return the handler of a comparison of two operands, which gives a bool tensor."""

    def handler(state: Lowering, node: OnnxNode) -> View:
        if function == Simple("equal"):
            found = equal_infinity(state, node, [state.view(name) for name in node.inputs])
            if found is not None:
                return found
        given = _operands(state, node, (0, 1))
        operands, _ = _comparable(state, node, given)
        result = step(state, node, function, operands)
        if function == Simple("equal") and isinstance(given[0], Reals) and _is_zero(given[1]):
            state.facts.zero_tests[result.value] = given[0]
        return result

    return handler


def _is_zero(operand: Reals | Fractions) -> bool:
    """Tell whether an operand is the constant 0."""
    return not isinstance(operand, Reals) and uniform(operand) == 0


def _operands(state: Lowering, node: OnnxNode, places: Iterable[int]) -> list[Reals | Fractions]:
    found: list[Reals | Fractions] = []
    for place in places:
        if isinstance(state.view(node.inputs[place]), Constant | QuantizedConstant):
            found.append(exact_constant(state, node, place, "the constant"))
        else:
            found.append(reals(state, node, place))
    return found


def _comparable(
    state: Lowering, node: OnnxNode, operands: Sequence[Reals | Fractions]
) -> tuple[list[integers.Operand], Fractions | Ranks]:
    """Return the operands as integers in the order of the reals, and their meaning: multiples of a common divisor if
    short, else ranks where known."""
    found = None
    with suppress(Refusal):  # values without a common divisor may have ranks
        without = [plain(state, node, v) if isinstance(v, Reals) else v for v in operands]
        if in_common(without)[1] < SHORT:
            return aligned(state, node, without)
    with suppress(Refusal):  # values may be irrational: the refusal of their multiples says more
        found = ranked(state, node, operands)
    if found is None:
        return aligned(state, node, operands)
    return found.operands, found


def _origin(operands: Sequence[integers.Operand], meaning: Fractions | Ranks) -> str | None:
    """Return the origin of the last step: the node's result, unless these are ranks."""
    return "" if len(operands) > 2 or isinstance(meaning, Ranks) else None


def _real(node: OnnxNode, result: integers.Operand, meaning: Fractions | Ranks) -> Reals:
    assert isinstance(result, Integers), "some operand is a stream"
    if isinstance(meaning, Ranks):
        return meaning.reals(node, result)
    return made(result.value, result.shape, meaning, fractions(0), node)
