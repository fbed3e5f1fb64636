"""Sums of multiples of a few bits: every bit is a table of all of them; equal ones are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from hdl_lib.arithmetic.signed_sum import Summand
from hwflow.cores.operator import Resources
from hwflow.types import IntType

TABLE = 4  # inputs of a look-up table

Column = tuple[int, ...]  # a bit's value for each of the inputs'
Part = tuple[tuple[int, ...], bool]  # a number for each of the inputs', and whether it is to be subtracted


@dataclass(frozen=True)
class NarrowSum:
    """The cost of its tree, and the number of different changing bits of the sum."""

    resources: Resources
    bits: int


def narrow_sum(
    inputs: Sequence[IntType], summands: Sequence[Summand], levels: int, width: int
) -> NarrowSum | None:
    """The sum modulo ``2**width`` of ``summands`` (:func:`hdl_lib.arithmetic.signed_sum.signed_sum`; their keys are
    places in ``inputs``), if all inputs together are so few bits that a table takes them, else None."""
    if sum(x.bits for x in inputs) > TABLE:
        return None
    return _narrow_sum(tuple(inputs), tuple((s.key, s.shift, s.negative) for s in summands), levels, width)


@cache
def _narrow_sum(
    inputs: tuple[IntType, ...], summands: tuple[tuple[int, int, bool], ...], levels: int, width: int
) -> NarrowSum:
    values = list(product(*(range(x.min, x.max + 1) for x in inputs)))
    parts: list[Part] = [
        (tuple(value[key] << shift for value in values), negative) for key, shift, negative in summands
    ]
    made, total = _columns(parts, width), Resources()
    for level in range(levels):
        parts = [_sum(parts[index : index + 2]) for index in range(0, len(parts), 2)]
        if level + 1 == levels:
            parts = [(tuple(-number for number in numbers) if minus else numbers, False) for numbers, minus in parts]
        columns = _columns(parts, width)
        total += Resources(lut=len(columns - made), ff=len(columns))
        made = columns
    return NarrowSum(total, len(made))


def _sum(pair: Sequence[Part]) -> Part:
    """A difference where one of two is to be subtracted."""
    if len(pair) == 1:
        return pair[0]
    (a, minus), (b, other) = pair
    if minus == other:
        return tuple(x + y for x, y in zip(a, b, strict=True)), minus
    return tuple(y - x if minus else x - y for x, y in zip(a, b, strict=True)), False


def _columns(parts: Sequence[Part], width: int) -> set[Column]:
    """The bits of all numbers that change."""
    columns = {tuple(number >> bit & 1 for number in numbers) for numbers, _ in parts for bit in range(width)}
    return {column for column in columns if len(set(column)) > 1}
