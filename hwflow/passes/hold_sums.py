"""Give a sum of two tensors, and the quantizer behind it, room for other scales: multipliers that are loaded.

Exact multipliers are as long as the scales' mantissas; shorter ones with a plain shift give the same value for every
pair of operands, which is proved by enumeration (:mod:`hwflow.numerics.requantizers.sum_shift`). Any scales that have
such a form up to the greatest shift have one at that shift, which the hardware then has for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from hwflow.ir.graph import Graph, Node
from hwflow.ir.node_attributes import HeldFactors, RequantizeAttributes, ScaledAddAttributes
from hwflow.numerics.accumulator_bounds import width_of
from hwflow.numerics.requantizers.held_form import LOADABLE_MULTIPLIER, HeldForm
from hwflow.numerics.requantizers.multiply_add_shift import multiply_add_shift_at
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.numerics.requantizers.stages import NoSteps, StepStage, chain
from hwflow.numerics.requantizers.sum_shift import GREATEST_SHIFT, Grid, SumShift, find_sum_shift, sums_of
from hwflow.types import Interval

Room: TypeAlias = tuple[HeldFactors, HeldForm]
_MOST_POINTS = 1 << 22  # pairs of operands
_FAR = 12  # bits beyond a sum: its quantizer saturates there


def quantized_sums(graph: Graph) -> Iterator[tuple[Node[ScaledAddAttributes], Node[RequantizeAttributes]]]:
    """Yield the sums, of one scale for each operand, that one quantizer alone reads, with that."""
    consumers, outputs = graph.consumers(), {port.value for port in graph.outputs}
    for node in graph.nodes:
        given = node.attributes
        if not isinstance(given, ScaledAddAttributes) or any(len(values) > 1 for values in given.multipliers):
            continue
        (total,) = node.outputs
        readers = [reader for reader, _ in consumers[total]]
        if total in outputs or len(readers) != 1 or not isinstance(readers[0].attributes, RequantizeAttributes):
            continue
        if len(readers[0].attributes.stages) == 1:
            yield node, readers[0]


def hold_sum(
    add: Node[ScaledAddAttributes], requantizer: Node[RequantizeAttributes], loadable: bool, known: Room | None
) -> Room | None:
    """Give both room: that of hardware that is ``known``, or more than they need. Return it; None, and change nothing,
    where there is no such form, or known hardware has no room for it."""
    found = _form(add, requantizer)
    if found is None:
        return None
    factors, form = known or _room(add, found, loadable)
    fits = all(-1 << bits - 1 <= m < 1 << bits - 1 for m, bits in zip(found.multipliers, factors.bits, strict=True))
    if not fits or (found.low, found.high) != (form.low, form.high):
        return None
    function = found.steps(factors.sums.lo, factors.sums.hi)
    if form.find([function]) is None:
        return None
    factors, form = replace(factors, loadable=loadable), replace(form, loadable=loadable)
    first, second = found.multipliers
    add.attributes = replace(add.attributes, multipliers=((first,), (second,)), held=factors)
    requantizer.attributes = replace(requantizer.attributes, stages=((StepStage(function),),), held=form)
    return factors, form


def _form(add: Node[ScaledAddAttributes], requantizer: Node[RequantizeAttributes]) -> SumShift | None:
    """Return multipliers, an addend and a clamp at the greatest shift that are right for every pair of operands."""
    a, b = ((value.typed.interval.lo, value.typed.interval.hi) for value in add.inputs)
    if (a[1] - a[0] + 1) * (b[1] - b[0] + 1) > _MOST_POINTS:
        return None
    (first,), (second,) = add.attributes.multipliers
    (stages,) = requantizer.attributes.stages
    # Of all pairs, of which a channel may have fewer: another model's has others.
    least, most = sums_of((first, second), a, b)
    far = max(-least, most, 1) << _FAR
    try:
        steps, every = chain(stages, least, most), chain(stages, -far, far)
    except NoSteps:
        return None
    if steps.direction != 1:
        return None
    clamp = min(every.values), max(every.values)
    found = find_sum_shift(Grid(a, b, (first, second), steps), ShiftRounding.FLOOR, clamp=clamp)
    if found is not None:
        return found.shifted_by(GREATEST_SHIFT)
    # Of a sum of few values, as of equal scales, the mean slope is not right everywhere, but an exact one may be.
    exact = multiply_add_shift_at([steps], GREATEST_SHIFT, *clamp)
    if exact is None:
        return None
    (m,), (addend,) = exact.multipliers, exact.addends
    return SumShift((m * first, m * second), addend, exact.shift, *clamp, exact.rounding)


def _room(add: Node[ScaledAddAttributes], found: SumShift, loadable: bool) -> Room:
    """Return room for multipliers eight times as large, and for any operands of as many bits."""
    bits = [abs(m).bit_length() + 1 + LOADABLE_MULTIPLIER for m in found.multipliers]
    most = 0
    for value, of_factor in zip(add.inputs, bits, strict=True):
        interval = value.typed.interval
        most += (1 << max(-interval.lo, interval.hi, 1).bit_length()) << of_factor - 1
    sums = Interval(-most, most)
    (addend, _) = width_of(-most - (1 << GREATEST_SHIFT), most)
    form = HeldForm(found.shift, found.low, found.high, (1, False), (addend + 1, True), loadable)
    return HeldFactors((bits[0], bits[1]), sums, loadable), form
