"""Products with factors that never change, in multiplier blocks that synthesis itself gives registers (iCE40).

A factor that comes from a register whose word never changes is, behind reset, a pattern of zeros and of bits that are
one from the first cycle on. Synthesis sees the zeros alone: it cuts them off at both ends before it takes a block, and
a product that became narrower than its register keeps that register outside of the block. As products with any factor
the sampled cores have up to twice as many blocks as synthesis finds (55 instead of 28).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hwflow.cores.costs.basics import chain, trailing_zeros
from hwflow.cores.costs.family import FAMILIES, Family
from hwflow.cores.operator import Resources
from hwflow.types import IntType


@dataclass(frozen=True)
class FixedFactor:
    """The product of an input of type ``x`` with a ``value``, not 0, in a register of type ``w``."""

    x: IntType
    w: IntType
    value: int

    @cached_property
    def zeros(self) -> int:
        """At the low end."""
        return trailing_zeros(self.value)

    @property
    def _signed(self) -> bool:
        """Whether the block multiplies numbers with signs: an operand whose top bit is known to be 0 has none, if the
        other has none either."""
        return self.x.signed or self.value < 0

    @cached_property
    def _factor(self) -> int:
        """Bits of the factor without what is alike at its ends."""
        ones = ~self.value if self.value < 0 else self.value
        return ones.bit_length() + self._signed - self.zeros

    @property
    def declared(self) -> int:
        """Bits of the product of any two such numbers."""
        return self.x.bits + self.w.bits

    def takes_block(self, device: Family) -> bool:
        """Tell whether synthesis uses a block."""
        return min(self.x.bits, self._factor) > 1 and self._whole >= device.dsp_product

    @property
    def _whole(self) -> int:
        mixed = self._signed and not self.x.signed
        return min(self.x.bits + mixed + self._factor, self.declared - self.zeros)

    @cached_property
    def bits(self) -> int:
        """Bits of the product's registers."""
        return self._whole

    @property
    def holds_product(self) -> bool:
        """Tell whether the block has the register after the product: none of it was trimmed."""
        if self.zeros:
            return False
        if self.value < 0:
            return True
        if self.w.signed:
            return self.x.signed and self.value.bit_length() == self.w.bits - 1
        return self.value.bit_length() == self.w.bits

    @property
    def holds_input(self) -> bool:
        """Tell whether synthesis packs the input's register into the block: all its bits are a register's."""
        return self.x.signed or not self._signed

    def half(self, device: Family) -> tuple[tuple[bool, bool, bool], int] | None:
        """Return what another product must be alike in to share a block, and the factor's sign: 1, 0, or -1 where
        either will do. None for a product that takes a whole one."""
        if self.x.bits > device.dsp_pair or self.bits > 2 * device.dsp_pair:
            return None
        odd = self.value >> self.zeros
        if odd < 0:
            if (~odd).bit_length() + 1 > device.dsp_pair:
                return None
            sign = 1
        else:
            if odd.bit_length() > device.dsp_pair:
                return None
            sign = 0 if odd.bit_length() == device.dsp_pair else -1
        x_sign = self.x.signed
        return (x_sign, self.x.bits == device.dsp_pair, self.holds_input), sign


def blocks_of(family: str, factors: Iterable[tuple[FixedFactor, int]]) -> int:
    """Count the multiplier blocks of so many products each, after two went into one where that can be
    (:mod:`hwflow.toolchain.packing`)."""
    device, whole = FAMILIES[family], 0
    kinds: dict[tuple[bool, ...], Counter[int]] = {}
    for factor, count in factors:
        if not factor.takes_block(device):
            continue
        half = factor.half(device) if device.dsp_pair else None
        if half is None:
            whole += count
        else:
            kinds.setdefault(half[0], Counter())[half[1]] += count
    return whole + sum(_pairs(signs) for signs in kinds.values())


