"""Functions of integers: results by hand or by Python, intervals against every combination of operands."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from math import trunc

import numpy as np
import pytest

from hwflow.ir.integer_functions import (
    MAXIMUM,
    MINIMUM,
    Function,
    Magnitude,
    Modulus,
    Quotient,
    Remainder,
    Shifted,
    Simple,
    Times,
)
from hwflow.ir.wrapping import wrapped, wrapped_interval
from hwflow.types import Interval, IntType


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else trunc(a / b)


def remainder(a: int, b: int) -> int:
    return a - b * quotient(a, b) if b else 0


def modulus(a: int, b: int) -> int:
    return a % b if b else 0


def shifted(left: bool, bits: int) -> Callable[[int, int], int]:
    def shift(x: int, by: int) -> int:
        if 0 <= by < bits:
            return x * 2**by if left else x // 2**by
        return 0 if left or x >= 0 else -1

    return shift


FUNCTIONS: list[tuple[Function, Callable[..., int]]] = [
    (Simple("add"), operator.add),
    (Simple("and"), operator.and_),
    (Simple("equal"), operator.eq),
    (Simple("greater"), operator.gt),
    (Simple("greater_or_equal"), operator.ge),
    (Simple("less"), operator.lt),
    (Simple("less_or_equal"), operator.le),
    (Simple("not"), operator.invert),
    (Simple("not_equal"), operator.ne),
    (Simple("or"), operator.or_),
    (Simple("sub"), operator.sub),
    (Simple("where"), lambda condition, a, b: a if condition else b),
    (Simple("wrap"), lambda a: a),
    (Simple("xor"), operator.xor),
    (MAXIMUM, max),
    (MINIMUM, min),
    (Magnitude(), abs),
    (Times(-7), lambda a: -7 * a),
    (Shifted(True, 4), shifted(True, 4)),
    (Shifted(False, 4), shifted(False, 4)),
    (Quotient(), quotient),
    (Remainder(), remainder),
    (Modulus(), modulus),
]
# Of these the interval is a bound: they take values in between, not always both ends.
LOOSE = {Simple("and"), Simple("or"), Simple("xor"), Remainder(), Modulus()}
RANGES = [(-5, 6), (0, 7), (-8, -3), (3, 3), (0, 0), (-1, 1), (1, 9), (-9, 0), (-2, 5)]


def combinations(function: Function) -> Sequence[tuple[Interval, ...]]:
    ranges = [Interval(*ends) for ends in RANGES]
    if function == Simple("where"):
        return [(Interval(*c), a, b) for c in ((0, 1), (0, 0), (1, 1)) for a in ranges for b in ranges]
    return list(itertools.product(ranges, repeat=function.operands))


@pytest.mark.parametrize(("function", "meaning"), FUNCTIONS, ids=[str(function) for function, _ in FUNCTIONS])
def test_results_and_intervals(function: Function, meaning: Callable[..., int]) -> None:
    for ranges in combinations(function):
        places = list(itertools.product(*(range(r.lo, r.hi + 1) for r in ranges)))
        wanted = [int(meaning(*place)) for place in places]
        found = function.evaluate([np.array(column, dtype=np.int64) for column in zip(*places, strict=True)])
        assert found.tolist() == wanted, ranges
        interval = function.interval(ranges)
        assert interval.lo <= min(wanted) and max(wanted) <= interval.hi, ranges
        if function not in LOOSE:
            assert (interval.lo, interval.hi) == (min(wanted), max(wanted)), ranges


@pytest.mark.parametrize("element", [IntType(4, True), IntType(4, False), IntType(1, False)])
def test_wrapping(element: IntType) -> None:
    """By counting up, around and around."""
    values = np.arange(-50, 51)
    expected = []
    here = element.min
    while len(expected) < 200:  # from a multiple of 16 below -50
        expected.append(here)
        here = element.min if here == element.max else here + 1
    start = -64 + (element.min % (1 << element.bits) if element.signed else 0)
    wanted = [expected[v - start] for v in values.tolist()]
    assert wrapped(values, element).tolist() == wanted
    for low, high in itertools.combinations_with_replacement(range(-40, 41), 2):
        there = [wanted[v + 50] for v in range(low, high + 1)]
        interval = wrapped_interval(Interval(low, high), element)
        assert interval.lo <= min(there) and max(there) <= interval.hi
        if there == list(range(there[0], there[0] + len(there))):
            assert (interval.lo, interval.hi) == (there[0], there[-1])


def test_products_beyond_64_bits_wrap_to_the_right_32() -> None:
    a, b = np.array([0xFFFF_FFFF]), np.array([0xFFFF_FFFE])
    assert wrapped(a * b, IntType(32, False)).tolist() == [0xFFFF_FFFF * 0xFFFF_FFFE % 2**32]


@pytest.mark.parametrize(
    ("function", "operand", "result", "bits"),
    [
        (Simple("add"), 8, 4, 4),  # the lowest bits of a sum follow from the lowest ones
        (Simple("add"), 4, 8, 4),
        (Simple("less"), 8, 4, 8),  # a comparison looks at all
        (Times(12), 8, 4, 2),  # times 4: two bits of the result are 0
        (Times(12), 8, 8, 6),
        (Times(16), 8, 3, 0),
        (Times(3), 3, 8, 3),
    ],
)
def test_bits_that_the_result_depends_on(function: Function, operand: int, result: int, bits: int) -> None:
    assert function.used_bits(operand, result) == bits


@pytest.mark.parametrize(
    ("function", "constants", "bits"),
    [
        (Times(12), (None,), 2), (Times(-8), (None,), 3), (Times(5), (None,), 0), (Times(0), (None,), 0),
        (Shifted(True, 8), (None, 3), 3), (Shifted(True, 8), (None, None), 0), (Shifted(False, 8), (None, 3), 0),
        (Simple("add"), (None, 4), 0),
    ],
)
def test_bits_that_are_always_0(function: Function, constants: tuple[int | None, ...], bits: int) -> None:
    assert function.zero_bits(constants) == bits
