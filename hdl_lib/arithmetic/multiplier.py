"""Registered products of an input and a weight, in a multiplier block or as sums of partial products.

The form "lut" takes the weight two bits at a time: such a digit selects 0, x, 2x or 3x (in the top digit of a signed
weight 0, x, -2x or -x), which costs two 4-input tables per bit, and the selected rows are added in a tree with a
register behind every adder. The multiples 3x and -x depend on the input alone, so that all products of one input share
them. """

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value
from amaranth.utils import ceil_log2

from hdl_lib.arithmetic.adder_tree import Term, registered, shape_of
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY, block_product
from hdl_lib.arithmetic.wide_product import WideProduct, shifted_sum


class ProductForm(StrEnum):
    """What makes the products of a core. The values are the words of reports and of cores' arguments."""

    NONE = ""  # there are no products, or the core has no choice
    DSP = "dsp"  # multiplier blocks
    DSP2 = "dsp2"  # multiplier blocks of two products each (:mod:`hdl_lib.arithmetic.packed_product`)
    LUT = "lut"  # look-up tables
    XNOR = "xnor"  # comparisons of single bits
    SHIFT_ADD = "shift_add"  # adders of shifted inputs, for factors that never change
    WIRES = "wires"  # a shift each, without a register between two cores that have some
    SERIAL = "serial"  # look-up tables, some digits of the input per step
    SEARCH = "search"  # none: one comparator that goes through a table of thresholds
    TABLE = "table"  # memories of the multiples of stored factors
    NEURONS = "neurons"  # none: truth tables of what the products are for


FORMS = (ProductForm.DSP, ProductForm.LUT)  # of a product by itself
IN_BLOCKS = (ProductForm.DSP, ProductForm.DSP2)
BLOCK = 16  # bits of operands that every family's synthesis puts into multiplier blocks by itself
PART = 17  # bits without a sign that a multiplier block of 18 by 18 bits with sign takes, as ECP5 has it
DIGIT = 2  # bits of the weight a row of the form "lut" takes


def interval(shape: Shape) -> tuple[int, int]:
    """Return the least and the greatest value of ``shape``."""
    if shape.signed:
        return -(1 << shape.width - 1), (1 << shape.width - 1) - 1
    return 0, (1 << shape.width) - 1


@dataclass(frozen=True)
class Operand:
    """An input with the multiples of it that :meth:`Multiplier.product` selects from."""

    x: Value
    triple: Value | None = None
    negative: Value | None = None


