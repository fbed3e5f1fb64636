"""Requantizers that take several cycles for an element."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hdl_lib.requantizers.requantize_serial import SerialMultiplyAddShift, SerialSteps
from hdl_lib.requantizers.serial_search import SerialSearch, read_latency
from hwflow.cores.costs.basics import bits, carried_chain, chain, count_behind, count_up
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue
from hwflow.cores.costs.requantizers.multiply_add_shift_cost import Whole, result_of, whole_sum
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def serial_requantizer(
    family: str, x: IntType, multiplier: IntType, addend: IntType, steps: SerialSteps, shift: int, out: IntType,
    limits: tuple[int, int], words: int, table: Resources, row_bits: Sequence[int], depth: int,
) -> Resources:
    """Estimate the ring of steps, the ``table`` of ``words``, lanes, the queue
    (:mod:`hdl_lib.requantizers.requantize_serial`). ``row_bits``: of each lane, how many bits of a digit's product
    differ from one another."""
    latency = SerialMultiplyAddShift.serial_latency_of(steps.together)
    # The ring; what says of a step that it changes the sum, of a last one that it ends it, and that a result comes.
    control = Resources(lut=4, ff=steps.count + 1 + 2 * latency - 4) + count_behind(words)
    total = table + control + queue(family, len(row_bits) * out.bits, depth)
    for different in row_bits:
        total += _lane(family, x, multiplier, addend, steps, shift, out, limits, different)
    return total


@cache
def _lane(
    family: str, x: IntType, multiplier: IntType, addend: IntType, steps: SerialSteps, shift: int, out: IntType,
    limits: tuple[int, int], row_bits: int,
) -> Resources:
    """Estimate the input's digits, a row for each of a step, their sum, the sum of all, limits."""
    together, width = steps.together, steps.word_shape.width
    # The input, shifted or replaced: of the bits above it none without sign, with sign the turned one.
    held = min(2 * steps.digits, x.bits + x.signed)
    total = Resources(lut=held - 2 * together, ff=held)
    total += Resources(lut=together, ff=2 * together)  # the digits: a table for two, set and reset for the others
    total += Resources(lut=row_bits, ff=row_bits + 1).times(together)
    for place in range(1, together):
        total += Resources(lut=carried_chain(family, width + 2), ff=width + 2 + 2 * place + 1)
        total += Resources(ff=width + 2).times(place - 1)
    total += Resources(lut=carried_chain(family, width + 2 * together), ff=width)
    whole = whole_sum(x, multiplier, addend)
    quotient = Whole(whole.low >> shift, whole.high >> shift, 0)
    return total + Resources(ff=quotient.width) + result_of(family, whole, shift, False, out, limits)


def serial_search(
    family: str, x: IntType, bound: IntType, stages: int, out: IntType, words: int, tables: Resources, value_bits: int,
    base: int, stored: int, depth: int,
) -> Resources:
    """Estimate one comparator, the input, the tree's word, the ring of a comparison's cycles, the registers behind a
    choice among banks (:mod:`hdl_lib.requantizers.serial_search`). ``words``: of the ``tables`` for each node of the
    tree; ``value_bits``: of a result that is read, 0 if none is, else ``base`` is what the number found is added to or
    taken from; ``stored``: bits of a beat in the queue."""
    width = max(x.bits, bound.bits)
    compare = Resources(lut=width + 1 if FAMILIES[family].carry_bits == 1 else chain(family, width + 2))
    period = 1 + read_latency(bound.bits, words << stages)
    kept = Resources(ff=x.bits + stages + 1 + period + (bits(words - 1) if words > 1 else 0))
    banks = Resources(ff=(period - 3) * bound.bits)
    if value_bits:
        banks += Resources(ff=(read_latency(value_bits, words << stages) - 2) * value_bits)
    control = Resources(lut=6, ff=SerialSearch.serial_latency_of(stages, words, value_bits) - 1) + count_up(words)
    number = Resources(lut=out.bits if base % (1 << stages) and not value_bits else 0)
    return tables + compare + kept + banks + control + number + queue(family, stored, depth)
