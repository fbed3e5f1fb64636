"""The matrix-vector unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Shape

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.multiplier import BLOCK, IN_BLOCKS, PART, ProductForm
from hdl_lib.arithmetic.packed_product import Packing
from hdl_lib.matrices.mvu import Mvu
from hdl_lib.memories.rom import lies_far, lies_in_block
from hwflow.cores.costs.basics import FEW, accumulating, count_behind, count_up, loop
from hwflow.cores.costs.changing import Changing
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import BitArray, asynchronous_memory, filled_table, in_block_ram, queue, rom
from hwflow.cores.costs.products.fixed_factors import FixedFactor, fixed_products, fixed_sums, soft_products
from hwflow.cores.costs.products.known_blocks import known_products, known_sums
from hwflow.cores.costs.products.known_products import digit_sums, table_products
from hwflow.cores.costs.products.packed import digit_sum, packed_sums, paired_sums, split_tree
from hwflow.cores.costs.products.product_sums import (
    adder_tree,
    match_counts,
    multiplier_blocks,
    operands,
    products,
    sum_tree,
    wide_product,
)
from hwflow.cores.operator import Resources
from hwflow.ir.graph import IntArray
from hwflow.types import Interval, IntType

MOST_CHOSEN_BITS = 1 << 17  # the same of the folding that is chosen: a larger one is as good as one of random bits


@dataclass(frozen=True)
class FewWords:
    """A table of few words: ``table`` has its bits [words, bits], ``weights`` are what each multiplier block takes,
    [words, lanes, parts], lanes of a row side by side.

    Measured when this was written: without looking at tables' bits jet6 is predicted 11.8 % above its look-up tables
    (0.6 % with) and digits 4.9 % above its flip-flops (0.3 %)."""

    table: BitArray
    weights: IntArray

    def _needed(self, simd: int, signed: bool, least: int) -> set[tuple[int, ...]]:
        """Return the input and weights of each multiplier block that synthesis leaves where the weights never
        change."""
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
        """Return what inputs are multiplied with where the weights never change, for each row or pair of rows; None:
        0."""
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
        """Count the multiplier blocks that synthesis saves where the weights never change: those of 0 and those that
        are a single bit once the zeros below are cut off (minus a power of two with sign, a power of two without) or
        fewer than ``least``, and those of another row's weight at the same input. Of two weights, one may be 0."""
        if len(self.table) > 1:
            return 0
        return int(self.weights.shape[1]) - len(self._needed(simd, signed, least))

    def in_blocks(self, simd: int, signed: bool, least: int) -> list[list[bool]]:
        """Tell for each row, or pair of rows, and input whether synthesis leaves a block for it, where the weights
        never change."""
        needed = self._needed(simd, signed, least)
        numbers = [(lane % simd, *numbers) for lane, numbers in enumerate(self.weights[0].tolist())]
        return [[key in needed for key in numbers[row : row + simd]] for row in range(0, len(numbers), simd)]


def _significant(number: int, signed: bool) -> int:
    """Count the bits of a number that is not 0, without the zeros at its low end."""
    odd = number // (number & -number)
    return (~odd if odd < 0 else odd).bit_length() + int(signed)


