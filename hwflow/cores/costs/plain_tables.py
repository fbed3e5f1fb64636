"""Read-only tables made of look-up tables of four inputs alone (iCE40)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache


def plain_tables(columns: Sequence[bytes]) -> tuple[int, int]:
    """Count the look-up tables for the bits of a table (each given by its values in all words, one byte per word), and
    how many bits are not like another. As words to a table alone a binary search is 21 % off."""
    size = 1 << (len(columns[0]) - 1).bit_length()
    functions = {without_idle_bits(_filled(column, size)) for column in columns}
    return _tables(functions), len(functions)


def _filled(column: bytes, size: int) -> bytes:
    """Return the column with ``size`` values: where it has none, what makes an address bit idle."""
    if len(column) == size:
        return column
    half = size // 2
    if len(column) <= half:
        return _filled(column, half) * 2
    return column[:half] + _filled(column[half:], half)


def _tables(functions: Iterable[bytes]) -> int:
    """Count look-up tables of four inputs: one for a function of up to four address bits; one that chooses between the
    halves of another, and has room for a half of at most two bits."""
    made: set[bytes] = set()

    def cost(function: bytes) -> int:
        function = without_idle_bits(function)
        if function in made or len(function) == 1:
            return 0
        made.add(function)
        if len(function) <= 16:
            return 1
        halves = function[: len(function) // 2], function[len(function) // 2 :]
        return 1 + sum(cost(half) for half in halves if len(without_idle_bits(half)) > 4)

    return sum(map(cost, functions))


@lru_cache(maxsize=1 << 12)  # of few words there are few columns
def without_idle_bits(column: bytes) -> bytes:
    """Return the column as a function of those address bits alone that change it."""
    values = int(column, 2)
    for half, lower in _address_bits(len(column)):
        if not (values ^ values >> half) & lower:
            column = b"".join([column[k : k + half] for k in range(0, len(column), 2 * half)])
            return without_idle_bits(column)
    return column


@cache
def _address_bits(words: int) -> list[tuple[int, int]]:
    """Return for each address bit of so many words, a power of two: the distance of two words that it alone tells
    apart, and the lower ones of these pairs, in a number with a bit for each word."""
    found = []
    half = words // 2
    while half:
        found.append((half, sum(((1 << half) - 1) << first for first in range(0, words, 2 * half))))
        half //= 2
    return found
