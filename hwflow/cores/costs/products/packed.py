"""Sums with carries: of two products in a multiplier block, of products of look-up tables."""

from __future__ import annotations

from functools import cache

from hdl_lib.arithmetic.adder_tree import shape_of, tree_levels
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.packed_product import Packing
from hwflow.cores.costs.basics import adders, carried_chain
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.products.product_sums import sum_tree
from hwflow.cores.operator import Resources
from hwflow.types import Interval, IntType

_UNLIMITED = 1000  # bits: sums before the split are exact


@cache
def paired_sums(family: str, packing: Packing, lanes: int, limit: int, accumulated: bool) -> Resources:
    """Estimate the sums of two rows of ``lanes`` products, cut to ``limit`` bits
    (:mod:`hdl_lib.arithmetic.packed_product`)."""
    width = shape_of(*packing.packed_products).width
    products = Resources(ff=(BLOCK_LATENCY - FAMILIES[family].dsp_registers) * width, dsp=1).times(lanes)
    return products + packed_sums(family, packing, lanes, limit, accumulated)


def packed_sums(family: str, packing: Packing, lanes: int, limit: int, accumulated: bool) -> Resources:
    """Estimate the sums behind the products."""
    total = Resources()
    group = 1 << packing.levels
    for first in range(0, lanes, group):
        terms = min(group, lanes - first)
        total += sum_tree(*packing.packed_products, (1,) * terms, _UNLIMITED, family)
        low, high = (terms * bound for bound in packing.packed_products)
        total += Resources(ff=shape_of(low, high).width).times(packing.levels - tree_levels(terms))
    return total + split_tree(family, packing, lanes, limit, accumulated)


@cache
def split_tree(family: str, packing: Packing, lanes: int, limit: int, accumulated: bool) -> Resources:
    """Estimate what is left of the sums behind the split of those of :attr:`Packing.levels` levels."""
    group = 1 << packing.levels
    groups = tuple(min(group, lanes - first) for first in range(0, lanes, group))
    low_products, high_products = packing.products
    total = sum_tree(low_products, high_products, groups, limit, family)
    total += sum_tree(low_products, high_products, groups, limit, family, carried=True)
    if not accumulated:  # a register more, behind the last carry
        width = min(limit, shape_of(low_products * lanes, high_products * lanes).width)
        total += Resources(ff=width) + adders(width, 1, family)
    return total


@cache
def digit_sum(family: str, x: IntType, digits: Digits, lanes: int, limit: int, accumulated: bool) -> Resources:
    """Estimate the sum of a row of ``lanes`` products of look-up tables (:mod:`hdl_lib.arithmetic.digit_product`)."""

    def width(first: int, end: int) -> int:
        product = x.interval.times(Interval(*digits.part(first, end)))
        return int(shape_of(product.lo - 1, product.hi).width)

    rows = [(place, place + 1) for place in range(digits.count)]
    # The top bit of the product of an input without sign is the digit's sign; two tables where a digit has three bits.
    product = Resources(lut=(x.bits + 1) * (digits.count + digits.wide))
    level = 0
    while len(rows) > 1 or level == 0:
        sums = []
        for index in range(0, len(rows), 2):
            first, end = rows[index]
            if index + 1 < len(rows):
                middle, end = rows[index + 1]
                product += Resources(lut=carried_chain(family, width(first, end) - 2 * (middle - first)))
            sums.append((first, end))
            product += Resources(ff=width(first, end) + 1)
        rows, level = sums, level + 1
    total = product.times(lanes)
    product_range = x.interval.times(Interval(*digits.range))
    low, high = product_range.lo, product_range.hi
    total += sum_tree(low, high, (1,) * lanes, limit, family, carried=True)
    if not accumulated:
        total += adders(min(limit, shape_of(low * lanes - 1, high * lanes).width), 1, family)
    return total
