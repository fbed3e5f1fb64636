"""Requantizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from hdl_lib.adder_tree import tree_levels
from hdl_lib.block_product import BLOCK_LATENCY
from hdl_lib.digit_product import Digits
from hdl_lib.requantize_search import read_latency
from hwflow.ops.costs.basics import adders, bits, count_up
from hwflow.ops.costs.memory import queue, rom
from hwflow.ops.costs.packed import digit_sum
from hwflow.ops.costs.products import _splits
from hwflow.ops.operator import Resources
from hwflow.types import Interval, IntType


@dataclass(frozen=True)
class Parameters:
    """What is known of a requantizer's parameters. ``table``: of the table that holds them; ``different``: its bits,
    and those of the addends among them, that differ from word to word and from one another; ``constants``: for each
    lane the multiplier where there is a single word."""

    table: Resources
    different: tuple[int, int] = (0, 0)
    constants: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Products of look-up tables, a row for each of the ``digits``; ``all_tables``: a bit of all rows together."""

    digits: Digits
    all_tables: int

    @staticmethod
    def tables(values: set[int]) -> int:
        """Look-up tables a bit of a row whose digit has these values (as stored): none where it is a gate that the
        adder's own table has room for, two where it has five values."""
        return 0 if len(values - {0}) <= 1 else 1 + (len(values) > 4)


def multiply_add_shift(
    family: str, x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType, lanes: int,
    words: int, dsp: int, part: int, depth: int, *, limits: tuple[int, int] | None = None,
    known: Parameters | None = None, rows: Rows | None = None,
) -> Resources:
    """Parameters, products (``dsp`` multiplier blocks for all lanes, or of look-up tables with ``rows``), the sum, a
    stage that rounds the shifted sum if ``rounds``, clamp to ``limits`` (the output's range). Operands wider than
    ``part`` bits are cut into parts (:mod:`hdl_lib.requantize_mas`)."""
    limits = limits or (out.min, out.max)
    width = lanes * ((multiplier.bits if rows is None else rows.digits.bits) + addend.bits)
    if known is not None:
        table, different = known.table, known.different
    else:
        table = rom(family, words, width)
        # Of bits of a table in logic that are alike in all words there is one.
        alike = table.ff // 2 if table.bram == 0 else table.ff
        different = alike, min(lanes * addend.bits, alike)
    total = table
    if rows is not None:
        total += _lane_of_rows(x, rows, multiplier, addend, shift, rounds, out, limits).times(lanes)
        stages = max(1, tree_levels(rows.digits.count))
        control = count_up(words) + Resources(lut=3, ff=2 + stages)
        return total + control + Resources(ff=stages * different[1]) + queue(family, lanes * out.bits, depth)
    if known is not None and known.constants:
        for constant in known.constants:
            if constant:
                factor = IntType.holding(Interval(min(0, constant), max(0, constant)))
                single = abs(constant) & (abs(constant) - 1) == 0
                total += _lane(x, factor, addend, shift, rounds, out, part, limits, single)
    else:
        total += _lane(x, multiplier, addend, shift, rounds, out, part, limits, False).times(lanes)
    # Addends have registers beside those of operands and products.
    parameters = different[0] - different[1] + (1 + BLOCK_LATENCY) * different[1]
    if known is None:
        parameters = min(lanes * multiplier.bits, different[0]) + (1 + BLOCK_LATENCY) * different[1]
    control = count_up(words) + Resources(lut=3, ff=6)
    if known is not None:
        lanes -= known.constants.count(0)  # their results never change
    return total + control + Resources(ff=parameters, dsp=dsp) + queue(family, lanes * out.bits, depth)


def _lane(
    x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType, part: int,
    limits: tuple[int, int], single: bool,
) -> Resources:
    """A lane without its parameters; ``single``: the multiplier is a constant that makes a shift."""
    parts = [_splits(x, part + 1), _splits(multiplier, part + 1)]
    terms = 2 if single else sum(parts)  # the addend; products whose bits follow each other are one term
    width = max(x.bits + multiplier.bits, addend.bits) + 1
    kept = max(out.bits + 2, width - shift)
    each = Resources(ff=3 * x.bits)
    each += Resources(ff=BLOCK_LATENCY * (x.bits if single else x.bits * parts[1] + multiplier.bits * parts[0]))
    between = round(SUMS_BETWEEN * width * _registers(terms))
    each += Resources(lut=width + 1 + (terms - 2) * max(0, width - part), ff=kept + between)
    return each + _rounded_and_limited(kept, shift, rounds, out, limits)


