"""Lanes of pools and sums of resources: by hand."""

from __future__ import annotations

from hwflow.cores.operator import Folding, Resources
from hwflow.cores.windows.group_pool import divisors, group_foldings


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
