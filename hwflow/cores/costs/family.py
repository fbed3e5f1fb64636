"""A family's primitives and how synthesis uses them, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

_SMALL_SHARE = 0.3  # of a cycle: wires that take no more need no registers of their own


@dataclass(frozen=True)
class Family:
    """What yosys knows of a family's primitives (share/*/brams*.txt, lutrams*.txt).

    ``bram_shapes``: (words, width) configurations; ``lutram``: LUTs of a memory primitive of 16 words x 4 bits that
    is read in the same cycle, None where there is none; ``dsp_width``: widest signed operand of one multiplier;
    ``dsp_pair``: widest operands of which a multiplier block takes two products (:mod:`hwflow.toolchain.packing`), 0
    where there is no such; ``dsp_product``: products of fewer bits are made of look-up tables; ``carry_bits``: of a
    sum, in a carry cell.
    ``bram_cost``, ``lutram_cost``: what memory_libmap charges for a primitive, in bits of a memory made of flip-flops
    (a sixteenth of that for a read-only one); the cheapest way wins. ``dsp_registers``: behind a product that yosys
    itself takes into a block, with those of one operand. ``dsp_least``: products with an operand of fewer bits are
    made of look-up tables. ``dsp_wide``: widest signed operand of a multiplier beside one of ``dsp_width``, where that
    is more (0: the same). ``register_ns``, ``adder_ns``: what a path between registers is expected to take without
    adders, and for each level of adders on it; None: not known. (ECP5: a guess that gives one level at 125 MHz and two
    at 100. A dense network of 41,500 look-up tables with two was not routed at 100 MHz.) ``table_ns``: what a look-up
    table and the wire in front of it take, likewise a guess. ``basis``: the family whose
    measured constants are taken, where there are some beside these. ``block_ram_cells``: look-up tables and flip-flops
    that a block RAM counts as where a queue may lie in either. (iCE40: a queue of eight bytes in flip-flops takes 140
    logic cells, in block RAM 33, and of an UP5K's 176 cells for each block RAM few designs leave any.)
    ``crossing_ns``: what a wire from one end of the largest part to the other was seen to take (ECP5, in ResNet-8 on an
    LFE5U-85F), or is guessed to.
    """

    bram_shapes: tuple[tuple[int, int], ...]
    bram_cost: int
    lutram: int | None
    lutram_cost: int
    dsp_width: int
    dsp_pair: int
    dsp_product: int
    carry_bits: int
    dsp_registers: int
    dsp_least: int = 2
    dsp_wide: int = 0
    register_ns: float = 0.0
    adder_ns: float | None = None
    table_ns: float = 1.0
    basis: str = "ecp5"
    block_ram_cells: int = 160
    crossing_ns: float = 4.5

    def crosses_quickly(self, clock_mhz: float | None) -> bool:
        """Tell whether a wire across the part leaves most of a cycle; not if the clock is not known."""
        return clock_mhz is not None and self.crossing_ns * clock_mhz <= _SMALL_SHARE * 1000

    def adder_levels(self, clock_mhz: float | None) -> int:
        """Return the levels of adders that a cycle has time for; 1 if the clock or the family's delays are not known.
        """
        if clock_mhz is None or self.adder_ns is None:
            return 1
        return max(1, int((1000 / clock_mhz - self.register_ns) / self.adder_ns))

    def table_levels(self, clock_mhz: float | None) -> int:
        """Return the levels of look-up tables that a cycle has time for; at 100 MHz if the clock is not known."""
        return max(1, int((1000 / (clock_mhz or 100) - self.register_ns) / self.table_ns))

    @property
    def measured(self) -> bool:
        """Whether the family's own samples confirm the cost model."""
        return FAMILIES[self.basis] is self

    @property
    def dsp_packed(self) -> tuple[int, int]:
        """Widest operands of a multiplier block of which one is of two weights
        (:mod:`hdl_lib.arithmetic.packed_product`), that one first."""
        return self.dsp_wide or self.dsp_width, self.dsp_width

    def in_block(self, a: int, b: int) -> bool:
        """Tell whether a product of operands of ``a`` and ``b`` bits is made in multiplier blocks."""
        return min(a, b) >= self.dsp_least and a + b >= self.dsp_product


FAMILIES = {
    "ecp5": Family(
        ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36)), 128, 4, 4, 18, 0, 0, 2, 0,
        register_ns=1.5, adder_ns=4.2,
    ),
    "ice40": Family(
        ((256, 16), (512, 8), (1024, 4), (2048, 2)), 64, None, 0, 16, 8, 11, 1, 1, table_ns=3.0, basis="ice40",
        block_ram_cells=64, crossing_ns=6.0,
    ),
}

# Families whose cores were not measured take the ECP5's model: 4-input look-up tables and carry cells of two bits. That
# is above what 6-input look-up tables (7 series) and adaptive logic modules (Cyclone V) need, a LUT6 holding any LUT4.
# For 7 series, of every 19th of the harness's cases yosys 0.70 made 4,791 look-up tables, 6,555 flip-flops and 11
# multipliers, where the model has 6,732, 8,327 and 11. Of examples/digits on Arty A7-35 it made 90 multipliers, most
# with two products, where the model has 90. What Vivado makes of them, and Quartus, was not measured.
# For Gowin, whose tables and memories are of the same sizes, it is near: of every 15th of the harness's cases, 37 in
# all, yosys 0.70 made 11,248 look-up tables, 13,429 flip-flops, 20 multipliers and 4 block RAMs, where the model has
# 11,359, 13,557, 21 and 4; a requantizer whose products are cut took half as many tables again. Shapes and widths are
# the family's own.
FAMILIES |= {
    "gowin": replace(FAMILIES["ecp5"], dsp_pair=9, carry_bits=1, dsp_least=4, adder_ns=None, table_ns=1.5),
    "xilinx7": replace(FAMILIES["ecp5"], dsp_wide=25, adder_ns=None),
    "cyclonev": replace(
        FAMILIES["ecp5"], bram_shapes=((8192, 1), (4096, 2), (2048, 5), (1024, 10), (512, 20), (256, 40)), adder_ns=None
    ),
}
