"""Depthwise convolutions: where buffers wrap and weights stand, and what is refused. Values and times: tests.ops."""

from __future__ import annotations

import pytest
from amaranth.hdl import signed

from hdl_lib.memories.rom import Table
from hdl_lib.windows.depthwise import Depthwise, buffer_words, round_words, weight_places, weights_are_dense
from hdl_lib.windows.window_geometry import WindowGeometry

GEOMETRY = WindowGeometry(4, 5, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))


def test_buffers_have_powers_of_two_words():
    assert [buffer_words(least) for least in (1, 2, 3, 4, 5, 60, 64, 65)] == [2, 2, 4, 4, 8, 64, 64, 128]


def test_each_number_of_an_address_has_its_bits():
    assert weight_places(GEOMETRY, 5, row=False) == (2, 2, 3, 128)
    assert weight_places(GEOMETRY, 5, row=True) == (0, 2, 3, 32)
    assert weight_places(WindowGeometry(1, 5, (1, 5), (1, 1), (0, 0, 0, 0), (1, 1)), 1, row=True) == (0, 0, 0, 1)


def test_a_table_in_block_ram_has_no_unused_words():
    """Of 144 words of 18 bits 2,592 bits are more than look-up tables are taken for, 45 words of 18 bits are not."""
    assert weights_are_dense(GEOMETRY, 16, False, 18) and round_words(GEOMETRY, 16, False, 18) == 144
    assert not weights_are_dense(GEOMETRY, 5, False, 18) and round_words(GEOMETRY, 5, False, 18) == 128
    assert round_words(GEOMETRY, 48, True, 18) == 144


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rows": None, "pixels": 12},
            "pixels must be at least 13, not 12: with fewer the window's pixels are never in the buffer together",
        ),
        ({"rows": 2}, "rows must be at least 3, not 2: with fewer the window's rows are never in the buffer together"),
        (
            {"pad_value": 200},
            r"padded_shape must hold signed\(8\) and pad_value, 200, not -128\.\.127, as signed\(8\)",
        ),
        (
            {"weights": Table.of_words([0] * 32, 48)},
            r"weights must be 32 words of 8 bits \(taps per step \* lanes \* weight bits\), not 32 of 48",
        ),
        ({"depth": 0}, "depth must be an integer of at least 1, not 0"),
    ],
)
def test_what_is_refused(changes, message):
    arguments = {
        "weights": Table.of_words([0] * 32, 8), "padded_shape": signed(8), "rows": 3, "multiplier": "dsp", "depth": 2,
    }
    with pytest.raises(ValueError, match=message):
        Depthwise(signed(8), signed(4), signed(16), GEOMETRY, 4, 2, **(arguments | changes))
