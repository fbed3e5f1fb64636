"""Requantizers that take several cycles for an element."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hdl_lib.requantize_serial import SerialMultiplyAddShift, SerialSteps
from hwflow.ops.costs.basics import chain, count_up
from hwflow.ops.costs.memory import queue
from hwflow.ops.costs.multiply_add_shift import Whole, result_of
from hwflow.ops.operator import Resources
from hwflow.types import IntType


def serial_requantizer(
    family: str, x: IntType, multiplier: IntType, addend: IntType, steps: SerialSteps, shift: int, out: IntType,
    limits: tuple[int, int], words: int, table: Resources, row_bits: Sequence[int], depth: int,
) -> Resources:
    """The ring of steps, the ``table`` of ``words``, lanes, the queue (:mod:`hdl_lib.requantize_serial`). ``row_bits``:
    of each lane, how many bits of a digit's product differ from one another."""
    latency = SerialMultiplyAddShift.serial_latency_of(steps.together)
    # The ring; what says of a step that it changes the sum, of a last one that it ends it, and that a result comes.
    control = Resources(lut=4, ff=steps.count + 1 + 2 * latency - 4) + count_up(words)
    total = table + control + queue(family, len(row_bits) * out.bits, depth)
    for different in row_bits:
        total += _lane(family, x, multiplier, addend, steps, shift, out, limits, different)
    return total


@cache
def _lane(
    family: str, x: IntType, multiplier: IntType, addend: IntType, steps: SerialSteps, shift: int, out: IntType,
    limits: tuple[int, int], row_bits: int,
) -> Resources:
    """The input's digits, a row for each of a step, their sum, the sum of all, limits."""
    together, width = steps.together, steps.word_shape.width
    bits = 2 * steps.digits
    total = Resources(lut=bits - 2 * together, ff=bits)  # the input, shifted or replaced
    total += Resources(lut=2 * together, ff=2 * together)  # the digits
    total += Resources(lut=row_bits, ff=row_bits + 1).times(together)
    for place in range(1, together):
        total += Resources(lut=chain(family, width + 3), ff=width + 2 + 2 * place + 1)
        total += Resources(ff=width + 2).times(place - 1)
    total += Resources(lut=chain(family, width + 2 * together + 1), ff=width)
    products = [a * b for a in (x.min, x.max) for b in (multiplier.min, multiplier.max)]
    whole = Whole(min(products) + addend.min, max(products) + addend.max, 0)
    quotient = Whole(whole.low >> shift, whole.high >> shift, 0)
    return total + Resources(ff=quotient.width) + result_of(family, whole, shift, False, out, limits)
