"""Weighted sums over groups of pixels."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Shape

from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hdl_lib.arithmetic.multiplier import BLOCK, Multiplier, ProductForm
from hdl_lib.windows.weighted_pool import WeightedPool, arrival_of
from hwflow.cores.costs.basics import FEW, MOST_KNOWN_BITS, chain, count_up, loop, trailing_zeros
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import filled_rom
from hwflow.cores.costs.products.product_sums import multiplier_blocks, product_bits, whole_products
from hwflow.cores.costs.products.row_sums import multiple_product
from hwflow.cores.costs.windows.sliding_windows import sum_pool
from hwflow.cores.operator import Resources
from hwflow.types import Interval, IntType


def weighted_pool(
    family: str, x: IntType, w: IntType, result: IntType, lanes: int, words: Sequence[int], blocks: int, window: int,
    kind: ProductForm, depth: int,
) -> Resources:
    """Estimate a pool of products: the table, the products, what a sum pool takes."""
    total, table = _table(family, words, lanes * w.bits), (lanes * w.bits, len(words))
    made, lanes, zeros = products_of_table(family, x, w, words, lanes, kind)
    return total + made + _sums(family, x, w, result, lanes, table, blocks, window, kind, depth, zeros)


def products_of_table(
    family: str, x: IntType, w: IntType, words: Sequence[int], lanes: int, kind: ProductForm
) -> tuple[Resources, int, int]:
    """Estimate products with the ``lanes`` weights of a table's words, how many of them are not always 0, and bits at
    their low ends that are."""
    total, several = Resources(), min(x.bits, w.bits) > 1
    columns = None
    if several and len(words) <= FEW and len(words) * lanes * w.bits <= MOST_KNOWN_BITS:
        columns = [column for column in _columns(words, lanes, w) if any(column)]
        lanes = len(columns)  # the others' results never change
    if columns is not None and kind == ProductForm.LUT:
        for column in columns:
            total += multiple_product(family, x, w, column)
    elif columns is not None and len(words) == 1 and max(x.bits, w.bits) <= BLOCK:
        total += _constants(family, x, w, [column[0] for column in columns])
    else:
        total += whole_products(family, x, w, lanes, kind)
        if kind == ProductForm.DSP and several and len(words) > 1:
            total += Resources(ff=lanes * w.bits)
    zeros = sum(trailing_zeros(*column) for column in columns or ()) if kind == ProductForm.LUT else 0
    return total, lanes, zeros


def position_sum(
    family: str, x: IntType, w: IntType, result: IntType, lanes: int, weights: Sequence[Sequence[int]], repeat: int,
    blocks: int, kind: ProductForm, depth: int,
) -> Resources:
    """Estimate a pool of products by one weight for all lanes; ``weights``: those of each position."""
    window, flat = len(weights[0]), [weight & (1 << w.bits) - 1 for row in weights for weight in row]
    total, table = _table(family, flat, w.bits), (w.bits, len(flat))
    total += loop(repeat) + loop(blocks) + loop(window)
    # What digits have in common saves nothing where the mapper has a slice's multiplexers: as measured.
    few = FAMILIES[family].carry_bits == 1
    if kind == ProductForm.LUT and min(x.bits, w.bits) > 1 and few and len(flat) * w.bits <= MOST_KNOWN_BITS:
        total += multiple_product(family, x, w, [weight for row in weights for weight in row]).times(lanes)
    else:
        total += whole_products(family, x, w, lanes, kind)
    return total + _sums(family, x, w, result, lanes, table, blocks, window, kind, depth)


def _table(family: str, words: Sequence[int], width: int) -> Resources:
    """Estimate the table of words of ``width`` bits, and its address."""
    return filled_rom(family, words, width) + count_up(len(words))


def _sums(
    family: str, x: IntType, w: IntType, result: IntType, lanes: int, table: tuple[int, int], blocks: int, window: int,
    kind: ProductForm, depth: int, zeros: int = 0,
) -> Resources:
    """Estimate what a sum pool takes; its own registers of a beat are those of the products. ``table``: bits of a word
    of the weights, words; ``zeros``: bits at the low ends of all lanes' sums that are always 0."""
    term = product_bits(x, w)
    shapes = Shape(x.bits, x.signed), Shape(w.bits, w.signed)
    latency = WeightedPool.weighted_latency_of(*shapes, kind, table=table)
    arrival = arrival_of(Multiplier(*shapes, kind), *table)
    total = Resources(ff=arrival * lanes * x.bits + 3 * (latency - 3) - lanes * term * (2 if blocks > 4 else 1))
    return total + sum_pool(family, lanes, term, result.bits, blocks, window, depth, zeros)


def _columns(words: Sequence[int], lanes: int, w: IntType) -> list[list[int]]:
    """Return the numbers of each lane."""
    half, mask = 1 << (w.bits - 1) if w.signed else 0, (1 << w.bits) - 1
    return [[((word >> lane * w.bits & mask) ^ half) - half for word in words] for lane in range(lanes)]


def _constants(family: str, x: IntType, w: IntType, weights: Sequence[int]) -> Resources:
    """Estimate products with weights that never change, none of them 0: blocks, or, of minus a power of two with sign
    and a power of two without, shifts."""
    device, total, made = FAMILIES[family], Resources(), []
    for weight in weights:
        zeros = trailing_zeros(weight)
        low, high = sorted((weight * x.min >> zeros, weight * x.max >> zeros))
        width = IntType.holding(Interval(low, high)).bits
        operand = IntType.holding(Interval(min(-int(w.signed), weight >> zeros), max(0, weight >> zeros)))
        shift = weight == (-1 if w.signed else 1) << zeros
        block = not shift and x.bits + operand.bits >= device.dsp_product
        if block:
            made.append((x, operand, 1))
        total += Resources(lut=chain(family, width) if shift and weight < 0 else 0)
        total += Resources(ff=x.bits + (BLOCK_LATENCY - device.dsp_registers * block) * width)
    return total + Resources(dsp=multiplier_blocks(family, made))
