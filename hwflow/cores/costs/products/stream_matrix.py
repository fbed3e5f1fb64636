"""The matrix-vector unit whose matrix is a stream."""

from __future__ import annotations

from hdl_lib.matrices.dot_product import ProductSum
from hdl_lib.matrices.stream_matrix import FoldedRounds, StreamMatrix
from hdl_lib.matrices.vector_buffer import vector_latency
from hwflow.cores.costs.basics import adder, adders, bits, loop
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.memory import buffer_memory
from hwflow.cores.costs.products.matrix import Matrix
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def stream_matrix(
    unit: Matrix, row: ProductSum, folded: FoldedRounds, elements: tuple[IntType, IntType], offsets: tuple[int, ...],
    depth: int,
) -> Resources:
    """Estimate products and sums, the memory with its addresses, differences. ``elements``: of vectors and matrices, as
    they come."""
    family = unit.family
    total = unit.of_any_matrix(folded.pe, folded.neuron_fold, depth)
    total += _memory(family, row, folded, unit.w.bits)
    if unit.packing is not None:  # what the upper rows lend the lower ones
        borrows = unit.packing.low_shape.signed
        pairs, high = folded.pe // 2 * folded.simd, unit.packing.high_shape.width
        total += Resources(lut=pairs * adder(family, high) * borrows, ff=pairs * (high - unit.w.bits))
    for element, factor, offset, lanes in zip(
        elements, (unit.x, unit.w), offsets, (folded.simd, folded.lanes), strict=True
    ):
        # An offset's zeros below leave the value's bits as they are.
        places = factor.bits - (offset & -offset).bit_length() + 1 if offset else 0
        total += Resources(lut=lanes * adders(min(places, element.bits + 1), 1, family).lut)
    surplus = folded.synapse_fold * folded.simd - folded.rounds.inner
    if surplus and offsets[0]:  # else the registers' reset
        total += Resources(lut=surplus * unit.x.bits)
    return total + _control(family, row, folded, unit.packing is not None)


def _memory(family: str, row: ProductSum, folded: FoldedRounds, element: int) -> Resources:
    """Estimate banks with two registers behind each, a third behind the choice among several parts, or where multiplier
    blocks take the word."""
    width = folded.lanes * element
    total = buffer_memory(family, 2 * folded.words, width).times(folded.banks) + Resources(ff=width)  # what is written
    inside = row.weight_lead and FAMILIES[family].dsp_registers
    near = StreamMatrix.read_latency(row, folded) - 2
    registers = near + int(row.weight_lead) - int(bool(inside))
    return total + Resources(ff=registers * folded.banks * width)


def _control(family: str, row: ProductSum, folded: FoldedRounds, packed: bool) -> Resources:
    """Estimate loops and addresses of reader and writer, halves that are full and free, delays."""
    rounds = folded.rounds
    place, address = bits(folded.synapse_fold - 1), bits(2 * folded.words - 1)
    groups = rounds.vectors // (rounds.sets * rounds.repeat)
    total = Resources(lut=12, ff=10)
    for turns in (
        folded.neuron_fold, rounds.repeat, rounds.sets, groups, folded.blocks, rounds.sets, folded.lines,
    ):
        total += loop(turns)
    several = folded.words & folded.words - 1 != 0
    for levels in (2, 3):
        total += Resources(lut=adder(family, address) + levels * address // 2, ff=address + several)
    total += Resources(ff=address * (1 + StreamMatrix.ahead_of(row, folded)))
    waits = StreamMatrix.input_latency(row, folded) - vector_latency(folded.synapse_fold, folded.neuron_fold)
    total += Resources(ff=waits * folded.simd * row.multiplier.input_shape.width)
    if folded.banks > 1:
        total += Resources(lut=2 * folded.banks, ff=2 * folded.banks)
    latency = StreamMatrix.latency_of(row, folded, packed=packed)
    total += Resources(lut=4, ff=latency)
    if folded.synapse_fold > 1:
        total += Resources(lut=2 * place + 3, ff=place + 2 * latency - 3)
    if folded.synapse_fold > 1 and folded.neuron_fold > 1:
        total += Resources(ff=place + 3)
    return total
