"""Depthwise convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from amaranth.hdl import Shape

from hdl_lib.arithmetic.multiplier import Multiplier, ProductForm
from hdl_lib.windows.depthwise import ARRIVAL, Depthwise, buffer_words, masks
from hdl_lib.windows.window_geometry import WindowGeometry
from hwflow.cores.costs.basics import bits, chain, count_up, loop, trailing_zeros
from hwflow.cores.costs.changing import Changing
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import asynchronous_memory, filled_rom, in_block_ram, queue, rom
from hwflow.cores.costs.products.product_sums import adder_tree, whole_products
from hwflow.cores.costs.windows.weighted import products_of_table
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def depthwise_weights(
    family: str, x: IntType, w: IntType, words: Sequence[int] | None, depth: int, lanes: int, kind: ProductForm,
    changing: Changing | None = None,
) -> Resources:
    """The table of ``depth`` words (looked at where they are given) and the products of ``lanes`` weights;
    ``changing``: of a larger table's bits (None: all)."""
    width = lanes * w.bits
    if words is not None:
        return filled_rom(family, words, width) + products_of_table(family, x, w, words, lanes, kind)[0]
    total = rom(family, depth, width, changing)
    weights = lanes * w.bits if kind == ProductForm.DSP and min(x.bits, w.bits) > 1 else 0
    return total + whole_products(family, x, w, lanes, kind) + Resources(ff=weights)


def depthwise(
    family: str, geometry: WindowGeometry, source: IntType, x: IntType, w: IntType, result: IntType, lanes: int,
    blocks: int, row: bool, rows: int, kind: ProductForm, depth: int,
) -> Resources:
    """All but table and products: line buffers, the walk through them, sums, queue. ``x``: of the elements with
    padding; ``row``: one kernel row per step; ``rows``: of the buffer."""
    taps = geometry.kernel[1] if row else 1
    total = _control(family, geometry, blocks, row, rows)
    total += _buffers(family, geometry, source, lanes, blocks, row, rows)
    shapes = Shape(x.bits, x.signed), Shape(w.bits, w.signed)
    latency = Depthwise.latency_of(*shapes, geometry, row, kind)
    total += adder_tree(x, w, taps, result.bits, family).times(lanes)
    steps = geometry.kernel[0] * geometry.kernel[1] // taps
    product = Multiplier(*shapes, kind)
    total += Resources(ff=latency - 1 + masks(geometry, product) * taps * lanes * x.bits)
    if product.blocks and FAMILIES[family].dsp_registers:  # each has both operands to itself, and their registers
        total += Resources(ff=-taps * lanes * w.bits)
    if steps > 1:
        groups = -(-lanes // 8)
        total += Resources(lut=chain(family, result.bits), ff=2 * result.bits).times(lanes)
        total += Resources(lut=groups, ff=2 * groups + 2 * (latency - 3))
    return total + queue(family, lanes * result.bits, depth)


def _buffers(
    family: str, geometry: WindowGeometry, source: IntType, lanes: int, blocks: int, row: bool, rows: int
) -> Resources:
    """Copies of the line buffer with their addresses, and what comes from them or is padding."""
    taps = geometry.kernel[1] if row else 1
    words, width = buffer_words(rows * geometry.width * blocks), lanes * source.bits
    address = bits(words - 1)
    block = in_block_ram(family, words, width)
    store = Resources(bram=block) if block else asynchronous_memory(family, words, width) + Resources(ff=width)
    padded = any(geometry.pads)
    # Padding is a reset of the elements' next registers.
    each = store + Resources(lut=1, ff=address + 1 + width + ARRIVAL * padded)
    total = each.times(taps) + Resources(ff=width + 1) + count_up(words)
    if not block and FAMILIES[family].lutram is None:  # flip-flops that hold the same become one
        total += Resources(lut=words, ff=words * width).times(1 - taps)
    for tap in range(1, taps):
        move = tap * geometry.dilation[1] * blocks
        total += Resources(lut=chain(family, address - trailing_zeros(move)))
    return total


@cache
def _control(family: str, geometry: WindowGeometry, blocks: int, row: bool, rows: int) -> Resources:
    """Loops, the address, row counts."""
    g = geometry
    (kh, kw), taps = g.kernel, g.kernel[1] if row else 1
    total = loop(g.width * blocks)
    for rounds in (kw // taps, kh, blocks, g.out_width, g.out_height):
        total += loop(rounds)
    address = bits(buffer_words(rows * g.width * blocks) - 1)
    moves = sum(rounds > 1 for rounds in (kw // taps, kh, blocks, g.out_width, g.out_height))
    total += Resources(lut=chain(family, address) + round(ADDRESS_CHOICE * address * moves), ff=address)
    counts = _row_counts(g, rows)
    return total + Resources(lut=round(COUNTS * counts) + REST, ff=counts)


@cache
def _row_counts(g: WindowGeometry, rows: int) -> int:
    """Bits of the counts of rows, and of what says how they go on after an output row."""
    steps = g.row_steps
    counts = Shape.cast(range(-1, rows + g.greatest_surplus)).width
    counts += Shape.cast(range(-max(g.needed_rows(0), *(s.needed for s in steps)), rows + g.greatest_lead + 1)).width
    phase = 0
    if len(steps) > 1:
        phase = bits(len(steps) - 1) + (max(step.count for step in steps) - 1).bit_length() + 1
    return int(counts + phase)


# Look-up tables per address bit for each move it may make, per bit of the row counts (positions in the image among
# them), and the rest. By least squares over the harness's cases.
ADDRESS_CHOICE, COUNTS, REST = 0.7, 7.6, -29
