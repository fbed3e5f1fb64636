"""Products of an input with multipliers from a table that is looked at (:mod:`hdl_lib.multiplier`, the form "lut")."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.ops.costs.basics import chain
from hwflow.ops.operator import Resources
from hwflow.types import IntType


def lut_product(family: str, x: IntType, w: IntType, values: Sequence[int]) -> Resources:
    """A product with one of the ``values``, with the multiples of the input it selects from: a row of tables for each
    two bits of the multiplier, one a bit where they choose among two multiples, none where there is but one; adders
    between rows that are not always 0."""
    rows, total = [], Resources(ff=x.bits)
    triple = negative = False
    for first in range(0, w.bits, 2):
        end = min(first + 2, w.bits)
        digits = {value >> first & (1 << end - first) - 1 for value in values}
        tables = 0 if len(digits) == 1 else end - first if len(digits) > 2 else 1
        total += Resources(lut=x.bits * tables)
        signed = w.signed and end == w.bits
        triple |= 3 in digits and not signed
        negative |= signed and bool(digits & ({1} if end - first == 1 else {2, 3}))
        rows.append((first, end, digits != {0}))
    total += Resources(lut=chain(family, x.bits + 2), ff=x.bits + 2).times(int(triple))
    total += Resources(lut=chain(family, x.bits + 1), ff=x.bits + 1).times(int(negative))
    if len(rows) == 1:
        return total + Resources(ff=x.bits + w.bits)
    while len(rows) > 1:
        sums = []
        for index in range(0, len(rows), 2):
            first, end, there = rows[index]
            if index + 1 < len(rows):
                middle, end, above = rows[index + 1]
                if there and above:
                    total += Resources(lut=chain(family, x.bits + end - middle + 1))
                there = there or above
            total += Resources(ff=(x.bits + end - first) * there)
            sums.append((first, end, there))
        rows = sums
    return total


def table_words(values: Sequence[int], lanes: int, width: int) -> list[int]:
    """The table's words: ``lanes`` values of ``width`` bits each, the first in the low bits; 0 in lanes left over."""
    words = []
    for start in range(0, len(values), lanes):
        block = values[start : start + lanes]
        words.append(sum((value & (1 << width) - 1) << lane * width for lane, value in enumerate(block)))
    return words
