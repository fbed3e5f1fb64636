"""Multiply-add-shift by tables of the multipliers' multiples in block RAM.

The folding's kind is "table", and its ``part`` the bits of a digit of the input. A digit's table has a word for
each of its values, for each channel: the multiplier times the digit. The addend is in the first and in the last one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hdl_lib.arithmetic.multiplier import ProductForm
from hdl_lib.memories.rom import lies_in_block
from hdl_lib.requantizers.requantize_multiples import Digit, MultiplesRequantizer
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Built, Decision, Folding, MemoryFile, Resources
from hwflow.cores.requantizers.lane_tables import LaneTable, LaneTables
from hwflow.cores.requantizers.requantizer_core import form_of
from hwflow.ir.graph import IntArray, Node, Scratch
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.numerics.requantizers.shift_rounding import ShiftRounding
from hwflow.types import Interval, IntType

DEPTHS = (512, 1024, 2048)  # words of tables: those of a block RAM of 36, 18 and 9 bits
_LONGEST = 62  # bits of a word


class TabledProducts(LaneTables[MultiplyAddShift]):
    """Implements :class:`hdl_lib.requantizers.requantize_multiples.MultiplesRequantizer`."""

    kind: ClassVar[ProductForm] = ProductForm.TABLE

    @classmethod
    def foldings(cls, node: Node[RequantizeAttributes], lanes: int) -> list[Folding]:
        """Return foldings of so many lanes: digits of as many bits as make tables of :data:`DEPTHS`, where these are
        worth a block RAM."""
        form, found = form_of(node), []
        assert isinstance(form, MultiplyAddShift), "asked of that form alone"
        x: IntType = node.inputs[0].typed.element
        if form.rounding != ShiftRounding.FLOOR or x.bits + form.multiplier_bits > _LONGEST:
            return []
        words = cls(node, Folding(lanes, lanes, multiplier=cls.kind, part=1), form).words
        for digit in sorted({(depth // words).bit_length() - 1 for depth in DEPTHS if depth >= 2 * words}):
            in_block = lies_in_block(form.multiplier_bits + digit, words << digit)
            if digit < x.bits and digit <= form.shift and in_block:
                found.append(Folding(lanes, lanes, multiplier=cls.kind, part=digit))
        return found

    def latency(self) -> int:
        return MultiplesRequantizer.latency_of(len(self.tables()))

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

    def digits(self) -> list[Digit]:
        """Return the digits of the input, each with the shape of its table's words."""
        step, bits = self.folding.part, self.input.bits
        firsts = range(0, bits, step)
        return [
            Digit(first, min(step, bits - first), shape_of(_holding(table.rows)), max(first, step))
            for first, table in zip(firsts, self.tables(), strict=True)
        ]

    def tables(self) -> list[LaneTable]:
        return self.node.once(_Multiples).tables(self.folding.part, self.own)

    def registered(self, words: int) -> bool:
        return True


class _Multiples:
    """The tables of a node, of the first channels alone if all are alike."""

    def __init__(self, node: Node[RequantizeAttributes]) -> None:
        form = form_of(node)
        assert isinstance(form, MultiplyAddShift), "asked of that form alone"
        self._form = form
        self._input: IntType = node.inputs[0].typed.element
        self._tables: dict[tuple[int, int], list[LaneTable]] = Scratch()

    def tables(self, step: int, own: int) -> list[LaneTable]:
        """Return a table for each digit of ``step`` bits. The first one's words lack these bits: nothing is added to
        them, and the shift drops them."""
        if (step, own) not in self._tables:
            multipliers, addends = (
                np.array(each[:own], dtype=np.int64)[:, np.newaxis]
                for each in (self._form.multipliers, self._form.addends)
            )
            firsts = range(0, self._input.bits, step)
            last, found = firsts[-1], []
            for first in firsts:
                values = np.arange(1 << min(step, self._input.bits - first))
                if first == last and self._input.signed:
                    values -= len(values) * (values >= len(values) // 2)
                rows = multipliers * values
                if first == 0:
                    rows = rows + addends % (1 << last) >> step
                elif first == last:
                    rows += addends >> last
                found.append(LaneTable(f"multiples_{first}_of_{step}", rows, _holding(rows).bits))
            self._tables[step, own] = found
        return self._tables[step, own]


def _holding(rows: IntArray) -> IntType:
    return IntType.holding(Interval(int(rows.min()), int(rows.max())))
