"""Products with constants as networks of adders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from hdl_lib.arithmetic.adder_network import AdderNetwork
from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hwflow.cores.costs.basics import adder, trailing_zeros
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import queue
from hwflow.cores.costs.products.product_sums import multiplier_blocks
from hwflow.cores.operator import Resources
from hwflow.types import Interval, IntType

# Adders to signed digits, as measured for layers of 300 to 20,000 digits: 0.38 to 0.45 with ternary weights, 0.47 to
# 0.53 with 6 and 8 bits; up to 0.62 below 1,000 digits, which share less.
SHARE = 0.52


def constant_matrix(
    family: str, carries: Sequence[int], network: AdderNetwork, vectors: int, depth: int
) -> Resources:
    """Estimate a network of adders; ``carries``: bits of each adder's carry chain."""
    inputs = sum(_bits(*ends) for ends in network.inputs)
    outputs = sum(network.output_shape(index).width for index in range(len(network.outputs)))
    luts = sum(adder(family, bits) for bits in carries) + _complements(family, network)
    each = Resources(lut=luts, ff=network.flip_flops + inputs)
    return each.times(vectors) + Resources(lut=4, ff=network.stages + 1) + queue(family, vectors * outputs, depth)


def truth_tables(family: str, tables: int, registers: int, outputs: int, vectors: int, depth: int) -> Resources:
    """Estimate truth tables. ``tables``, ``registers`` and ``outputs``: look-up tables of four inputs, bits of
    registers before and between them, and bits of the results, for a vector."""
    each = Resources(lut=tables, ff=registers)
    return each.times(vectors) + Resources(lut=4, ff=1) + queue(family, vectors * outputs, depth)


def _complements(family: str, network: AdderNetwork) -> int:
    """Count the look-up tables that complement what is subtracted, where a carry cell reads its operands directly."""
    if FAMILIES[family].carry_bits > 1:
        return 0
    subtracted = {adder.right for adder in network.adders if adder.subtract}
    return sum(_bits(*network.intervals[term]) for term in subtracted)


def estimated_adder_network(
    family: str, digits: int, inputs: Sequence[int], levels: int, vectors: int, outputs: int,
    depth: int,
) -> Resources:
    """Estimate a network before it is known, from the nonzero digits of its matrix: rather too much than too little.
    ``inputs``: bits of each input; ``outputs``: of all outputs."""
    adders = ceil(SHARE * digits)
    width = sum(inputs) / len(inputs) + levels / 2 + 1
    each = Resources(lut=ceil(adders * width), ff=ceil(adders * (width + 1)) + sum(inputs))
    return each.times(vectors) + Resources(lut=4, ff=levels) + queue(family, vectors * outputs, depth)


class ConstantProducts:
    """A product for each weight [outputs, inputs], with a multiplier block unless it is a shift, and adder trees with a
    register behind every adder and every term that is left over."""

    def __init__(self, family: str, x: IntType, out: IntType, weights: npt.NDArray[Any]) -> None:
        self._family, self._queued = family, len(weights) * out.bits
        self._vector, self._made, self._whole, self._levels = _vector(family, x, out, weights)

    def resources(self, vectors: int, depth: int) -> Resources:
        """Return the resources for so many vectors per beat."""
        control = Resources(lut=4, ff=self._levels + BLOCK_LATENCY + 2, dsp=self._whole * vectors)
        for kind in self._made:
            made = [(*operands, count * vectors) for operands, count in kind.items()]
            control += Resources(dsp=multiplier_blocks(self._family, made))
        return self._vector.times(vectors) + control + queue(self._family, vectors * self._queued, depth)


_Operands = Counter[tuple[IntType, IntType]]


def _vector(
    family: str, x: IntType, out: IntType, weights: npt.NDArray[Any]
) -> tuple[Resources, tuple[_Operands, _Operands], int, int]:
    """Return one vector without its multiplier blocks, the operands of these with even and with odd factors, further
    products with a whole block each, levels of the deepest tree."""
    device = FAMILIES[family]
    total = Resources(ff=x.bits * weights.shape[1])
    levels = (int(np.count_nonzero(weights, axis=1).max()) - 1).bit_length()
    made: set[tuple[int, int]] = set()  # products of an input with the same weight are one
    blocks = _Operands(), _Operands()
    whole = 0
    for row in weights.tolist():
        terms = [tuple(sorted((weight * x.min, weight * x.max))) for weight in row if weight]
        for (column, weight), ends in zip(((k, weight) for k, weight in enumerate(row) if weight), terms, strict=True):
            if (column, weight) in made:
                continue
            made.add((column, weight))
            block = abs(weight) & (abs(weight) - 1) and x.bits + _bits(*sorted((0, weight))) >= device.dsp_product
            negation = adder(family, x.bits + 1) if weight < 0 and not block else 0
            # Synthesis that takes registers into blocks does so where the factor's zeros below are not cut off.
            behind = BLOCK_LATENCY - (device.dsp_registers if block and weight % 2 else 0)
            total += Resources(lut=negation, ff=behind * (_bits(*ends) if block else min(_bits(*ends), x.bits)))
            if block and device.dsp_pair and weight < 0 and not x.signed:  # the factor has the product's bits
                whole += 1
            elif block:
                made_of = IntType.holding(Interval(min(0, weight), max(0, weight)))
                blocks[weight % 2][x, made_of] += 1
        for _ in range(levels if terms else 0):
            sums = [tuple(map(sum, zip(*terms[k : k + 2], strict=True))) for k in range(0, len(terms), 2)]
            for index, ends in enumerate(sums):
                width = min(out.bits, _bits(*ends))
                added = 2 * index + 1 < len(terms)
                total += Resources(lut=adder(family, width) if added else 0, ff=width)
            terms = sums
    if not device.dsp_registers:  # blocks have none
        total += Resources(ff=x.bits * weights.shape[1])
    return total, blocks, whole, levels


def constant_product(family: str, carries: Sequence[int], product: AdderNetwork, stages: int) -> Resources:
    """Estimate one lane's product by shifts and sums, which waits for those of other lanes until so many ``stages``.
    ``carries``: bits of each adder's carry chain."""
    waiting = (stages - product.stages) * product.output_shape(0).width
    luts = sum(adder(family, bits) for bits in carries) + _complements(family, product)
    return Resources(lut=luts, ff=product.flip_flops + waiting + sum(_bits(*ends) for ends in product.inputs))


def estimated_constant_product(x: int, magnitude: int, stages: int) -> Resources:
    """Estimate the same before its network is known, of an input of ``x`` bits: as measured for 2 to 12 signed digits,
    rather too much than too little."""
    digits = (magnitude ^ (3 * magnitude)).bit_count()
    registers = 1.25 * stages * (x + magnitude.bit_length() - trailing_zeros(magnitude))
    return Resources(lut=max(0, digits - 1) * (x + 2), ff=x + ceil(registers))


def _bits(low: int, high: int) -> int:
    return int(shape_of(low, high).width)