@dataclass(frozen=True)
class Matrix:
    """A matrix-vector unit at so many input lanes, of whatever number of rows. ``kind``: of the multipliers;
    ``synapse``: fold; ``ranges``: of inputs and weights, where they are known; ``packing``: of two weights, for "dsp2";
    ``digits``: of weights, for "lut"; ``sets``: of weights.

    A search asks for the cost of every number of rows: what does not depend on it is computed once.
    """

    family: str
    x: IntType
    w: IntType
    accumulator: IntType
    kind: ProductForm
    part: int
    simd: int
    synapse: int
    ranges: tuple[tuple[int, int], tuple[int, int]] | None = None
    packing: Packing | None = None
    digits: Digits | None = None
    sets: int = 1

    def resources(
        self, pe: int, neuron: int, depth: int, known: FewWords | None = None, changing: Changing | None = None, *,
        held: bool = False,
    ) -> Resources:
        """Estimate ``pe`` rows at a time, the ``neuron`` fold: weight table, products, adder trees, accumulators,
        replay buffer, queue. ``known``: what the table holds, where it is looked at; ``changing``: of a larger table's
        bits (None: all); ``held``: the table lies in block RAM in any case."""
        words, word = self.sets * self.synapse * neuron, self._word(pe)
        if known is None:
            table, stored = rom(self.family, words, word, changing, held=held), pe * self.accumulator.bits
            total = self._products(pe, words)
        else:
            table = filled_table(self.family, known.table)
            total, stored = self._known_products(pe, known)
        total += table
        far = lies_far(word, words) or (self._in_blocks and lies_in_block(word, words))
        kept = word if changing is None else changing.bits  # bits of a word that are not the same in all words
        if known is not None:  # of a table in several banks those of one
            kept = min(table.ff, word) if table.bram else table.ff // 2
        ahead = self._ahead[neuron > 1]
        at_once = not (ahead or held or lies_in_block(word, words))
        if ahead and far:
            ahead -= 1
            total += Resources(ff=kept)
        if self._in_blocks and words > 1 and not self._inside:  # weights at multiplier blocks
            total += Resources(ff=kept)
        control = _control(self.sets, self.synapse, neuron, self._latencies[neuron > 1], ahead, at_once)
        return total + self._around(pe, neuron) + control + queue(self.family, stored, depth)

    def of_any_matrix(self, pe: int, neuron: int, depth: int) -> Resources:
        """Return the same without a table and without counters: of a matrix that comes from elsewhere, word by word."""
        return self._products(pe, _MANY) + self._around(pe, neuron) + queue(
            self.family, pe * self.accumulator.bits, depth
        )

    def _around(self, pe: int, neuron: int) -> Resources:
        """Estimate the input's registers and its replay buffer, the accumulators."""
        total = Resources(ff=2 * self.simd * self.x.bits)
        if self.synapse > 1:
            total += self._accumulator.times(pe)
            if neuron > 1:
                total += self._replay
        return total

    def _word(self, pe: int) -> int:
        """Return the bits of a word of the table."""
        if self.digits is not None:
            return pe * self.simd * self.digits.bits
        if self.packing is not None:
            return self.simd * (pe // 2 * self.packing.bits + pe % 2 * self.w.bits)
        return pe * self.simd * self.w.bits

    @cached_property
    def _in_blocks(self) -> bool:
        return self.kind in IN_BLOCKS and min(self.x.bits, self.w.bits) > 1

    @cached_property
    def _inside(self) -> int:
        """Then weights' registers at multiplier blocks are theirs."""
        return FAMILIES[self.family].dsp_registers

    @cached_property
    def _multiplier(self) -> ProductForm:
        """The kind of a product's."""
        return ProductForm.DSP if self.kind == ProductForm.DSP2 else self.kind

    @cached_property
    def _wide(self) -> bool:
        """Tell whether blocks take parts of the operands."""
        return self.kind == ProductForm.DSP and max(self.x.bits, self.w.bits) > BLOCK and self._in_blocks

    @cached_property
    def _corners(self) -> tuple[int, int] | None:
        """The least and the greatest product, where a table has all of one's bits."""
        if self.kind != ProductForm.LUT or self.ranges is None or not self.x.bits == self.w.bits == 2:
            return None
        corners = [a * b for a in self.ranges[0] for b in self.ranges[1]]
        return min(corners), max(corners)

    @cached_property
    def _operands(self) -> Resources:
        """Return the cost that all rows' products share."""
        if self.kind == ProductForm.XNOR or self._corners is not None or self.digits is not None:
            return Resources()
        return operands(self.family, self.x, self.w, self.simd, self._multiplier)

    @cached_property
    def _row(self) -> Resources:
        """Products and sums of a row, whatever the weights are, but for multiplier blocks."""
        family, x, w, simd, limit = self.family, self.x, self.w, self.simd, self.accumulator.bits
        if self._corners is not None:
            width = IntType.holding(Interval(*self._corners)).bits
            tables = Resources(lut=simd * width, ff=simd * width)
            return tables + sum_tree(*self._corners, (1,) * simd, limit, family)
        if self.digits is not None:
            return digit_sum(family, x, self.digits, simd, limit, self.synapse > 1)
        made = wide_product(family, x, w, simd) if self._wide else products(family, x, w, simd, self._multiplier)
        return made._replace(dsp=0) + adder_tree(x, w, simd, limit, family)

    @cached_property
    def _pair(self) -> Resources:
        """Return the same for two rows that share multiplier blocks."""
        assert self.packing is not None, "rows are paired where weights are packed"
        sums = paired_sums(self.family, self.packing, self.simd, self.accumulator.bits, self.synapse > 1)
        return sums._replace(dsp=0)

    @cached_property
    def _ahead(self) -> tuple[int, int]:
        """Cycles between a step and the table's, with a single pass over the outputs and with several."""
        own = int(self.kind not in IN_BLOCKS and self._operands.ff > 0)
        return own, own + int(self.synapse > 1)

    @cached_property
    def _latencies(self) -> tuple[int, ...]:
        """With a single pass over the outputs and with several."""
        return tuple(
            Mvu.latency_of(
                input_shape=Shape(self.x.bits, self.x.signed), weight_shape=Shape(self.w.bits, self.w.signed),
                simd=self.simd, synapse_fold=min(self.synapse, 2), neuron_fold=neuron, multiplier=self.kind,
                part=self.part or PART, ranges=self.ranges, digits=self.digits,
            )
            for neuron in (1, 2)
        )

    @cached_property
    def _replay(self) -> Resources:
        """The buffer of a vector that is passed over several times."""
        width = self.simd * self.x.bits
        store = in_block_ram(self.family, self.synapse, width)
        words = Resources(bram=store) if store else asynchronous_memory(self.family, self.synapse, width)
        # behind the memory one register more, another for the beat that is handed on
        return words + Resources(lut=width, ff=(2 if store else 3) * width)

    @cached_property
    def _accumulator(self) -> Resources:
        """Return the cost of a row's, and of its sum."""
        bits = self.accumulator.bits
        term = self.simd.bit_length() if self.kind == ProductForm.XNOR else bits
        return Resources(lut=accumulating(self.family, bits, term), ff=2 * bits)

    def _products(
        self, pe: int, words: int, idle: int = 0, soft: npt.NDArray[np.int64] | None = None
    ) -> Resources:
        """Estimate products and sums of a table that is not looked at; ``idle``: multiplier blocks that synthesis
        saves; ``soft``: weights [words, lanes] of products that are made of look-up tables."""
        if self.kind == ProductForm.XNOR:
            return match_counts(self.family, pe, self.simd, self.accumulator.bits, words == 1)
        total, rows = self._operands + Resources(dsp=self._blocks(pe, idle)), pe
        if self.packing is not None:
            rows = pe % 2
            total += self._pair.times(pe // 2)
        if soft is None or not rows:
            return total + self._row.times(rows)
        total += soft_products(self.family, self.x, self.w, soft[:, -self.simd * rows :].tolist())
        return total + adder_tree(self.x, self.w, self.simd, self.accumulator.bits, self.family).times(rows)

    def _blocks(self, pe: int, idle: int) -> int:
        """Count the multiplier blocks of all rows, of which synthesis saves so many."""
        x, w, simd = self.x, self.w, self.simd
        if not self._in_blocks:
            return 0
        if self.packing is not None:
            operand = IntType(self.packing.operand_shape.width, self.packing.operand_shape.signed)
            return multiplier_blocks(self.family, [(x, operand, simd * (pe // 2) - idle), (x, w, simd * (pe % 2))])
        if self._wide:
            return wide_product(self.family, x, w, pe * simd - idle).dsp
        return multiplier_blocks(self.family, [(x, w, pe * simd - idle)])

    def _known_products(self, pe: int, known: FewWords) -> tuple[Resources, int]:
        """Estimate products and sums of a table that is looked at, and the bits of a beat in the queue."""
        family, x, w, simd, packing = self.family, self.x, self.w, self.simd, self.packing
        words, stored = len(known.table), pe * self.accumulator.bits
        if not self._in_blocks:
            if self.kind != ProductForm.LUT or words > FEW:
                return self._products(pe, words), stored
            return self._tables(known.weights[:, :, 0].reshape(-1, pe, simd)), stored
        if words == 1 and max(x.bits, w.bits) <= BLOCK:
            if self._inside:
                return self._fixed_products(pe, known)
            sums = _constant_sums(family, x, w, self.accumulator.bits, pe, simd, packing, known)
            return sums + self._operands, stored
        soft = None
        if self._inside and words <= FEW and x.bits + w.bits < FAMILIES[family].dsp_product:
            soft = known.weights[:, :, 0]
        idle = known.idle(simd, w.signed, FAMILIES[family].dsp_product - x.bits)
        each = products(family, x, w, 1, ProductForm.DSP)
        return self._products(pe, words, idle, soft) + each._replace(dsp=0).times(-idle), stored

    def _tables(self, few: IntArray) -> Resources:
        """Estimate products of look-up tables with weights [words, rows, lanes], and their sums."""
        family, x, w, limit = self.family, self.x, self.w, self.accumulator.bits
        if self._corners is not None:
            return table_products(family, few, *self._corners, limit, lambda bits: Resources(lut=bits, ff=bits))
        if self.digits is not None:
            return digit_sums(family, x, self.digits, few, limit, self.synapse > 1)
        product = x.interval.times(w.interval)
        return table_products(
            family, few, product.lo, product.hi, limit, lambda bits: Resources(lut=int(bits == 1), ff=bits)
        )

    def _fixed_products(self, pe: int, known: FewWords) -> tuple[Resources, int]:
        """Estimate products with weights that never change in blocks that synthesis gives registers; see
        :meth:`_known_products`."""
        family, simd, packing, limit = self.family, self.simd, self.packing, self.accumulator.bits
        fixed = known.factors(self.x, self.w, pe, simd, packing)
        lanes = [[factor for row in fixed if (factor := row[lane]) is not None] for lane in range(simd)]
        alone = 0 if packing is None else pe // 2  # the first row without a partner
        sums, lowest = fixed_sums(family, fixed[alone:], limit)
        total = fixed_products(family, lanes) + sums
        if packing is not None:
            total += packed_sums(family, packing, simd, limit, False).times(pe // 2)
            return total, pe * limit
        return total, sum(limit - first for first in lowest)  # bits that are always 0 are not stored


def _constant_sums(
    family: str, x: IntType, w: IntType, limit: int, pe: int, simd: int, packing: Packing | None, known: FewWords
) -> Resources:
    """Estimate products in multiplier blocks with weights that never change, and their sums, cut to ``limit`` bits."""
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
        total += split_tree(family, packing, simd, limit, False).times(pairs)
        total += Resources(ff=limit * (pe % 2))
    return total + known_sums(family, terms[pairs:], (simd - 1).bit_length(), limit)


_MANY = 1 << 20  # words
_UNLIMITED = 1000  # bits: sums before the split are exact


@lru_cache(maxsize=1 << 12)
def _control(sets: int, synapse: int, neuron: int, latency: int, ahead: int, at_once: bool) -> Resources:
    """Estimate counters of the folds and of the table's address, which look-up tables take ``at_once``, and what says
    of a step whether it reads (``ahead`` cycles later), updates and ends a sum, pushes."""
    words, place = sets * synapse * neuron, (synapse - 1).bit_length()
    total = loop(neuron) + (count_behind if at_once else count_up)(words) + Resources(lut=5, ff=latency)
    total += Resources(ff=ahead * ((words - 1).bit_length() + int(synapse > 1)))
    if synapse > 1:
        total += Resources(lut=2 * place + 3, ff=place + 2 * latency - 3)
    if synapse > 1 and neuron > 1:
        total += Resources(ff=place + 3)
    return total
