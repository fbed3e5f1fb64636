"""Two products that share a factor in one multiplier block: ``x * (high * 2**shift + low)``.

The product of an input with two packed weights is ``high product * 2**shift + low product``. Its lower ``shift`` bits
are the low product, if they hold it with its sign; the bits above are the high product, less one if the low product is
negative (the principle: Y. Fu et al., "Deep Learning with INT8 Optimization on Xilinx Devices", Xilinx WP486, 2016).
The same holds for sums of such products, so that as many products as ``shift`` leaves room for are added before they
are split; the missing ones become carry inputs of the adders behind.

A packed operand consists of bits of the table, without logic: at the bottom the low weight, sign-extended to ``shift``
bits, above it the high weight, less one if the low one is negative (:func:`borrowed`), as tables store it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Shape, Value

from hdl_lib.arithmetic.adder_tree import Term, adder_tree, registered, shape_of, tree_levels
from hdl_lib.arithmetic.carried_sum import Carried, carried_tree
from hdl_lib.arithmetic.multiplier import Multiplier, Operand, interval
from hdl_lib.arithmetic.wide_product import product_range

Range = tuple[int, int]

# The widest operands with sign of a multiplier block: the packed weights, the input. Lattice FPGA-TN-02205 (ECP5
# sysDSP), FPGA-TN-02007 (iCE40 DSP), AMD UG479 (7 series DSP48E1), UG579 (UltraScale DSP48E2).
BLOCKS = {"MULT18X18D": (18, 18), "SB_MAC16": (16, 16), "DSP48E1": (25, 18), "DSP48E2": (27, 18)}
WIDEST_INPUT = 18  # of all of them


def borrowed(high: Any, low: Any) -> Any:
    """Return the table's entry for the weight ``high`` beside ``low`` (numbers, or arrays of them)."""
    return high - (low < 0)


@dataclass(frozen=True)
class Packing:
    """The layout of two weights within ``weights`` in a multiplier block, for inputs within ``inputs``.

    ``shift``: bits of a low product, or of a sum of ``2**levels`` of them. Inputs outside ``inputs`` are correct beside
    two weights of zero only.
    """

    inputs: Range
    weights: Range
    shift: int
    levels: int

    @classmethod
    def of(cls, inputs: Range, weights: Range, lanes: int, block: tuple[int, int]) -> Packing | None:
        """Return the packing for sums of ``lanes`` products that splits as late as ``block`` (see :data:`BLOCKS`)
        allows; None if two products do not fit it, or all are zero."""
        if _signed_bits(inputs) > block[1]:
            return None
        if inputs == (0, 0) or weights == (0, 0):
            return None
        for levels in reversed(range(tree_levels(lanes) + 1)):
            terms = min(lanes, 1 << levels)
            low, high = (terms * bound for bound in product_range(inputs, weights))
            packing = cls(inputs, weights, _signed_bits((low, high)), levels)
            if _signed_bits(packing.operand) <= block[0]:
                return packing
        return None

    @property
    def low_shape(self) -> Shape:
        """Return the shape of the low weight in the table."""
        return shape_of(*self.weights)

    @property
    def high_shape(self) -> Shape:
        """Return the shape of the high weight in the table, after the borrow."""
        return shape_of(self.weights[0] - (self.weights[0] < 0), self.weights[1])

    @property
    def bits(self) -> int:
        """Return the bits of two weights in the table, the low one in the least significant bits."""
        return self.low_shape.width + self.high_shape.width

    @cached_property
    def operand(self) -> Range:
        """Return the least and the greatest pattern ``stored high weight * 2**shift + lower bits`` that the table may
        hold, whether or not there are weights for it."""
        low, high = interval(self.high_shape)
        return low << self.shift, (high + 1 << self.shift) - 1

    @property
    def operand_shape(self) -> Shape:
        """Return the shape of the packed operand."""
        return Shape(self.shift + self.high_shape.width, self.high_shape.signed)

    @property
    def products(self) -> Range:
        """Return the least and the greatest product of an input and a weight."""
        return product_range(self.inputs, self.weights)

    @property
    def packed_products(self) -> Range:
        """Return the least and the greatest product of an input and two packed weights."""
        low, high = self.weights
        return product_range(self.inputs, ((low << self.shift) + low, (high << self.shift) + high))

    def packed(self, weights: Value) -> Value:
        """Return the operand for :attr:`bits` of the table: wiring only."""
        low, high = weights[: self.low_shape.width], weights[self.low_shape.width :]
        missing = self.shift - len(low)
        fill = low[-1].replicate(missing) if self.low_shape.signed else Const(0, missing)
        operand = Cat(low, fill, high)
        return operand.as_signed() if self.high_shape.signed else operand


