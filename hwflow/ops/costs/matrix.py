"""The matrix-vector unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil

from amaranth.hdl import Shape

from hdl_lib.accumulator import GROUP
from hdl_lib.adder_tree import shape_of
from hdl_lib.block_product import BLOCK_LATENCY
from hdl_lib.digit_product import Digits
from hdl_lib.multiplier import BLOCK, PART
from hdl_lib.mvu import Mvu
from hdl_lib.packed_product import Packing
from hdl_lib.rom import lies_far, lies_in_block
from hdl_lib.storage import REGISTER_DEPTH
from hwflow.ir.graph import IntArray
from hwflow.ops.costs.basics import accumulating, carried_chain, count_up, loop
from hwflow.ops.costs.changing import Changing, changing_bits
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.costs.fixed_factors import FixedFactor, fixed_products, fixed_sums, soft_products
from hwflow.ops.costs.known_blocks import known_products, known_sums
from hwflow.ops.costs.known_products import digit_sums, table_products
from hwflow.ops.costs.memory import asynchronous_memory, filled_rom, in_block_ram, queue, rom
from hwflow.ops.costs.packed import digit_sum, packed_sums, paired_sums, split_tree
from hwflow.ops.costs.products import (
    adder_tree,
    match_counts,
    multiplier_blocks,
    operands,
    product_bits,
    products,
    sum_tree,
    wide_product,
)
from hwflow.ops.operator import Folding, Resources
from hwflow.types import Interval, IntType

FEW = 16  # words of a table by which products of look-up tables are counted one by one
MOST_KNOWN_BITS = 4096  # of a table that is looked at while a search asks for every folding
MOST_CHOSEN_BITS = 1 << 17  # the same of the folding that is chosen: a larger one is as good as one of random bits


@dataclass(frozen=True)
class FewWords:
    """A table of few words: ``words`` are its patterns, ``weights`` what each multiplier block takes, [words, lanes,
    parts], lanes of a row side by side."""

    words: Sequence[int]
    weights: IntArray

    def _needed(self, simd: int, signed: bool, least: int) -> set[tuple[int, ...]]:
        """Input and weights of each multiplier block that synthesis leaves where the weights never change."""
        needed = set()
        for lane, numbers in enumerate(self.weights[0].tolist()):
            ones = [-number if signed else number for number in numbers if number]
            several = any(number < 0 or number & (number - 1) for number in ones)
            if len(ones) > 1 or (several and _significant(-ones[0] if signed else ones[0], signed) >= least):
                needed.add((lane % simd, *numbers))
        return needed

    def factors(
        self, x: IntType, w: IntType, pe: int, simd: int, packing: Packing | None
    ) -> list[list[FixedFactor | None]]:
        """What inputs are multiplied with where the weights never change, for each row or pair of rows; None: 0."""
        numbers = self.weights[0].tolist()
        rows = []
        for row in range(len(numbers) // simd):
            kind, shift = w, 0
            if packing is not None and row < pe // 2:
                kind, shift = IntType(packing.operand_shape.width, packing.operand_shape.signed), packing.shift
            lanes = numbers[row * simd : (row + 1) * simd]
            values = [sum(number << shift * k for k, number in enumerate(lane)) for lane in lanes]
            rows.append([FixedFactor(x, kind, value) if value else None for value in values])
        return rows

    def idle(self, simd: int, signed: bool, least: int) -> int:
        """Multiplier blocks that synthesis saves where the weights never change: those of 0 and those that are a single
        bit once the zeros below are cut off (minus a power of two with sign, a power of two without) or fewer than
        ``least``, and those of another row's weight at the same input. Of two weights, one may be 0."""
        if len(self.words) > 1:
            return 0
        return int(self.weights.shape[1]) - len(self._needed(simd, signed, least))

    def in_blocks(self, simd: int, signed: bool, least: int) -> list[list[bool]]:
        """For each row, or pair of rows, and input whether synthesis leaves a block for it, where the weights never
        change."""
        needed = self._needed(simd, signed, least)
        numbers = [(lane % simd, *numbers) for lane, numbers in enumerate(self.weights[0].tolist())]
        return [[key in needed for key in numbers[row : row + simd]] for row in range(0, len(numbers), simd)]

    def narrower(self, x: IntType, w: IntType, simd: int, packing: Packing | None, least: int) -> int:
        """Bits by which the products with weights that never change are narrower than any weight's, in all."""
        if len(self.words) > 1:
            return 0
        widest = product_bits(x, w) if packing is None else x.bits + packing.operand_shape.width
        signed = w.signed if packing is None else packing.operand_shape.signed
        bits = 0
        for _, *numbers in self._needed(simd, signed, least):
            weight = numbers[0] if packing is None else numbers[0] + (numbers[1] << packing.shift)
            ends = sorted((weight * x.min, weight * x.max))
            bits += max(0, widest - int(shape_of(*ends).width))
        return bits


