"""Bits that a lane reads and gives, and the lanes of pools: by hand."""

from __future__ import annotations

import pytest

from hwflow.cores.operator import Folding, Resources
from hwflow.cores.streams.lanes import used_bits, zero_bits
from hwflow.cores.windows.group_pool import divisors, group_foldings
from hwflow.ir.integer_functions import Function, Shifted, Simple, Times
from hwflow.types import IntType

U3, U4, U8, I8 = IntType(3, False), IntType(4, False), IntType(8, False), IntType(8, True)


@pytest.mark.parametrize(
    ("function", "element", "output", "bits"),
    [
        (Simple("add"), I8, U4, 4),  # the lowest bits of a sum follow from the lowest ones
        (Simple("add"), U4, I8, 4),
        (Simple("less"), I8, U4, 8),  # a comparison looks at all
        (Times(12), U8, U4, 2),  # times 4: two bits of the result are 0
        (Times(12), U8, I8, 6),
        (Times(16), U8, U3, 0),
        (Times(3), U3, U8, 3),
    ],
)
def test_bits_that_the_result_depends_on(function: Function, element: IntType, output: IntType, bits: int) -> None:
    assert used_bits(function, element, output) == bits


@pytest.mark.parametrize(
    ("function", "constants", "bits"),
    [
        (Times(12), (None,), 2), (Times(-8), (None,), 3), (Times(5), (None,), 0), (Times(0), (None,), 0),
        (Shifted(True, 8), (None, 3), 3), (Shifted(True, 8), (None, None), 0), (Shifted(False, 8), (None, 3), 0),
        (Simple("add"), (None, 4), 0),
    ],
)
def test_bits_that_are_always_0(function: Function, constants: tuple[int | None, ...], bits: int) -> None:
    assert zero_bits(function, constants) == bits


def test_lanes_of_pools() -> None:
    """12 pixels of 4 channels, groups of 6: parts of a pixel; 2 and 3 pixels of a group; one group and both."""
    assert [divisors(n) for n in (1, 6, 7)] == [[1], [1, 2, 3, 6], [1, 7]]
    found = group_foldings((12, 4), 6)
    assert found == [Folding(a, b) for a, b in ((1, 1), (2, 2), (4, 4), (8, 4), (12, 4), (24, 4), (48, 8))]
    assert group_foldings((12, 4), 6, 3) == [Folding(1, 3), Folding(2, 6), Folding(4, 12)]
    assert group_foldings((6, 1), 1) == [Folding(n, n) for n in (1, 2, 3, 6)]


def test_sums_of_resources() -> None:
    some, more = Resources(1, 2, 3, 4), Resources(10, 20, 30, 40)
    assert some + more == (11, 22, 33, 44)
    assert some.times(3) == (3, 6, 9, 12)
