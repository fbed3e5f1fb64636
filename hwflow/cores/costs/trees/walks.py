"""Trees walked in units (:mod:`hdl_lib.trees.tree_units`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.arithmetic.adder_tree import tree_levels
from hdl_lib.trees.tree_units import READS, Record, slots_of
from hwflow.cores.costs.basics import MOST_KNOWN_BITS, bits, chain, comparison, count_up, loop
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import asynchronous_memory, filled_rom, in_block_ram, queue, rom
from hwflow.cores.costs.products.product_sums import sum_tree
from hwflow.cores.operator import Resources
from hwflow.types import Interval, IntType


def table(family: str, words: Sequence[int] | int, width: int) -> Resources:
    """Estimate a unit's table: known words, or so many."""
    if isinstance(words, int):
        return rom(family, words, width)
    if len(words) * width <= MOST_KNOWN_BITS:
        return filled_rom(family, words, width)
    return rom(family, len(words), width)


def registered_table(family: str, words: Sequence[int] | int, width: int) -> Resources:
    """Estimate the same with one more register behind the choice of its banks."""
    found = table(family, words, width)
    return found + Resources(ff=width if found.bram else found.ff // 2)


def tree_walk(
    family: str, record: Record, *, rank: int, features: int, lanes: int, nodes: Sequence[Sequence[int] | int],
    leaves: Sequence[Sequence[int] | int], values: Sequence[Interval], result: int, groups: Sequence[tuple[int, bool]],
    extremes: bool, depth: int,
) -> Resources:
    """Estimate units, each with its tables and ranks, what brings their values together, control. ``rank``: bits of a
    rank as it comes; ``result``: of a result's element; ``groups``: rounds of each, and whether it ends a result;
    ``extremes``: not sums."""
    units, slots = len(nodes), slots_of(lanes)
    total = _units(family, record, rank, features, lanes, units) + _writer(family, record, rank, features, lanes)
    row = sum(IntType.holding(value).bits for value in values)
    for words in nodes:
        total += registered_table(family, words, record.width)
    for words in leaves:
        total += registered_table(family, words, row)
    total += _gathered(family, values, units, result, extremes=extremes)
    # Delays of what ends a result, and a round; the registers next to the accumulators.
    walked = slots + READS + tree_levels(units)
    total += Resources(lut=4, ff=2 * walked + 2 * ceil(len(values) / 8))
    return total + _control(family, groups, slots) + queue(family, len(values) * result, depth)


def list_walk(
    family: str, record: Record, *, rank: int, features: int, lanes: int, nodes: Sequence[Sequence[int] | int],
    bases: Sequence[Sequence[int] | int], base_bits: tuple[int, int], entries: Sequence[Sequence[int] | int],
    entry_bits: tuple[int, int], dictionary: Sequence[Sequence[int] | int], value_bits: int,
    values: Sequence[Interval], result: int, groups: Sequence[tuple[int, bool]], longest: int, depth: int,
) -> Resources:
    """Estimate the same with lists of leaves (:class:`hdl_lib.trees.list_walk.ListWalk`), read from tables of entries.
    ``longest``: list of the last group."""
    units, slots = len(nodes), slots_of(lanes)
    total = _units(family, record, rank, features, lanes, units) + _writer(family, record, rank, features, lanes)
    for words in nodes:
        total += registered_table(family, words, record.width)
    for tables, width in ((bases, sum(base_bits)), (entries, sum(entry_bits)), (dictionary, value_bits)):
        for words in tables:
            total += table(family, words, width)
    total += _lists(family, record, base_bits, entry_bits, value_bits if dictionary else 0, slots, values).times(units)
    total += _gathered(family, values, units, result, extremes=False)
    total += Resources(lut=4, ff=slots * (1 + longest) + 27 + 2 * ceil(len(values) / 8) + 2 * tree_levels(units))
    return total + _control(family, groups, slots) + queue(family, len(values) * result, depth)


def _lists(
    family: str, record: Record, base_bits: tuple[int, int], entry_bits: tuple[int, int], value: int, slots: int,
    values: Sequence[Interval],
) -> Resources:
    """Estimate what a unit has beside its walk: bases that go round with it, pointers into lists, the entry of a
    cycle."""
    bases, place, entry = sum(base_bits), max(base_bits), base_bits[1]
    target, each = entry_bits
    total = Resources(lut=bases + 2 * place + chain(family, place), ff=slots * bases + 2 * place)
    total += Resources(lut=entry + 3 + chain(family, entry), ff=slots * (entry + 1) + 2)
    total += Resources(lut=2 * comparison(family, target) + 3, ff=target + each + slots * (target + 1))
    if value:
        total += Resources(ff=2 * (target + 1))
    terms = [max(1, IntType.holding(interval).bits) for interval in values]
    return total + Resources(lut=len(values) * (1 + (target > 3)), ff=(value or each) + len(values) + sum(terms))


def _gathered(family: str, values: Sequence[Interval], units: int, result: int, *, extremes: bool) -> Resources:
    """Estimate what brings the values of all units and steps together."""
    total = Resources()
    for value in values:
        width = IntType.holding(value).bits
        if extremes:
            tree = Resources(lut=comparison(family, width) + width, ff=width)
            # A term that is no better is not loaded.
            total += tree.times(units - 1) + Resources(lut=comparison(family, width) + 3, ff=width + 1)
        else:
            total += sum_tree(value.lo, value.hi, (1,) * units, result, family)
            total += Resources(lut=chain(family, result), ff=2 * result)
    return total


def _units(family: str, record: Record, rank: int, features: int, lanes: int, units: int) -> Resources:
    """Estimate the units' walks and their ranks."""
    beats = -(-features // lanes)
    total = _unit(family, record, rank, beats, lanes).times(units)
    stored = (rank + record.missing) * lanes
    if FAMILIES[family].lutram is None and not in_block_ram(family, 2 * beats, stored):
        # Flip-flops, which hold the same for all units, and what loads them; of one beat, what is read as well.
        read = stored if beats == 1 else 0
        total += Resources(lut=2 * beats + read, ff=2 * beats * stored + 2 * read).times(1 - units)
    return total


def _unit(family: str, record: Record, rank: int, beats: int, lanes: int) -> Resources:
    """Estimate the way of a walk from a node's address to the next, and the memory of ranks."""
    held = slots_of(lanes) - READS
    address, stored = record.pair + 1, (rank + record.missing) * lanes
    total = Resources(
        lut=address + record.pair + 3 + comparison(family, max(rank, record.rank)) + record.missing,
        ff=READS * address + READS + 1 + held * (record.pair + 3 + record.rank + record.missing) + address,
    )
    blocks = in_block_ram(family, 2 * beats, stored)
    if blocks:
        total += Resources(ff=stored, bram=blocks)
    else:
        total += asynchronous_memory(family, 2 * beats, stored) + Resources(ff=2 * stored)
    if FAMILIES[family].carry_bits == 1:  # a carry cell reads the complement of what is subtracted
        total += Resources(lut=rank)
    if lanes > 1:
        choice = ceil((lanes - 1) * (rank + record.missing) * 0.8)
        total += Resources(lut=choice, ff=rank + record.missing + 2 * record.lane)
    return total


def _control(family: str, groups: Sequence[tuple[int, bool]], slots: int) -> Resources:
    """Estimate the counts of halves that are full and free, what registers say of the next step."""
    total = Resources(lut=14, ff=8 + 2 * READS)
    total += loop(slots) + loop(len(groups)) + count_up(len(groups) * slots)
    most = max(rounds for rounds, _ in groups)
    if len(set(groups)) == 1:
        return total + loop(most)
    width = (most - 1).bit_length()
    words = [(rounds - 1) | end << width for rounds, end in (*groups[1:], groups[0])]
    return total + loop(most) + Resources(lut=width, ff=1) + count_up(len(groups)) + table(family, words, width + 1)


def _writer(family: str, record: Record, rank: int, features: int, lanes: int) -> Resources:
    """Estimate the write logic of a beat of ranks, and what tells the missing ones among them."""
    beats = -(-features // lanes)
    total = Resources(lut=3, ff=2 + rank * lanes + bits(2 * beats - 1) + 1)
    if beats > 1:
        total += count_up(beats) + loop(beats)
    if not record.missing:
        return total
    total += Resources(lut=lanes * ceil(2 * rank / 3), ff=(rank + 1) * lanes + bits(2 * beats - 1) + 1)
    return total + rom(family, beats, record.rank * lanes)
