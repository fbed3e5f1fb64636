"""Requantizers."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.block_product import BLOCK_LATENCY
from hdl_lib.requantize_search import read_latency
from hwflow.ops.costs.basics import adders, bits
from hwflow.ops.costs.memory import queue, rom
from hwflow.ops.costs.products import _splits
from hwflow.ops.operator import Resources
from hwflow.types import IntType


def multiply_add_shift(
    family: str, x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType, lanes: int,
    words: int, dsp: int, part: int, depth: int,
) -> Resources:
    """Parameters, products (``dsp`` multiplier blocks for all lanes), the sum, a stage that rounds the shifted sum if
    ``rounds``, clamp. Operands wider than ``part`` bits are cut into parts (:mod:`hdl_lib.requantize_mas`)."""
    table = rom(family, words, lanes * (multiplier.bits + addend.bits))
    parts = [_splits(x, part + 1), _splits(multiplier, part + 1)]
    terms = sum(parts)  # the addend; products whose bits follow each other are one term
    width = max(x.bits + multiplier.bits, addend.bits) + 1
    kept = max(out.bits + 2, width - shift)
    each = Resources(ff=3 * x.bits) + Resources(ff=BLOCK_LATENCY * (x.bits * parts[1] + multiplier.bits * parts[0]))
    each += Resources(lut=width + 1 + (terms - 2) * max(0, width - part), ff=kept + (width if terms > 2 else 0))
    if rounds:  # an adder of the quotient's bits; the others are kept until they have been compared with one half
        each += adders(kept, 1) + Resources(lut=shift, ff=shift)
    limits = 4 if out.signed else 2  # a sign alone says that a result is below 0
    each += Resources(lut=limits * ceil((kept - out.bits + 2) / 2) + out.bits, ff=out.bits + 2)
    # Of bits of a table in logic that are alike in all words there is one. Addends have registers beside those of
    # operands and products.
    different = table.ff // 2 if table.bram == 0 else table.ff
    parameters = min(lanes * multiplier.bits, different) + (1 + BLOCK_LATENCY) * min(lanes * addend.bits, different)
    counter = bits(words) + 6
    total = table + each.times(lanes) + Resources(lut=counter, ff=parameters + counter, dsp=dsp)
    return total + queue(family, lanes * out.bits, depth)


def thresholds(
    family: str, x: IntType, levels: int, out: IntType, lanes: int, words: int, depth: int, direction_bits: int = 0,
    directed: int = 0, own_bases: bool = False,
) -> Resources:
    """A comparator a level, counts of four comparisons and their sum. ``direction_bits`` a channel turn ``directed``
    of its comparisons over; with ``own_bases`` each channel has its own number to count from."""
    groups = ceil(levels / 4)
    compare = 2 * ceil((x.bits + 2) / 2)
    each = Resources(lut=levels * compare + ceil(3 * levels / 4), ff=levels + 3 * groups + 2 * x.bits)
    each += adders(out.bits, groups - 1) + Resources(lut=directed if words > 1 else 0)
    if own_bases:
        each += adders(out.bits, 1) + Resources(ff=2 * out.bits)
    counter = bits(words) + 8
    table = rom(family, words, lanes * (levels * (x.bits + 1) + direction_bits + (out.bits if own_bases else 0)))
    return table + each.times(lanes) + Resources(lut=2 * counter, ff=counter) + queue(family, lanes * out.bits, depth)


def search(
    family: str, x: IntType, bound: IntType, stages: int, out: IntType, lanes: int, words: int, values: bool,
    tables: Resources, depth: int,
) -> Resources:
    """A comparator a stage, the input kept from stage to stage, the ``tables`` of all lanes.

    ``words``: blocks of each table.
    """
    each, kept, latency = Resources(ff=x.bits), 0, 2
    compare = Resources(lut=2 * ceil((max(x.bits, bound.bits) + 2) / 2), ff=1)
    for stage in range(stages):
        cycles = 1 + read_latency(words << stage)
        each += compare + Resources(ff=(cycles - (stage == stages - 1)) * x.bits + stage * cycles)
        kept += cycles * bits(words - 1) if words > 1 else 0
        latency += cycles
    if values:
        latency += read_latency(words << stages)
    else:
        each += Resources(lut=out.bits)
    control = Resources(lut=2 * bits(words), ff=kept + bits(words) + latency)
    return tables + each.times(lanes) + control + queue(family, lanes * out.bits, depth)


def lookup(family: str, x: IntType, words: Sequence[int], out: IntType, tables: Resources, depth: int) -> Resources:
    """The ``tables`` of all lanes, of so many ``words`` each."""
    total = Resources(lut=12, ff=8) + queue(family, len(words) * out.bits, depth) + tables
    for count in words:
        total += Resources(ff=x.bits + min(x.bits, bits(count - 1)))
    return total
