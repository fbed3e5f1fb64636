"""Sums, products and concatenations of streams; what moves beats."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, lcm

import numpy as np

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.matrices.whole_rows import WholeRows
from hdl_lib.streams.stream_add import AddPlan
from hwflow.cores.costs.basics import FEW, MOST_KNOWN_BITS, adders, bits, chain, count_up, joint_step, loop, skid_buffer
from hwflow.cores.costs.changing import changing_bits
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import block_queue, filled_rom, queue, rom
from hwflow.cores.costs.products.product_sums import (
    multiplier_blocks,
    product_bits,
    split_sums,
    whole_products,
)
from hwflow.cores.costs.products.row_sums import multiple_product
from hwflow.cores.memory_words import pack_words
from hwflow.cores.operator import Folding, Resources
from hwflow.types import IntType


def add_multipliers(family: str, plan: AddPlan, pixels: int = 1) -> int:
    """Count the multiplier blocks of a core of :mod:`hdl_lib.streams.stream_add`; ``pixels``: as many as a beat
    holds."""
    if plan.form != ProductForm.DSP:
        return 0
    made = []
    for index, (shape, product) in enumerate(zip(plan.input_shapes, plan.products, strict=True)):
        x = IntType(shape.width, shape.signed)
        if product is not None:
            w = IntType(product.weight_shape.width, product.weight_shape.signed)
            made.append((x, w, pixels * plan.lanes))
            continue
        for lane in range(plan.lanes):
            for factor, _ in plan.constant(index, lane):
                if factor > 1:
                    made.append((x, IntType(factor.bit_length(), False), pixels))
    return multiplier_blocks(family, made)


def stream_add(
    family: str, inputs: Sequence[IntType], plan: AddPlan, blocks: int, depth: int, pixels: int = 1
) -> Resources:
    """Estimate skid buffers, products or sums of shifted inputs (see :mod:`hdl_lib.streams.stream_add`), tables of
    multipliers. ``pixels``: as many as a beat holds; ``plan`` is for one of them."""
    lanes = plan.lanes
    inside = FAMILIES[family].dsp_registers if plan.form == ProductForm.DSP else 0  # registers that are a block's own
    total = Resources()
    for index, x in enumerate(inputs):
        product = plan.products[index]
        if product is None:
            for lane in range(lanes):
                for factor, _ in plan.constant(index, lane):
                    w = IntType(factor.bit_length(), False)
                    held, soft = product_bits(x, w) * (plan.product_latency - 1), 0
                    if inside:
                        width = int(shape_of(x.min * factor, x.max * factor).width)
                        block = width >= FAMILIES[family].dsp_product  # has the operand's register, the first behind
                        held = (plan.product_latency - 1 - block) * width
                        soft = 0 if block else 2 * width * (factor.bit_count() - 1)
                    if not inside or soft:
                        held += x.bits
                    total += Resources(lut=split_sums(family, x, w) + soft, ff=held)
            continue
        w = IntType(product.weight_shape.width, product.weight_shape.signed)
        different = plan.columns * w.bits  # bits of a word that are not alike in all words
        numbers = plan.words(index)
        words = pack_words(np.array(numbers), w.bits)
        if plan.held is not None:
            table = rom(family, len(words), different, held=True)
        elif len(words) * different <= MOST_KNOWN_BITS:
            table = filled_rom(family, words, different)
        else:
            table = rom(family, len(words), different, changing_bits(words, different))
        total += table + Resources(ff=2 * lanes * x.bits + different * product.operand_latency)
        known = plan.held is None and len(words) <= FEW
        if plan.form == ProductForm.LUT and known and min(x.bits, w.bits) > 1:
            made = Resources()
            for own in zip(*numbers, strict=True):
                made += multiple_product(family, x, w, [*own])
        else:
            made = whole_products(family, x, w, lanes, plan.form)
        total += Resources(made.lut, made.ff)
        late = plan.product_latency - plan.tabled_latency(index)
        total += Resources(ff=lanes * late * product_bits(x, w))
    if any(plan.products):  # one address for both tables
        total += count_up(blocks if plan.held is None else 2)
    stored = 0
    for lane in range(lanes):
        stored += min(plan.width, plan.registers(lane)[-1].width)  # none below the least digit, none above the sign
        for register in plan.registers(lane):
            total += Resources(lut=chain(family, register.added), ff=register.width)
            if FAMILIES[family].carry_bits == 1:  # a carry cell reads the complement of what is subtracted
                total += Resources(lut=register.subtracted)
    total = total.times(pixels) + Resources(ff=plan.latency + 1, dsp=add_multipliers(family, plan, pixels))
    total += Resources(lut=4)
    for x in inputs:
        total += skid_buffer(pixels * lanes * x.bits, family)
    return total + queue(family, pixels * stored, depth)


def stream_product(
    family: str, inputs: Sequence[IntType], offsets: Sequence[int], x: IntType, w: IntType, out: IntType, lanes: int,
    kind: ProductForm, latency: int, depth: int,
) -> Resources:
    """Estimate skid buffers, differences (of types ``x`` and ``w``), products, so many cycles of ``latency``."""
    total = Resources(lut=4, ff=latency + 1)
    for element, offset, difference in zip(inputs, offsets, (x, w), strict=True):
        total += skid_buffer(lanes * element.bits, family)
        # An offset's zeros below leave the value's bits as they are.
        places = difference.bits - (offset & -offset).bit_length() + 1 if offset else 0
        total += Resources(lut=lanes * adders(places, 1, family).lut, ff=lanes * difference.bits)
    total += whole_products(family, x, w, lanes, kind, out.bits)
    if kind != ProductForm.DSP or not FAMILIES[family].dsp_registers:
        total += Resources(ff=lanes * w.bits)
    return total + queue(family, lanes * out.bits, depth)


def concat(family: str, width: int, inputs: int, longest: int, depth: int) -> Resources:
    """Estimate a registered choice among the inputs, whose turn it is, a counter."""
    counter = bits(longest)
    control = Resources(lut=3 * counter + 4 * inputs, ff=counter + inputs + 2)
    return control + Resources(lut=width * (inputs - 1), ff=width) + queue(family, width, depth)


def side_by_side(
    family: str, widths: tuple[int, int], rows: int, width: int, spans: Sequence[range], blocks: int, depth: int
) -> Resources:
    """Estimate the like of :func:`concat`, of beats of so many bits before and behind, with counts of pixels and
    rows, and which inputs take part."""
    absent = [span for span in spans if len(span) < rows]
    control = loop(blocks) + Resources(lut=4 * len(spans) + 2, ff=len(spans) + 1)
    if absent:
        each = 6 if FAMILIES[family].lutram is None else 12
        control += loop(width) + count_up(rows) + Resources(lut=each * len(absent), ff=len(absent))
    chosen = Resources(lut=widths[1] * (len(spans) - 1) + len(absent), ff=widths[1])
    return control + chosen + queue(family, widths[1], depth)


def interleave(family: str, inputs: Sequence[int], width: int, depth: int) -> Resources:
    """Estimate a skid buffer behind each input, of so many bits, and a step that waits for all of them."""
    total = Resources(lut=joint_step(family, len(inputs)))
    for bits_ in inputs:
        total += skid_buffer(bits_, family)
    # Bits of a wider result that are an input's sign, or 0, are not stored.
    return total + queue(family, min(width, sum(inputs)), depth)


def fork(family: str, width: int, depths: Sequence[int], blocks: Sequence[bool]) -> Resources:
    """Estimate a queue a branch (``blocks``: in block RAM), and a step that waits for a credit of each."""
    total = Resources(lut=6 * len(depths))
    for depth, block in zip(depths, blocks, strict=True):
        total += (block_queue if block else queue)(family, width, depth)
    return total


def whole_rows(family: str, width: int, beats: int) -> Resources:
    """Estimate a buffer of two rows, with counters of beats and of rows."""
    return block_queue(family, width, WholeRows.depth_of(beats)) + loop(beats) + loop(beats) + Resources(lut=12, ff=5)


def width_converter(family: str, element: int, folding: Folding, depth: int, channels: int = 0) -> Resources:
    """Estimate what collects beats or hands out their parts (see :mod:`hdl_lib.streams.width_converter`), a queue.
    ``channels`` of a pixel; those of the wide side if left out."""
    fine, wide = folding.input_lanes, folding.output_lanes
    channels = channels or max(fine, wide)
    if wide % fine == 0 or fine < wide == channels:
        stages = _collect(element, channels, fine, wide)
    elif fine % wide == 0 or wide < fine == channels:
        stages = _hand_out(element, channels, fine, wide)
    else:
        common = lcm(fine, wide)
        stages = _collect(element, channels, fine, common) + queue(family, common * element, 2)
        stages += _hand_out(element, channels, common, wide)
    return stages + queue(family, wide * element, depth)


def _collect(element: int, channels: int, lanes_in: int, lanes_out: int) -> Resources:
    """Estimate a register and an enable for each part of a beat but the last; places that a pixel's last beat leaves
    empty."""
    beats = ceil(channels / lanes_in)
    ratio = min(ceil(lanes_out / lanes_in), beats)
    surplus, final, place = -channels % lanes_in, (beats - 1) % ratio, (ratio - 1).bit_length()
    total = Resources(lut=5 + 4 * place + 3 * (ratio - 1), ff=place + (ratio - 1) * lanes_in * element)
    total += Resources(lut=surplus * element)
    if final != ratio - 1:
        total += Resources(lut=(ratio - final) * lanes_in * element)
    return total


def _hand_out(element: int, channels: int, lanes_in: int, lanes_out: int) -> Resources:
    """Estimate a register that is shifted, and the first part beside it."""
    beats, steps = ceil(channels / lanes_in), ceil(channels / lanes_out)
    ratio = min(ceil(lanes_in / lanes_out), steps)
    held, left = lanes_out * (ratio - 1), (ratio - 1).bit_length()
    place = (beats - 1).bit_length()  # of a pixel's beats
    luts = lanes_out * element * max(1, ratio - 1) + 8 + 3 * left + 2 * place
    return Resources(lut=luts, ff=held * element + left + 1 + place)


def frame_sync(family: str, width: int, count: int) -> Resources:
    """Estimate a beat counter and a queue of two."""
    counter = bits(count)
    return Resources(lut=2 * counter + width + 12, ff=counter + 4) + queue(family, width, 2)
