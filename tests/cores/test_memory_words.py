"""Lanes packed into memory words, by hand and by Python's own integers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from hwflow.cores.memory_words import pack_words


def test_words_by_hand() -> None:
    """Four bits per lane: -1 is f, -8 is 8; of three, two and one bits 0b101, 0b10 and 0b1 beside each other."""
    assert list(pack_words(np.array([[-1, 3], [5, -8]]), 4)) == [0x3F, 0x85]
    assert list(pack_words(np.array([[-3, -2, -1], [2, 1, 0]]), [3, 2, 1])) == [0b110101, 0b001010]
    assert list(pack_words(np.array([[-1], [0], [-(1 << 62)]]), 63)) == [(1 << 63) - 1, 0, 1 << 62]


@pytest.mark.parametrize("bits", [[1], [8], [9], [16, 1], [31, 31], [31, 32], [31, 33], [7] * 40, [62, 3, 62]])
def test_words_of_any_width(bits: list[int]) -> None:
    rng = np.random.default_rng(len(bits))
    lanes = np.stack([rng.integers(-(1 << width - 1), 1 << width - 1, 20_000) for width in bits], axis=1)
    expected = []
    for row in lanes[::997].tolist():
        word, offset = 0, 0
        for number, width in zip(row, bits, strict=True):
            word |= number % (1 << width) << offset
            offset += width
        expected.append(word)
    assert list(pack_words(lanes, bits)[::997]) == expected


def test_words_of_a_byte_take_a_byte() -> None:
    """Of 2 ** 20 weights; numpy's numbers on the way take eight each, a few at a time."""
    lanes = np.arange(1 << 20).reshape(-1, 1)
    tracemalloc.start()
    try:
        words = pack_words(lanes, [8])
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words[257] == 1
    assert left < 2 << 20
    assert peak < 32 << 20
