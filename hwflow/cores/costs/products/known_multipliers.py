"""Products of an input with multipliers from a table that is looked at (:mod:`hdl_lib.arithmetic.multiplier`, the form
"lut")."""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.cores.costs.products.row_sums import multiple_product
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def lut_product(family: str, x: IntType, w: IntType, values: Sequence[int]) -> Resources:
    """A product with one of the ``values``, with the multiples of the input it selects from. A single one is in a
    register that is 0 behind reset."""
    return multiple_product(family, x, w, (*values, 0) if len(values) == 1 else tuple(values))


def table_words(values: Sequence[int], lanes: int, width: int) -> list[int]:
    """The table's words: ``lanes`` values of ``width`` bits each, the first in the low bits; 0 in lanes left over."""
    words = []
    for start in range(0, len(values), lanes):
        block = values[start : start + lanes]
        words.append(sum((value & (1 << width) - 1) << lane * width for lane, value in enumerate(block)))
    return words
