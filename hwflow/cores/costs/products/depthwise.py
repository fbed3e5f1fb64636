"""Depthwise convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from amaranth.hdl import Shape

from hdl_lib.arithmetic.multiplier import Multiplier, ProductForm
from hdl_lib.windows.depthwise import ARRIVAL, SETTLED, Depthwise, buffer_words, masks
from hdl_lib.windows.pixel_steps import PixelSteps
from hdl_lib.windows.window_geometry import WindowGeometry
from hwflow.cores.costs.basics import bits, chain, count_up, loop, trailing_zeros
from hwflow.cores.costs.changing import Changing
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import buffer_memory, filled_rom, queue, rom
from hwflow.cores.costs.products.product_sums import adder_tree, whole_products
from hwflow.cores.costs.windows.weighted import products_of_table
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def depthwise_weights(
    family: str, x: IntType, w: IntType, words: Sequence[int] | None, depth: int, lanes: int, kind: ProductForm,
    changing: Changing | None = None, *, held: bool = False,
) -> Resources:
    """Estimate the table of ``depth`` words (looked at where they are given) and the products of ``lanes`` weights;
    ``changing``: of a larger table's bits (None: all); ``held``: in block RAM, whatever its size."""
    width = lanes * w.bits
    if words is not None:
        return filled_rom(family, words, width) + products_of_table(family, x, w, words, lanes, kind)[0]
    total = rom(family, depth, width, changing, held=held)
    weights = lanes * w.bits if kind == ProductForm.DSP and min(x.bits, w.bits) > 1 else 0
    return total + whole_products(family, x, w, lanes, kind) + Resources(ff=weights)


def depthwise(
    family: str, geometry: WindowGeometry, source: IntType, x: IntType, w: IntType, result: IntType, lanes: int,
    blocks: int, row: bool, rows: int | None, pixels: int, kind: ProductForm, depth: int,
) -> Resources:
    """Estimate all but table and products: line buffers, the walk through them, sums, queue. ``x``: of the elements
    with padding; ``row``: one kernel row per step; ``rows``: of the buffer, or None and its ``pixels``."""
    taps = geometry.kernel[1] if row else 1
    words = max(2, pixels * blocks) if rows is None else buffer_words(rows * geometry.width * blocks)
    total = _control(family, geometry, blocks, row, rows, words)
    total += _buffers(family, geometry, source, lanes, blocks, row, words)
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
    family: str, geometry: WindowGeometry, source: IntType, lanes: int, blocks: int, row: bool, words: int
) -> Resources:
    """Estimate copies of the line buffer with their addresses, and what comes from them or is padding."""
    taps = geometry.kernel[1] if row else 1
    width, address = lanes * source.bits, bits(words - 1)
    store = buffer_memory(family, words, width)
    padded = any(geometry.pads)
    # Padding is a reset of the elements' next registers.
    each = store + Resources(lut=1, ff=address + 1 + ARRIVAL * padded)
    total = each.times(taps) + Resources(ff=width + 1) + count_up(words)
    if not store.bram and FAMILIES[family].lutram is None:  # flip-flops that hold the same become one
        total += Resources(lut=words, ff=words * width).times(1 - taps)
    for tap in range(1, taps):
        move = tap * geometry.dilation[1] * blocks
        total += Resources(lut=chain(family, address - trailing_zeros(move)))
        if words & (words - 1):  # two sums and a choice
            total += Resources(lut=chain(family, address) + address)
    return total


@cache
def _control(
    family: str, geometry: WindowGeometry, blocks: int, row: bool, rows: int | None, words: int
) -> Resources:
    """Estimate loops, the address in a buffer of so many ``words``, counts of rows or pixels."""
    g = geometry
    (kh, kw), taps = g.kernel, g.kernel[1] if row else 1
    total = loop(blocks if rows is None else g.width * blocks)
    for rounds in (kw // taps, kh, blocks, g.out_width, g.out_height):
        total += loop(rounds)
    address = bits(words - 1)
    moves = sum(rounds > 1 for rounds in (kw // taps, kh, blocks, g.out_width, g.out_height))
    sums = 2 if words & (words - 1) else 1  # with a choice between them
    choice = round(ADDRESS_CHOICE * address * moves) + (sums - 1) * address
    total += Resources(lut=sums * chain(family, address) + choice, ff=address)
    settled = int(kh * kw // taps * blocks >= SETTLED)
    if rows is None:
        return total + _pixel_counts(g, words // blocks, settled)
    counts, ends = _row_counts(g, rows), settled * int(len(g.row_steps) > 1)
    return total + Resources(lut=round(COUNTS * counts) + REST, ff=counts + ends)


@cache
def _row_counts(g: WindowGeometry, rows: int) -> int:
    """Count the bits of the counts of rows, and of what says how they go on after an output row."""
    steps = g.row_steps
    counts = Shape.cast(range(-1, rows + g.greatest_surplus)).width
    counts += Shape.cast(range(-max(g.needed_rows(0), *(s.needed for s in steps)), rows + g.greatest_lead + 1)).width
    phase = 0
    if len(steps) > 1:
        phase = bits(len(steps) - 1) + (max(step.count for step in steps) - 1).bit_length() + 1
    return int(counts + phase)


@cache
def _pixel_counts(g: WindowGeometry, pixels: int, settled: int) -> Resources:
    """Estimate the counts of pixels, and what says how they go on after a window, which hears of it with ``settled``
    cycles between."""
    steps = PixelSteps(g)
    counts = Shape.cast(range(-1, pixels + max(0, steps.greatest_surplus))).width
    most = max(steps.needed(0, 0), steps.most_needed)
    counts += Shape.cast(range(-most, pixels + max(0, steps.greatest_lead) + 1)).width
    phases = 0
    for each in (steps.column_steps, steps.row_steps, steps.moving_rows):
        if len(each) > 1:
            phases += bits(len(each) - 1) + (max(step.count for step in each) - 1).bit_length() + 1
    heard = (steps.column_steps,), (steps.row_steps, steps.moving_rows)
    ends = sum(settled for phases_of in heard if any(len(each) > 1 for each in phases_of))
    luts = PIXEL_COUNTS * counts + PIXEL_PHASES * phases + PIXEL_REST
    # A change of nothing but 0 takes no register.
    changes = [*steps.column_steps, *steps.row_steps]
    kept = sum(bits(most) for most in (max(s.needed for s in changes), max(s.released for s in changes)) if most)
    return Resources(lut=round(luts), ff=int(counts) + phases + ends + kept)


# Look-up tables per bit of the pixel counts, per bit of what says how they go on, and the rest (positions in the image
# among them).
PIXEL_COUNTS, PIXEL_PHASES, PIXEL_REST = 4.0, 2.0, 60

# Look-up tables per address bit for each move it may make, per bit of the row counts (positions in the image among
# them), and the rest. By least squares over the harness's cases.
ADDRESS_CHOICE, COUNTS, REST = 0.7, 8.2, -29
