"""Requantizers whose products are read from tables (:mod:`hdl_lib.requantizers.requantize_multiples`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hdl_lib.arithmetic.multiplier import interval
from hdl_lib.requantizers.requantize_multiples import Digit, MultiplesRequantizer
from hwflow.cores.costs.basics import count_up
from hwflow.cores.costs.memory import queue
from hwflow.cores.costs.requantizers.multiply_add_shift_cost import CONTROL, Whole, result_of, tree_of
from hwflow.cores.operator import Resources
from hwflow.types import IntType


def multiples_requantizer(
    family: str, x: IntType, digits: Sequence[Digit], shift: int, out: IntType, limits: tuple[int, int], lanes: int,
    words: int, tables: Resources, depth: int,
) -> Resources:
    """Estimate the input in a register, the ``tables`` of all lanes, each with ``words`` for a value of its digit, the
    sums of their words, limits, the queue."""
    each = _lane(family, x, tuple(digits), shift, out, limits)
    count = (words - 1).bit_length()
    control = count_up(words) + CONTROL + Resources(ff=count + MultiplesRequantizer.latency_of(len(digits)) - 7)
    return tables + each.times(lanes) + control + queue(family, lanes * out.bits, depth)


@cache
def _lane(
    family: str, x: IntType, digits: tuple[Digit, ...], shift: int, out: IntType, limits: tuple[int, int]
) -> Resources:
    terms = []
    for digit in digits:
        low, high = interval(digit.shape)
        terms.append(Whole(low << digit.place, high << digit.place, digit.place))
    whole = terms[0]
    for term in terms[1:]:
        whole = whole.plus(term)
    total = tree_of(family, terms, whole.width, shift)
    return total + Resources(ff=x.bits) + result_of(family, whole, shift, False, out, limits)
