"""Constant bits of tables: synthesis does not store them (opt_mem of yosys takes such columns out)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hdl_lib.memories.rom import bank_words, banks_of
from hwflow.ir.graph import IntArray


@dataclass(frozen=True)
class Changing:
    """``columns``: bits of the rows in which a table is stored (:func:`hdl_lib.memories.rom.bank_words`) that are not
    the same in all rows; ``bits``: those of a word that are not the same in all words."""

    columns: int
    bits: int

    @classmethod
    def every(cls, words: int, width: int) -> Changing:
        """Count the bits of a table whose bits all change."""
        return cls(banks_of(width, words) * width, width)


def changing_bits(words: Sequence[int], width: int) -> Changing:
    """Count the changing bits of a table of words."""
    count = bank_words(width, len(words))
    columns = together = 0
    for start in range(0, len(words), count):
        bank = words[start : start + count]
        missing = len(bank) < count  # then the last rows hold 0
        first, changing = bank[0], bank[0] if missing else 0
        for word in bank:
            changing |= word ^ first
        columns += changing.bit_count()
        together |= changing | (first ^ words[0])
    return Changing(columns, together.bit_count())


def changing_columns(bits: npt.NDArray[np.uint8]) -> Changing:
    """Count those of a table of [words, bits]."""
    words, width = bits.shape
    count = bank_words(width, words)
    rows = np.zeros((-(-words // count) * count, width), dtype=np.uint8)  # the last rows hold 0
    rows[:words] = bits
    stored = rows.reshape(-1, count, width)
    columns = (stored != stored[:, :1]).any(axis=1)
    together = columns | (stored[:, 0] != stored[0, 0])
    return Changing(int(columns.sum()), int(together.any(axis=0).sum()))


def changing_numbers(words: IntArray, bits: Sequence[int]) -> Changing:
    """Count the changing bits of a table of [words, numbers]; the numbers have so many ``bits`` in it, 63 at most."""
    width = sum(bits)
    count = bank_words(width, len(words))
    banks = -(-len(words) // count)
    rows = np.zeros((banks * count, len(bits)), dtype=np.int64)
    rows[: len(words)] = words
    stored = rows.reshape(banks, count, len(bits))
    held = np.array([(1 << number) - 1 for number in bits])
    columns = np.bitwise_or.reduce(stored ^ stored[:, :1], axis=1) & held
    together = np.bitwise_or.reduce(columns | (stored[:, 0] ^ stored[0, 0]) & held, axis=0)
    return Changing(_ones(columns), _ones(together))


def _ones(numbers: IntArray) -> int:
    return sum(int(np.count_nonzero(numbers >> bit & 1)) for bit in range(int(numbers.max(initial=0)).bit_length()))
