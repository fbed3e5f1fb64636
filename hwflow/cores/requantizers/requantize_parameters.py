"""Parameters of multiply-add-shift requantizers as tables have them, for all foldings of a node at once.

A search asks for the cost of every number of lanes: what follows from the parameters of a channel is computed once and
kept with the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hdl_lib.arithmetic.digit_product import Digits
from hwflow.cores import costs
from hwflow.cores.operator import Resources
from hwflow.ir.graph import Node
from hwflow.numerics.requantizers.multiply_add_shift import MultiplyAddShift
from hwflow.types import IntType


@dataclass(frozen=True)
class ParameterBits:
    """Bits of the channels' multipliers and addends, each [channels, bits], the lowest first."""

    multipliers: costs.BitArray
    addends: costs.BitArray

    def table(self, lanes: int) -> costs.BitArray:
        """Those of a table [words, bits] of so many lanes, at most the channels; surplus lanes have zeros."""
        return _words(np.concatenate([self.multipliers, self.addends], axis=1), lanes)

    def addends_table(self, lanes: int) -> costs.BitArray:
        """The addends of such words alone."""
        return _words(self.addends, lanes)

    def addend_zeros(self, lanes: int) -> list[int]:
        """For each lane how many bits at the low end of its addends are 0 in all words."""
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


def parameter_bits(node: Node, form: MultiplyAddShift, digits: Digits | None, channels: int) -> ParameterBits:
    """Of the first ``channels``; ``digits``: those in which a table has the multipliers, if any."""
    known: dict[tuple[Digits | None, int], ParameterBits] = node.attributes.setdefault("parameter_bits", {})
    if (digits, channels) not in known:
        multipliers: Sequence[int] = form.multipliers[:channels]
        bits = IntType(*form.multiplier_type).bits
        if digits is not None:
            multipliers, bits = [digits.stored(multiplier) for multiplier in multipliers], digits.bits
        addends = _bits(form.addends[:channels], IntType(*form.addend_type).bits)
        known[digits, channels] = ParameterBits(_bits(multipliers, bits), addends)
    return known[digits, channels]


def _bits(numbers: Sequence[int], width: int) -> costs.BitArray:
    mask = (1 << width) - 1
    return costs.bits_of_words([int(number) & mask for number in numbers], width)


def row_products(
    node: Node, form: MultiplyAddShift, digits: Digits, family: str, x: IntType, channels: int, lanes: int
) -> Resources:
    """Products of look-up tables of ``lanes`` lanes, at most as many as the first ``channels``, whose tables have at
    most :data:`hwflow.cores.costs.FEW` words."""
    known: dict[tuple[str, int], dict[int, Resources]] = node.attributes.setdefault("row_products", {})
    if (family, channels) not in known:
        offered = [n for n in costs.useful_lanes(channels) if -(-channels // n) <= costs.FEW]
        columns = {n: lane_columns(form.multipliers[:channels], n) for n in offered}
        different = list(dict.fromkeys(column for each in columns.values() for column in each))
        made = dict(zip(different, costs.row_products(family, x, digits, different), strict=True))
        known[family, channels] = {n: sum((made[c] for c in each), Resources()) for n, each in columns.items()}
    return known[family, channels][lanes]


def lane_columns(multipliers: Sequence[int], lanes: int) -> list[tuple[int, ...]]:
    """For each of so many lanes its multiplier in every word; surplus lanes get zeros."""
    surplus = -len(multipliers) % lanes
    padded = (*multipliers, *[0] * surplus)
    return [padded[lane::lanes] for lane in range(lanes)]