@dataclass(frozen=True)
class Multiplier:
    """A multiplier of ``input_shape`` by ``weight_shape`` in the form "dsp" or "lut".

    A product with an operand of a single bit is a selection in either form and takes no multiplier block. In the form
    "dsp", operands of more than 16 bits are split into parts of ``part`` bits unsigned, or one more signed
    (:mod:`hdl_lib.arithmetic.wide_product`); without ``part`` it is one product, which synthesis splits.

    ``ranges``: the least and the greatest input and weight, if known. Used for operands of two bits each in the form
    "lut": every bit of such a product is a table of four inputs, and {-1, 0, 1} times {-1, 0, 1} has two bits. Products
    with operands outside these ranges are unspecified, but zero if one is zero.
    """

    input_shape: Shape
    weight_shape: Shape
    form: ProductForm
    part: int | None = None
    ranges: tuple[tuple[int, int], tuple[int, int]] | None = None

    @cached_property
    def wide(self) -> WideProduct | None:
        """Return the product of parts, if operands are split."""
        widest = max(self.input_shape.width, self.weight_shape.width)
        if self.form != ProductForm.DSP or self._single_bit or self.part is None or widest <= BLOCK:
            return None
        return WideProduct(self.input_shape, self.weight_shape, self.part)

    @property
    def blocks(self) -> int:
        """Return the products that synthesis may map to multiplier blocks: 1 or 0, or those of parts."""
        if self.wide is not None:
            return self.wide.blocks
        return int(self.form == ProductForm.DSP and not self._single_bit)

    @property
    def products(self) -> tuple[int, int]:
        """Return the least and the greatest product."""
        if not self._table:
            return self._bounds(0, self.weight_shape.width)
        assert self.ranges is not None, "only products of known ranges are tables"
        corners = [a * b for a in self.ranges[0] for b in self.ranges[1]]
        return min(corners), max(corners)

    @property
    def latency(self) -> int:
        """Return the cycles from operands to product."""
        if self.wide is not None:
            return self.wide.latency
        if self.blocks:
            return BLOCK_LATENCY
        return max(1, ceil_log2(len(self._digits))) if self._rows else 1

    @property
    def operand_latency(self) -> int:
        """Return the cycles from an input to its :class:`Operand`: 1 if multiples are computed or a multiplier block
        needs its operand in a register, else 0."""
        return int(self._triple or self._negative or self.blocks > 0)

    @property
    def weight_lead(self) -> int:
        """Return by how many cycles a product takes its weight before its operand: 1 for a multiplier block, which
        registers the weight too, else 0."""
        return int(self.blocks > 0)

    @property
    def _single_bit(self) -> bool:
        return 1 in (self.input_shape.width, self.weight_shape.width)

    @property
    def _rows(self) -> bool:
        return self.form == ProductForm.LUT and not self._single_bit and not self._table

    @property
    def _table(self) -> bool:
        two_bits = self.input_shape.width == self.weight_shape.width == 2
        return self.form == ProductForm.LUT and self.ranges is not None and two_bits

    @property
    def _digits(self) -> list[tuple[int, int]]:
        """Return the first bit and the end of every digit of the weight."""
        width = self.weight_shape.width
        return [(bit, min(bit + DIGIT, width)) for bit in range(0, width, DIGIT)]

    @property
    def _triple(self) -> bool:
        """Tell whether some digit, of two unsigned bits, takes the value 3."""
        full = self.weight_shape.width // DIGIT
        whole_top_is_signed = self.weight_shape.signed and self.weight_shape.width % DIGIT == 0
        return self._rows and full - int(whole_top_is_signed) > 0

    @property
    def _negative(self) -> bool:
        return self._rows and self.weight_shape.signed

    def operand(self, m: Module, name: str, x: Value) -> Operand:
        """Return the operand for an input, ``operand_latency`` cycles later; its registers are called ``<name>...``."""
        if not self.operand_latency:
            return Operand(x)
        low, high = interval(self.input_shape)
        triple = negative = None
        if self._triple:
            triple = registered(m, f"{name}_triple", Term(x + x.shift_left(1), 3 * low, 3 * high)).value
        if self._negative:
            negative = registered(m, f"{name}_negative", Term(-x, -high, -low)).value
        return Operand(registered(m, f"{name}_operand", Term(x, low, high)).value, triple, negative)

    def product(self, m: Module, name: str, operand: Operand, weight: Value) -> Term:
        """Return the product, ``latency`` cycles after its operand and ``weight_lead`` more after its weight; its
        registers are called ``<name>...``."""
        width = self.weight_shape.width
        if self.weight_lead:
            weight = Value.cast(registered(m, f"{name}_weight", Term(weight, *interval(self.weight_shape))).value)
        if self.wide is not None:
            return self.wide.product(m, name, operand.x, weight)
        if self._table:
            return registered(m, name, self._tabled(operand.x, weight))
        if not self._rows:
            product = Term(self._one_step(operand.x, weight), *self._bounds(0, width))
            return block_product(m, name, product) if self.blocks else registered(m, name, product)
        # Each row is the input times the weight's bits first..end.
        rows = [(first, end, self._row(operand, weight[first:end], end == width)) for first, end in self._digits]
        level = 0
        while len(rows) > 1 or level == 0:
            sums = []
            for index in range(0, len(rows), 2):
                first, end, value = rows[index]
                if index + 1 < len(rows):
                    middle, end, upper = rows[index + 1]
                    value = shifted_sum(value, upper, middle - first)
                full_name = name if len(rows) <= 2 else f"{name}_rows{level}_{index // 2}"
                sums.append((first, end, registered(m, full_name, Term(value, *self._bounds(first, end))).value))
            rows = sums
            level += 1
        return Term(rows[0][2], *self._bounds(0, width))

    def _tabled(self, x: Value, weight: Value) -> Term:
        """Return the product of two bits by two, a table of 16 entries for each of its bits."""
        shape = shape_of(*self.products)
        numbers = [[Const(pattern, s).value for pattern in range(4)] for s in (self.input_shape, self.weight_shape)]
        products = [numbers[0][pattern & 3] * numbers[1][pattern >> 2] for pattern in range(16)]
        index = Cat(x[:2], weight[:2])
        bits = []
        for place in range(shape.width):
            table = sum((product >> place & 1) << pattern for pattern, product in enumerate(products))
            bits.append(Const(table, 16).bit_select(index, 1))
        value: Value = Cat(*bits)
        return Term(value.as_signed() if shape.signed else value, *self.products)

    def _bounds(self, first: int, end: int) -> tuple[int, int]:
        """Return the least and the greatest product of an input and the weight's bits first..end as a number."""
        part = Shape(end - first, self.weight_shape.signed and end == self.weight_shape.width)
        products = [a * b for a in interval(self.input_shape) for b in interval(part)]
        return min(products), max(products)

    def _one_step(self, x: Value, weight: Value) -> Value:
        for factor, bit, shape in ((x, weight, self.weight_shape), (weight, x, self.input_shape)):
            if shape.width == 1:
                return Mux(bit[0], -factor if shape.signed else factor, 0)
        return x * weight

    def _row(self, operand: Operand, digit: Value, top: bool) -> Value:
        """Return the input times one digit."""
        x, signed = operand.x, top and self.weight_shape.signed
        if len(digit) == 1:
            return Mux(digit[0], operand.negative if signed else x, 0)
        if signed:
            assert operand.negative is not None, "a signed top digit needs -x"
            return Mux(
                digit[1], Mux(digit[0], operand.negative, operand.negative.shift_left(1)), Mux(digit[0], x, 0)
            )
        return Mux(digit[1], Mux(digit[0], operand.triple, x.shift_left(1)), Mux(digit[0], x, 0))
