"""Products of look-up tables with weights from a table of few words, bit by bit: what is the same in all words, or the
same as another bit, is made once or not at all (:mod:`hdl_lib.digit_product`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from hdl_lib.adder_tree import shape_of
from hdl_lib.digit_product import Digits
from hwflow.ops.costs.basics import adder, carried_chain, chain
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.operator import Resources
from hwflow.types import IntType

Shapes = Callable[[int, int], tuple[int, bool]]
ZERO, ONE = 0, 1  # bits that never change
BLOCK = 256  # numbers that bits have which belong together: more than any number in a design has bits


class _Part(NamedTuple):
    """A sum of rows: its bits, by their numbers, the last one the sign, and the bit that it lacks."""

    bits: list[int]
    carry: int


class Rows:
    """Sums of rows, two at a time: what several of them have alike is made once. ``controls``: bits that choose a
    row's digit.

    Bits are told from one another by numbers: equal are those with the same number, whatever they come from.
    """

    def __init__(self, family: str, controls: int) -> None:
        self.family, self._controls = family, controls
        self._numbers: dict[Hashable, int] = {}  # the first one of what has a name
        # Of every BLOCK numbers: tables of a bit in front of an adder, in front of a register.
        self._inputs: list[tuple[int, int]] = [(0, 0)]
        self._tables: set[int] = set()  # that are made, in front of adders
        self._registers: list[set[int]] = []  # that are made, level by level
        self._luts = self._flip_flops = 0

    @property
    def resources(self) -> Resources:
        """With a register behind every adder and every part that is left over."""
        return Resources(lut=self._luts, ff=self._flip_flops)

    def add(self, name: Hashable, columns: Sequence[Hashable], rows: Sequence[_Part], shapes: Shapes) -> None:
        """The sum of ``rows``, each two places above the one before it; ``columns``: what they are products with,
        ``name``: of what; ``shapes``: bits of the sum of some, and whether it has a sign."""
        parts = [(place, place + 1, row) for place, row in enumerate(rows)]
        level = 0
        while len(parts) > 1 or level == 0:
            sums = []
            for index in range(0, len(parts), 2):
                first, end, part = parts[index]
                if index + 1 < len(parts):
                    middle, end, upper = parts[index + 1]
                    made = name, first, *columns[first:end]
                    part = self._sum(part, upper, 2 * (middle - first), *shapes(first, end), made, level)
                self._hold(part, level)
                sums.append((first, end, part))
            parts = sums
            level += 1

    def _block(self, name: Hashable, inputs: tuple[int, int]) -> int:
        """The first number of a new block, of what has this name."""
        self._numbers[name] = first = BLOCK * len(self._inputs)
        self._inputs.append(inputs)
        return first

    def _sum(
        self, lower: _Part, upper: _Part, distance: int, width: int, signed: bool, name: tuple[Hashable, ...],
        level: int,
    ) -> _Part:
        bits = _extended(lower.bits, width)
        low, above, other = bits[:distance], bits[distance:], _extended(upper.bits, width - distance)
        top = [] if signed else [ZERO]
        kept = 0
        if upper.carry == ZERO:  # bits that meet zeros pass by the adder
            if not (any(above) and any(other)):
                return _Part(low + (above if any(above) else other) + top, lower.carry)
            kept = next(place for place, pair in enumerate(zip(above, other, strict=True)) if all(pair))
        places = width - distance - kept
        known = self._numbers.get(name)
        first = self._block(name, (0, 0)) if known is None else known
        passing = [a or b for a, b in zip(above[:kept], other[:kept], strict=True)]
        result = _Part([*low, *passing, *range(first, first + places), *top], lower.carry)
        if known is not None:
            return result
        if level == 0:  # in front of the first adders; behind them are registers
            before = {*above[kept:], *other[kept:]} - self._tables
            self._luts += sum([self._inputs[bit // BLOCK][0] for bit in before])
            self._tables |= before
        carried = upper.carry not in (ZERO, ONE)
        self._luts += carried_chain(self.family, places) if carried else chain(self.family, places)
        return result

    def _row_bits(self, name: Hashable, kinds: int, places: int, zero: bool, complemented: bool) -> int:
        """The number of the first of some bits of a row. Each is one of so many ``kinds``, ``zero`` among them or not,
        of bits of the input at so many ``places`` and constants, some of them ``complemented`` or not."""
        known = self._numbers.get(name)
        if known is not None:
            return known
        tables = int(complemented)  # of one kind, or constants: the digit's sign
        if kinds > 1 and places:
            tables = 1 + (places + min(self._controls, (kinds - 1).bit_length()) > 4)
        # A register of a bit of the input or 0 is cleared without a table.
        return self._block(name, (tables, tables if kinds - zero > 1 or complemented else 0))

    def _hold(self, part: _Part, level: int) -> None:
        """Registers, and what is in front of those of bits of rows."""
        if level == len(self._registers):
            self._registers.append({ZERO, ONE})
        new = {*part.bits, part.carry} - self._registers[level]
        self._registers[level] |= new
        self._flip_flops += len(new)
        if level == 0:
            self._luts += sum([self._inputs[bit // BLOCK][1] for bit in new - self._tables])


class DigitRows(Rows):
    """Products of inputs of type ``x`` with weights in ``digits`` (:mod:`hdl_lib.digit_product`)."""

    def __init__(self, family: str, x: IntType, digits: Digits) -> None:
        super().__init__(family, 2 + digits.wide)
        self.x, self.digits = x, digits
        self._widths = _digit_widths(x, digits)

    def product(self, lane: Hashable, weights: Sequence[int]) -> None:
        """One more: of an input, by its name, with one of the ``weights`` for each word of the table."""
        columns = _columns_of(tuple(weights), self.digits.count)
        rows = [self._row(lane, column, self._widths[place, place + 1]) for place, column in enumerate(columns)]
        self.add(lane, columns, rows, lambda first, end: (self._widths[first, end], True))

    def _row(self, lane: Hashable, values: tuple[int, ...], width: int) -> _Part:
        """The input times a digit, less one of a negative digit."""
        a, b, c, d = _words_of(values)
        if not a | b | c | d:
            return _Part([ZERO] * width, ZERO)
        size, every = self.x.bits, (1 << len(values)) - 1
        bits = [*self._span(lane, (a, b, 0, 0, d), every, 0, 1)]
        bits += self._span(lane, (a, b, c, d, 0), every, 1, size)
        if self.x.signed:
            bits += self._span(lane, (a | c, b | d, 0, 0, 0), every, size - 1, size)
        else:
            bits += self._span(lane, (0, 0, c, d, b), every, size, size + 1)
            bits += self._span(lane, (0, 0, 0, 0, b | d), every, size, size + 1)
        return _Part(_extended(bits, width), self._span(None, (0, 0, 0, 0, b | d), every, 0, 1)[0])

    def _span(
        self, lane: Hashable, words: tuple[int, int, int, int, int], every: int, first: int, end: int
    ) -> Sequence[int]:
        """Bits ``first .. end - 1`` of a row, by the ``words`` in which they are the bit of the input at that place,
        its complement, the one below, its complement, 1; ``every``: all words there are."""
        a, b, c, d, ones = words
        if not a | b:  # nothing is at that place
            a, b, c, d, first, end = c, d, 0, 0, first - 1, end - 1
            if not a | b:
                if ones in (0, every):
                    return [ONE if ones else ZERO] * (end - first)
                first, end = 0, 1
            words = a, b, c, d, ones
        number = self._numbers.get((lane, words))
        if number is None:
            zero = (a | b | c | d | ones) != every
            kinds = (a > 0) + (b > 0) + (c > 0) + (d > 0) + (ones > 0) + zero
            number = self._row_bits((lane, words), kinds, (a | b > 0) + (c | d > 0), zero, b | d > 0)
        return range(number + first, number + end)


@cache
def _digit_widths(x: IntType, digits: Digits) -> Mapping[tuple[int, int], int]:
    """Bits of the product with the digits ``first .. end - 1``, less one of each that is negative."""
    found = {}
    for first in range(digits.count):
        for end in range(first + 1, digits.count + 1):
            ends = [a * b for a in (x.min, x.max) for b in digits.part(first, end)]
            found[first, end] = int(shape_of(min(ends) - 1, max(ends)).width)
    return found


@cache
def _digits_of(weight: int, count: int) -> tuple[int, ...]:
    """The lowest first; the top one is what is left."""
    found = []
    for _ in range(count - 1):
        digit = (weight + 2 & 3) - 2
        found.append(digit)
        weight = weight - digit >> 2
    return *found, weight


@lru_cache(maxsize=1 << 14)
def _columns_of(weights: tuple[int, ...], count: int) -> tuple[tuple[int, ...], ...]:
    """The digits of all weights at each place."""
    return tuple(zip(*[_digits_of(weight, count) for weight in weights], strict=True))


@lru_cache(maxsize=1 << 14)
def _words_of(values: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The words, a bit for each, in which a digit is 1, -1, 2 and -2."""
    words = {-2: 0, -1: 0, 0: 0, 1: 0, 2: 0}
    for word, value in enumerate(values):
        words[value] |= 1 << word
    return words[1], words[-1], words[2], words[-2]


