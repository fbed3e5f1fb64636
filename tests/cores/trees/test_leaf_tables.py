"""Which trees share a table of leaves: as many as make the fewest block RAMs for each, then the fewest sums."""

from __future__ import annotations

from hwflow.cores.trees.leaf_tables import _address


def test_addresses() -> None:
    """By hand: two trees of five levels take 10 bits, 1,024 words of 18 bits, the two blocks that each would take
    alone with 512 words of 36 of which it fills 32. No other number of levels wins by more."""
    assert [_address(levels) for levels in range(1, 11)] == [9, 9, 9, 9, 10, 9, 9, 9, 9, 10]