def _lane_of_rows(
    x: IntType, rows: Rows, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType,
    limits: tuple[int, int],
) -> Resources:
    """A lane whose product is a sum of rows of look-up tables."""
    width = max(x.bits + multiplier.bits, addend.bits) + 1
    kept = max(out.bits + 2, width - shift)
    each = Resources(lut=width + 1, ff=2 * x.bits + kept) + digit_sum(x, rows.digits, 1, 2 * width, True)
    each += Resources(lut=(x.bits + 1) * (rows.all_tables - rows.digits.count - rows.digits.wide))
    return each + _rounded_and_limited(kept, shift, rounds, out, limits)


def _rounded_and_limited(kept: int, shift: int, rounds: bool, out: IntType, limits: tuple[int, int]) -> Resources:
    """From the sum's quotient of ``kept`` bits to the result."""
    each = Resources()
    if rounds:  # an adder of the quotient's bits; the others are kept until they have been compared with one half
        each += adders(kept, 1) + Resources(lut=shift, ff=shift)
    for limit in limits:
        # The difference's sign; its low bits are the value's own where the limit's are all zero, or all one above.
        own = limit if limit is limits[0] else limit + 1
        each += Resources(lut=_comparison(kept + 1 - _zeros_below(own)) if own else 0)
    return each + Resources(lut=out.bits, ff=out.bits + 2)


SUMS_BETWEEN = 0.55  # of the sum's bits in a register between the levels of its tree, as measured
CHAIN = 4  # bits; differences of no more are made of look-up tables


def _comparison(places: int) -> int:
    """Look-up tables of a difference of which the sign is taken."""
    return max(0, min(places, 1)) if places <= CHAIN else 2 * ceil(places / 2)


def _zeros_below(number: int) -> int:
    """Zeros below the lowest one of a number that is not 0."""
    return (number & -number).bit_length() - 1


def _registers(terms: int) -> int:
    """Of a tree of adders, but for the last."""
    count = 0
    while terms > 2:
        terms = ceil(terms / 2)
        count += terms
    return count


def thresholds(
    family: str, x: IntType, levels: int, out: IntType, lanes: int, words: int, depth: int, direction_bits: int = 0,
    directed: int = 0, own_bases: bool = False, known: Resources | None = None, constants: Sequence[int] = (),
) -> Resources:
    """A comparator a level, counts of four comparisons and their sum. ``direction_bits`` a channel turn ``directed``
    of its comparisons over; with ``own_bases`` each channel has its own number to count from; ``known``: the table,
    where it is looked at; ``constants``: all lanes' thresholds, where they never change."""
    groups = ceil(levels / 4)
    each = Resources(lut=ceil(3 * levels / 4), ff=levels + min(out.bits, 3) * groups + 2 * x.bits)
    each += adders(out.bits, groups - 1) + Resources(lut=directed if words > 1 else 0)
    if own_bases:
        each += adders(out.bits, 1) + Resources(ff=2 * out.bits)
    width = lanes * (levels * (x.bits + 1) + direction_bits + (out.bits if own_bases else 0))
    table = rom(family, words, width) if known is None else known
    control = count_up(words) + Resources(lut=3, ff=4 + (groups - 1).bit_length())
    compared = constants or [1] * (lanes * levels)
    control += Resources(lut=sum(_comparison(x.bits + 2 - _zeros_below(t)) for t in compared if t))
    return table + each.times(lanes) + control + queue(family, lanes * out.bits, depth)


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
    total = Resources(lut=9, ff=5) + queue(family, len(words) * out.bits, depth) + tables
    for count in words:
        total += Resources(ff=x.bits + min(x.bits, bits(count - 1)))
    return total