def blocks_of_tables(family: str, products: Iterable[tuple[IntType, IntType, IntType, int]]) -> int:
    """Count the multiplier blocks of so many products each of ``x`` with a factor from a table, in registers of a type,
    within another: what factors there are decides whether two products go into one block, but not whether a block is
    taken."""
    device, whole = FAMILIES[family], 0
    kinds: dict[bool, Counter[int]] = {}
    for x, w, within, count in products:
        if min(x.bits, w.bits) == 1 or x.bits + w.bits < device.dsp_product:
            continue
        # Half a block's output is as long as both of its operands.
        if max(x.bits, within.bits) > device.dsp_pair or x.bits + w.bits > 2 * device.dsp_pair:
            whole += count
        else:
            sign = 1 if within.signed else 0 if within.bits == device.dsp_pair else -1
            kinds.setdefault(x.signed, Counter())[sign] += count
    return whole + sum(_pairs(signs) for signs in kinds.values())


def _pairs(signs: Mapping[int, int]) -> int:
    """Count the blocks of halves of which those without a kind go with both kinds."""
    left = signs.get(0, 0) % 2 + signs.get(1, 0) % 2
    either = max(0, signs.get(-1, 0) - left)
    return signs.get(0, 0) // 2 + signs.get(1, 0) // 2 + left + ceil(either / 2)


def fixed_products(family: str, lanes: Sequence[Sequence[FixedFactor]]) -> Resources:
    """Estimate products of each lane's input with different factors, and the input's registers: blocks, a register in
    each of the product's cycles but for what blocks hold."""
    device, total = FAMILIES[family], Resources()
    for factors in lanes:
        outside = False
        for factor in set(factors):
            block = factor.takes_block(device)
            outside |= not (block and factor.holds_input)
            total += Resources(ff=(BLOCK_LATENCY - (block and factor.holds_product)) * factor.bits)
        if outside:
            total += Resources(ff=factors[0].x.bits)
    every = ((factor, 1) for factors in lanes for factor in dict.fromkeys(factors))
    return total + Resources(dsp=blocks_of(family, every))


def fixed_sums(
    family: str, rows: Sequence[Sequence[FixedFactor | None]], limit: int
) -> tuple[Resources, list[int]]:
    """Estimate the adder tree of each row's products, with a register behind every adder and every term left over, of
    bits as far as the terms have some (None: no term); and for each row the place of the sum's lowest bit."""
    total, lowest = Resources(), []
    for row in rows:
        terms = [
            None if factor is None else (min(limit, factor.bits + factor.zeros), min(limit, factor.zeros))
            for factor in row
        ]
        while len(terms) > 1:
            sums: list[tuple[int, int] | None] = []
            for index in range(0, len(terms), 2):
                pair = [term for term in terms[index : index + 2] if term is not None]
                if not pair:
                    sums.append(None)
                    continue
                end, first = max(end for end, _ in pair), min(first for _, first in pair)
                if len(pair) == 2:
                    end = min(limit, end + 1)
                    total += Resources(lut=chain(family, end - max(first for _, first in pair)))
                total += Resources(ff=end - first)
                sums.append((end, first))
            terms = sums
        lowest.append(terms[0][1] if terms[0] else 0)
    return total, lowest


def soft_products(family: str, x: IntType, w: IntType, words: Sequence[Sequence[int]]) -> Resources:
    """Estimate products too narrow for a multiplier block with factors from a table of few ``words``, for each of them
    one per product: a row of gates for each bit that is 1 in some word, adders between rows, three registers."""
    total = Resources()
    for values in zip(*words, strict=True):
        ones = 0
        for value in values:
            ones |= value & (1 << w.bits) - 1
        rows = ones.bit_count()
        if rows:
            ends = [value * end for value in values for end in (x.min, x.max)]
            width = int(shape_of(min(ends), max(ends)).width) - trailing_zeros(ones)
            luts = rows * x.bits + (rows - 1) * chain(family, x.bits + 1)
            total += Resources(lut=luts, ff=BLOCK_LATENCY * width)
    return total
