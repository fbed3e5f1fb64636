"""Multiplication of vectors by a constant matrix, with a multiplier block for each weight."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, tree_levels
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY, block_product
from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.memories.storage import check_depth
from hdl_lib.streams.output_queue import OutputQueue

Rows = tuple[tuple[int, ...], ...]


class ConstantProducts(wiring.Component):
    """Multiplies ``vectors`` vectors per beat with a constant matrix: one product per weight, one adder tree per row.

    Weights of 0 have no product; plus or minus powers of two need no multiplier block.

    Parameters
    ----------
    input_shape, output_shape: integer shapes of an element. The caller guarantees that ``output_shape`` holds every
        result.
    weights: the rows of the matrix, all of the same length.
    vectors: vectors per beat, at least 1.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The elements of ``vectors`` vectors, one vector after the other.
    o: Out(stream). Their products with the matrix, ``len(weights)`` elements per vector.

    Timing
    ------
    One step per beat, at the first cycle with ``i.valid`` and a credit; ``latency`` cycles later ``o.valid``. Stages:
    input, operands, three for products (:mod:`hdl_lib.arithmetic.block_product`), levels of the adder tree of the row
    with most weights, output queue. Initiation interval 1 cycle per beat. Under backpressure no step begins; those
    begun continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    def __init__(
        self, input_shape: Shape, output_shape: Shape, weights: Sequence[Sequence[int]], *, vectors: int, depth: int
    ) -> None:
        self.input_shape = Shape.cast(input_shape)
        self.output_shape = Shape.cast(output_shape)
        self.weights: Rows = tuple(tuple(row) for row in weights)
        self.vectors = vectors
        self.depth = depth
        check_depth(depth, least=0)
        if vectors < 1:
            raise ValueError(f"vectors must be at least 1, not {vectors}")
        if len({len(row) for row in self.weights}) != 1 or not self.weights[0]:
            raise ValueError("weights must be rows of the same length, at least 1")
        for name, shape in (("input_shape", self.input_shape), ("output_shape", self.output_shape)):
            if shape.width < 1:
                raise ValueError(f"{name} must have at least 1 bit, not 0")
        columns, rows = len(self.weights[0]), len(self.weights)
        super().__init__(
            {
                "i": In(stream.Signature(data.ArrayLayout(self.input_shape, vectors * columns))),
                "o": Out(stream.Signature(data.ArrayLayout(self.output_shape, vectors * rows))),
            }
        )

    @staticmethod
    def latency_of(terms: int) -> int:
        """Return the cycles from a step to ``o.valid``; ``terms``: the most nonzero weights of a row."""
        return 3 + BLOCK_LATENCY + tree_levels(max(1, terms))

    @property
    def latency(self) -> int:
        """Return this core's :meth:`latency_of`."""
        return self.latency_of(self._terms)

    @property
    def _terms(self) -> int:
        return max(sum(weight != 0 for weight in row) for row in self.weights)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = OutputQueue(self.o.payload.shape(), self.depth)
        queue.issue(m, self.i, self.latency - 1)
        arrived, operands = (Signal(self.i.payload.shape(), name=n, reset_less=True) for n in ("arrived", "operands"))
        m.d.sync += [arrived.eq(self.i.payload), operands.eq(arrived)]
        wiring.connect(m, wiring.flipped(self.o), queue.o)
        columns, rows = len(self.weights[0]), len(self.weights)
        for vector in range(self.vectors):
            xs = [operands[vector * columns + k] for k in range(columns)]
            for index, row in enumerate(self.weights):
                m.d.comb += queue.payload[vector * rows + index].eq(self._row(m, f"{vector}_{index}", row, xs))
        return m

    def _row(self, m: Module, name: str, row: Sequence[int], xs: Sequence[Value]) -> Value:
        """Return the sum of a row's products."""
        low, high = interval(self.input_shape)
        products = []
        for k, (weight, x) in enumerate(zip(row, xs, strict=True)):
            if weight:
                term = Term(_times(x, weight), *sorted((weight * low, weight * high)))
                products.append(block_product(m, f"product_{name}_{k}", term))
        if not products:
            return Const(0)
        limit = self.output_shape.width
        total = adder_tree(m, f"sum_{name}", products, limit)
        for stage in range(tree_levels(len(products)), tree_levels(self._terms)):
            total = registered(m, f"sum_{name}_late{stage}", total, limit)
        return Value.cast(total.value)


def _times(x: Value, weight: int) -> Value:
    """Return the product; by a power of two a shift, as synthesis would map a negative one to a multiplier block."""
    if abs(weight) & (abs(weight) - 1):
        return x * Const(weight)
    shifted = x.shift_left(abs(weight).bit_length() - 1)
    return -shifted if weight < 0 else shifted
