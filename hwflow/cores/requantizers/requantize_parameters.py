"""Parameters of multiply-add-shift requantizers as stored in tables, for all foldings of a node at once.

A search needs the cost of every number of lanes: what follows from the parameters of a channel is computed once and
kept with the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.wide_product import parts_of
from hwflow.cores import costs
from hwflow.cores.amaranth_shapes import shape_of
from hwflow.cores.operator import Resources
from hwflow.cores.requantizers.requantizer_core import form_of
from hwflow.ir.graph import Node, Scratch
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import IntType


@dataclass(frozen=True)
class ParameterBits:
    """The bits of the channels' multipliers and addends, each [channels, bits], lowest first."""

    multipliers: costs.BitArray
    addends: costs.BitArray

    def table(self, lanes: int) -> costs.BitArray:
        """Return the table [words, bits] of ``lanes``, at most the channels; surplus lanes have zeros."""
        return _words(np.concatenate([self.multipliers, self.addends], axis=1), lanes)

    def addends_table(self, lanes: int) -> costs.BitArray:
        """Return the addends of these words."""
        return _words(self.addends, lanes)

    def addend_zeros(self, lanes: int) -> list[int]:
        """Return for each lane the number of trailing bits of its addends that are 0 in all words."""
        words = self.addends_table(lanes)
        ones: npt.NDArray[np.bool_] = np.logical_or.reduce(words.reshape(len(words), lanes, -1))
        # Where all addends are 0 nothing is added.
        found: list[int] = np.where(ones.any(axis=1), ones.argmax(axis=1), costs.NOTHING).tolist()
        return found


def _words(rows: costs.BitArray, lanes: int) -> costs.BitArray:
    words = -(-len(rows) // lanes)
    padded = np.zeros((words * lanes, rows.shape[1]), dtype=rows.dtype)
    padded[: len(rows)] = rows
    return padded.reshape(words, -1)


class ChannelParameters:
    """The multipliers and addends of a node's multiply-add-shift. ``digits`` can represent all multipliers."""

    def __init__(self, node: Node[RequantizeAttributes]) -> None:
        form = form_of(node)
        assert isinstance(form, MultiplyAddShift), "asked of that form alone"
        self.form = form
        self.input: IntType = node.inputs[0].typed.element
        held = node.attributes.held
        if held is None:
            self.multiplier, self.addend = IntType(*form.multiplier_type), IntType(*form.addend_type)
            self.digits = Digits.of((min(0, *form.multipliers), max(0, *form.multipliers)))
        else:
            self.multiplier, self.addend = IntType(*held.multiplier), IntType(*held.addend)
            self.digits = Digits.of((self.multiplier.min, self.multiplier.max))
        self._bits: dict[tuple[bool, int], ParameterBits] = Scratch()
        self._rows: dict[tuple[str, int, int], Resources] = Scratch()
        self._fixed: dict[tuple[int, int], Counter[IntType]] = Scratch()

    def bits(self, channels: int, *, digits: bool) -> ParameterBits:
        """Return the bits of the first ``channels``; ``digits``: the table stores digits of multipliers."""
        if (digits, channels) not in self._bits:
            multipliers: Sequence[int] = self.form.multipliers[:channels]
            width = self.multiplier.bits
            if digits:
                multipliers, width = [self.digits.stored(each) for each in multipliers], self.digits.bits
            addends = _bits(self.form.addends[:channels], self.addend.bits)
            self._bits[digits, channels] = ParameterBits(_bits(multipliers, width), addends)
        return self._bits[digits, channels]

    def row_products(self, family: str, channels: int, lanes: int) -> Resources:
        """Return the products in look-up tables of ``lanes``, at most the first ``channels``, with tables of at most
        :data:`hwflow.cores.costs.FEW` words."""
        key = family, channels, lanes
        if key not in self._rows:
            columns = lane_columns(self.form.multipliers[:channels], lanes)
            self._rows[key] = costs.digit_products(family, self.input, self.digits, columns, range(lanes))
        return self._rows[key]

    def fixed_factors(self, channels: int, part: int) -> Counter[IntType]:
        """Count the parts of the first channels' multipliers that are neither 0 nor plus or minus a power of two."""
        if (channels, part) not in self._fixed:
            parts = parts_of(shape_of(self.multiplier), part)
            constants = [each.of_number(number) for number in self.form.multipliers[:channels] for each in parts]
            ends = Counter((c < 0, c.bit_length()) for c in constants if abs(c) & (abs(c) - 1))
            self._fixed[channels, part] = Counter(
                {IntType(bits + signed, signed): count for (signed, bits), count in ends.items()}
            )
        return self._fixed[channels, part]


def _bits(numbers: Sequence[int], width: int) -> costs.BitArray:
    mask = (1 << width) - 1
    return costs.bits_of_words([int(number) & mask for number in numbers], width)


def lane_columns(multipliers: Sequence[int], lanes: int) -> list[tuple[int, ...]]:
    """Return for each of ``lanes`` its multiplier in every word; surplus lanes get zeros."""
    surplus = -len(multipliers) % lanes
    padded = (*multipliers, *[0] * surplus)
    return [padded[lane::lanes] for lane in range(lanes)]
