# amaranth: UnusedElaboratable=no
"""The split of packed products, proved for all products of given widths, beside twins without the carry or a bit short.

A packed product is built here of two free products, so that a solver need not multiply; that an operand times its
packed weights is that is a matter of ``x * (a * n + b) = x * a * n + x * b`` (and counted out in tests/hdl_lib).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from amaranth.hdl import Assert, Assume, Cover, Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.arithmetic.adder_tree import Term, tree_levels
from hdl_lib.arithmetic.packed_product import Packing, split_sums
from tests.formal.prover import prove, refute

LIMIT = 30


class Split(wiring.Component):
    """``lanes`` packed products in, their sums compared with those of what was packed. ``drop_carry``: the twin."""

    def __init__(self, packing: Packing, lanes: int, accumulated: bool, *, drop_carry: bool = False) -> None:
        self.packing, self.lanes, self.accumulated, self.drop_carry = packing, lanes, accumulated, drop_carry
        low, high = packing.products
        self.product_shape = Shape.cast(range(low, high + 1))
        ports = {}
        for lane in range(lanes):
            ports |= {f"low{lane}": In(self.product_shape), f"high{lane}": In(self.product_shape)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        least, greatest = self.packing.products
        products, lows, highs = [], [], []
        for lane in range(self.lanes):
            low, high = getattr(self, f"low{lane}"), getattr(self, f"high{lane}")
            for free in (low, high):
                m.d.comb += Assume((free >= least) & (free <= greatest))
            packed = Signal(Shape.cast(range(self.packing.packed_products[0], self.packing.packed_products[1] + 1)))
            m.d.comb += packed.eq(high.shift_left(self.packing.shift) + low)
            products.append(Term(packed, *self.packing.packed_products))
            lows.append(low)
            highs.append(high)
        latency = tree_levels(self.lanes) + (not self.accumulated)
        low_sum, (high_sum, carry) = split_sums(m, ("0", "1"), self.packing, products, LIMIT, self.accumulated)
        found = [Value.cast(low_sum.value), Value.cast(high_sum.value)]
        if carry is not None and not self.drop_carry:
            found[1] = found[1] + carry
        # Registers of data have no reset: what they hold counts once `latency` cycles have passed.
        age = Signal(range(latency + 1))
        with m.If(age < latency):
            m.d.sync += age.eq(age + 1)
        for name, inputs, result in (("low", lows, found[0]), ("high", highs, found[1])):
            expected: Value = sum(inputs[1:], inputs[0])
            for cycle in range(latency):
                kept = Signal(expected.shape(), name=f"{name}_expected_{cycle}", reset_less=True)
                m.d.sync += kept.eq(expected)
                expected = kept
            with m.If(age == latency):
                m.d.comb += [Assert(result == expected), Cover(expected == self.lanes * greatest)]
        return m


PACKINGS = [
    (Packing.of((0, 3), (-2, 1), 1, (18, 18)), 4),  # split at once
    (Packing.of((0, 255), (-8, 7), 4, (18, 18)), 3),  # two by two, the last one alone
    (Packing.of((-8, 7), (-7, 7), 3, (18, 18)), 3),  # all in one
    (Packing.of((-128, 127), (-128, 127), 1, (27, 18)), 2),
]


@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize(("packing", "lanes"), PACKINGS)
def test_the_split_is_exact(tmp_path, packing, lanes, accumulated):
    prove(Split(packing, lanes, accumulated), tmp_path, induction=5, cover=8)


@pytest.mark.parametrize(("packing", "lanes"), PACKINGS)
def test_broken_twins(tmp_path, packing, lanes):
    """Without the last carry; with a low product of one bit less, which is too few for its range."""
    refute(Split(packing, lanes, True, drop_carry=True), tmp_path)
    short = replace(packing, shift=packing.shift - 1)
    assert short.levels == packing.levels
    refute(Split(short, lanes, True), tmp_path)
