"""Add, Sub, Mul, Div, Neg of real tensors: with constants or another function of the same integers (no hardware), or
with another stream (exact sums and products of integers)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from hwflow.frontend.context import (
    Lowering,
    behind,
    exact_constant,
    made,
    reals,
    refuse,
    require_behind,
    require_short,
)
from hwflow.frontend.facts import UNLIMITED, Limits
from hwflow.frontend.views import (
    Constant,
    Functions,
    Integers,
    Masked,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    compact,
    elementwise,
    fraction_gcd,
    fractions,
    uniform,
)
from hwflow.ir.graph import Fractions
from hwflow.ir.node_attributes import ProductAttributes, ScaledAddAttributes
from hwflow.numerics.functions.combination import combination
from hwflow.numerics.functions.function import Elementwise
from hwflow.numerics.functions.piecewise import Affine
from hwflow.numerics.functions.power import Pow, Reciprocal
from hwflow.numerics.requantizers.staircase import LIMIT
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.keys import keyed_sum, reach_of_sum, remember_sum
from hwflow.operators.elementwise.lattice import whole_zero_point
from hwflow.operators.moves.channels import Channels
from hwflow.operators.moves.moves import broadcast, with_constant
from hwflow.operators.norms.approximations import operand, quotient
from hwflow.operators.norms.based import based
from hwflow.operators.norms.guarded import guarded_divisor
from hwflow.operators.norms.masked import added, widest, with_mask
from hwflow.operators.norms.rows import below_greatest
from hwflow.operators.norms.softmax import divided
from hwflow.types import Interval

_NO_QUOTIENT = "divide by another number: division by 0 gives no real number"


def affine(view: Reals, node: OnnxNode, multiplier: Fractions, addend: Fractions) -> Reals:
    """Return multiplier * view + addend (both broadcast over the frame) without hardware: by other scales, or as one
    more function after others."""
    if view.functions or any(v == 0 for v in (*view.scale.reshape(-1), *multiplier.reshape(-1))):
        return behind(view, node, elementwise(Affine, multiplier, addend))
    scale = compact(as_array(view.scale * multiplier))
    zero_point = compact(as_array(view.zero_point - addend / scale))
    require_short(node, scale, zero_point)
    return replace(
        view, scale=scale, zero_point=zero_point, nodes=(*view.nodes, node.name), after=(*view.after, node.name)
    )


def add(state: Lowering, node: OnnxNode) -> View:
    """Lower Add of two streams, or of a stream and a constant."""
    return _arithmetic(state, node, "add")


def sub(state: Lowering, node: OnnxNode) -> View:
    """Lower Sub of two streams, or of a stream and a constant."""
    return _arithmetic(state, node, "sub")


def mul(state: Lowering, node: OnnxNode) -> View:
    """Lower Mul of two streams, or of a stream and a constant."""
    return _arithmetic(state, node, "mul")


def div(state: Lowering, node: OnnxNode) -> View:
    """Lower Div; of two streams only where both are functions of the same integers."""
    return _arithmetic(state, node, "div")


def neg(state: Lowering, node: OnnxNode) -> View:
    """Lower Neg."""
    if isinstance(state.view(node.inputs[0]), Integers):
        return integers.neg(state, node)
    return affine(reals(state, node, 0), node, fractions(-1), fractions(0))


def _arithmetic(state: Lowering, node: OnnxNode, operation: str) -> View:
    views = [state.view(name) for name in node.inputs]
    constants = [i for i, v in enumerate(views) if isinstance(v, Constant | QuantizedConstant)]
    if len(constants) == 2:
        return _of_constants(state, node, views, operation)
    masked = _masked(state, node, views, operation)
    if masked is not None:
        return masked
    if constants:
        return _with_constant(state, node, constants[0], operation)
    left, right = reals(state, node, 0), reals(state, node, 1)
    if left.value is right.value and left.shape == right.shape:
        return combined(node, operation, left, right)
    wholes = [state.model.values[name].shape for name in node.inputs]
    target = np.broadcast_shapes(*wholes)
    if operation == "sub" and left.value in state.facts.totals and right.value in state.facts.totals:
        left, right = operand(state, node, left), operand(state, node, right)
    operands = left, right
    variance = state.facts.variance(left, right) if operation == "sub" else None
    places = state.facts.axes_below(left, right) if operation == "sub" else None
    limits = UNLIMITED
    if operation == "mul" and _is_inverse(right):
        right, operation = replace(right, functions=right.functions[:-1]), "div"
    elif operation == "mul" and _is_inverse(left):
        left, right, operation, wholes = right, replace(left, functions=left.functions[:-1]), "div", wholes[::-1]
    greatest = _guarded_greatest(state, left, right) if operation == "div" else None
    guarded = guarded_divisor(state, node, right) if operation == "div" and greatest is None else None
    right = greatest or (guarded[0] if guarded else right)
    if operation in ("mul", "div"):
        left, right = operand(state, node, left), operand(state, node, right)
        inverted = [state.facts.divisor_of(view) for view in (left, right)] if operation == "mul" else [None, None]
        if inverted[1] is not None:
            right, operation = inverted[1], "div"
        elif inverted[0] is not None:
            left, right, operation, wholes = right, inverted[0], "div", wholes[::-1]
        limits = Limits(Fraction(1), None, uniform(left.scale)) if greatest else state.facts.limits(left, right)
        limits = limits if guarded is None else Limits(None, guarded[1])
        whose = state.facts.softmax_of(left, right) if operation == "div" and not limits.least else None
        if whose is not None and lies_far_apart(state, whose[0]):
            after = (*left.after, *right.after, node.name)
            return replace(divided(state, node, *whose), after=tuple(dict.fromkeys(after)))
        operands = left, right
        if limits.norm is not None:
            right, wholes = limits.norm, [wholes[0], (1, *limits.norm.shape)]
    left, right = (
        view if whole == target else broadcast(state, node, operand(state, node, view), whole, target)
        for view, whole in zip((left, right), wholes, strict=True)
    )
    if places is not None and state.bound(left.value).interval is not None:
        below = below_greatest(state, node, left, right, places)
        return replace(below, after=tuple(dict.fromkeys((*left.after, *right.after, node.name))))
    if operation in ("add", "sub"):
        total = sum_of(state, node, left, right, subtract=operation == "sub")
        if variance is not None and uniform(total.zero_point) == 0:
            bound = state.bounds[total.value]
            assert bound.interval is not None
            state.bounds[total.value] = replace(bound, interval=Interval(0, bound.interval.hi))
            state.facts.variances[total.value] = replace(variance, result=total)
        if operation == "sub":
            state.facts.note_distances(total, *operands)
        return total
    if operation == "mul":
        return product_of(state, node, left, right)
    result = quotient(state, node, left, right, limits)
    state.facts.quotients[result.value] = (result, *operands)
    return result


def _guarded_greatest(state: Lowering, left: Reals, right: Reals) -> Reals | None:
    """Return the greatest elements of the rows of ``left``, which is not negative, if ``right`` is that where it is not
    0: where it is, so are all elements, and their quotients by whatever number."""
    scale, zero, bound = uniform(left.scale), uniform(left.zero_point), state.bound(left.value)
    if left.functions or not scale or scale < 0 or zero is None or zero.denominator != 1 or bound.interval is None:
        return None
    return state.facts.greatest_guarded(left, right) if bound.interval.lo >= zero and not bound.errors else None


def _is_inverse(view: Reals) -> bool:
    """Tell whether reals are reciprocals: a product with them is a quotient."""
    return bool(view.functions) and all(isinstance(f, Reciprocal) for f in view.functions[-1].reshape(-1))


_FAR = 8
"""From such a range of exponents on (e**8 is 2,981) it pays to subtract the greatest first: powers of up to 1 have as
many bits as quotients need, and those of the least and the greatest exponent that many more."""


def lies_far_apart(state: Lowering, exponents: Reals) -> bool:
    """Tell whether the greatest of exponents of e is to be subtracted first."""
    interval = state.bound(exponents.value).interval
    if interval is None or exponents.functions:
        return True
    return bool(max(abs(s) for s in exponents.scale.reshape(-1)) * (interval.hi - interval.lo) > _FAR)


def _masked(state: Lowering, node: OnnxNode, views: list[View], operation: str) -> Masked | None:
    """Add to, scale, or subtract the greatest of their rows from, numbers that a mask has made far smaller than others,
    or does now; None for others."""
    left, right = views
    if operation == "add" and all(isinstance(v, Reals | Masked) for v in views):
        assert isinstance(left, Reals | Masked) and isinstance(right, Reals | Masked)
        return None if left is right else added(state, node, left, right, partial(sum_of, state, node))
    place = 0 if isinstance(right, Constant) else 1
    view, other = views[place], views[1 - place]
    if operation == "add" and isinstance(other, Constant) and isinstance(view, Reals | Masked):
        found = with_mask(state, node, view, node.inputs[place], other)
        if found is not None:
            return found
    if operation == "sub" and isinstance(left, Masked) and isinstance(right, Masked):
        return _distances(state, node, left, right.reals)
    if not isinstance(view, Masked):
        return None
    if isinstance(other, Constant) and (operation == "add" or place == 0):
        real = exact_constant(state, node, 1 - place, "the constant")
        positive = operation in ("add", "sub") or all(v > 0 for v in real.reshape(-1))
        if positive and real.size == 1:
            far = None
            if view.far is not None:
                far = view.far * real.reshape(-1)[0] if operation == "mul" else view.far
                far = view.far / real.reshape(-1)[0] if operation == "div" else far
            state.views[node.inputs[place]] = view.reals
            try:
                result = _with_constant(state, node, 1 - place, operation)
            finally:
                state.views[node.inputs[place]] = view
            assert isinstance(result, Reals)
            return replace(view, reals=result, far=far)
    return None


def _distances(state: Lowering, node: OnnxNode, left: Masked, right: Reals) -> Masked | None:
    """Subtract the greatest elements of their rows."""
    places = state.facts.axes_below(left.reals, right)
    if places is None:
        return None
    wholes = [state.model.values[name].shape for name in node.inputs]
    right = broadcast(state, node, right, wholes[1], wholes[0])
    below = below_greatest(state, node, left.reals, right, places)
    below = replace(below, after=tuple(dict.fromkeys((*left.reals.after, *right.after, node.name))))
    return Masked(below, widest(state, left), left.far)


def _with_constant(state: Lowering, node: OnnxNode, place: int, operation: str) -> View:
    view, real = with_constant(state, node, place, "the constant")
    one, zero = fractions(1), fractions(0)
    if operation == "add":
        return affine(view, node, one, real)
    if operation == "sub":
        return affine(view, node, one, as_array(-real)) if place == 1 else affine(view, node, fractions(-1), real)
    if operation == "mul":
        return affine(view, node, real, zero)
    if place == 0:  # constant / x
        inverse = behind(view, node, as_array(Reciprocal()))
        return replace(inverse, functions=(*inverse.functions, elementwise(Affine, real, zero)))
    if any(v == 0 for v in real.reshape(-1)):
        raise refuse(node, "divisor-zero", "the divisor must not be 0", _NO_QUOTIENT)
    return affine(view, node, as_array(1 / real), zero)


def _of_constants(state: Lowering, node: OnnxNode, views: list[View], operation: str) -> View:
    """Combine a dequantized constant with a constant: its scale or its zero point changes."""
    place = 0 if isinstance(views[0], QuantizedConstant) else 1
    quantized, other = views[place], views[1 - place]
    if isinstance(quantized, QuantizedConstant) and isinstance(other, Constant) and (operation, place) != ("div", 1):
        real = exact_constant(state, node, 1 - place, "the constant")
        if operation == "div" and any(v == 0 for v in real.reshape(-1)):
            raise refuse(node, "divisor-zero", "the divisor must not be 0", _NO_QUOTIENT)
        result = _rescaled(quantized, real, operation, place)
        if result is not None:
            return result
    raise refuse(
        node, "constant-arithmetic",
        "a quantized constant must be combined with a constant that broadcasts over it, and not be a divisor",
        "compute the weights before quantizing them",
    )


def _rescaled(quantized: QuantizedConstant, real: Fractions, operation: str, place: int) -> QuantizedConstant | None:
    """Combine a dequantized constant, operand ``place``, with ``real``; None where the result does not have the same
    integers with one nonzero scale each."""
    integers, scale, zero_point = quantized.integers, quantized.scale, quantized.zero_point
    if operation in ("mul", "div"):
        scale = as_array(scale * real) if operation == "mul" else as_array(scale / real)
    else:
        if any(s == 0 for s in scale.reshape(-1)):
            return None
        if operation == "sub":
            real, scale = (as_array(-real), scale) if place == 0 else (real, as_array(-scale))
        zero_point = as_array(zero_point - real / scale)
    if np.broadcast_shapes(scale.shape, zero_point.shape, integers.shape) != integers.shape:
        return None
    scale, zero_point = (v.reshape((1,) * (integers.ndim - v.ndim) + v.shape) for v in (scale, zero_point))
    return QuantizedConstant(integers, compact(scale), compact(zero_point))


def combined(node: OnnxNode, operation: str, left: Reals, right: Reals) -> Reals:
    """Combine two functions of the same integers into one."""
    unique = tuple(dict.fromkeys((*left.nodes, *right.nodes, node.name)))
    after = tuple(dict.fromkeys((*left.after, *right.after, node.name)))
    if left.functions and _alike(left, right):
        functions = (*left.functions, *(as_array(function) for function in _WITH_ITSELF[operation]))
        return replace(left, functions=functions, nodes=unique, after=after)
    if operation in ("add", "sub") and not left.functions and not right.functions:
        other = right.scale if operation == "add" else as_array(-right.scale)
        scale = compact(as_array(left.scale + other))
        if all(v != 0 for v in scale.reshape(-1)):
            zero_point = compact(as_array((left.scale * left.zero_point + other * right.zero_point) / scale))
            require_short(node, scale, zero_point)
            return replace(left, scale=scale, zero_point=zero_point, nodes=unique, after=after)
    scale, zero_point = left.scale, left.zero_point
    if not (np.array_equal(scale, right.scale) and np.array_equal(zero_point, right.zero_point)):
        scale, zero_point = fractions(1), fractions(0)
    combine = partial(combination, operation)
    chains = (_chains(view, keeps_scale=scale is left.scale) for view in (left, right))
    function = as_array(np.frompyfunc(combine, 2, 1)(*chains))
    return replace(
        left, scale=scale, zero_point=zero_point, functions=(function,), nodes=unique, after=after
    )


_WITH_ITSELF: dict[str, tuple[Elementwise, ...]] = {
    "add": (Affine(Fraction(2), Fraction(0)),), "sub": (Affine(Fraction(0), Fraction(0)),),
    "mul": (Pow(Fraction(2)),), "div": (Reciprocal(), Affine(Fraction(0), Fraction(1))),
}  # fmt: skip
"""``x op x`` as a function of x."""


def _alike(left: Reals, right: Reals) -> bool:
    """Tell whether both are obviously the same function."""
    a, b = ((view.scale, view.zero_point, *view.functions) for view in (left, right))
    return len(a) == len(b) and all(one is other for one, other in zip(a, b, strict=True))


def _chains(view: Reals, *, keeps_scale: bool) -> Functions:
    """Return a tuple per element: the functions of its integer, or of its dequantized value."""
    first = as_array(None) if keeps_scale else elementwise(_line, view.scale, view.zero_point)
    steps = np.broadcast_arrays(first, *view.functions)
    result = np.empty(steps[0].shape, dtype=object)
    for place in np.ndindex(result.shape):
        result[place] = tuple(f for step in steps if (f := step[place]) is not None)
    return result


def _line(scale: Fraction, zero_point: Fraction) -> Affine | None:
    """Return the dequantizing function of integers; None where it is the identity."""
    return None if scale == 1 and zero_point == 0 else Affine(scale, -scale * zero_point)


def sum_of(state: Lowering, node: OnnxNode, left: Reals, right: Reals, *, subtract: bool = False) -> Reals:
    """Add two streams exactly, as integer multiples of the scales' greatest common divisor."""
    left, right = operand(state, node, left), operand(state, node, right)
    if any(s == 0 for s in (*left.scale.reshape(-1), *right.scale.reshape(-1))):
        raise refuse(
            node, "scale-range", "the scales of streams that are added must not be 0", "calibrate the model again"
        )
    if subtract:
        right = replace(right, scale=as_array(-right.scale))
    common = as_array(np.frompyfunc(fraction_gcd, 2, 1)(left.scale, right.scale))
    multipliers = [as_array(view.scale / common) for view in (left, right)]
    keyed = keyed_sum(state, node, left, right, multipliers)
    if keyed is not None:
        return keyed
    if (reach_of_sum(state, left, right, multipliers) or 0) > LIMIT:
        require_behind(
            state, node, "sum-bits", "sums must lie within 62 bits, or be left to the host", "quantize the operands"
        )
    channels = Channels(left.shape, *multipliers)
    columns = tuple(_integers(channels.column(m)) for m in multipliers)
    value = channels.add(
        state, node, [left.value, right.value], lambda axis: ScaledAddAttributes(axis, columns),
        tuple(dict.fromkeys((*left.nodes, *right.nodes))), origin=state.real_origin(node),
    )
    zero_point = as_array(multipliers[0] * left.zero_point + multipliers[1] * right.zero_point)
    total = made(value, left.shape, common, compact(zero_point), node)
    remember_sum(state, total, left, right, multipliers)
    return total


def _integers(multipliers: Fractions) -> tuple[int, ...]:
    """Convert one multiplier, or one per channel, to integers."""
    same = uniform(multipliers)
    values = multipliers if same is None else [same]
    return tuple(int(v) for v in values)


def _factor(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return a factor as integers with an integer zero point."""
    view = operand(state, node, view)
    if state.bound(view.value).errors:
        return based(state, node, view)
    return whole_zero_point(state, node, view)


def product_of(state: Lowering, node: OnnxNode, left: Reals, right: Reals) -> Reals:
    """Multiply two streams exactly: their integers minus the zero points."""
    left, right = (_factor(state, node, v) for v in (left, right))
    zeros = [uniform(v.zero_point) for v in (left, right)]
    if any(z is None for z in zeros):
        raise refuse(
            node, "product-zero-point", "factors must have one zero point each, not several",
            "quantize both factors per tensor",
        )
    offsets = tuple(int(z) for z in zeros if z is not None)
    before = tuple(dict.fromkeys((*left.nodes, *right.nodes)))
    value = state.add(
        node, [left.value, right.value], ProductAttributes(offsets), before, origin=state.real_origin(node)
    )
    return made(value, left.shape, compact(as_array(left.scale * right.scale)), fractions(0), node)
