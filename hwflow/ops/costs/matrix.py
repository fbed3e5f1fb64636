"""The matrix-vector unit."""

from __future__ import annotations

from hdl_lib.digit_product import Digits
from hdl_lib.multiplier import BLOCK
from hdl_lib.packed_product import Packing
from hwflow.ops.costs.basics import adders, bits
from hwflow.ops.costs.memory import asynchronous_memory, in_block_ram, queue, rom
from hwflow.ops.costs.packed import digit_sum, paired_sums
from hwflow.ops.costs.products import adder_tree, match_counts, operands, products, sum_tree, wide_product
from hwflow.ops.operator import Folding, Resources
from hwflow.types import Interval, IntType


def mvu(
    family: str, x: IntType, w: IntType, accumulator: IntType, folding: Folding, synapse: int, neuron: int, depth: int,
    *, surplus: int = 0, ranges: tuple[tuple[int, int], tuple[int, int]] | None = None,
    packing: Packing | None = None, digits: Digits | None = None,
) -> Resources:
    """Matrix-vector unit: weight table, products, adder trees, accumulators, replay buffer, queue. ``surplus``: lanes
    of some beats that are made zero; ``ranges``: of inputs and weights, where they are known; ``packing``: of two
    weights, for "dsp2"; ``digits``: of weights, for "lut"."""
    pe, simd = folding.output_lanes, folding.input_lanes
    word = pe * simd * w.bits
    if packing is not None:
        word = simd * (pe // 2 * packing.bits + pe % 2 * w.bits)
    if digits is not None:
        word = pe * simd * digits.bits
    total = rom(family, synapse * neuron, word)
    if folding.multiplier in ("dsp", "dsp2") and min(x.bits, w.bits) > 1 and synapse * neuron > 1:
        total += Resources(ff=word)  # weights at multiplier blocks
    if folding.multiplier == "xnor":
        total += match_counts(family, pe, simd, accumulator.bits, synapse * neuron == 1)
    elif folding.multiplier == "lut" and ranges is not None and x.bits == w.bits == 2:
        corners = [a * b for a in ranges[0] for b in ranges[1]]
        width = IntType.holding(Interval(min(corners), max(corners))).bits
        total += Resources(lut=pe * simd * width, ff=pe * simd * width)
        total += sum_tree(min(corners), max(corners), simd, accumulator.bits).times(pe)
    elif digits is not None:
        total += digit_sum(x, digits, simd, accumulator.bits, synapse > 1).times(pe)
    elif packing is not None:
        total += paired_sums(family, x, packing, simd, accumulator.bits, synapse > 1).times(pe // 2)
        total += operands(x, w, simd, "dsp")
        if pe % 2:
            total += products(family, x, w, simd, "dsp") + adder_tree(x, w, simd, accumulator.bits)
            total += Resources(ff=0 if synapse > 1 else accumulator.bits)
    else:
        if folding.multiplier == "dsp" and max(x.bits, w.bits) > BLOCK and min(x.bits, w.bits) > 1:
            total += wide_product(family, x, w).times(pe * simd)
        else:
            total += products(family, x, w, pe * simd, folding.multiplier)
        total += operands(x, w, simd, folding.multiplier)
        total += adder_tree(x, w, simd, accumulator.bits).times(pe)
    total += Resources(ff=2 * simd * x.bits)
    if synapse > 1:  # what is carried on, and the sum
        # accumulators that add a carry, one place longer
        carried = pe if digits is not None else 0 if packing is None else pe // 2
        total += adders(accumulator.bits, pe - carried) + adders(accumulator.bits + 1, carried)
        total += Resources(ff=pe * accumulator.bits - carried)
        if neuron > 1:
            store = in_block_ram(family, synapse, simd * x.bits)
            words = Resources(bram=store) if store else asynchronous_memory(family, synapse, simd * x.bits)
            # behind the memory one register more, another for the beat that is handed on
            total += words + Resources(lut=simd * x.bits, ff=(2 if store else 3) * simd * x.bits)
    counters = bits(synapse) + bits(neuron) + bits(synapse * neuron) + (bits(synapse) if surplus else 0)
    return total + Resources(lut=3 * counters + 8, ff=counters + 16) + queue(family, pe * accumulator.bits, depth)
