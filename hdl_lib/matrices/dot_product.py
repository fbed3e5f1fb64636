"""The sum over a beat in a row of a matrix-vector unit: of products, or the count of equal bits.

Both have a register after every step: one sum per cycle, ``latency`` cycles after its operands and ``weight_lead`` more
after its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Value

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, tree_levels
from hdl_lib.arithmetic.multiplier import Multiplier, Operand


@dataclass(frozen=True)
class ProductSum:
    """``sum over lanes of input * weight``."""

    multiplier: Multiplier
    lanes: int

    @property
    def products(self) -> tuple[int, int]:
        """Return the least and the greatest product."""
        return self.multiplier.products

    @property
    def operand_latency(self) -> int:
        """Return the cycles from an input to its operand."""
        return self.multiplier.operand_latency

    @property
    def weight_lead(self) -> int:
        """Return by how many cycles weights come before operands."""
        return self.multiplier.weight_lead

    @property
    def latency(self) -> int:
        """Return the cycles from operands to the sum."""
        return self.multiplier.latency + tree_levels(self.lanes)

    def operand(self, m: Module, name: str, x: Value) -> Operand:
        """Return the operand of an input for all rows, ``operand_latency`` cycles later."""
        return self.multiplier.operand(m, name, x)

    def sum(self, m: Module, name: str, operands: Sequence[Operand], weights: Sequence[Value], limit: int) -> Term:
        """Return the sum modulo ``2**limit``; ``name`` is the row's, its registers are called
        ``product<name>_<lane>...`` and ``sum<name>...``."""
        products = [
            self.multiplier.product(m, f"product{name}_{s}", operand, weight)
            for s, (operand, weight) in enumerate(zip(operands, weights, strict=True))
        ]
        return adder_tree(m, f"sum{name}", products, limit)


@dataclass(frozen=True)
class MatchCount:
    """The number of lanes whose input bit equals the weight bit: the popcount of an XNOR.

    If the bits 0 and 1 mean -1 and 1, a product is 1 if its bits are equal and else -1, so that the sum of products is
    twice this number minus the lanes (M. Courbariaux et al., "Binarized Neural Networks", 2016).

    Two lanes are counted in one step: both bits of their count are functions of four bits, a 4-input table each. The
    next two steps add two such counts, then two counts of four, in tables as well, since a carry chain of so few bits
    costs more. Adders follow.
    """

    TABLES: ClassVar[int] = 8
    """Lanes that are counted in tables, without adders."""

    lanes: int

    @property
    def products(self) -> tuple[int, int]:
        """Return the least and the greatest count of a lane."""
        return 0, 1

    @property
    def operand_latency(self) -> int:
        """Return the cycles from an input to its operand: 0, as inputs are used directly."""
        return 0

    @property
    def weight_lead(self) -> int:
        """Return by how many cycles weights come before operands: 0."""
        return 0

    @property
    def latency(self) -> int:
        """Return the cycles from operands to the count."""
        return max(1, tree_levels(self.lanes))

    def operand(self, m: Module, name: str, x: Value) -> Operand:
        """Return the input itself."""
        return Operand(x)

    def sum(self, m: Module, name: str, operands: Sequence[Operand], weights: Sequence[Value], limit: int) -> Term:
        """Return the count modulo ``2**limit``; ``name`` is the row's, its registers are called
        ``count<name>_<lanes>_<index>`` and ``sum<name>...``."""
        equal = [~(operand.x[0] ^ weight[0]) for operand, weight in zip(operands, weights, strict=True)]
        counts = [
            registered(m, f"count{name}_2_{index}", _count_of_bits(equal[2 * index : 2 * index + 2]), limit)
            for index in range(-(-self.lanes // 2))
        ]
        for lanes in (4, 8):
            if len(counts) > 1:
                counts = [
                    registered(
                        m, f"count{name}_{lanes}_{index}", _sum_of_counts(counts[2 * index : 2 * index + 2]), limit
                    )
                    for index in range(-(-len(counts) // 2))
                ]
        return adder_tree(m, f"sum{name}", counts, limit)


def _count_of_bits(bits: Sequence[Value]) -> Term:
    """Count the bits set among one or two."""
    if len(bits) == 1:
        return Term(bits[0], 0, 1)
    return Term(Cat(bits[0] ^ bits[1], bits[0] & bits[1]), 0, 2)


def _sum_of_counts(counts: Sequence[Term]) -> Term:
    """Return the sum of one or two counts of at most 2, or at most 4.

    The highest count has one bit set, so that no carry goes into that bit's position if a count has it.
    """
    if len(counts) == 1:
        return counts[0]
    high = sum(count.high for count in counts)
    top = max(count.high for count in counts).bit_length() - 1
    a, b = (Cat(count.value, Const(0, top + 1))[: top + 1] for count in counts)
    carry: Value = a[0] & b[0]
    bits = [a[0] ^ b[0]]
    for place in range(1, top + 1):
        bits.append(a[place] ^ b[place] ^ carry)
        carry = (a[place] & b[place]) | (carry & (a[place] ^ b[place])) if place < top else a[place] & b[place]
    return Term(Cat(*bits, carry)[: high.bit_length()], 0, high)
