"""Requantizers that multiply, add and shift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from amaranth.hdl import Shape

from hdl_lib.arithmetic.adder_tree import shape_of, tree_levels
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.wide_product import WideProduct
from hdl_lib.requantizers.requantize_mas import MultiplyAddShift
from hwflow.cores.costs.basics import chain, count_behind, difference, trailing_zeros
from hwflow.cores.costs.changing import Changing
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue, rom
from hwflow.cores.costs.products.fixed_factors import FixedFactor
from hwflow.cores.costs.products.packed import digit_sum
from hwflow.cores.costs.products.product_sums import SOFT_PRODUCT
from hwflow.cores.operator import Resources
from hwflow.types import IntType

NOTHING = 10**6  # bits at the low end that are 0, of a number that is 0
CONTROL = Resources(lut=3, ff=6)  # what begins a step, what says of a result that it comes, but for the queue's


@dataclass(frozen=True)
class Parameters:
    """What is known of a requantizer's parameters. ``table``: of the table that holds them; ``addends``: bits
    of addends that differ from word to word and from one another; ``constants``: for each
    lane multiplier and addend where there is a single word; ``zeros``: for each lane how many bits at the low end of
    its addends are 0 in all words. ``pixels``: as many as a beat holds, whose lanes are alike."""

    table: Resources
    addends: int = 0
    constants: tuple[tuple[int, int], ...] = ()
    zeros: tuple[int, ...] = field(default=())
    pixels: int = 1


@dataclass(frozen=True)
class Rows:
    """Products of look-up tables, a row for each of the ``digits``; ``products``: what those of all lanes take
    (:func:`hwflow.cores.costs.products.row_sums.digit_products`), where their multipliers are looked at."""

    digits: Digits
    products: Resources | None = None


def multiply_add_shift(
    family: str, x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType, lanes: int,
    words: int, dsp: int, part: int, depth: int, *, limits: tuple[int, int] | None = None,
    known: Parameters | None = None, rows: Rows | None = None, changing: Changing | None = None,
    held: bool = False,
) -> Resources:
    """Estimate parameters, products (``dsp`` multiplier blocks for all lanes, or of look-up tables with ``rows``), the
    sum, a stage that rounds the shifted sum if ``rounds``, clamp to ``limits`` (the output's range). Operands wider
    than ``part`` bits are cut into parts (:mod:`hdl_lib.requantizers.requantize_mas`). ``changing``: of the bits of a
    table that is not ``known`` (None: all); ``held``: the table lies in block RAM in any case."""
    limits = limits or (out.min, out.max)
    width = lanes * (multiplier.bits + addend.bits)
    if rows is not None:
        table = rom(family, words, width, changing, held=held) if known is None else known.table
        addends = min(lanes * addend.bits, table.ff // 2) if known is None else known.addends
        each = _lane_of_rows(family, x, multiplier, addend, shift, rounds, out, limits).times(lanes)
        each += _row_products(family, x, multiplier, addend, rows, lanes)
        stages = max(1, tree_levels(rows.digits.count))
        control = count_behind(words) + Resources(lut=3, ff=2 + stages)
        return table + each + control + Resources(ff=stages * addends) + queue(family, lanes * out.bits, depth)
    common = family, x, multiplier, addend, shift, rounds, out, part, limits
    if known is None:
        table = rom(family, words, width, changing, held=held)
        # Of bits of a table in logic that are alike in all words there is one.
        alike = table.ff if held else table.ff // 2
        multipliers, addends = (min(lanes * bits, alike) for bits in (multiplier.bits, addend.bits))
        registers = multipliers + (1 + BLOCK_LATENCY) * addends
        each = _lane(*common, None, 0).times(lanes)
    elif known.constants:
        table, registers, each = Resources(), 2 + BLOCK_LATENCY, Resources()
        for constants, count in Counter(known.constants).items():
            if constants[0]:
                each += _lane(*common, constants, 0).times(count * known.pixels)
            else:  # their results never change
                lanes -= count * known.pixels
    else:
        # Addends have registers beside those of operands and products.
        table, registers = known.table, (1 + BLOCK_LATENCY) * known.addends
        each = Resources()
        for zeros, count in Counter(known.zeros).items():
            each += _lane(*common, None, zeros).times(count * known.pixels)
    shapes = Shape(x.bits, x.signed), Shape(multiplier.bits, multiplier.signed)
    if MultiplyAddShift.has_near_register(*shapes, part, (width, words)):
        each += Resources(ff=width + lanes * x.bits + 1)
    total = table + each + count_behind(words) + CONTROL + Resources(ff=registers, dsp=dsp)
    return total + queue(family, lanes * out.bits, depth)


@dataclass(frozen=True)
class Whole:
    """A term of the sum, or all of it: within ``low .. high``, its lowest ``zeros`` bits always 0."""

    low: int
    high: int
    zeros: int

    @property
    def width(self) -> int:
        return int(shape_of(self.low, self.high).width)

    def plus(self, other: Whole) -> Whole:
        return Whole(self.low + other.low, self.high + other.high, min(self.zeros, other.zeros))


@cache
def _lane(
    family: str, x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType, part: int,
    limits: tuple[int, int], constants: tuple[int, int] | None, zeros: int,
) -> Resources:
    """Estimate a lane without its parameters: the input in three registers, the last one those of multiplier blocks
    where they have some, products, sums, what rounds and limits."""
    factor = None if constants is None else constants[0]
    total = Resources(ff=2 * x.bits + _operand(family, x, multiplier, part))
    whole = whole_sum(x, multiplier, addend)
    made, terms = _products(family, x, multiplier, part, factor)
    total += made
    if constants is not None:
        zeros = trailing_zeros(constants[1]) if constants[1] else whole.width
    terms.insert(0, Whole(addend.min, addend.max, zeros))
    total += tree_of(family, terms, whole.width, 0 if rounds else shift)
    return total + result_of(family, whole, shift, rounds, out, limits)


def whole_sum(x: IntType, multiplier: IntType, addend: IntType) -> Whole:
    """Return the sum of a product and an addend."""
    products = x.interval.times(multiplier.interval)
    return Whole(products.lo + addend.min, products.hi + addend.max, 0)


def _lane_of_rows(
    family: str, x: IntType, multiplier: IntType, addend: IntType, shift: int, rounds: bool, out: IntType,
    limits: tuple[int, int],
) -> Resources:
    """Estimate a lane whose product is a sum of rows of look-up tables, without that."""
    whole = whole_sum(x, multiplier, addend)
    kept = whole.width - shift
    # A carry cell of one bit stands alone where its sum's bit is dropped.
    places = kept if FAMILIES[family].carry_bits == 1 else whole.width
    each = Resources(lut=chain(family, places), ff=2 * x.bits + kept)
    return each + result_of(family, whole, shift, rounds, out, limits)


def _row_products(
    family: str, x: IntType, multiplier: IntType, addend: IntType, rows: Rows, lanes: int
) -> Resources:
    """Estimate products that are sums of rows of look-up tables. Measured when this was written: without looking at the
    multipliers micro_kws is predicted 5.8 % above its look-up tables (4.2 % with), and small cores up to 31 %."""
    if rows.products is not None:
        return rows.products
    width = 2 * whole_sum(x, multiplier, addend).width
    return digit_sum(family, x, rows.digits, 1, width, True).times(lanes)


def result_of(
    family: str, whole: Whole, shift: int, rounds: bool, out: IntType, limits: tuple[int, int]
) -> Resources:
    """Estimate what leads from the sum to the result: its quotient, rounded in a register of its own, comparisons, the
    choice."""
    total = Resources(lut=out.bits, ff=out.bits)
    low, high = whole.low >> shift, whole.high >> shift
    if rounds:  # an adder of the quotient's bits; the others are kept until they have been compared with one half
        half = 1 << (shift - 1)
        total += Resources(lut=chain(family, whole.width - shift) + shift)
        low, high = (whole.low + half - 1) >> shift, (whole.high + half) >> shift
        total += Resources(ff=int(shape_of(low, high).width))
    quotient = int(shape_of(low, high).width)
    for beyond, possible in ((limits[0], low < limits[0]), (limits[1] + 1, high > limits[1])):
        if possible:  # the low bits of a difference are the value's own where the limit's are all zero, or one above
            places = quotient + 1 - trailing_zeros(beyond) if beyond else 0
            # A carry cell of one bit reads its operands directly: what is subtracted from the upper limit is
            # complemented before it.
            complement = places if FAMILIES[family].carry_bits == 1 and beyond > limits[0] else 0
            total += Resources(lut=complement or difference(family, places), ff=1)
    return total


def _operand(family: str, x: IntType, multiplier: IntType, part: int) -> int:
    """Count the bits of the input's last register that are outside of multiplier blocks: of parts that are read by
    something else, or by a block with another sign."""
    device = FAMILIES[family]
    if not device.dsp_registers:
        return x.bits
    product = WideProduct(Shape(x.bits, x.signed), Shape(multiplier.bits, multiplier.signed), part)
    outside: dict[int, int] = {}
    for a, b in product.pairs:
        kind, factor = IntType(a.shape.width, a.shape.signed), IntType(b.shape.width, b.shape.signed)
        held = device.in_block(kind.bits, factor.bits) and (kind.signed or not factor.signed)
        if not held:
            outside[a.first] = kind.bits
    return sum(outside.values())


def _products(
    family: str, x: IntType, multiplier: IntType, part: int, constant: int | None
) -> tuple[Resources, list[Whole]]:
    """Estimate the products of parts in registers, and the numbers they make together."""
    product = WideProduct(Shape(x.bits, x.signed), Shape(multiplier.bits, multiplier.signed), part)
    total, ends, device = Resources(), [], FAMILIES[family]
    for (a, b), summand in zip(product.pairs, product.summands, strict=True):
        low, high = summand.low, summand.high
        factor = None if constant is None else b.of_number(constant)
        if factor is not None:
            low, high = sorted(factor * end for end in a.interval)
        width = int(shape_of(low, high).width)
        if factor is not None and abs(factor) & (abs(factor) - 1) == 0:  # a shift
            width -= max(0, abs(factor).bit_length() - 1)
            total += Resources(lut=chain(family, width) if factor < 0 else 0)
        elif factor is not None and device.dsp_registers:
            types = [IntType(part.shape.width, part.shape.signed) for part in (a, b)]
            fixed = FixedFactor(types[0], types[1], factor)
            width = fixed.bits
            total += Resources(ff=-device.dsp_registers * width * (fixed.takes_block(device) and fixed.holds_product))
        elif device.in_block(a.shape.width, b.shape.width):
            total += Resources(ff=-device.dsp_registers * width)
        elif min(a.shape.width, b.shape.width) > 1:
            total += Resources(lut=round(SOFT_PRODUCT * a.shape.width * b.shape.width))
        total += Resources(ff=BLOCK_LATENCY * width)
        ends.append((low << summand.first, high << summand.first))
    terms = []
    for group in product.groups:
        low, high = (sum(ends[index][end] for index in group) for end in (0, 1))
        first = product.summands[group[0]].first
        terms.append(Whole(low, high, first if low or high else NOTHING))
    return total, terms


def tree_of(family: str, terms: Sequence[Whole], limit: int, dropped: int) -> Resources:
    """Estimate a tree of adders: no carry chain below the place where the upper term begins, no register for bits that
    are only ``dropped`` at the end."""
    levels = [list(terms)]
    while len(levels[-1]) > 1:
        pairs = [levels[-1][index : index + 2] for index in range(0, len(levels[-1]), 2)]
        levels.append([pair[0].plus(pair[1]) if len(pair) > 1 else pair[0] for pair in pairs])
    total, needed = Resources(), [dropped]
    for below, sums in zip(levels[-2::-1], levels[:0:-1], strict=True):
        needed_below = []
        for index, number in enumerate(sums):
            width = min(limit, number.width)
            total += Resources(ff=max(0, width - max(needed[index], number.zeros)))
            pair = below[2 * index : 2 * index + 2]
            begin = needed[index]
            if len(pair) > 1:
                first = max(term.zeros for term in pair)
                # A carry cell of one bit stands alone where its sum's bit is dropped.
                alone = max(0, needed[index] - first) if FAMILIES[family].carry_bits == 1 else 0
                total += Resources(lut=chain(family, width - first - alone))
                begin = min(begin, first)
            needed_below += [begin] * len(pair)
        needed = needed_below
    return total
