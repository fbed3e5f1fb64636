"""The resource model of the matrix-vector unit against the unit's own parameters."""

from __future__ import annotations

import pytest

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.matrices.mvu_rows import row_of
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.costs.products.matrix import Matrix
from hwflow.types import IntType

TABLE_LATENCY = 2  # of a table with an output register
ARRIVAL = (2, 3)  # cycles from a step to its inputs: of a vector that is passed over once, several times


@pytest.mark.parametrize(
    ("kind", "x", "w", "ranges", "ahead"),
    [
        ("lut", "u2", "i2", ((0, 3), (-1, 1)), 0),  # a product is a table of four bits
        ("lut", "i2", "i2", ((-1, 1), (-1, 1)), 0),
        ("lut", "i2", "i2", None, 1),  # multiples of the input
        ("lut", "u8", "i4", None, 1),
        ("lut", "u8", "i1", None, 0),  # it, or nothing
        ("xnor", "i1", "i1", None, 0),
        ("dsp", "u8", "i8", None, 0),
    ],
)
def test_cycles_that_weights_wait_for_their_inputs(
    kind: str, x: str, w: str, ranges: tuple[tuple[int, int], tuple[int, int]] | None, ahead: int
) -> None:
    """A table that lies far off has a register of its words' for one of them."""
    simd, part = 4, 18
    inputs, weights = IntType(int(x[1:]), x[0] == "i"), IntType(int(w[1:]), w[0] == "i")
    row = row_of(shape_of(inputs), shape_of(weights), simd, kind, part, ranges, None, True)
    made = [arrival + row.operand_latency - row.weight_lead - TABLE_LATENCY for arrival in ARRIVAL]
    unit = Matrix("ecp5", inputs, weights, IntType(16, True), kind, part, simd, 3, ranges=ranges)
    assert [*unit._ahead] == made
    assert made[0] == ahead


def test_digits_take_inputs_as_they_are() -> None:
    x, w, digits = IntType(8, False), IntType(4, True), Digits(2, True)
    row = row_of(shape_of(x), shape_of(w), 4, "lut", 18, None, digits, True)
    unit = Matrix("ecp5", x, w, IntType(16, True), "lut", 18, 4, 3, digits=digits)
    assert row.operand_latency == row.weight_lead == 0
    assert unit._ahead == (0, 1)