def _signed_bits(ends: Range) -> int:
    """Return the bits with sign that hold an interval."""
    return max(bound.bit_length() if bound >= 0 else (~bound).bit_length() for bound in ends) + 1


@dataclass(frozen=True)
class PackedSum:
    """``sum over lanes of input * weight`` for two rows of weights.

    Timing: the product's latency, one for each level of the adder tree, and one more for the last carry unless an
    accumulator takes it (``accumulated``); one pair of sums per cycle.
    """

    packing: Packing
    multiplier: Multiplier
    lanes: int
    accumulated: bool

    @property
    def products(self) -> Range:
        """Return the least and the greatest product of either row."""
        return self.packing.products

    @property
    def latency(self) -> int:
        """Return the cycles from operands to the sums; weights come the multiplier's ``weight_lead`` earlier."""
        return self.multiplier.latency + tree_levels(self.lanes) + int(not self.accumulated)

    def sums(
        self, m: Module, names: tuple[str, str], operands: Sequence[Operand], weights: Sequence[Value], limit: int
    ) -> tuple[Term, tuple[Term, Value | None]]:
        """Return the low row's sum and the high row's modulo ``2**limit``, the latter with its pending carry if
        ``accumulated``; ``weights``: :attr:`Packing.bits` a lane. Registers are called ``product<low name>_<lane>``,
        ``packed<low name>_...``, ``carry<high name>_...`` and ``sum<name>_...``."""
        width = shape_of(*self.packing.packed_products).width
        products = []
        for lane, (operand, pair) in enumerate(zip(operands, weights, strict=True)):
            term = self.multiplier.product(m, f"product{names[0]}_{lane}", operand, self.packing.packed(pair))
            value = Value.cast(term.value)
            bits = value[: min(width, len(value))]
            signed = min(self.packing.packed_products) < 0
            products.append(Term(bits.as_signed() if signed else bits, *self.packing.packed_products))
        return split_sums(m, names, self.packing, products, limit, self.accumulated)


def split_sums(
    m: Module, names: tuple[str, str], packing: Packing, products: Sequence[Term], limit: int, accumulated: bool
) -> tuple[Term, tuple[Term, Value | None]]:
    """Return the sums of the low and of the high products of packed ``products``, in the form of
    :meth:`PackedSum.sums`, ``tree_levels(len(products))`` cycles later, or without ``accumulated`` one more."""
    group = 1 << packing.levels
    lows, highs = [], []
    for index in range(0, len(products), group):
        together = products[index : index + group]
        total = adder_tree(m, f"packed{names[0]}_{index // group}", together)
        value = Value.cast(total.value)
        for level in range(tree_levels(len(together)), packing.levels):  # a last group of fewer products
            total = registered(m, f"packed{names[0]}_{index // group}_{level}", total)
            value = Value.cast(total.value)
        low, high = (len(together) * bound for bound in packing.products)
        lows.append(Term(value[: packing.shift].as_signed(), low, high))
        upper = value[packing.shift :]
        if value.shape().signed:
            upper = upper.as_signed()
        highs.append(Carried(Term(upper, low - 1, high), value[packing.shift - 1]))
    low_sum = adder_tree(m, f"sum{names[0]}", lows, limit)
    high_sum = carried_tree(m, names[1], highs, limit)
    if accumulated:
        return low_sum, (high_sum.term, high_sum.carry)
    return registered(m, f"sum{names[0]}_exact", low_sum, limit), (
        high_sum.settled(m, f"sum{names[1]}_exact", limit), None,
    )
