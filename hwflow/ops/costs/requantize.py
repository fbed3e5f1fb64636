"""Requantizers."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.requantize_search import read_latency
from hwflow.ops.costs.basics import adders, bits, count_up, difference
from hwflow.ops.costs.memory import queue, rom
from hwflow.ops.operator import Resources
from hwflow.types import IntType


def _zeros_below(number: int) -> int:
    """Zeros below the lowest one of a number that is not 0."""
    return (number & -number).bit_length() - 1


def thresholds(
    family: str, x: IntType, levels: int, out: IntType, lanes: int, words: int, depth: int, direction_bits: int = 0,
    directed: int = 0, own_bases: bool = False, known: Resources | None = None, ones: Sequence[Sequence[int]] = (),
    bases: Sequence[Sequence[int]] = (),
) -> Resources:
    """A comparator a level, counts of four comparisons and their sum. ``direction_bits`` a channel turn ``directed``
    of its comparisons over; with ``own_bases`` each channel has its own number to count from; ``known``: the table,
    where it is looked at; with it, for each lane, ``ones``: the bits that are ever one, for each level of its
    thresholds, and ``bases``: in all words."""
    groups = ceil(levels / 4)
    counted = ceil(3 * levels / 4) if levels > 1 else 0  # one comparison is its own count
    each = Resources(lut=counted, ff=levels + min(out.bits, 3) * groups)
    each += adders(out.bits, groups - 1) + Resources(lut=directed if words > 1 else 0)
    if own_bases and not bases:
        each += adders(out.bits, 1) + Resources(ff=2 * out.bits)
    width = lanes * (levels * (x.bits + 1) + direction_bits + (out.bits if own_bases else 0))
    table = rom(family, words, width) if known is None else known
    control = count_up(words) + Resources(lut=3, ff=4 + (groups - 1).bit_length())
    for lane in ones or [[1] * levels] * lanes:
        # Bits below all thresholds' ones are not looked at; of a threshold of 0 it is the sign.
        lowest = min([x.bits - 1, *(_zeros_below(t) for t in lane if t)])
        compared = sum(difference(family, x.bits + 1 - _zeros_below(t)) for t in lane if t)
        control += Resources(lut=compared, ff=2 * (x.bits - lowest))
    if own_bases and bases:
        control += _known_bases(bases, levels, out)
    return table + each.times(lanes) + control + queue(family, lanes * out.bits, depth)


def _known_bases(bases: Sequence[Sequence[int]], levels: int, out: IntType) -> Resources:
    """Numbers to count from, for each lane in all words: their bits that differ, from word to word and from one
    another, in two registers, and sums with counts of so many ``levels``."""
    total, columns = Resources(), set()
    for lane in bases:
        own = {tuple(base >> bit & 1 for base in lane) for bit in range(out.bits)}
        columns |= {column for column in own if len(set(column)) > 1}
        together = 0
        for base in lane:
            together |= base
        if together and _zeros_below(together) < bits(levels):
            total += adders(out.bits, 1)
        else:  # the count goes below the base
            total += Resources(ff=bits(levels))
    return total + Resources(ff=3 * len(columns))


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
    """The ``tables`` of all lanes, of so many ``words`` each; 0 where the result never changes."""
    total = Resources(lut=9, ff=5) + queue(family, len(words) * out.bits, depth) + tables
    for count in filter(None, words):
        total += Resources(ff=x.bits + min(x.bits, bits(count - 1)))
    return total
