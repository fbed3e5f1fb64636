"""Requantizers that take several cycles for an element."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hdl_lib.memories.storage import REGISTER_DEPTH
from hdl_lib.requantizers.requantize_serial import SerialMultiplyAddShift, SerialSteps
from hwflow.cores.costs.basics import carried_chain, count_up
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue
from hwflow.cores.costs.requantizers.multiply_add_shift import Whole, result_of
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def serial_requantizer(
    family: str, x: IntType, multiplier: IntType, addend: IntType, steps: SerialSteps, shift: int, out: IntType,
    limits: tuple[int, int], words: int, table: Resources, row_bits: Sequence[int], depth: int,
) -> Resources:
    """The ring of steps, the ``table`` of ``words``, lanes, the queue (:mod:`hdl_lib.requantizers.requantize_serial`).
    ``row_bits``:
    of each lane, how many bits of a digit's product differ from one another."""
    latency = SerialMultiplyAddShift.serial_latency_of(steps.together)
    # The ring; what says of a step that it changes the sum, of a last one that it ends it, and that a result comes.
    # Resets that are joined with something else take tables of their own where a carry cell has one bit.
    luts = 8 if FAMILIES[family].carry_bits == 1 else 4
    control = Resources(lut=luts, ff=steps.count + 1 + 2 * latency - 4) + count_up(words)
    total = table + control + queue(family, len(row_bits) * out.bits, depth)
    kept = min(depth, REGISTER_DEPTH + 1)  # of a memory the depth does not matter
    for different in row_bits:
        total += _lane(family, x, multiplier, addend, steps, shift, out, limits, different, kept)
    return total


@cache
def _lane(
    family: str, x: IntType, multiplier: IntType, addend: IntType, steps: SerialSteps, shift: int, out: IntType,
    limits: tuple[int, int], row_bits: int, depth: int,
) -> Resources:
    """The input's digits, a row for each of a step, their sum, the sum of all, limits in front of a queue of ``depth``
    entries."""
    together, width = steps.together, steps.word_shape.width
    bits, narrow = 2 * steps.digits, FAMILIES[family].carry_bits == 1
    # The input, shifted or replaced: of the bits above it none without sign, with sign the turned one.
    held = min(bits, x.bits + x.signed)
    total = Resources(lut=(bits if x.signed else held) - 2 * together, ff=held)
    # The digits; where each flip-flop has a table, what replaces them are its set and its reset.
    total += Resources(lut=together * (1 if narrow else 2), ff=2 * together)
    total += Resources(lut=row_bits, ff=row_bits + 1).times(together)
    for place in range(1, together):
        total += Resources(lut=carried_chain(family, width + 2), ff=width + 2 + 2 * place + 1)
        total += Resources(ff=width + 2).times(place - 1)
    # A carry cell of one bit stands alone where its sum's bit is dropped.
    alone = min(2 * together, shift - bits) if narrow else 0
    total += Resources(lut=carried_chain(family, width + 2 * together - alone), ff=width)
    products = [a * b for a in (x.min, x.max) for b in (multiplier.min, multiplier.max)]
    whole = Whole(min(products) + addend.min, max(products) + addend.max, 0)
    quotient = Whole(whole.low >> shift, whole.high >> shift, 0)
    flags = (quotient.low < limits[0]) + (quotient.high > limits[1])
    if flags == 1 and 1 < depth <= REGISTER_DEPTH:  # the tables of a queue's registers have room for the choice
        total += Resources(lut=-out.bits)
    return total + Resources(ff=quotient.width) + result_of(family, whole, shift, False, out, limits)
