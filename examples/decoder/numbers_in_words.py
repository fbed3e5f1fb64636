"""Text: numbers below a thousand, as words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
LETTERS = " " + "".join(sorted(set("".join(ONES + TENS) + "hundred")))
"""What there is beside them is a space, which is token 0."""
LENGTH = 24
"""Tokens of a frame."""


def words(number: int) -> str:
    """Return a number below a thousand in words."""
    hundreds, rest = divmod(number, 100)
    parts = [f"{ONES[hundreds]} hundred"] if hundreds else []
    if rest >= 20:
        parts.append(TENS[rest // 10 - 2])
        rest = rest % 10
        parts += [ONES[rest]] if rest else []
    elif rest or not hundreds:
        parts.append(ONES[rest])
    return " ".join(parts)


def frames(count: int, numbers: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Return pieces of a text of random ones of ``numbers``, a space between two: int64 [count, LENGTH + 1]."""
    codes = {letter: code for code, letter in enumerate(LETTERS)}
    text = " ".join(words(int(number)) for number in random.choice(numbers, count * (LENGTH + 1) // 3))
    starts = random.integers(0, len(text) - LENGTH - 1, count)
    return np.array([[codes[letter] for letter in text[start : start + LENGTH + 1]] for start in starts], np.int64)


def split() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers to train with and the ones to test with, one in five."""
    mixed = np.random.default_rng(0).permutation(1000)
    return mixed[200:], mixed[:200]
