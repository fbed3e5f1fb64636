"""Elements that a mask takes out of a Softmax: minus infinity, or numbers far below all others.

Integers below all others stand for them, so far that their distance to any other tells them apart. What moves elements
moves these integers too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, given, refuse
from hwflow.frontend.views import (
    Constant,
    Integers,
    Masked,
    Reals,
    View,
    as_array,
    as_reals,
    compact,
    fractions,
    uniform,
)
from hwflow.ir.graph import Fractions, IntArray
from hwflow.ir.integer_functions import MAXIMUM, MINIMUM, Simple, Times
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise import integers
from hwflow.operators.elementwise.alignment import aligned, step
from hwflow.operators.elementwise.clamped import applied
from hwflow.operators.moves.moves import broadcast, over_constant, pad, pad_places
from hwflow.operators.norms.approximations import operand
from hwflow.operators.norms.based import based
from hwflow.operators.norms.rows import same_sign
from hwflow.types import Interval

FAR = 60
"""How far numbers are at least below all others: an exponential of that distance is less than ``2**-86``."""

Taken = Integers | IntArray
"""1 (or any other number) where an element is masked, else 0: a stream, or a constant of the whole shape."""


def with_mask(state: Lowering, node: OnnxNode, view: Reals | Masked, name: str, mask: Constant) -> Masked | None:
    """Add the constant ``mask`` to ``view``, the value ``name``; None where none of its elements is far below the
    others, or several different numbers are, or it is a bias of channels."""
    array = np.asarray(mask.array, dtype=np.float64)
    near, far = _split(state, view, array)
    if near is None or (far is not None and isinstance(view, Reals) and _is_bias(state, node, array)):
        return None
    addend = fractions(np.where(near, array, 0.0))
    before = view.reals if isinstance(view, Masked) else operand(state, node, view)
    whole = state.model.values[name].shape
    target = np.broadcast_shapes(whole, array.shape)
    before, real = over_constant(state, node, before, name, "the mask", addend)
    moved = _shifted(before, real)
    taken = np.broadcast_to(~near, target).astype(np.int64)
    return taken_out(state, node, _like(view, moved), taken, far)


def _is_bias(state: Lowering, node: OnnxNode, array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    """Tell whether a constant that is added has one number for each channel, and quantizers alone read the sum, or
    piecewise linear functions such as a Relu: they take in any numbers, exactly."""
    readers = [reader for reader in state.model.nodes if node.result in reader.inputs]
    facts = [facts_of(reader.domain, reader.op_type) for reader in readers]
    return max(array.shape, default=1) == array.size and all(each.quantizes or each.piecewise_linear for each in facts)


def _split(
    state: Lowering, view: Reals | Masked, array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None, Fraction | None]:
    """Return where the elements of a constant that is added are not far below the others, and the others' number (None:
    minus infinity); None instead of places where there are none, or several numbers."""
    if np.isnan(array).any() or (array == np.inf).any():
        return None, None
    least = float(array.min())
    near = array > least
    if not near.any() or np.isneginf(least):
        return (near, None) if np.isneginf(least) and np.isfinite(array[near]).all() else (None, None)
    spread = width(state, view)
    if spread is None or least > array[near].min() - float(spread) - FAR:
        return None, None
    return near, Fraction(least)


def width(state: Lowering, view: Reals | Masked) -> Fraction | None:
    """Return an upper bound of the differences of the unmasked reals; None where it is unknown."""
    ends = _ends(state, view)
    return max(ends) - min(ends) if ends else None


def _shifted(view: Reals, addend: Fractions) -> Reals:
    return replace(view, zero_point=compact(as_array(view.zero_point - addend / view.scale)))


def _like(view: Reals | Masked, reals: Reals) -> Reals | Masked:
    return replace(view, reals=reals) if isinstance(view, Masked) else reals


def taken_out(
    state: Lowering, node: OnnxNode, view: Reals | Masked, taken: Taken, far: Fraction | None, *, alike: bool = False
) -> Masked:
    """Mask elements of ``view``, of the shape of ``taken``. ``far``: what they are, or what is added to them, so that
    among themselves they differ as before; ``alike``: they are all the same."""
    old = view.far if isinstance(view, Masked) else None
    reals = view.reals if isinstance(view, Masked) else operand(state, node, view)
    if not isinstance(view, Masked):
        if uniform(reals.scale) is None and same_sign(node, reals):
            reals = based(state, node, reals)
            ((whole,), unit) = aligned(state, node, [reals])
            assert isinstance(whole, Integers), "a stream"
            reals = replace(
                reals, value=whole.value, scale=unit, zero_point=fractions(0), nodes=(), low=None, high=None
            )
        if uniform(reals.zero_point) is None:
            reals = based(state, node, reals)
        if same_sign(node, reals) < 0:
            value = applied(state, node, reals.value, Times(-1), (None,), reals.nodes)
            reals = replace(
                reals, value=value, scale=as_array(-reals.scale), zero_point=as_array(-reals.zero_point), nodes=(),
            )
    interval = state.bound(reals.value).interval
    if interval is None:
        raise refuse(
            node, "quantized-operand", "what is masked must be of a known range, not a sum of any size",
            f"insert QuantizeLinear and DequantizeLinear before {show(node.name)}",
        )
    least = view.least if isinstance(view, Masked) else interval.lo
    room = interval.hi - least + 1
    stream = Integers(reals.value, reals.shape, interval.lo, interval.hi)
    if far is None and not isinstance(taken, Integers) and taken.all(axis=-1).any():
        raise refuse(
            node, "masked-row", "minus infinity must leave an element of each row, not mask all of one, whose Softmax "
            "has no value", "leave such rows out, or mask them by a number such as -10000",
        )
    if far is None or alike:
        condition = taken if isinstance(taken, Integers) else taken[0]
        result = step(
            state, node, Simple("where"), [condition, interval.lo - room, stream], before=reals.nodes, origin=""
        )
    else:
        distance = room + interval.hi - least
        if isinstance(taken, Integers):
            below = step(state, node, Simple("sub"), [stream, distance], origin="")
            result = step(state, node, Simple("where"), [taken, below, stream], before=reals.nodes, origin="")
        else:
            result = step(
                state, node, Simple("sub"), [stream, taken[0] * distance], before=reals.nodes, origin=""
            )
    return Masked(
        replace(
            reals, value=result.value, nodes=(), low=None, high=None,
            after=tuple(dict.fromkeys((*reals.after, node.name))),
        ),
        least, max((v for v in (old, far) if v is not None), default=None),
    )


def widest(state: Lowering, view: Masked) -> int:
    """Return the greatest difference of two integers that are not masked."""
    interval = state.bound(view.reals.value).interval
    assert interval is not None, "masked ones are known"
    return interval.hi - view.least if view.reals.scale.reshape(-1)[0] > 0 else view.least - interval.lo


def where_taken(state: Lowering, node: OnnxNode, view: Masked) -> Integers:
    """Return 1 where an element is masked, else 0."""
    rising = same_sign(node, view.reals) > 0
    stream = Integers(view.reals.value, view.reals.shape, 0, 0)
    return step(state, node, Simple("less" if rising else "greater"), [stream, view.least], origin="")


def of_condition(state: Lowering, node: OnnxNode, condition: Integers, real: Fraction, *, inverted: bool) -> Masked:
    """Return ``real`` where the condition, the node's first input, holds, else minus infinity; or, ``inverted``, the
    other way round."""
    least, scale = (0, -1) if inverted else (1, 1)
    base = as_reals(condition, node.inputs[0])
    if state.bound(condition.value).interval != Interval(0, 1):
        condition = step(state, node, Simple("not_equal"), [condition, 0], origin="")
    reals = replace(
        base, value=condition.value, scale=fractions(scale), zero_point=fractions(least - scale * real),
        after=(node.name,), low=None, high=None,
    )
    return Masked(reals, least)


def added(
    state: Lowering, node: OnnxNode, left: Reals | Masked, right: Reals | Masked,
    total: Callable[[Reals, Reals], Reals],
) -> Masked | None:
    """Add two streams of which one masks the other; ``total`` adds those of which none does. None where neither
    masks."""
    wholes = [state.model.values[name].shape for name in node.inputs]
    target = np.broadcast_shapes(*wholes)
    pairs = ((left, wholes[0], right, wholes[1]), (right, wholes[1], left, wholes[0]))
    for view, whole, other, other_whole in pairs:
        mask = _alone(state, other, width(state, view))
        if mask is None:
            continue
        number, far = mask
        kept = view.reals if isinstance(view, Masked) else operand(state, node, view)
        kept = _shifted(broadcast(state, node, kept, whole, target), fractions(number))
        result = _like(view, replace(kept, after=tuple(dict.fromkeys((*kept.after, *_reals(other).after)))))
        marks = broadcast(state, node, _reals(other), other_whole, target)
        taken = where_taken(state, node, Masked(marks, _least(state, other)))
        return taken_out(state, node, result, taken, far)
    masks = [view for view in (left, right) if isinstance(view, Masked)]
    if not masks:
        return None
    operands = [
        broadcast(state, node, _unmasked(state, node, view), whole, target)
        for view, whole in zip((left, right), wholes, strict=True)
    ]
    found: Reals | Masked = total(*operands)
    for view, whole in zip((left, right), wholes, strict=True):
        if isinstance(view, Masked):
            taken_by = where_taken(state, node, Masked(broadcast(state, node, view.reals, whole, target), view.least))
            found = taken_out(state, node, found, taken_by, view.far)
    assert isinstance(found, Masked), "one masks"
    return found


def _unmasked(state: Lowering, node: OnnxNode, view: Reals | Masked) -> Reals:
    """Return reals with any others in the place of masked ones."""
    if not isinstance(view, Masked):
        return operand(state, node, view)
    limit = MAXIMUM if view.reals.scale.reshape(-1)[0] > 0 else MINIMUM
    value = applied(state, node, view.reals.value, limit, (None, view.least), view.reals.nodes)
    return replace(view.reals, value=value, nodes=())


def _reals(view: Reals | Masked) -> Reals:
    return view.reals if isinstance(view, Masked) else view


def _least(state: Lowering, view: Reals | Masked) -> int:
    """Return the integer of a mask that stands for what is not masked."""
    if isinstance(view, Masked):
        return view.least
    interval, scale = state.bound(view.value).interval, uniform(view.scale)
    assert interval is not None and scale
    return interval.hi if scale > 0 else interval.lo


def _alone(state: Lowering, view: Reals | Masked, spread: Fraction | None) -> tuple[Fraction, Fraction | None] | None:
    """Return the only number that is not masked and what is added to masked elements (None: minus infinity), where
    ``view`` is nothing but a mask for numbers that differ by ``spread``; else None."""
    reals = _reals(view)
    interval = state.bound(reals.value).interval
    scale, zero = uniform(reals.scale), uniform(reals.zero_point)
    if interval is None or reals.functions or not scale or zero is None or state.bound(reals.value).errors:
        return None
    if isinstance(view, Masked):
        if (interval.hi if scale > 0 else interval.lo) != view.least:
            return None
        return scale * (view.least - zero), view.far
    if interval.hi - interval.lo != 1 or spread is None:
        return None
    near = scale * (_least(state, view) - zero)
    far = near - abs(scale)
    return (near, far) if abs(scale) > spread + FAR and far < -FAR else None


def selected(
    state: Lowering, node: OnnxNode, branches: Sequence[View], condition: Integers | Constant
) -> Masked | None:
    """Choose by ``condition`` between two branches, of which one is a constant far below the other; None for others."""
    for place, (one, other) in enumerate((branches, branches[::-1])):
        far = _far(other)
        if far is None:
            continue
        negative = None if far == -np.inf else Fraction(far)
        if isinstance(one, Constant) and isinstance(condition, Integers) and negative is None:
            numbers = set(np.asarray(one.array, dtype=np.float64).reshape(-1).tolist())
            if len(numbers) == 1 and np.isfinite(number := numbers.pop()):
                return of_condition(state, node, condition, Fraction(number), inverted=place == 1)
        if not isinstance(one, Reals | Masked):
            continue
        view = one if isinstance(one, Masked) else operand(state, node, one)
        least = _lowest(state, view)
        if negative is not None and (least is None or negative > least - FAR):
            continue
        wholes = [state.model.values[name].shape for name in node.inputs]
        target = np.broadcast_shapes(*wholes)
        kept = _like(view, broadcast(state, node, _reals(view), wholes[1 + place], target))
        taken: Taken
        if isinstance(condition, Constant):
            taken = np.broadcast_to((condition.array != 0) == (place == 1), target).astype(np.int64)
        else:
            function = Simple("equal" if place == 0 else "not_equal")
            marks = step(state, node, function, [condition, 0], origin="")
            taken = integers.expanded(state, node, marks, target[1:])
        return taken_out(state, node, kept, taken, negative, alike=True)
    return None


def padded(state: Lowering, node: OnnxNode) -> View:
    """Lower Pad of masked reals, or with minus infinity, which masks what is added; of others as any Pad."""
    view = state.view(node.inputs[0])
    value = state.view(node.inputs[2]) if given(node, 2) else None
    infinite = value is not None and _far(value) == -np.inf
    if node.attributes.get("mode", "constant") != "constant" or not (
        isinstance(view, Masked) or (infinite and isinstance(view, Reals))
    ):
        return pad(state, node)
    reals = _reals(view) if isinstance(view, Masked) else operand(state, node, view)
    scale, zero, interval = uniform(reals.scale), uniform(reals.zero_point), state.bound(reals.value).interval
    if scale is None or zero is None or interval is None:
        raise refuse(
            node, "pad-scale", "a masked tensor must have one scale and zero point, and a known range",
            "quantize per tensor before the node",
        )
    inside = view.least if isinstance(view, Masked) else interval.lo
    state.views[node.inputs[0]] = reals
    try:
        found = pad(state, node, scale * (inside - zero) if infinite else None)
    finally:
        state.views[node.inputs[0]] = view
    assert isinstance(found, Reals), "of reals"
    result = replace(found, anchor=reals.anchor, after=tuple(dict.fromkeys((*reals.after, node.name))))
    outside = pad_places(state, node)
    if not infinite or not outside.any():
        return _like(view, result)
    return taken_out(state, node, _like(view, result), outside.astype(np.int64), None)


def equal_infinity(state: Lowering, node: OnnxNode, views: Sequence[View]) -> View | None:
    """Tell where a tensor is minus infinity, if the other operand is that constant; None for others."""
    for view, other in (views, views[::-1]):
        if _far(other) != -np.inf:
            continue
        if isinstance(view, Masked) and view.far is None:
            marks = where_taken(state, node, view)
            found = step(state, node, Simple("not_equal"), [marks, 0])
            return replace(found, low=0, high=1)
        if isinstance(view, Reals | Masked):
            return Constant(np.zeros(state.model.values[node.outputs[0]].shape, dtype=np.int64))
    return None


def _far(view: View) -> float | None:
    """Return the only number of a constant that is minus infinity or at most -:data:`FAR`."""
    if not isinstance(view, Constant) or view.array.dtype.kind not in "fiu" or not view.array.size:
        return None
    least = float(view.array.min())
    return least if least == float(view.array.max()) and least < -FAR else None


def _lowest(state: Lowering, view: Reals | Masked) -> Fraction | None:
    """Return a lower bound of the unmasked reals."""
    return min(_ends(state, view), default=None)


def greatest_masked(state: Lowering, view: Masked) -> Fraction | None:
    """Return an upper bound of the masked reals; None where they are minus infinity."""
    return None if view.far is None else view.far + max(Fraction(0), *_ends(state, view))


def _ends(state: Lowering, view: Reals | Masked) -> list[Fraction]:
    """Return the ends of the unmasked reals; none where they are unknown."""
    reals = _reals(view)
    interval = state.bound(reals.value).interval
    if interval is None or reals.functions:
        return []
    parameters = zip(*(v.reshape(-1) for v in np.broadcast_arrays(reals.scale, reals.zero_point)), strict=True)
    low, high = interval.lo, interval.hi
    if isinstance(view, Masked):
        low, high = (view.least, high) if reals.scale.reshape(-1)[0] > 0 else (low, view.least)
    return [scale * (end - zero) for scale, zero in parameters for end in (low, high)]
