"""Weighted sums over groups of pixels."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Shape

from hdl_lib.multiplier import BLOCK
from hdl_lib.weighted_pool import ARRIVAL, WeightedPool
from hwflow.ops.costs.basics import count_up
from hwflow.ops.costs.memory import filled_rom
from hwflow.ops.costs.products import operands, product_bits, products, wide_product
from hwflow.ops.costs.windows import sum_pool
from hwflow.ops.operator import Resources
from hwflow.types import IntType


def weighted_pool(
    family: str, x: IntType, w: IntType, result: IntType, lanes: int, words: Sequence[int], blocks: int, window: int,
    kind: str, depth: int,
) -> Resources:
    """A pool of products: the table, the products, what a sum pool takes."""
    total = filled_rom(family, words, lanes * w.bits) + count_up(len(words))
    if kind == "dsp" and max(x.bits, w.bits) > BLOCK and min(x.bits, w.bits) > 1:
        total += wide_product(family, x, w, lanes)
    else:
        total += products(family, x, w, lanes, kind)
    if kind == "dsp" and min(x.bits, w.bits) > 1 and len(words) > 1:
        total += Resources(ff=lanes * w.bits)
    total += operands(x, w, lanes, kind) + Resources(ff=ARRIVAL * lanes * x.bits)
    term = product_bits(x, w)
    latency = WeightedPool.weighted_latency_of(Shape(x.bits, x.signed), Shape(w.bits, w.signed), kind)
    # The pool's own registers of a beat are those of the products.
    pool = sum_pool(family, lanes, term, result.bits, blocks, window, depth)
    return total + pool + Resources(ff=3 * (latency - 3) - lanes * term * (2 if blocks > 4 else 1))
