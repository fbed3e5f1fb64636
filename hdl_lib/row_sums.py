"""The sums that the rows of a matrix-vector unit make of a beat, from the bits of a word of its table.

Each sum comes with the bit that is still to be added to it, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Shape, Signal, Value

from .adder_tree import Term, registered
from .digit_product import Digits, DigitSum
from .dot_product import MatchCount, ProductSum
from .multiplier import Multiplier, Operand
from .packed_product import PackedSum, Packing

Ranges = tuple[tuple[int, int], tuple[int, int]]  # least and greatest of the inputs, of the weights
RowSum = ProductSum | MatchCount | DigitSum
Sum = tuple[Term, Value | None]


def row_of(
    input_shape: Shape, weight_shape: Shape, simd: int, form: str, part: int, ranges: Ranges | None,
    digits: Digits | None, accumulated: bool,
) -> RowSum:
    """What computes a row of the matrix; parameters as those of :class:`hdl_lib.mvu.Mvu`. ``accumulated``: an
    accumulator takes the bit that is still to be added."""
    if form == "xnor":
        return MatchCount(simd)
    if digits is not None:
        return DigitSum(input_shape, digits, simd, accumulated)
    return ProductSum(Multiplier(input_shape, weight_shape, "dsp" if form == "dsp2" else form, part, ranges), simd)


def row_sums(
    m: Module, row: RowSum, pe: int, operands: Sequence[Operand], word: Value, weight_shape: Shape, limit: int
) -> list[Sum]:
    """``pe`` sums modulo ``2**limit``; ``word``: a weight a lane, row after row."""
    sums: list[Sum] = []
    for p in range(pe):
        weights = _slices(m, f"weight{p}", word, p * len(operands), len(operands), weight_shape)
        result = row.sum(m, str(p), operands, weights, limit)
        sums.append((result, None) if isinstance(result, Term) else result)
    return sums


def pair_sums(
    m: Module, row: RowSum, pe: int, operands: Sequence[Operand], word: Value, packing: Packing, limit: int,
    accumulated: bool,
) -> list[Sum]:
    """As :func:`row_sums`, two rows at a time; ``word``: two packed weights a lane, pair of rows after pair of rows,
    then a weight a lane for a last row, which ``row`` computes."""
    assert isinstance(row, ProductSum), "the last row of an odd number is one of products"
    simd, single = len(operands), row.multiplier
    product = Multiplier(single.input_shape, packing.operand_shape, "dsp", single.part)
    pair = PackedSum(packing, product, simd, accumulated)
    sums: list[Sum] = []
    for p in range(0, pe - 1, 2):
        weights = _slices(m, f"weights{p}", word, p // 2 * simd, simd, Shape(packing.bits))
        low, high = pair.sums(m, (str(p), str(p + 1)), operands, weights, limit)
        sums += [(low, None), high]
    if pe % 2:
        above = word[pe // 2 * simd * packing.bits :]
        last = _slices(m, f"weight{pe - 1}", above, 0, simd, packing.low_shape)
        term = row.sum(m, str(pe - 1), operands, last, limit)
        sums.append((term if accumulated else registered(m, f"sum{pe - 1}_exact", term, limit), None))
    return sums


def _slices(m: Module, name: str, word: Value, first: int, count: int, shape: Shape) -> list[Signal]:
    """``count`` numbers of ``shape`` that stand in a word from the ``first`` on."""
    found = []
    for index in range(count):
        number = Signal(shape, name=f"{name}_{index}")
        m.d.comb += number.eq(word.word_select(first + index, shape.width))
        found.append(number)
    return found
