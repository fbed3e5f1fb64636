"""Two products in a multiplier block, split in the adder tree (:mod:`hdl_lib.packed_product`)."""

from __future__ import annotations

from functools import cache

from hdl_lib.adder_tree import shape_of, tree_levels
from hdl_lib.block_product import BLOCK_LATENCY
from hdl_lib.packed_product import Packing
from hwflow.ops.costs.basics import adders
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.costs.products import sum_tree
from hwflow.ops.operator import Resources
from hwflow.types import IntType

_UNLIMITED = 1000  # bits: sums before the split are exact


@cache
def paired_sums(family: str, x: IntType, packing: Packing, lanes: int, limit: int, accumulated: bool) -> Resources:
    """The sums of two rows of ``lanes`` products, cut to ``limit`` bits."""
    operand = packing.operand_shape
    block = x.bits + operand.width >= FAMILIES[family].dsp_product
    width = x.bits + operand.width
    total = Resources(lut=0 if block else x.bits * operand.width, ff=BLOCK_LATENCY * width, dsp=int(block)).times(lanes)
    group, groups = 1 << packing.levels, []
    for first in range(0, lanes, group):
        terms = min(group, lanes - first)
        total += sum_tree(*packing.packed_products, terms, _UNLIMITED)
        low, high = (terms * bound for bound in packing.packed_products)
        total += Resources(ff=shape_of(low, high).width).times(packing.levels - tree_levels(terms))
        groups.append(terms)
    low_products, high_products = packing.products
    total += _tree(low_products, high_products, groups, limit, carried=False)
    total += _tree(low_products, high_products, groups, limit, carried=True)
    if not accumulated:  # a register more, behind the last carry
        width = min(limit, shape_of(low_products * lanes, high_products * lanes).width)
        total += Resources(ff=width) + adders(width, 1)
    return total


def _tree(low: int, high: int, counts: list[int], limit: int, *, carried: bool) -> Resources:
    """The adders of sums of so many products within ``low .. high``; ``carried``: each one place longer, and with a
    carry handed on."""

    def width(count: int) -> int:
        return int(min(limit, shape_of(count * low - carried, count * high).width))

    total = Resources()
    while len(counts) > 1:
        sums = [a + b for a, b in zip(counts[::2], counts[1::2], strict=False)]
        for count in sums:
            total += Resources(lut=adders(width(count) + carried, 1).lut, ff=width(count) + carried)
        if len(counts) % 2:
            sums.append(counts[-1])
            total += Resources(ff=width(counts[-1]) + carried)
        counts = sums
    return total
