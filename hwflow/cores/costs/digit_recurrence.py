"""Digit recurrences (:mod:`hdl_lib.arithmetic.recurrence`): units of a subtraction, a choice and shift registers."""

from __future__ import annotations

from hdl_lib.arithmetic.digit_recurrence import is_loaded
from hdl_lib.arithmetic.recurrence import Recurrence
from hwflow.cores.costs.basics import chain
from hwflow.cores.costs.elementwise import joined, negation
from hwflow.cores.operator import Resources


def digit_recurrence(family: str, form: Recurrence, rounds: int, lanes: int, output: int, depth: int) -> Resources:
    """Estimate :class:`hdl_lib.arithmetic.digit_recurrence.DigitRecurrence` with results of ``output`` bits."""
    units = form.bits // rounds
    lane = Resources(ff=form.loaded)
    if form.signed:
        lane += negation(family, form.inputs[0].width) + negation(family, output)
    for unit in range(units):
        rest, kept, moved = form.widths(unit * rounds, (unit + 1) * rounds)
        taken = rest + kept + moved if rounds > 1 else 0  # from the unit before, or its own
        lane += Resources(lut=chain(family, rest + 1) + rest + taken, ff=rest + kept + moved)
    if is_loaded(form, rounds):  # what is shifted has no choice in front, and the last step its own registers
        rest, _, moved = form.widths(0, rounds)
        lane += Resources(lut=-moved // 2, ff=rest + form.bits)
    ends = Resources(lut=form.widths(0, form.bits)[0] // 3, ff=output)
    stages = form.before + is_loaded(form, rounds) + form.bits + form.after + rounds - 1
    inputs = [shape.width for shape in form.inputs]
    return joined(family, inputs, output, lanes, stages, depth) + (lane + ends).times(lanes)
