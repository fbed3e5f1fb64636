"""Requantizers."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.requantizers.requantize_search import read_latency
from hwflow.cores.costs.basics import adders, bits, chain, count_behind, difference, trailing_zeros
from hwflow.cores.costs.changing import Changing
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue, rom
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def thresholds(
    family: str, x: IntType, levels: int, out: IntType, lanes: int, words: int, depth: int,
    direction_bits: int = 0, known: Resources | None = None, ones: Sequence[Sequence[int]] = (),
    bases: Sequence[Sequence[int]] = (), stored: int | None = None, base: int = 0,
    complemented: int = 0, changing: Changing | None = None,
) -> Resources:
    """Estimate one comparator per level, counts of four comparisons and their sum. ``direction_bits`` per channel turn
    comparisons over; ``known``: the table, where it is looked at; with it, for each lane, ``ones``: the bits that are
    ever one, for each level of its thresholds, and ``bases``: the numbers to count from in all words, unless they are
    one; ``stored``: bits of a beat in the queue; ``base``: the number that all count from; ``complemented``: bits of
    thresholds in the table that differ from word to word and from one another; ``changing``: of a larger table's bits
    (None: all)."""
    plain = FAMILIES[family].carry_bits == 1
    groups = ceil(levels / 4)
    counted = ceil(3 * levels / 4) if levels > 1 else 0  # one comparison is its own count
    each = Resources(lut=counted, ff=levels + min(out.bits, 3) * groups) + adders(out.bits, groups - 1)
    if base % 2 and plain:  # as measured: a complement before and behind the register of the lowest bit
        each += Resources(lut=2)
    width = lanes * (levels * (x.bits + 1) + direction_bits)
    table = rom(family, words, width, changing) if known is None else known
    if plain and words > 1:  # a carry cell reads the complement of what is subtracted
        table += Resources(lut=complemented)
    control = count_behind(words) + Resources(lut=3, ff=4 + (groups - 1).bit_length())
    for lane in ones or [[1] * levels] * lanes:
        # Bits below all thresholds' ones are not looked at; of a threshold of 0 it is the sign.
        lowest = min([x.bits - 1, *(trailing_zeros(t) for t in lane if t)])
        compared = sum(difference(family, x.bits + 1 - trailing_zeros(t)) for t in lane if t)
        control += Resources(lut=compared, ff=2 * (x.bits - lowest))
    control += _known_bases(bases, levels, out)
    return table + each.times(lanes) + control + queue(family, lanes * out.bits if stored is None else stored, depth)


def _known_bases(bases: Sequence[Sequence[int]], levels: int, out: IntType) -> Resources:
    """Estimate the numbers to count from, for each lane in all words: their bits that differ, from word to word and
    from one another, in three registers, and sums with counts of so many ``levels``, which go below."""
    columns = {tuple(base >> bit & 1 for base in lane) for lane in bases for bit in range(out.bits)}
    changing = sum(len(set(column)) > 1 for column in columns)
    return Resources(ff=3 * changing + bits(levels) * len(bases))


def search(
    family: str, x: IntType, bound: IntType, stages: int, out: IntType, lanes: int, words: int, tables: Resources,
    depth: int, base: int, idle: Sequence[int], ones: int, stored: int,
) -> Resources:
    """Estimate one comparator per stage, the input kept from stage to stage, the ``tables`` of all lanes.

    ``words``: blocks of each table; ``base``: what the number found is added to or taken from; ``idle``: for each
    comparison whose result never changes its stage; ``ones``: bits at the low ends of what inputs are compared with
    that are always 1; ``stored``: bits of a beat in the queue.
    """
    width = max(x.bits, bound.bits)
    # A carry cell of one bit reads the complement of what is subtracted.
    compare = Resources(lut=width + 1 if FAMILIES[family].carry_bits == 1 else chain(family, width + 2), ff=1)
    cycles = [1 + read_latency(words << stage) for stage in range(stages)]
    each, latency = Resources(lut=out.bits if base % (1 << stages) else 0, ff=x.bits), 2 + sum(cycles)
    for stage in range(stages):
        each += compare + Resources(ff=(cycles[stage] - (stage == stages - 1)) * x.bits + stage * cycles[stage])
    total = tables + each.times(lanes)
    for stage in idle:
        total += compare.times(-1) + Resources(ff=-sum(cycles[stage + 1 :]))
    if FAMILIES[family].carry_bits == 1:
        total += Resources(lut=-ones)
    kept = sum(cycles) * bits(words - 1) if words > 1 else 0
    control = Resources(lut=2 * bits(words), ff=kept + bits(words) + latency)
    return total + control + queue(family, stored, depth)


def lookup(
    family: str, x: IntType, words: Sequence[int], tables: Resources, stored: int, depth: int
) -> Resources:
    """Estimate the ``tables`` of all lanes, of so many ``words`` each; 0 where the result never changes. ``stored``:
    bits of a beat in the queue."""
    total = Resources(lut=9, ff=5) + queue(family, stored, depth) + tables
    for count in filter(None, words):
        total += Resources(ff=x.bits + min(x.bits, bits(count - 1)))
    return total
