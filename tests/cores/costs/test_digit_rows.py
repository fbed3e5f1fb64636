"""Products of look-up tables counted in arrays, against bits that are followed one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pytest

from hdl_lib.arithmetic.digit_product import Digits
from hwflow.cores.costs.basics import carried_chain, chain
from hwflow.cores.costs.products.digit_rows import MOST_WORDS, joint_row_products, row_product, row_products
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
        self.in_front: set[Bit] = set()
        self.registers: list[set[Bit]] = []
        self.sums: set[Bit] = set()

    @property
    def resources(self) -> Resources:
        return Resources(lut=self.luts, ff=sum(map(len, self.registers)))

    def choice(self, lane: Hashable, words: Sequence[tuple[str, int] | int]) -> Bit:
        """A bit that in each word is 0, 1, or ("x" or "not x", place)."""
        if len(set(words)) == 1 and isinstance(words[0], int):
            return str(words[0])
        return "choice", lane, tuple(words)

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
                    bits = self.added(bits, upper[2], upper[3], distance, (lane, first, *columns[first:end]), level)
                self.hold({*bits, carry}, level)
                sums.append((first, end, bits, carry))
            parts, level = sums, level + 1

    def added(
        self, lower: list[Bit], upper: list[Bit], carry: Bit, distance: int, name: tuple[Hashable, ...], level: int
    ) -> list[Bit]:
        first, end = name[1], name[1] + len(name) - 2  # type: ignore[operator]
        width = self.width(first, end)  # type: ignore[arg-type]
        lower = (lower + lower[-1:] * width)[:width]
        upper = (upper + upper[-1:] * width)[: width - distance]
        pairs = list(zip(lower[distance:], upper, strict=True))
        kept = 0
        if carry == ZERO:
            kept = next((k for k, pair in enumerate(pairs) if ZERO not in pair), len(pairs))
        passing = [b if a == ZERO else a for a, b in pairs[:kept]]
        places = len(pairs) - kept
        if places and ("sum", name) not in self.sums:
            self.sums.add(("sum", name))
            self.luts += (chain if carry in (ZERO, ONE) else carried_chain)(self.family, places)
            if not level:
                new = {bit for pair in pairs[kept:] for bit in pair} - self.in_front
                self.luts += sum(self.tables(bit, register=False) for bit in new)
                self.in_front |= new
        return [*lower[:distance], *passing, *(("sum", name, place) for place in range(places))]

    def hold(self, bits: set[Bit], level: int) -> None:
        if level == len(self.registers):
            self.registers.append(set())
        new = bits - self.registers[level] - {ZERO, ONE}
        self.registers[level] |= new
        if not level:
            self.luts += sum(self.tables(bit, register=True) for bit in new - self.in_front)


def test_products_by_themselves_and_together() -> None:
    """-1 or 0 of one input twice is made once; of two inputs the bit that is missing is one for both."""
    alone = row_product("ecp5", I4, Digits(1, False), (-1, 0))
    assert alone == Resources(lut=4, ff=4 + 1)
    digits = Digits(1, False)
    together = joint_row_products("ecp5", I4, digits, [(-1, 0), (-1, 0)], [0, 1])
    assert together == Resources(lut=2 * 4, ff=2 * 4 + 1)
    assert joint_row_products("ecp5", I4, digits, [(-1, 0), (-1, 0)], [0, 0]) == alone
    assert row_products("ecp5", I4, digits, []) == []


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
@pytest.mark.parametrize("seed", range(40))
def test_against_bits_one_by_one(family: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = IntType(int(random.integers(2, 12)), bool(random.integers(2)))
    reach = 1 << int(random.integers(1, 20))
    low, high = -int(random.integers(0, reach + 1)), int(random.integers(1, reach + 1))
    digits = Digits.of((low, high))
    words = int(random.integers(1, MOST_WORDS + 1))
    numbers = random.integers(low, high + 1, (12, words)) * (random.random((12, words)) < random.random())
    numbers[6:, : words // 2] = numbers[:6, : words // 2]
    weights = [tuple(row) for row in numbers.tolist()]
    expected = []
    for row in weights:
        plain = Plain(family, x, digits)
        plain.product(0, row)
        expected.append(plain.resources)
    assert row_products(family, x, digits, weights) == expected
    keys = list(dict.fromkeys((lane % 3, row) for lane, row in enumerate(weights) if any(row)))
    plain = Plain(family, x, digits)
    for lane, row in keys:
        plain.product(lane, row)
    found = joint_row_products(family, x, digits, [row for _, row in keys], [lane for lane, _ in keys])
    assert found == plain.resources


def test_tables_of_different_length() -> None:
    """Each is as if it were alone."""
    digits, weights = Digits.of((-100, 100)), [(3, -7, 50), (1,), (0, 0), (-64, 5)]
    assert row_products("ecp5", I4, digits, weights) == [row_product("ecp5", I4, digits, row) for row in weights]