def _significant(number: int, signed: bool) -> int:
    """Bits of a number that is not 0, without the zeros at its low end."""
    odd = number // (number & -number)
    return (~odd if odd < 0 else odd).bit_length() + int(signed)


def mvu(
    family: str, x: IntType, w: IntType, accumulator: IntType, folding: Folding, synapse: int, neuron: int, depth: int,
    *, surplus: int = 0, ranges: tuple[tuple[int, int], tuple[int, int]] | None = None,
    packing: Packing | None = None, digits: Digits | None = None, known: FewWords | None = None, sets: int = 1,
    changing: Changing | None = None,
) -> Resources:
    """Matrix-vector unit: weight table, products, adder trees, accumulators, replay buffer, queue. ``surplus``: lanes
    of some beats that are made zero; ``ranges``: of inputs and weights, where they are known; ``packing``: of two
    weights, for "dsp2"; ``digits``: of weights, for "lut"; ``known``: what
    the table holds, where it is looked at; ``sets``: of weights; ``changing``: of a larger table's bits (None: all)."""
    pe, simd = folding.output_lanes, folding.input_lanes
    word = pe * simd * w.bits
    if packing is not None:
        word = simd * (pe // 2 * packing.bits + pe % 2 * w.bits)
    if digits is not None:
        word = pe * simd * digits.bits
    if known is None:
        table = rom(family, sets * synapse * neuron, word, changing)
    else:
        table = filled_rom(family, known.words, word)
    in_blocks = folding.multiplier in ("dsp", "dsp2") and min(x.bits, w.bits) > 1
    stored_as = word, sets * synapse * neuron
    far = lies_far(*stored_as) or (in_blocks and lies_in_block(*stored_as))
    if changing is not None:
        word = changing.bits
    total, idle = table, 0  # multiplier blocks that synthesis saves
    inside = FAMILIES[family].dsp_registers  # then weights' registers at multiplier blocks are theirs
    if in_blocks and sets * synapse * neuron > 1 and not inside:
        alike = table.ff // 2
        if known is not None and table.bram:  # that of one bank, where it has several
            alike = min(table.ff, changing_bits(known.words, stored_as[0]).bits)
        total += Resources(ff=word if known is None else alike)  # weights at multiplier blocks
    constant = known is not None and len(known.words) == 1 and in_blocks and max(x.bits, w.bits) <= BLOCK
    fixed = None
    if constant and known is not None and inside:
        fixed = known.factors(x, w, pe, simd, packing)
    elif constant and known is not None:
        total += _constant_sums(family, x, w, accumulator, folding, synapse, packing, known)
    elif known is not None and in_blocks:
        signed = w.signed if packing is None else packing.operand_shape.signed
        least = FAMILIES[family].dsp_product - x.bits
        idle = known.idle(simd, signed, least)
        each = products(family, x, w if packing is None else IntType(packing.operand_shape.width, True), 1, "dsp")
        total += each._replace(dsp=0).times(-idle)
        total += Resources(ff=-(BLOCK_LATENCY - inside) * known.narrower(x, w, simd, packing, least))
    soft = None
    if known is not None and in_blocks and inside and len(known.words) <= FEW:
        soft = known.weights[:, :, 0] if x.bits + w.bits < FAMILIES[family].dsp_product else None
    stored = pe * accumulator.bits  # bits of a beat in the queue
    few = None
    if known is not None and folding.multiplier == "lut" and len(known.words) <= FEW:
        few = known.weights[:, :, 0].reshape(-1, pe, simd)
    if constant and fixed is None:
        total += operands(family, x, w, simd, "dsp")
    elif folding.multiplier == "xnor":
        total += match_counts(family, pe, simd, accumulator.bits, sets * synapse * neuron == 1)
    elif folding.multiplier == "lut" and ranges is not None and x.bits == w.bits == 2:
        corners = [a * b for a in ranges[0] for b in ranges[1]]
        width = IntType.holding(Interval(min(corners), max(corners))).bits
        if few is not None:
            total += table_products(
                family, few, min(corners), max(corners), accumulator.bits, lambda bits: Resources(lut=bits, ff=bits)
            )
        else:
            total += Resources(lut=pe * simd * width, ff=pe * simd * width)
            total += sum_tree(min(corners), max(corners), simd, accumulator.bits, family).times(pe)
    elif digits is not None and few is not None:
        total += digit_sums(family, x, digits, few, accumulator.bits, synapse > 1)
    elif digits is not None:
        total += digit_sum(family, x, digits, simd, accumulator.bits, synapse > 1).times(pe)
    elif fixed is not None:
        lanes = [[factor for row in fixed if (factor := row[lane]) is not None] for lane in range(simd)]
        total += fixed_products(family, lanes)
        alone = 0 if packing is None else pe // 2  # the first row without a partner
        sums, ends = fixed_sums(family, fixed[alone:], accumulator.bits)
        total += sums
        if packing is None:  # bits that are always 0 are not stored, nor are in a memory those above the sign
            tops = [end if depth > REGISTER_DEPTH else accumulator.bits for end, _ in ends]
            stored = sum(top - min(top, first) for top, (_, first) in zip(tops, ends, strict=True))
        else:
            total += packed_sums(family, packing, simd, accumulator.bits, synapse > 1).times(pe // 2)
    elif packing is not None:
        sums = paired_sums(family, x, packing, simd, accumulator.bits, synapse > 1).times(pe // 2)
        operand = IntType(packing.operand_shape.width, packing.operand_shape.signed)
        made = [(x, operand, simd * (pe // 2) - idle), (x, w, simd * (pe % 2))]
        total += sums._replace(dsp=multiplier_blocks(family, made))
        total += operands(family, x, w, simd, "dsp")
        if pe % 2:
            if soft is not None:
                total += soft_products(family, x, w, soft[:, simd * (pe // 2) :].tolist())
            else:
                total += products(family, x, w, simd, "dsp")._replace(dsp=0)
            total += adder_tree(x, w, simd, accumulator.bits, family)
            total += Resources(ff=0 if synapse > 1 else accumulator.bits)
    elif few is not None and min(x.bits, w.bits) == 1:
        corners = [a * b for a in (x.min, x.max) for b in (w.min, w.max)]
        total += table_products(
            family, few, min(corners), max(corners), accumulator.bits,
            lambda bits: Resources(lut=int(bits == 1), ff=bits), gated=x.bits == 1,
        )
    else:
        if folding.multiplier == "dsp" and max(x.bits, w.bits) > BLOCK and min(x.bits, w.bits) > 1:
            blocks = wide_product(family, x, w, pe * simd - idle).dsp
            total += wide_product(family, x, w, pe * simd)._replace(dsp=blocks)
        elif soft is not None and packing is None:
            total += soft_products(family, x, w, soft.tolist())
        else:
            total += products(family, x, w, pe * simd, folding.multiplier)
            if folding.multiplier == "dsp":
                total = total._replace(dsp=multiplier_blocks(family, [(x, w, pe * simd - idle)]))
        total += operands(family, x, w, simd, folding.multiplier)
        total += adder_tree(x, w, simd, accumulator.bits, family).times(pe)
    total += Resources(ff=2 * simd * x.bits)
    if synapse > 1:  # what is carried on, and the sum
        # accumulators that add a carry, one place longer
        carried = pe if digits is not None else 0 if packing is None else pe // 2
        term = simd.bit_length() if folding.multiplier == "xnor" else accumulator.bits
        sums = Resources(lut=accumulating(family, accumulator.bits, term), ff=accumulator.bits)
        total += sums.times(pe - carried)
        total += Resources(lut=carried_chain(family, accumulator.bits), ff=accumulator.bits).times(carried)
        total += Resources(ff=pe * accumulator.bits)
        if neuron > 1:
            store = in_block_ram(family, synapse, simd * x.bits)
            words = Resources(bram=store) if store else asynchronous_memory(family, synapse, simd * x.bits)
            # behind the memory one register more, another for the beat that is handed on
            total += words + Resources(lut=simd * x.bits, ff=(2 if store else 3) * simd * x.bits)
    latency = _latency(
        x, w, simd, min(synapse, 2), min(neuron, 2), folding.multiplier, folding.part or PART, ranges, digits
    )
    ahead = 0
    if folding.multiplier not in ("dsp", "dsp2"):
        ahead = int(operands(family, x, w, 1, folding.multiplier).ff > 0)
    ahead += int(synapse > 1 and neuron > 1)
    if ahead and far:
        ahead -= 1
        total += Resources(ff=word if known is None else changing_bits(known.words, stored_as[0]).bits)
    total += _control(sets, synapse, neuron, ceil(pe / GROUP), latency, ahead, surplus)
    return total + queue(family, stored, depth)


def _constant_sums(
    family: str, x: IntType, w: IntType, accumulator: IntType, folding: Folding, synapse: int,
    packing: Packing | None, known: FewWords,
) -> Resources:
    """Products in multiplier blocks with weights that never change, and their sums."""
    pe, simd = folding.output_lanes, folding.input_lanes
    signed = w.signed if packing is None else packing.operand_shape.signed
    blocks = known.in_blocks(simd, signed, FAMILIES[family].dsp_product - x.bits)
    numbers = known.weights[0].reshape(len(blocks), simd, -1)
    pairs = 0 if packing is None else pe // 2
    made: set[tuple[int, ...]] = set()
    rows = []
    for index, row in enumerate(numbers.tolist()):
        made |= {(lane, *number) for lane, number in enumerate(row) if blocks[index][lane]}
        paired = packing is not None and index < pairs
        rows.append([each[0] + (each[1] << packing.shift) if paired and packing else each[0] for each in row])
    total, terms = known_products(family, x, rows, blocks)
    total += Resources(dsp=len(made))
    if packing is not None:
        group = 1 << packing.levels
        for first in range(0, simd, group):
            together = [row[first : first + group] for row in terms[:pairs]]
            total += known_sums(family, together, packing.levels, _UNLIMITED)
        total += split_tree(family, packing, simd, accumulator.bits, synapse > 1).times(pairs)
        if pe % 2:
            total += Resources(ff=0 if synapse > 1 else accumulator.bits)
    return total + known_sums(family, terms[pairs:], (simd - 1).bit_length(), accumulator.bits)


@cache
def _latency(
    x: IntType, w: IntType, simd: int, synapse: int, neuron: int, multiplier: str, part: int,
    ranges: tuple[tuple[int, int], tuple[int, int]] | None, digits: Digits | None,
) -> int:
    """Of a core whose folds are more than one, if they are."""
    return Mvu.latency_of(
        input_shape=Shape(x.bits, x.signed), weight_shape=Shape(w.bits, w.signed), simd=simd, synapse_fold=synapse,
        neuron_fold=neuron, multiplier=multiplier, part=part, ranges=ranges, digits=digits,
    )


_UNLIMITED = 1000  # bits: sums before the split are exact


@lru_cache(maxsize=1 << 12)
def _control(sets: int, synapse: int, neuron: int, groups: int, latency: int, ahead: int, surplus: int) -> Resources:
    """Counters of the folds and of the table's address, and what says of a step whether it reads (``ahead`` cycles
    later), updates and ends a sum (in ``groups`` registers each), pushes."""
    words, place = sets * synapse * neuron, (synapse - 1).bit_length()
    total = loop(neuron) + count_up(words) + Resources(lut=4, ff=latency - 1)
    if words > 1:
        total += Resources(ff=ahead * ((words - 1).bit_length() + int(synapse > 1)))
    if synapse > 1:
        total += Resources(lut=2 * place + 3, ff=place + 1 + 2 * (latency - 3) + 2 * groups)
    if neuron > 1:
        total += Resources(lut=1, ff=1)
    if synapse > 1 and neuron > 1:
        total += Resources(ff=place + 3)
    return total + (Resources(lut=2 * place, ff=place) if surplus else Resources())