_Multiple = tuple[str, int] | None  # a bit of a multiple of the input; None: 0


class MultipleRows(Rows):
    """Products of inputs of type ``x`` with weights of type ``w`` by multiples of the inputs, of which two bits of the
    weight choose one (:mod:`hdl_lib.multiplier`, the form "lut")."""

    def __init__(self, family: str, x: IntType, w: IntType) -> None:
        super().__init__(family, 2)
        self.x, self.w = x, w

    def product(self, lane: Hashable, weights: Sequence[int]) -> None:
        """One more: of an input, by its name, with one of the ``weights`` for each word of the table."""
        columns = [
            _possible([weight >> first & (3 if first + 1 < self.w.bits else 1) for weight in weights])
            for first in range(0, self.w.bits, 2)
        ]
        taken: set[_Multiple] = set()
        rows = [self._row(lane, column, place, taken) for place, column in enumerate(columns)]
        self._multiples(taken)
        self.add(lane, columns, rows, self._shape)

    def _shape(self, first: int, end: int) -> tuple[int, bool]:
        part = IntType(min(2 * end, self.w.bits) - 2 * first, self.w.signed and 2 * end >= self.w.bits)
        ends = [a * b for a in (self.x.min, self.x.max) for b in (part.min, part.max)]
        shape = shape_of(min(ends), max(ends))
        return int(shape.width), bool(shape.signed)

    def _row(self, lane: Hashable, values: Sequence[int], place: int, taken: set[_Multiple]) -> _Part:
        """A digit's product; to ``taken`` the bits of multiples are added that it takes."""
        width, signed = self._shape(place, place + 1)
        top = self.w.signed and 2 * place + 2 >= self.w.bits
        words: dict[int, int] = {}  # that have a number, a bit for each
        for word, value in enumerate(values):
            number = value - (1 << (self.w.bits - 2 * place)) if top and self._negative(value, place) else value
            words[number] = words.get(number, 0) | 1 << word
        bits = []
        for index in range(width):
            literals: dict[_Multiple, int] = {}
            for number, those in words.items():
                literal = self._literal(number, index)
                literals[literal] = literals.get(literal, 0) | those
            taken |= {literal for literal in literals if literal is not None}
            bits.append(self._bit(lane, literals))
        return _Part(bits if signed else [*bits, ZERO], ZERO)

    def _bit(self, lane: Hashable, literals: Mapping[_Multiple, int]) -> int:
        """The number of what takes these, each in so many words."""
        if len(literals) > 1:
            places, zero = len(literals) - (None in literals), None in literals
            return self._row_bits((lane, frozenset(literals.items())), len(literals), places, zero, False)
        (literal,) = literals
        return ZERO if literal is None else self._row_bits((lane, literal), 1, 1, False, False)

    def _negative(self, value: int, place: int) -> bool:
        return bool(value >> (self.w.bits - 2 * place - 1))

    def _literal(self, number: int, index: int) -> _Multiple:
        """Bit ``index`` of the input times a number within -2 .. 3."""
        index -= abs(number) == 2
        if not number or index < 0:
            return None
        if number < 0:
            return "negative", min(index, self.x.bits)
        end = self.x.bits + 2 * (number == 3)
        if index >= end and not self.x.signed:
            return None
        return "triple" if number == 3 and index else "x", min(index, end - 1)  # the lowest bit is the input's own

    def _multiples(self, taken: Collection[_Multiple]) -> None:
        """Registers of the input's multiples, as far as they are taken."""
        self._flip_flops += len(taken)
        for kind in ("triple", "negative"):
            if any(each is not None and each[0] == kind for each in taken):
                self._luts += adder(self.family, self.x.bits + 1)
                if kind == "negative" and FAMILIES[self.family].carry_bits == 1:  # a carry cell reads the complement
                    self._luts += self.x.bits


def _possible(digits: Sequence[int]) -> tuple[int, ...]:
    """Digits of two bits, and behind them all others that synthesis does not exclude: what is in the table it sees only
    of a bit that never changes, and of two that are alike."""
    columns = [tuple(digit >> bit & 1 for digit in digits) for bit in range(2)]
    if columns[0] == columns[1] or any(len(set(column)) == 1 for column in columns):
        return tuple(digits)
    return *digits, 0, 1, 2, 3


def _extended(bits: list[int], width: int) -> list[int]:
    """With copies of the sign, or cut."""
    return bits[:width] if width <= len(bits) else bits + bits[-1:] * (width - len(bits))


@cache
def row_product(family: str, x: IntType, digits: Digits, weights: tuple[int, ...]) -> Resources:
    """One product alone, in ``digits``."""
    rows = DigitRows(family, x, digits)
    rows.product(0, weights)
    return rows.resources


@cache
def multiple_product(family: str, x: IntType, w: IntType, weights: tuple[int, ...]) -> Resources:
    """One product alone, by multiples of the input, with their registers."""
    rows = MultipleRows(family, x, w)
    rows.product(0, weights)
    return rows.resources
