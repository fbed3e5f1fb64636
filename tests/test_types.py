"""Integer types: the narrowest one that holds an interval."""

from __future__ import annotations

import pytest

from hwflow.types import Interval, IntType


@pytest.mark.parametrize(
    ("lo", "hi", "bits", "signed"),
    [
        (0, 0, 1, False), (0, 255, 8, False), (0, 256, 9, False), (-1, 0, 1, True), (-128, 127, 8, True),
        (-128, 128, 9, True), (-129, 127, 9, True), (-128, -128, 8, True), (-128, -127, 8, True), (-1, -1, 1, True),
    ],
)
def test_the_narrowest(lo: int, hi: int, bits: int, signed: bool) -> None:
    assert IntType.holding(Interval(lo, hi)) == IntType(bits, signed)
