"""Rows of a table in a read-only memory."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.cores.costs.basics import MOST_KNOWN_BITS, chain, count_up, loop
from hwflow.cores.costs.changing import changing_bits
from hwflow.cores.costs.memory import filled_rom, queue, rom
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def table_rows(
    family: str, number: IntType, rows: int, words: Sequence[int], width: int, blocks: int, depth: int
) -> Resources:
    """Estimate a register for the ``number``, of this type (a signed one may count from the end), an address of the
    row's beat, the table of ``words`` of ``width`` bits, a queue. ``blocks``: beats of a row."""
    row, address = (rows - 1).bit_length(), (len(words) - 1).bit_length()
    if len(words) * width <= MOST_KNOWN_BITS:
        total = filled_rom(family, words, width)
    else:
        total = rom(family, len(words), width, changing_bits(words, width))
    total += Resources(lut=3, ff=3 + row) + queue(family, width, depth)
    if number.signed:
        total += Resources(lut=chain(family, row))
    if blocks == 1:
        return total
    total += Resources(lut=4, ff=2 + address) + loop(blocks)
    if rows & (rows - 1) == 0:
        return total + count_up(blocks) + Resources(ff=(blocks - 1).bit_length())
    return total + Resources(lut=2 * chain(family, address), ff=2 * address)
