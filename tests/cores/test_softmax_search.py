"""The fewest digits of a quotient that its steps need: every fraction of small numbers gives the same."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from hwflow.cores.streams.softmax_row import Search, search_of
from hwflow.numerics.requantizers.step_function import StepFunction

FRACTION = 6
END = (4 << FRACTION) - 1  # of quotients below 2


def rounded(a: int, b: int, digits: int) -> int:
    """The quotient with so many bits below the point, rounded to odd."""
    whole, rest = divmod(a << digits, b)
    return 2 * whole + (rest > 0)


def found(search: Search, a: int, b: int) -> int:
    """What the core does: a quotient of 1 is all ones."""
    quotient = min(rounded(a, b, search.digits), (2 << search.digits) - 1)
    return search.offset + bisect_right(search.thresholds, quotient)


@pytest.mark.parametrize(
    ("breaks", "digits"),
    [
        ((9, 25, 41, 57, 73, 89, 105, 121), 4),  # all of 16 and above: 4 p + 1/8 of 64
        ((16, 48, 80, 112), 3),
        ((1, 5), 5),
        ((1,), 1),
        ((2, 127), 6),
        ((65, 127, 129, 140), 6),  # beyond 1: never
        ((127, 255), 6),
    ],
)
def test_all_fractions(breaks: tuple[int, ...], digits: int) -> None:
    steps = StepFunction(0, END, breaks, range(-3, len(breaks) - 2))
    search = search_of(FRACTION, steps)
    assert search is not None
    assert search.digits == digits
    assert (len(search.thresholds) + 1).bit_count() == 1
    for b in range(1, 150):
        for a in range(b + 1):
            assert found(search, a, b) == steps(rounded(a, b, FRACTION)), (a, b)


def test_a_digit_fewer_is_too_few() -> None:
    steps = StepFunction(0, END, (9, 25, 41, 57, 73, 89, 105, 121), range(9))
    search = search_of(FRACTION, steps)
    assert search is not None
    thresholds = tuple((each >> 2 << 1) + (each & 1) for each in search.thresholds)
    fewer = Search(search.digits - 1, thresholds, search.offset)
    assert any(found(fewer, a, b) != found(search, a, b) for b in range(1, 60) for a in range(b + 1))


@pytest.mark.parametrize(
    ("breaks", "values"),
    [((9, 128), (0, 1, 2)), ((9, 20), (0, 2, 3)), ((9,), (1, 0)), ((200,), (0, 1))],
    ids=["at 1", "two at once", "falling", "constant"],
)
def test_what_has_no_search(breaks: tuple[int, ...], values: tuple[int, ...]) -> None:
    assert search_of(FRACTION, StepFunction(0, END, breaks, values)) is None
