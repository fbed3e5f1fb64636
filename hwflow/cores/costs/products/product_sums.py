"""Products and their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from math import ceil

from amaranth.hdl import Shape

from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hdl_lib.arithmetic.multiplier import BLOCK, ProductForm
from hdl_lib.arithmetic.wide_product import Summand, WideProduct
from hwflow.cores.costs.basics import SHORT, adder, carried_chain, chain
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.operator import Resources
from hwflow.types import Interval, IntType


def product_is_cheap_in_luts(x: IntType, w: IntType) -> bool:
    """Tell whether products are so narrow that a multiplier block would be wasted on them."""
    return min(x.bits, w.bits) <= 2 or x.bits * w.bits <= 12


def product_kinds(family: str, x: IntType, w: IntType) -> list[tuple[ProductForm, int]]:
    """Return what may make a core's products, and the bits of the parts that operands wider than a block are cut into,
    or 0."""
    if product_is_cheap_in_luts(x, w):
        return [(ProductForm.LUT, 0)]
    part = FAMILIES[family].dsp_width - 1 if max(x.bits, w.bits) > BLOCK else 0
    return [(ProductForm.DSP, part), (ProductForm.LUT, 0)]


@cache
def product_bits(x: IntType, w: IntType) -> int:
    """Return the bits of a product."""
    product = x.interval.times(w.interval)
    return IntType.holding(product).bits


@cache
def adder_tree(x: IntType, w: IntType, terms: int, limit: int, family: str = "ecp5") -> Resources:
    """Estimate a tree of adders: a register behind every adder and every term that is left over; sums are cut to
    ``limit`` bits."""
    product = x.interval.times(w.interval)
    return sum_tree(product.lo, product.hi, (1,) * terms, limit, family)


@cache
def sum_tree(
    low: int, high: int, counts: tuple[int, ...], limit: int, family: str = "ecp5", *, carried: bool = False
) -> Resources:
    """Estimate :func:`adder_tree` over sums of so many terms within ``low .. high``; ``carried``: each one place
    longer, and with a carry handed on."""

    def width(count: int) -> int:
        return min(limit, IntType.holding(Interval(count * low - carried, count * high)).bits)

    total, left = Resources(), list(counts)
    while len(left) > 1:
        sums = [a + b for a, b in zip(left[::2], left[1::2], strict=False)]
        for count in sums:
            length = carried_chain if carried else chain
            total += Resources(lut=length(family, width(count)), ff=width(count) + carried)
            if low >= 0 and FAMILIES[family].carry_bits == 1 and width(count) < limit:
                total += Resources(lut=-1)  # the top bit is the carry itself
        if len(left) % 2:
            sums.append(left[-1])
            total += Resources(ff=width(left[-1]) + carried)
        left = sums
    return total


def multiplier_blocks(family: str, made: Iterable[tuple[IntType, IntType, int]]) -> int:
    """Count the multiplier blocks of one core with these products: operands, how many of them.

    Operands too wide for a block are cut into parts. Two products of a core share a block where the family allows it
    and signs of operands are alike; which operand stands first does not matter, and a number without a sign that has
    fewer bits than the block takes is one with a sign as well (:mod:`hwflow.toolchain.packing`).
    """
    return _multiplier_blocks(family, tuple(made))


@lru_cache(maxsize=1 << 12)
def _multiplier_blocks(family: str, made: tuple[tuple[IntType, IntType, int], ...]) -> int:
    device = FAMILIES[family]
    total, halves = 0, []
    for x, w, count in made:
        if not device.in_block(x.bits, w.bits):
            continue
        if max(x.bits, w.bits) <= device.dsp_pair:
            halves.append(((x, w), count))
        else:
            total += count * _blocks_of_parts(family, x, w)
    signed = [any(operands[side].signed for operands, _ in halves) for side in (0, 1)]
    kinds = Counter[tuple[bool, ...]]()
    for operands, count in halves:
        signs = (t.signed or (any_signed and t.bits < device.dsp_pair)
                 for t, any_signed in zip(operands, signed, strict=True))
        kinds[tuple(sorted(signs))] += count
    return total + sum(ceil(count / 2) for count in kinds.values())


@cache
def _blocks_of_parts(family: str, x: IntType, w: IntType) -> int:
    """Count the blocks of one product, that has none to share a block with."""
    device = FAMILIES[family]
    if max(x.bits, w.bits) <= device.dsp_packed[0] and min(x.bits, w.bits) <= device.dsp_packed[1]:
        return int(device.in_block(x.bits, w.bits))
    parts = [_parts(x, w, device.dsp_width), _parts(w, x, device.dsp_width)]
    return sum(device.in_block(a, b) for a in parts[0] for b in parts[1])


SOFT_PRODUCT = 1.6  # look-up tables per bit of one operand and the other, of a product that no block is taken for


@lru_cache(maxsize=1 << 12)
def products(family: str, x: IntType, w: IntType, count: int, kind: ProductForm, limit: int | None = None) -> Resources:
    """Estimate ``count`` products in registers; in multiplier blocks with three behind each."""
    if min(x.bits, w.bits) == 1:  # a selection, of several bits by the register's reset
        return Resources(ff=count * product_bits(x, w))
    if kind == ProductForm.DSP:
        blocks = multiplier_blocks(family, [(x, w, count)])
        registers = (BLOCK_LATENCY - FAMILIES[family].dsp_registers) * product_bits(x, w)
        return Resources(lut=split_sums(family, x, w), ff=registers).times(count) + Resources(dsp=blocks)
    return _lut_product(x.bits, w.bits, x.bits + w.bits if limit is None else limit).times(count)


def product_without_block(family: str, x: IntType, w: IntType) -> Resources:
    """Return the cost of a product in look-up tables."""
    return products(family, x, w, 1, ProductForm.LUT)


@cache
def wide_product(family: str, x: IntType, w: IntType, count: int, limit: int | None = None) -> Resources:
    """Estimate ``count`` products of parts, added in a tree (:mod:`hdl_lib.arithmetic.wide_product`), without the bits
    from ``limit`` on."""
    device = FAMILIES[family]
    product = WideProduct(Shape(x.bits, x.signed), Shape(w.bits, w.signed), device.dsp_width - 1)
    total = Resources()

    def kept(number: Summand) -> int:
        width = int(number.shape.width)
        return width if limit is None else max(0, min(width, limit - number.first))

    made = [[IntType(part.shape.width, part.shape.signed) for part in pair] for pair in product.pairs]
    for (a, b), summand in zip(product.pairs, product.summands, strict=True):
        width = kept(summand)
        # All but the last register of a block are kept whole.
        total += Resources(ff=BLOCK_LATENCY * width + (BLOCK_LATENCY - 1) * (summand.shape.width - width))
        if device.in_block(a.shape.width, b.shape.width):
            total += Resources(ff=-device.dsp_registers * width)
        else:
            total += Resources(lut=a.shape.width * b.shape.width)
    for sums in product.levels:
        for register in sums:
            without = register.summand.shape.width - kept(register.summand)
            places = device.carry_bits * ceil(max(0, register.adder - without) / device.carry_bits)
            total += Resources(lut=places, ff=kept(register.summand))
    blocks = multiplier_blocks(family, [(a, b, count) for a, b in made])
    return total.times(count) + Resources(dsp=blocks)


@cache
def _lut_product(x: int, w: int, limit: int) -> Resources:
    """Estimate rows of two bits of the weight each, added in a tree (see :mod:`hdl_lib.arithmetic.multiplier`); bits of
    the product from ``limit`` on are not made."""
    rows = [(first, min(first + 2, w)) for first in range(0, min(w, limit), 2)]
    total = Resources(lut=sum(min(x, limit - first) * (end - first) for first, end in rows))
    if len(rows) == 1:
        return total + Resources(ff=min(x + w, limit))
    while len(rows) > 1:
        sums = []
        for index in range(0, len(rows), 2):
            first, end = rows[index]
            if index + 1 < len(rows):
                middle, end = rows[index + 1]
                total += Resources(lut=2 * ceil(min(x + end - middle + 1, limit - middle) / 2))
            sums.append((first, end))
            total += Resources(ff=min(x + end - first, limit - first))
        rows = sums
    return total


@lru_cache(maxsize=1 << 12)
def operands(family: str, x: IntType, w: IntType, count: int, kind: ProductForm, limit: int | None = None) -> Resources:
    """Estimate the operands of multiplier blocks, or the multiples of the inputs that products made of LUTs select
    from, of which bits of the product from ``limit`` on need none. The lowest bit of all multiples but 0 is the same;
    synthesis sees that but where it is a carry chain's."""
    if min(x.bits, w.bits) == 1:
        return Resources()
    if kind == ProductForm.DSP:
        # A block that has registers has the operands'.
        return Resources(ff=0 if FAMILIES[family].dsp_registers else x.bits * count)
    limit = x.bits + w.bits if limit is None else limit
    total = Resources(ff=min(x.bits, limit))
    places = min(x.bits + 2, limit) - 1
    total += Resources(lut=adder(family, places), ff=places)
    if w.signed:  # for the last digit alone
        places = min(x.bits + 1, limit - (w.bits - 1) // 2 * 2)
        places -= places <= SHORT
        complement = places - 1 if FAMILIES[family].carry_bits == 1 else 0  # which a carry cell reads
        total += Resources(lut=adder(family, places) + max(0, complement), ff=max(0, places))
    return total.times(count)


def whole_products(
    family: str, x: IntType, w: IntType, count: int, kind: ProductForm, limit: int | None = None
) -> Resources:
    """Estimate ``count`` products with their operands; those of operands wider than a block are sums of parts."""
    wide = kind == ProductForm.DSP and max(x.bits, w.bits) > BLOCK and min(x.bits, w.bits) > 1
    made = wide_product(family, x, w, count, limit) if wide else products(family, x, w, count, kind, limit)
    return made + operands(family, x, w, count, kind, limit)


def _parts(t: IntType, other: IntType, limit: int) -> list[int]:
    """Return the bits of the parts that yosys' mul2dsp cuts an operand into; one without a sign has one beside one with
    a sign."""
    bits = t.bits + int(other.signed and not t.signed)
    return [min(limit, bits - first) for first in range(0, bits, limit)]


@cache
def match_counts(family: str, rows: int, lanes: int, limit: int, constant: bool) -> Resources:
    """Estimate ``rows`` counts of the equal bits of ``lanes`` inputs and weights
    (:class:`hdl_lib.matrices.dot_product.MatchCount`).

    Weights that never change leave functions of the inputs alone, of which rows that have the same share one.
    """

    def shared(kinds: float) -> float:
        return kinds * (1 - (1 - 1 / kinds) ** rows) if constant and kinds < 1 << 16 else rows

    lut = ff = 0.0
    counts = [2] * (lanes // 2) + [1] * (lanes % 2)
    for n in counts:  # the exclusive or of a pair has two forms, its conjunction four
        forms = sum([shared(2), shared(4)][: min(n, limit)])
        lut, ff = lut + forms, ff + forms
    place = FAMILIES[family].carry_bits
    while len(counts) > 1:
        sums = [a + b for a, b in zip(counts[::2], counts[1::2], strict=False)] + counts[len(counts) & ~1 :]
        for index, n in enumerate(sums):
            width, copies = min(limit, n.bit_length()), shared(2.0 ** min(n, 1000))
            ff += copies * width
            if 2 * index + 1 < len(counts):  # up to four bits without a carry chain, one of them of more than a table
                lut += copies * (width + (width == 4) if n <= 8 else place * ceil(width / place))
        counts = sums
    return Resources(lut=round(lut), ff=round(ff))


def split_sums(family: str, x: IntType, w: IntType) -> int:
    """Count the look-up tables that add the parts of a product whose operands are too wide for one multiplier block, as
    yosys' mul2dsp has it: for each part of the one operand those of the other, then these sums, each from its place on.
    A block that has registers adds as well, as many bits as its product has."""
    device = FAMILIES[family]
    parts, others = _parts(x, w, device.dsp_width), _parts(w, x, device.dsp_width)
    total = 0
    for index, part in enumerate(parts):
        if index:
            total += chain(family, part + sum(others))
        if not device.dsp_registers:
            total += sum(chain(family, part + other) for other in others[1:])
    return total
