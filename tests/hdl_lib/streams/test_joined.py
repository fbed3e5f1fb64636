"""Cores with several inputs: what they refuse, and the sums of shifted inputs that constants become.

Values, cycles, resets and paths are tested by the registry's harness (tests/ops).
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from amaranth.hdl import Shape

from hdl_lib.arithmetic.signed_sum import Summand, planned, signed_digits
from hdl_lib.memories.rom import Table
from hdl_lib.streams.concat import Concat
from hdl_lib.streams.interleave import Interleave
from hdl_lib.streams.stream_add import StreamAdd
from hdl_lib.streams.stream_product import StreamProduct

S8, U4, S16 = Shape(8, True), Shape(4), Shape(16, True)


def test_signed_digits() -> None:
    """They make the number, no two are neighbours, and so there are at most half as many as bits, and one."""
    for constant in (*range(-300, 301), 11184811, -9395241):
        digits = signed_digits(constant)
        assert sum((-1 if minus else 1) << bit for bit, minus in digits) == constant
        bits = [bit for bit, _ in digits]
        assert all(b - a >= 2 for a, b in pairwise(bits)), constant


def test_digits_by_hand() -> None:
    """7 = 8 - 1, 5 = 4 + 1, -3 = -4 + 1."""
    assert signed_digits(7) == [(0, True), (3, False)]
    assert signed_digits(5) == [(0, False), (2, False)]
    assert signed_digits(-3) == [(0, False), (2, True)]


def test_the_low_bits_pass_by_the_adder() -> None:
    """x + 4 x with x in 0 .. 15: 75 needs 7 bits, of which the adder makes the upper 5; 8 x - x takes all bits."""
    x = [Summand(None, 0, 15, key=0), Summand(None, 0, 15, 2, key=0)]
    (register,) = planned(x, 1, 20)
    assert (register.width, register.added) == (7, 5)
    (register,) = planned([Summand(None, 0, 15, 3, key=0), Summand(None, 0, 15, 0, True, key=0)], 1, 20)
    assert (register.width, register.added) == (8, 8)  # the intervals alone allow -15


def add(**change: object) -> StreamAdd:
    arguments = dict(lanes=2, channels=4, multipliers=((3,), (5,)), multiplier="lut", depth=2) | change
    return StreamAdd((S8, U4), S16, **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(channels=0), "channels must be at least 1, not 0"),
        (dict(lanes=0), "lanes must be at least 1, not 0"),
        (dict(depth=0), "depth must be an integer of at least 1, not 0"),
        (dict(multiplier="fast"), "multiplier must be one of dsp, lut, not 'fast'"),
        (dict(multipliers=((3, 4), (5,))), "multipliers must be 1 or 4 (one per channel), not 2"),
        (dict(multipliers=((3,), (0,))), "multipliers must not be 0"),
        (dict(multipliers=((3, 1, 4, 1), (1,))), "a needs a table of multipliers"),
        (dict(tables=(None, Table.of_words([0], 8))), "b needs no table of multipliers"),
        (
            dict(multipliers=((3, 1, 4, 1), (1,)), tables=(Table.of_words([0, 1, 2], 5), None)),
            "the table of a must have 2 words of 6 bits, not 3 of 5",
        ),
        (dict(held=(S8, S8)), "a needs a table of multipliers"),
        (
            dict(held=(S8, S8), multipliers=((3, 1, 4, 1), (1,))),
            "multipliers that are held must be one for all channels and rounds",
        ),
    ],
)
def test_sums_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        add(**change)
    assert str(error.value) == message


def test_an_input_without_bits_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        StreamProduct((S8, Shape(0)), S16, lanes=1, offsets=(0, 0), multiplier="lut", depth=1)
    assert str(error.value) == "an element of b must have at least 1 bit, not 0"


def test_products_refused() -> None:
    with pytest.raises(ValueError) as error:
        StreamProduct((S8, S8), S16, lanes=1, offsets=(0, 0), multiplier="", depth=1)
    assert str(error.value) == "multiplier must be one of dsp, lut, not ''"


@pytest.mark.parametrize(
    ("shapes", "change", "message"),
    [
        ([S8], dict(beats=[1]), "shapes and beats must be of two inputs or more, not of 1 and 1"),
        ([S8, U4], dict(beats=[1]), "shapes and beats must be of two inputs or more, not of 2 and 1"),
        ([S8, U4], dict(beats=[1, 0]), "beats must be at least 1 of each input, not 0"),
        ([S8, U4], dict(lanes=0), "lanes must be at least 1, not 0"),
        ([S8, U4], dict(depth=0), "depth must be an integer of at least 1, not 0"),
    ],
)
def test_concatenations_refused(shapes: list[Shape], change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Concat(shapes, S8, **(dict(lanes=1, beats=[1, 2], depth=1) | change))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("shapes", "change", "message"),
    [
        ([S8], dict(channels=[1]), "shapes and channels must be of two inputs or more, not of 1 and 1"),
        ([S8, U4], dict(channels=[1]), "shapes and channels must be of two inputs or more, not of 2 and 1"),
        ([S8, U4], dict(channels=[1, 0]), "channels must be at least 1 of each input, not 0"),
        ([S8, U4], dict(pixels=0), "pixels must be at least 1, not 0"),
        ([S8, U4], dict(depth=0), "depth must be an integer of at least 1, not 0"),
    ],
)
def test_pixels_side_by_side_refused(shapes: list[Shape], change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Interleave(shapes, S8, **(dict(channels=[1, 2], pixels=1, depth=1) | change))
    assert str(error.value) == message
