"""Products of look-up tables with weights from a table of few words, bit by bit: what is the same in all words, or the
same as another bit, is made once or not at all (:mod:`hdl_lib.digit_product`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hdl_lib.adder_tree import shape_of
from hdl_lib.digit_product import Digits
from hwflow.ops.costs.basics import adder, carried_chain, chain
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.operator import Resources
from hwflow.types import IntType

Literal = int | tuple[Hashable, bool]  # 0, 1, or a bit of the input and whether it is complemented
Shapes = Callable[[int, int], tuple[int, bool]]
ZERO, ONE = 0, 1  # bits that never change; all others have numbers from 2 on


@dataclass(frozen=True)
class _Part:
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
        self._free = 2
        self._inputs: dict[int, tuple[int, int]] = {}  # of a row's bit: tables in front of an adder, of a register
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

    def _numbered(self, name: Hashable, count: int) -> tuple[int, bool]:
        """The first of ``count`` numbers of what has this name, and whether they are new."""
        first = self._numbers.get(name)
        if first is not None:
            return first, False
        first = self._numbers[name] = self._free
        self._free += count
        return first, True

    def _sum(
        self, lower: _Part, upper: _Part, distance: int, width: int, signed: bool, name: tuple[Hashable, ...],
        level: int,
    ) -> _Part:
        above = _extended(lower.bits, width)[distance:]
        other = _extended(upper.bits, width - distance)
        low = _extended(lower.bits, distance)[:distance]
        top = [] if signed else [ZERO]
        if upper.carry == ZERO and not (any(above) and any(other)):
            return _Part(low + (above if any(above) else other) + top, lower.carry)
        kept = 0
        if upper.carry == ZERO:  # bits that meet zeros pass by the adder
            kept = next(place for place, pair in enumerate(zip(above, other, strict=True)) if all(pair))
        places = width - distance - kept
        first, new = self._numbered(name, places)
        passing = [a or b for a, b in zip(above[:kept], other[:kept], strict=True)]
        result = _Part([*low, *passing, *range(first, first + places), *top], lower.carry)
        if not new:
            return result
        if level == 0:  # in front of the first adders; behind them are registers
            for bit in {*above[kept:], *other[kept:]} - self._tables:
                self._luts += self._inputs[bit][0] if bit in self._inputs else 0
                self._tables.add(bit)
        carried = upper.carry not in (ZERO, ONE)
        self._luts += carried_chain(self.family, places) if carried else chain(self.family, places)
        return result

    def _row_bits(self, name: Hashable, count: int, literals: Collection[Literal]) -> int:
        """The number of the first of ``count`` bits of a row, each of which takes so many different ``literals``."""
        first, new = self._numbered(name, count)
        if new:
            tables = self._table(set(literals))
            changing = set(literals) - {0}  # a register of a bit of the input or 0 is cleared without a table
            before = tables if len(changing) > 1 or _complemented(changing) else 0
            self._inputs.update(dict.fromkeys(range(first, first + count), (tables, before)))
        return first

    def _table(self, different: set[Literal]) -> int:
        """Look-up tables of a bit, by the bits that it is a function of."""
        if len(different) == 1 or different == {0, 1}:  # the latter is the digit's sign
            return int(_complemented(different))
        places = {literal[0] for literal in different if not isinstance(literal, int)}
        controls = min(self._controls, (len(different) - 1).bit_length())
        return 1 + (len(places) + controls > 4)

    def _hold(self, part: _Part, level: int) -> None:
        """Registers, and what is in front of those of bits of rows."""
        if level == len(self._registers):
            self._registers.append({ZERO, ONE})
        new = {*part.bits, part.carry} - self._registers[level]
        self._registers[level] |= new
        self._flip_flops += len(new)
        if level == 0:
            self._luts += sum(self._inputs[bit][1] for bit in new - self._tables if bit in self._inputs)


class DigitRows(Rows):
    """Products of inputs of type ``x`` with weights in ``digits`` (:mod:`hdl_lib.digit_product`)."""

    def __init__(self, family: str, x: IntType, digits: Digits) -> None:
        super().__init__(family, 2 + digits.wide)
        self.x, self.digits = x, digits
        self._widths = _digit_widths(x, digits)

    def product(self, lane: Hashable, weights: Sequence[int]) -> None:
        """One more: of an input, by its name, with one of the ``weights`` for each word of the table."""
        columns = list(zip(*[_digits_of(weight, self.digits.count) for weight in weights], strict=True))
        rows = [self._row(lane, column, self._widths[place, place + 1]) for place, column in enumerate(columns)]
        self.add(lane, columns, rows, lambda first, end: (self._widths[first, end], True))

    def _row(self, lane: Hashable, values: Sequence[int], width: int) -> _Part:
        """The input times a digit, less one of a negative digit."""
        words = {digit: 0 for digit in (-2, -1, 0, 1, 2)}  # that have the digit, a bit for each
        for word, value in enumerate(values):
            words[value] |= 1 << word
        one, two, size = (words[1], words[-1]), (words[2], words[-2]), self.x.bits
        below, negative = (1 << len(values)) - 1, words[-1] | words[-2]
        bits = self._span(lane, one, (0, 0), words[-2], below, 0, 1)
        bits += self._span(lane, one, two, 0, below, 1, size)
        if self.x.signed:
            bits += self._span(lane, (one[0] | two[0], one[1] | two[1]), (0, 0), 0, below, size - 1, size)
        else:
            bits += self._span(lane, (0, 0), two, words[-1], below, size, size + 1)
            bits += self._span(lane, (0, 0), (0, 0), negative, below, size, size + 1)
        return _Part(_extended(bits, width), self._span(None, (0, 0), (0, 0), negative, below, 0, 1)[0])

    def _span(
        self, lane: Hashable, own: tuple[int, int], lower: tuple[int, int], ones: int, every: int, first: int, end: int
    ) -> list[int]:
        """Bits ``first .. end - 1`` of a row, of which the words ``own`` take the bit of the input at that place, the
        words ``lower`` the one below, each as it is and complemented, and in which the words ``ones`` are 1; ``every``:
        all words there are."""
        if not any(own):
            own, lower, first, end = lower, (0, 0), first - 1, end - 1
        if not any(own):
            if ones in (0, every):
                return [ONE if ones else ZERO] * (end - first)
            first, end = 0, 1
        used = own[0] | own[1] | lower[0] | lower[1] | ones
        places = [((place, complemented), words) for place, pair in ((1, own), (0, lower))
                  for complemented, words in enumerate(pair)]
        literals: list[Literal] = [(place, bool(c)) for (place, c), words in places if words]
        literals += [1] * bool(ones) + [0] * (used != every)
        number = self._row_bits((lane, own, lower, ones, every), self.x.bits, literals)
        return list(range(number + first, number + end))


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
        taken: set[Hashable] = set()
        rows = [self._row(lane, column, place, taken) for place, column in enumerate(columns)]
        self._multiples(taken)
        self.add(lane, columns, rows, self._shape)

    def _shape(self, first: int, end: int) -> tuple[int, bool]:
        part = IntType(min(2 * end, self.w.bits) - 2 * first, self.w.signed and 2 * end >= self.w.bits)
        ends = [a * b for a in (self.x.min, self.x.max) for b in (part.min, part.max)]
        shape = shape_of(min(ends), max(ends))
        return int(shape.width), bool(shape.signed)

    def _row(self, lane: Hashable, values: Sequence[int], place: int, taken: set[Hashable]) -> _Part:
        """A digit's product; to ``taken`` the bits of multiples are added that it takes."""
        width, signed = self._shape(place, place + 1)
        top = self.w.signed and 2 * place + 2 >= self.w.bits
        words: dict[int, int] = {}  # that have a number, a bit for each
        for word, value in enumerate(values):
            number = value - (1 << (self.w.bits - 2 * place)) if top and self._negative(value, place) else value
            words[number] = words.get(number, 0) | 1 << word
        bits = []
        for index in range(width):
            literals: dict[Literal, int] = {}
            for number, those in words.items():
                literal = self._literal(number, index)
                literals[literal] = literals.get(literal, 0) | those
            taken |= {literal[0] for literal in literals if not isinstance(literal, int)}
            bits.append(self._bit(lane, literals))
        return _Part(bits if signed else [*bits, ZERO], ZERO)

    def _bit(self, lane: Hashable, literals: Mapping[Literal, int]) -> int:
        """The number of what takes these, each in so many words."""
        if len(literals) > 1:
            return self._row_bits((lane, frozenset(literals.items())), 1, literals)
        (literal,) = literals
        return literal if isinstance(literal, int) else self._row_bits((lane, literal), 1, literals)

    def _negative(self, value: int, place: int) -> bool:
        return bool(value >> (self.w.bits - 2 * place - 1))

    def _literal(self, number: int, index: int) -> Literal:
        """Bit ``index`` of the input times a number within -2 .. 3."""
        index -= abs(number) == 2
        if not number or index < 0:
            return 0
        if number < 0:
            return ("negative", min(index, self.x.bits)), False
        end = self.x.bits + 2 * (number == 3)
        if index >= end and not self.x.signed:
            return 0
        kind = "triple" if number == 3 and index else "x"  # the lowest bit is the input's own
        return (kind, min(index, end - 1)), False

    def _multiples(self, taken: Collection[Hashable]) -> None:
        """Registers of the input's multiples, as far as they are taken."""
        self._flip_flops += len(taken)
        for kind in ("triple", "negative"):
            if any(isinstance(each, tuple) and each[0] == kind for each in taken):
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


def _complemented(literals: Collection[Literal]) -> bool:
    return any(not isinstance(literal, int) and literal[1] for literal in literals)


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
