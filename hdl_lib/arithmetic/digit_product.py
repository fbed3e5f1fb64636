"""Products of an input and a stored weight in look-up tables, with the weight in signed digits of radix 4.

A digit within -2 .. 1 is two bits in two's complement, and a bit of its product with the input is a function of these
two and two bits of the input: one 4-input table. For a negative digit the table gives the complement of the product,
which is one less; the missing one becomes the carry input of the next adder, or stays pending. Digits of this set reach
from ``-2 * (4**n - 1) / 3`` to ``(4**n - 1) / 3``; if weights go further, the top digit also has the value 2, and three
bits. (Recoding in signed digits of radix 4: O. L. MacSorley, "High-Speed Arithmetic in Binary Computers", 1961; here it
is done beforehand, since weights are constants.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value

from hdl_lib.arithmetic.adder_tree import Term, registered, tree_levels
from hdl_lib.arithmetic.carried_sum import Carried, carried_sum, carried_tree
from hdl_lib.arithmetic.multiplier import Operand, interval

Range = tuple[int, int]


@dataclass(frozen=True)
class Digits:
    """A number of ``count`` digits, least significant first; ``wide``: the top digit is within -2 .. 2, not -2 .. 1."""

    count: int
    wide: bool

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, weights: Range) -> Digits:
        """Return the fewest digits that hold the integers ``weights[0] .. weights[1]``."""
        digits = cls(1, False)
        while not (digits.range[0] <= weights[0] and weights[1] <= digits.range[1]):
            digits = cls(digits.count + 1, False) if digits.wide else cls(digits.count, True)
        return digits

    @property
    def bits(self) -> int:
        """Return the bits of a weight in the table."""
        return 2 * self.count + self.wide

    @property
    def range(self) -> Range:
        """Return the least and the greatest weight."""
        return self.part(0, self.count)

    def part(self, first: int, end: int) -> Range:
        """Return the least and the greatest number of the digits ``first .. end - 1``."""
        ones = ((1 << 2 * (end - first)) - 1) // 3
        more = 1 << 2 * (end - first - 1) if self.wide and end == self.count else 0
        return -2 * ones, ones + more

    def stored(self, weights: Any) -> Any:
        """Encode weights (a number, or an array of integers) for the table: the digits' bits, concatenated,
        as a number without sign."""
        words = 0 * weights
        for place in range(self.count):
            last = place == self.count - 1
            bits = weights & (7 if last and self.wide else 3)
            words = words | (bits << 2 * place)
            weights = (weights - (weights & 3) + 4 * ((weights & 2) >> 1)) >> 2  # less the digit
        return words


@dataclass(frozen=True)
class DigitSum:
    """``sum over lanes of input * weight`` for weights in ``digits``.

    Timing: a register behind every adder, within a product and between products, and one more for the last carry unless
    an accumulator takes it (``accumulated``). One sum per cycle.
    """

    input_shape: Shape
    digits: Digits
    lanes: int
    accumulated: bool

    @property
    def products(self) -> Range:
        """Return the least and the greatest product."""
        low, high = self._bounds(0, self.digits.count)
        return low + 1, high

    @property
    def operand_latency(self) -> int:
        """Return the cycles from an input to its operand: 0, as inputs are used directly."""
        return 0

    @property
    def weight_lead(self) -> int:
        """Return by how many cycles weights come before operands: 0."""
        return 0

    @property
    def product_latency(self) -> int:
        """Return the cycles from an operand and a weight to their product."""
        return max(1, tree_levels(self.digits.count))

    @property
    def latency(self) -> int:
        """Return the cycles from operands and weights to the sum."""
        return self.product_latency + tree_levels(self.lanes) + int(not self.accumulated)

    def operand(self, m: Module, name: str, x: Value) -> Operand:
        """Return the input itself."""
        return Operand(x)

    def sum(
        self, m: Module, name: str, operands: Sequence[Operand], weights: Sequence[Value], limit: int
    ) -> tuple[Term, Value | None]:
        """Return the sum modulo ``2**limit``, and its pending carry if ``accumulated``; ``weights``:
        :attr:`Digits.bits` a lane. Registers are called ``product<name>_<lane>...``, ``carry<name>...`` and
        ``sum<name>...``."""
        products = [
            self.product(m, f"{name}_{lane}", operand.x, weight)
            for lane, (operand, weight) in enumerate(zip(operands, weights, strict=True))
        ]
        total = carried_tree(m, name, products, limit)
        return (total.term, total.carry) if self.accumulated else (total.settled(m, f"sum{name}_exact", limit), None)

    def product(self, m: Module, name: str, x: Value, weight: Value) -> Carried:
        """Return a product with its pending carry, :attr:`product_latency` cycles later."""
        parts = [(place, place + 1, self._row(x, weight, place)) for place in range(self.digits.count)]
        level = 0
        while len(parts) > 1 or level == 0:
            sums = []
            for index in range(0, len(parts), 2):
                first, end, part = parts[index]
                value, carry = Value.cast(part.term.value), part.carry
                if index + 1 < len(parts):
                    middle, end, upper = parts[index + 1]
                    distance = 2 * (middle - first)
                    above = carried_sum(value.shift_right(distance), Value.cast(upper.term.value), upper.carry)
                    value = Cat(value[:distance], above).as_signed()
                place = f"{name}_digits{level}_{index // 2}" if len(parts) > 2 else name
                kept = Signal(name=f"carry_product{place}", reset_less=True)
                m.d.sync += kept.eq(carry)
                term = registered(m, f"product{place}", Term(value, *self._bounds(first, end)))
                sums.append((first, end, Carried(term, kept)))
            parts = sums
            level += 1
        return parts[0][2]

    def _bounds(self, first: int, end: int) -> Range:
        """Return the least and the greatest product of an input and the number of some digits, excluding the carry."""
        products = [a * b for a in interval(self.input_shape) for b in self.digits.part(first, end)]
        return min(products) - 1, max(products)

    def _row(self, x: Value, weight: Value, place: int) -> Carried:
        """Return the product with a digit: of a negative digit the complement of the magnitude's product, and a carry.
        """
        last = place == self.digits.count - 1
        digit = weight[2 * place : self.digits.bits if last else 2 * place + 2]
        magnitude = Mux(digit[0], x, Mux(digit[1], x.shift_left(1), 0))
        extended = Cat(magnitude) if magnitude.shape().signed else Cat(magnitude, 0)
        bits = extended ^ digit[-1].replicate(len(extended))
        return Carried(Term(bits.as_signed(), *self._bounds(place, place + 1)), digit[-1])
