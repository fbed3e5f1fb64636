"""Multiply-add-shift by tables of the multipliers' multiples in block RAM.

The folding's kind is "table", and its ``part`` the bits of a digit of the input. A digit's table has a word for
each of its values, for each channel: the multiplier times the digit. The addend is in the first and in the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.rom import lies_in_block
from hdl_lib.requantizers.requantize_multiples import Digit, MultiplesRequantizer
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, MemoryFile, Resources
from hwflow.cores.requantizers.lane_tables import LaneTable, LaneTables
from hwflow.ir.graph import IntArray, Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.types import Interval, IntType

DEPTHS = (512, 1024, 2048)  # words of tables: those of a block RAM of 36, 18 and 9 bits
_LONGEST = 62  # bits of a product, which 64 hold with an addend


class TabledProducts(LaneTables[MultiplyAddShift]):
    """Implements :class:`hdl_lib.requantizers.requantize_multiples.MultiplesRequantizer`."""

    kind: ClassVar[ProductForm] = ProductForm.TABLE

    @classmethod
    def foldings(
        cls, node: Node[RequantizeAttributes], form: MultiplyAddShift, options: Sequence[Folding]
    ) -> list[Folding]:
        """Return foldings with digits of as many bits as make tables of :data:`DEPTHS`, where these are worth a block
        RAM."""
        x: IntType = node.inputs[0].typed.element
        longest = max(x.bits + form.multiplier_bits, form.addend_type[0])
        if node.attributes.rounds > 1 or form.rounding != ShiftRounding.FLOOR or longest > _LONGEST:
            return []
        found = []
        for folding in cls.in_lanes(options):
            words = cls(node, folding, form).words
            for digit in sorted({(depth // words).bit_length() - 1 for depth in DEPTHS if depth >= 2 * words}):
                in_block = lies_in_block(form.multiplier_bits + digit, words << digit)
                if digit < x.bits and digit <= form.shift and in_block:
                    found.append(replace(folding, digit_bits=digit))
        return found

    def latency(self) -> int:
        return MultiplesRequantizer.latency_of(-(-self.input.bits // self.folding.digit_bits))

    def resources(self, decision: Decision, family: str) -> Resources:
        form, digits = self.form, self.digits()
        if decision.provisional:
            tables = Resources()
            for digit in digits:
                tables += costs.rom(family, self.words << digit.bits, digit.shape.width).times(self.lanes)
        else:
            tables, _ = self.tables_cost(family)
        return costs.multiples_requantizer(
            family, self.input, digits, form.shift, self.output, (form.low, form.high), self.lanes, self.words, tables,
            decision.depth,
        )

    def build(self, depth: int, name: str) -> Built:
        form, files = self.form, list[MemoryFile]()
        tables = self.lane_tables(name, files)
        core = MultiplesRequantizer(
            shape_of(self.input), shape_of(self.output), lanes=self.lanes, channels=self.channels, depth=depth,
            digits=self.digits(), tables=[each for lane in zip(*tables, strict=True) for each in lane],
            shift=form.shift, low=form.low, high=form.high, shared=self.words == 1,
        )
        return Built(core, [core.i], [core.o], files)

    def tables(self) -> list[LaneTable]:
        name = f"multiples_of_{self.folding.digit_bits}"
        return [
            LaneTable(f"{name}_{index}", self._words_of(digit.first, values), digit.shape.width)
            for index, (digit, values) in enumerate(zip(self.digits(), self._values(), strict=True))
        ]

    def registered(self, words: int) -> bool:
        return True

    def digits(self) -> list[Digit]:
        """Return the digits of the input, each with the shape of its table's words."""
        step, found = self.folding.digit_bits, []
        for index, values in enumerate(self._values()):
            ends = self._words_of(index * step, np.array([values.min(), values.max()]))
            shape = shape_of(IntType.holding(Interval(int(ends.min()), int(ends.max()))))
            found.append(Digit(index * step, len(values).bit_length() - 1, shape, max(index, 1) * step))
        return found

    def _values(self) -> list[IntArray]:
        """Return what each digit counts, by its bits as a number without sign."""
        step, bits = self.folding.digit_bits, self.input.bits
        found = [np.arange(1 << min(step, bits - first)) for first in range(0, bits, step)]
        if self.input.signed:
            found[-1] = (found[-1] ^ len(found[-1]) // 2) - len(found[-1]) // 2
        return found

    def _words_of(self, first: int, values: IntArray) -> IntArray:
        """Return a row for each channel of the words for a digit's values. Those of the first digit lack as many bits
        as a digit has: nothing is added to them, and the shift drops them."""
        step = self.folding.digit_bits
        multipliers, addends = (
            np.array(each[: self.own], dtype=np.int64)[:, np.newaxis]
            for each in (self.form.multipliers, self.form.addends)
        )
        last = (self.input.bits - 1) // step * step
        rows: IntArray = multipliers * values
        if first == 0:
            return rows + addends % (1 << last) >> step
        return rows + (addends >> last) if first == last else rows
