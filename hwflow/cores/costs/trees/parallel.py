"""Trees side by side (:mod:`hdl_lib.trees.parallel_trees`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from hdl_lib.trees.parallel_trees import LEVELS, Branch, ParallelTrees, RankTest, pairings, way_stages
from hwflow.cores.costs.basics import MOST_KNOWN_BITS, chain, comparison
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import filled_rom, queue, rom
from hwflow.cores.costs.trees.walks import registered_table
from hwflow.cores.operator import Resources
from hwflow.types import Interval, IntType

Addend = tuple[int, int, int]
"""Of values: least, greatest, low bits that are 0."""


def parallel_trees(
    family: str, *, rank: int, tests: Sequence[RankTest], trees: Sequence[tuple[Branch, int]],
    tables: Sequence[tuple[Sequence[int], int]], in_block: bool, addends: Sequence[Sequence[Addend]], result: int,
    extremes: bool, depth: int,
) -> Resources:
    """Estimate tests, ways through trees (each with its levels), tables (words and their bits), what brings their
    values together."""
    levels = max(levels for _, levels in trees)
    stages = way_stages(levels)
    total = _tests(rank, tests) + queue(family, len(addends) * result, depth)
    later: set[tuple[int, int]] = set()  # tests after so many stages
    for root, own in trees:
        total += _way(family, root, own, stages - way_stages(own), later)
    total += Resources(ff=len(later))
    for words, width in tables:
        if in_block:
            total += registered_table(family, words, width)
        elif len(words) * width <= MOST_KNOWN_BITS:
            table = filled_rom(family, words, width, output_register=False)
            # Without a register behind it there is a look-up table for each bit: none becomes the register's reset.
            total += table if table.bram else table._replace(lut=max(table.lut, table.ff))
        else:
            total += rom(family, len(words), width)
    together = pairings(max(map(len, addends)))
    for target in addends:
        total += _together(family, target, together, result, extremes)
    most = max(map(len, addends))
    return total + Resources(lut=2, ff=ParallelTrees.latency_of(levels, most, in_block=in_block) - 1)


def _tests(rank: int, tests: Sequence[RankTest]) -> Resources:
    """Estimate the ranks that are looked at, and a gate or more for each test."""
    total = Resources(ff=rank * len({test.feature for test in tests}) + len(tests))
    for test in tests:
        places = rank if test.missing is not None else rank - (test.limit & -test.limit).bit_length() + 1
        total += Resources(lut=1 if places <= 4 else 1 + ceil((places - 4) / 3))
    return total


CHOICE = {"ecp5": 1.0, "ice40": 0.75}
"""Look-up tables of a choice between two tests, as measured of trees of many levels."""


def _way(family: str, root: Branch, levels: int, begin: int, later: set[tuple[int, int]]) -> Resources:
    """Estimate the bits of a way, which wait for the last one; ``begin``: stages before it begins. ``later`` gets the
    tests that it takes after the first stage."""
    total, done, choice = Resources(), 0, CHOICE[FAMILIES[family].basis]
    nodes: list[list[Branch]] = [[root]]
    for stage in range(way_stages(levels)):
        last = min(levels, LEVELS + 2 * stage)
        total += Resources(ff=last)
        for level in range(done, last):
            total += Resources(lut=round((len(nodes[level]) - 1) * choice))
            later |= {(node.test, after) for node in nodes[level] for after in range(1, begin + stage + 1)}
            behind = [child for node in nodes[level] for child in (node.true, node.false) if child is not None]
            nodes.append(behind)
        done = last
    return total


def _together(family: str, addends: Sequence[Addend], levels: int, result: int, extremes: bool) -> Resources:
    total, left = Resources(), list(addends)
    for _ in range(levels):
        pairs = [left[at : at + 2] for at in range(0, len(left), 2)]
        left = []
        for pair in pairs:
            made, cells = (pair[0], 0) if len(pair) == 1 else _pair(family, pair, result, extremes)
            low, high, shift = made
            total += Resources(lut=cells, ff=min(result, _bits(low >> shift, high >> shift)))
            left.append(made)
    return total


def _pair(family: str, pair: Sequence[Addend], result: int, extremes: bool) -> tuple[Addend, int]:
    """Return what two make, and the look-up tables that it takes."""
    (low, high, shift), (other_low, other_high, other_shift) = sorted(pair, key=lambda addend: addend[2])
    if extremes:
        ends = min(low, other_low), max(high, other_high), shift
        width = _bits(ends[0] >> shift, ends[1] >> shift)
        return ends, comparison(family, width) + width
    total = low + other_low, high + other_high, shift
    width = min(result, _bits(total[0] >> shift, total[1] >> shift))
    if _bits(low >> shift, high >> shift) <= other_shift - shift and low >= 0:
        return total, 0
    return total, chain(family, width - (other_shift - shift))


def _bits(low: int, high: int) -> int:
    return IntType.holding(Interval(low, high)).bits if (low, high) != (0, 0) else 0
