"""Sums of rows counted in arrays, against bits that are followed one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pytest

from hdl_lib.arithmetic.digit_product import Digits
from hwflow.cores.costs.basics import carried_chain, chain
from hwflow.cores.costs.products.row_sums import digit_products
from hwflow.cores.operator import Resources
from hwflow.types import IntType

Bit = Hashable  # what it is in each word, of which input; or a sum's, by its place; ZERO and ONE
ZERO, ONE = "0", "1"
I4 = IntType(4, True)


def digits_of(weight: int, count: int) -> list[int]:
    found = []
    for _ in range(count - 1):
        digit = (weight + 2) % 4 - 2
        found.append(digit)
        weight = (weight - digit) // 4
    return [*found, weight]


class Plain:
    """Sets of bits that are made."""

    def __init__(self, family: str, x: IntType, digits: Digits) -> None:
        self.family, self.x, self.digits = family, x, digits
        self.luts = 0
        self.in_front: set[Bit] = set()  # of the first adders, and what is in the registers behind these
        self.behind: set[Bit] = set()
        self.registers: list[set[Bit]] = []
        self.sums: dict[Bit, int] = {}

    @property
    def resources(self) -> Resources:
        luts = sum(self.tables(bit, register=False) for bit in self.in_front)
        luts += sum(self.tables(bit, register=True) for bit in self.behind - self.in_front)
        return Resources(lut=self.luts + luts, ff=sum(map(len, self.registers)))

    def choice(self, lane: Hashable, words: Sequence[tuple[str, int] | int]) -> Bit:
        """A bit that in each word is 0, 1, or ("x" or "not x", place)."""
        if len(set(words)) == 1 and isinstance(words[0], int):
            return str(words[0])
        literals = any(isinstance(word, tuple) for word in words)
        return "choice", lane if literals else None, tuple(words)

    def input_bit(self, digit: int, place: int) -> tuple[str, int] | int:
        """At a place of the input times a digit, less one of a negative digit."""
        place -= abs(digit) == 2
        if not digit:
            return 0
        inside = 0 <= place < self.x.bits or (self.x.signed and place >= 0)
        literal = min(place, self.x.bits - 1)
        if digit > 0:
            return ("x", literal) if inside else 0
        return ("not x", literal) if inside else 1

    def tables(self, bit: Bit, *, register: bool) -> int:
        """In front of an adder, or of a register, for a bit of a row."""
        if not isinstance(bit, tuple) or bit[0] != "choice":
            return 0
        _, _, words = bit
        kinds, literals = set(words), {word for word in words if isinstance(word, tuple)}
        complemented = any(kind == "not x" for kind, _ in literals)
        if register and len(kinds - {0}) == 1 and not complemented:
            return 0  # cleared
        if len(kinds) == 1 or not literals:
            return int(complemented)
        places = len({place for _, place in literals})
        return 1 + (places + min(2 + self.digits.wide, (len(kinds) - 1).bit_length()) > 4)

    def width(self, first: int, end: int) -> int:
        ends = [a * b for a in (self.x.min, self.x.max) for b in self.digits.part(first, end)]
        return max((-min(ends)).bit_length(), max(ends).bit_length()) + 1

    def product(self, lane: Hashable, weights: Sequence[int]) -> None:
        columns = list(zip(*(digits_of(weight, self.digits.count) for weight in weights), strict=True))
        parts = []
        for place, column in enumerate(columns):
            row = [
                self.choice(lane, [self.input_bit(digit, bit) for digit in column])
                for bit in range(self.width(place, place + 1))
            ]
            parts.append((place, place + 1, row, self.choice(None, [int(digit < 0) for digit in column])))
        level = 0
        while len(parts) > 1 or not level:
            sums = []
            for first, end, bits, carry in parts[::2]:
                upper = next((part for part in parts if part[0] == end), None)
                if upper is not None:
                    end = upper[1]
                    distance = 2 * (upper[0] - first)
                    bits = self.added(bits, upper[2], upper[3], distance, (first, end), level)
                self.hold({*bits, carry}, level)
                sums.append((first, end, bits, carry))
            parts, level = sums, level + 1

    def added(
        self, lower: list[Bit], upper: list[Bit], carry: Bit, distance: int, span: tuple[int, int], level: int
    ) -> list[Bit]:
        width = self.width(*span)
        lower = (lower + lower[-1:] * width)[:width]
        upper = (upper + upper[-1:] * width)[: width - distance]
        pairs = list(zip(lower[distance:], upper, strict=True))
        kept = 0
        if carry == ZERO:
            kept = next((k for k, pair in enumerate(pairs) if ZERO not in pair), len(pairs))
        passing = [b if a == ZERO else a for a, b in pairs[:kept]]
        places, name = len(pairs) - kept, (span, tuple(pairs), carry)
        if name not in self.sums:
            self.sums[name] = len(self.sums)
            self.luts += (chain if carry in (ZERO, ONE) else carried_chain)(self.family, places)
            if not level:
                self.in_front |= {bit for pair in pairs[kept:] for bit in pair}
        return [*lower[:distance], *passing, *(("sum", self.sums[name], place) for place in range(places))]

    def hold(self, bits: set[Bit], level: int) -> None:
        if level == len(self.registers):
            self.registers.append(set())
        self.registers[level] |= bits - {ZERO, ONE}
        if not level:
            self.behind |= bits - {ZERO, ONE}


def test_products_by_themselves_and_together() -> None:
    """-1 or 0 of one input twice is made once; of two inputs the bit that is missing is one for both."""
    digits = Digits(1, False)
    alone = digit_products("ecp5", I4, digits, [(-1, 0)], [0])
    assert alone == Resources(lut=4, ff=4 + 1)
    together = digit_products("ecp5", I4, digits, [(-1, 0), (-1, 0)], [0, 1])
    assert together == Resources(lut=2 * 4, ff=2 * 4 + 1)
    assert digit_products("ecp5", I4, digits, [(-1, 0), (-1, 0)], [0, 0]) == alone
    assert digit_products("ecp5", I4, digits, [], []) == Resources()


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
@pytest.mark.parametrize("seed", range(40))
def test_against_bits_one_by_one(family: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = IntType(int(random.integers(2, 12)), bool(random.integers(2)))
    reach = 1 << int(random.integers(1, 20))
    low, high = -int(random.integers(0, reach + 1)), int(random.integers(1, reach + 1))
    digits = Digits.of((low, high))
    words = int(random.integers(1, 17))
    numbers = random.integers(low, high + 1, (12, words)) * (random.random((12, words)) < random.random())
    numbers[6:, : words // 2] = numbers[:6, : words // 2]
    keys = list(dict.fromkeys((lane % 3, tuple(row)) for lane, row in enumerate(numbers.tolist()) if any(row)))
    plain = Plain(family, x, digits)
    for lane, row in keys:
        plain.product(lane, row)
    found = digit_products(family, x, digits, [row for _, row in keys], [lane for lane, _ in keys])
    assert found == plain.resources
