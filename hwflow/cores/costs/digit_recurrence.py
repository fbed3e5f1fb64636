"""Digit recurrences (:mod:`hdl_lib.arithmetic.recurrence`): units of a subtraction, a choice and shift registers."""

from __future__ import annotations

from math import ceil

from hdl_lib.arithmetic.recurrence import Recurrence
from hwflow.cores.costs.basics import chain
from hwflow.cores.costs.elementwise import joined
from hwflow.cores.operator import Resources


def digit_recurrence(family: str, form: Recurrence, rounds: int, lanes: int, depth: int) -> Resources:
    """Cost of :class:`hdl_lib.streams.digit_recurrence.DigitRecurrence`."""
    units = form.bits // rounds
    lane = Resources()
    for unit in range(units):
        rest, kept, moved = form.widths(unit * rounds, (unit + 1) * rounds)
        choice = rest + (rest + moved if rounds > 1 and unit else 0)
        lane += Resources(lut=chain(family, rest + 1) + choice, ff=rest + kept + moved)
    ends = Resources(lut=ceil(form.widths(0, form.bits)[0] / 3), ff=form.output.width)
    stages = form.before + form.bits + form.after
    inputs = [shape.width for shape in form.inputs]
    return joined(family, inputs, form.output.width, lanes, stages, depth) + (lane + ends).times(lanes)
