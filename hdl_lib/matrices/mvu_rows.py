"""The rows of a matrix-vector unit: their sums over a beat, accumulated over the beats of a vector.

Rows take the same operands, mostly, and each takes its own weights, which are bits of a word of the table. Equal rows
are instances of one module (:mod:`hdl_lib.shared`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.accumulator import accumulator, controls
from hdl_lib.arithmetic.adder_tree import Term, registered
from hdl_lib.arithmetic.digit_product import Digits, DigitSum
from hdl_lib.arithmetic.lane_sums import LaneSum, Layouts, ports, sums_over_lanes
from hdl_lib.arithmetic.multiplier import IN_BLOCKS, Multiplier, ProductForm
from hdl_lib.arithmetic.packed_product import PackedSum, Packing
from hdl_lib.matrices.dot_product import MatchCount, ProductSum
from hdl_lib.shared import SharedComponent

Ranges = tuple[tuple[int, int], tuple[int, int]]  # least and greatest of the inputs, of the weights
RowSum = ProductSum | MatchCount | DigitSum


def row_of(
    input_shape: Shape, weight_shape: Shape, simd: int, form: ProductForm, part: int, ranges: Ranges | None,
    digits: Digits | None, accumulated: bool,
) -> RowSum:
    """Return the sum of a row of the matrix; parameters as of :class:`hdl_lib.matrices.mvu.Mvu`. ``accumulated``: an
    accumulator takes the pending carry."""
    if form == ProductForm.XNOR:
        return MatchCount(simd)
    if digits is not None:
        return DigitSum(input_shape, digits, simd, accumulated)
    single = ProductForm.DSP if form in IN_BLOCKS else form  # of a row without a partner
    return ProductSum(Multiplier(input_shape, weight_shape, single, part, ranges), simd)


class Rows(SharedComponent):
    """A row, or two of packed weights.

    Parameters
    ----------
    kind: the sum over lanes.
    operands: layouts of the operands, made of the inputs.
    weight_shape: of a lane, for ``kind`` to extend.
    shape: of a result, integer shape; sums are modulo ``2**shape.width``.
    accumulated: there are accumulators.
    settled: without accumulators, a register behind the sum adds the pending carry.

    Members
    -------
    Those of :func:`hdl_lib.arithmetic.lane_sums.ports`.
    update, last: In(1), with ``accumulated``: as :func:`hdl_lib.arithmetic.accumulator.accumulator` wants them.
    low, high, or for one row sum: Out(``shape``).
    """

    def __init__(
        self, kind: LaneSum, operands: Layouts, weight_shape: Shape, shape: Shape, accumulated: bool, settled: bool
    ) -> None:
        self.results = ("low", "high") if isinstance(kind, PackedSum) else ("sum",)
        self._kind = kind
        self._multiples = tuple(operands)
        self._weight_shape = weight_shape
        self._shape = shape
        self._accumulated = accumulated
        self._settled = settled and not accumulated
        members = dict(ports(operands, weight_shape.width))
        if accumulated:
            members |= {"update": In(1), "last": In(1)}
        members |= {name: Out(shape) for name in self.results}
        name = "row" if len(self.results) == 1 else "rows"
        super().__init__(name, (kind, weight_shape, shape, accumulated, self._settled), members)

    def build(self) -> Module:
        m = Module()
        limit = self._shape.width
        operands = {name: getattr(self, name) for name in self._multiples}
        sums = sums_over_lanes(m, self._kind, operands, self.weights, self._weight_shape, limit)
        for name, (term, carry) in sums.items():
            if self._accumulated:
                term = accumulator(m, f"_{name}", term, carry, self._shape, self.update, self.last)
            elif self._settled:
                whole = term.value if carry is None else Value.cast(term.value) + carry
                term = registered(m, f"{name}_settled", Term(whole, term.low, term.high), limit)
            m.d.comb += getattr(self, name).eq(term.value)
        return m


def parts_of(
    row: RowSum, pe: int, operands: Layouts, weight_shape: Shape, shape: Shape, accumulated: bool,
    packing: Packing | None,
) -> list[Rows]:
    """Return ``pe`` rows, the lowest first: with ``packing`` two at a time, and a last one of an odd number by itself.
    ``row`` is the sum of a single row, whose weights have ``weight_shape``."""
    if packing is None:
        settled = isinstance(row, DigitSum)
        return [Rows(row, operands, weight_shape, shape, accumulated, settled) for _ in range(pe)]
    assert isinstance(row, ProductSum), "the last row of an odd number is one of products"
    single = row.multiplier
    product = Multiplier(single.input_shape, packing.operand_shape, ProductForm.DSP, single.part)
    pair = PackedSum(packing, product, row.lanes, accumulated)
    parts = [Rows(pair, operands, Shape(packing.bits), shape, accumulated, True) for _ in range(pe // 2)]
    if pe % 2:
        parts.append(Rows(row, operands, packing.low_shape, shape, accumulated, True))
    return parts


def connect_rows(
    m: Module, parts: Sequence[Rows], operands: Mapping[str, data.View] | Sequence[Mapping[str, data.View]],
    word: Value, update: Value | None, last: Value | None,
) -> list[Value]:
    """Add ``parts`` as submodules; return the rows' results.

    ``operands``: of all parts, or those of each.
    ``word``: the weights of a lane of a part, lane after lane, part after part. ``update`` and ``last``: arguments of
    :func:`hdl_lib.arithmetic.accumulator.controls`, if the parts have accumulators.
    """
    rows = sum(len(part.results) for part in parts)
    groups = [] if update is None or last is None else list(controls(m, rows, update, last))
    results: list[Value] = []
    first = 0
    for number, part in enumerate(parts):
        row = len(results)
        taken = operands if isinstance(operands, Mapping) else operands[number]
        m.submodules[f"{part.name}_{row}"] = part
        end = first + len(Value.cast(part.weights))
        m.d.comb += [part.weights.eq(word[first:end]), *(getattr(part, name).eq(x) for name, x in taken.items())]
        if groups:
            m.d.comb += [signal.eq(kept) for signal, kept in zip((part.update, part.last), groups[row], strict=True)]
        results += [getattr(part, name) for name in part.results]
        first = end
    return results
