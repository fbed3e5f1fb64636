"""Products of look-up tables with weights from a table of few words, bit by bit: what is the same in all words, or the
same as another bit, is made once or not at all (:mod:`hdl_lib.digit_product`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache

from hdl_lib.adder_tree import shape_of
from hdl_lib.digit_product import Digits
from hwflow.ops.costs.basics import adder, carried_chain, chain
from hwflow.ops.costs.family import FAMILIES
from hwflow.ops.operator import Resources
from hwflow.types import IntType

Literal = int | tuple[Hashable, bool]  # 0, 1, or a bit of the input and whether it is complemented


@dataclass(frozen=True)
class RowBit:
    """A literal for each of the words, or one for all of them; ``lane``: the input's name."""

    literals: tuple[Literal, ...]
    lane: Hashable = None


@dataclass(frozen=True)
class SumBit:
    """An adder's or a register's bit."""

    name: Hashable


Bit = RowBit | SumBit
Shapes = Callable[[int, int], tuple[int, bool]]
ZERO, ONE = RowBit((0,)), RowBit((1,))


@dataclass(frozen=True)
class _Part:
    """A sum of rows: its bits, the last one the sign, and the bit that it lacks."""

    bits: tuple[Bit, ...]
    carry: Bit


class Rows:
    """Sums of rows, two at a time: what several of them have alike is made once. ``controls``: bits that choose a
    row's digit."""

    def __init__(self, family: str, controls: int) -> None:
        self.family, self._controls = family, controls
        self._made: set[Hashable] = set()  # tables in front of adders, and registers
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
                    part = self._sum(part, upper, 2 * (middle - first), *shapes(first, end), made)
                self._hold(part, level)
                sums.append((first, end, _Part(tuple(map(_held, part.bits)), _held(part.carry))))
            parts = sums
            level += 1

    def _sum(
        self, lower: _Part, upper: _Part, distance: int, width: int, signed: bool, name: tuple[Hashable, ...]
    ) -> _Part:
        above = _extended(lower.bits, width)[distance:]
        other = _extended(upper.bits, width - distance)
        top = () if signed else (ZERO,)
        if upper.carry == ZERO and (set(above) == {ZERO} or set(other) == {ZERO}):
            both = other if set(above) == {ZERO} else above
            return _Part(_extended(lower.bits, distance)[:distance] + both + top, lower.carry)
        kept = 0
        if upper.carry == ZERO:  # bits that meet zeros pass by the adder
            kept = next(place for place, pair in enumerate(zip(above, other, strict=True)) if ZERO not in pair)
        passing = tuple(b if a == ZERO else a for a, b in zip(above[:kept], other[:kept], strict=True))
        made = tuple(SumBit((*name, place)) for place in range(kept, width - distance))
        result = _Part(_extended(lower.bits, distance)[:distance] + passing + made + top, lower.carry)
        if name in self._made:
            return result
        self._made.add(name)
        for bit in (*above[kept:], *other[kept:]):
            self._table(bit)
        places = width - distance - kept
        carried = upper.carry not in (ZERO, ONE)
        self._luts += carried_chain(self.family, places) if carried else chain(self.family, places)
        return result

    def _table(self, bit: Bit) -> None:
        """Look-up tables in front of an adder."""
        if isinstance(bit, RowBit) and bit not in self._made:
            self._made.add(bit)
            self._luts += self._inputs(bit)

    def _inputs(self, bit: RowBit) -> int:
        """Look-up tables by the bits that this one is a function of."""
        different = set(bit.literals)
        if len(different) == 1 or different == {0, 1}:  # the latter is the digit's sign
            return int(_complemented(different))
        places = {literal[0] for literal in different if not isinstance(literal, int)}
        controls = min(self._controls, (len(different) - 1).bit_length())
        return 1 + (len(places) + controls > 4)

    def _hold(self, part: _Part, level: int) -> None:
        """Registers; those of a bit of the input or 0 are cleared without look-up tables."""
        for bit in {*part.bits, part.carry} - {ZERO, ONE}:
            if (level, bit) in self._made:
                continue
            self._made.add((level, bit))
            self._flip_flops += 1
            if isinstance(bit, SumBit) or bit in self._made:
                continue
            different = set(bit.literals) - {0}
            if len(different) > 1 or _complemented(different):
                self._luts += self._inputs(bit)


class DigitRows(Rows):
    """Products of inputs of type ``x`` with weights in ``digits`` (:mod:`hdl_lib.digit_product`)."""

    def __init__(self, family: str, x: IntType, digits: Digits) -> None:
        super().__init__(family, 2 + digits.wide)
        self.x, self.digits = x, digits

    def product(self, lane: Hashable, weights: Sequence[int]) -> None:
        """One more: of an input, by its name, with one of the ``weights`` for each word of the table."""
        columns = [tuple(self._digit(weight, place) for weight in weights) for place in range(self.digits.count)]
        rows = [self._row(lane, column, place) for place, column in enumerate(columns)]
        self.add(lane, columns, rows, lambda first, end: (self._width(first, end), True))

    def _width(self, first: int, end: int) -> int:
        ends = [a * b for a in (self.x.min, self.x.max) for b in self.digits.part(first, end)]
        return int(shape_of(min(ends) - 1, max(ends)).width)

    def _digit(self, weight: int, place: int) -> int:
        for _ in range(place):
            weight = weight - ((weight + 2 & 3) - 2) >> 2
        return weight if place == self.digits.count - 1 else (weight + 2 & 3) - 2

    def _row(self, lane: Hashable, values: Sequence[int], place: int) -> _Part:
        width = self._width(place, place + 1)
        bits = [_bit(lane, [self._literal(value, index) for value in values]) for index in range(width)]
        return _Part(tuple(bits), _bit(None, [int(value < 0) for value in values]))

    def _literal(self, value: int, index: int) -> Literal:
        """Bit ``index`` of the input times a digit, less one of a negative digit."""
        index -= abs(value) == 2
        if not value or index < 0 or (index >= self.x.bits and not self.x.signed):
            return int(value < 0)
        return min(index, self.x.bits - 1), value < 0


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
        rows = [self._row(lane, column, place) for place, column in enumerate(columns)]
        self._multiples(rows)
        self.add(lane, columns, rows, self._shape)

    def _shape(self, first: int, end: int) -> tuple[int, bool]:
        part = IntType(min(2 * end, self.w.bits) - 2 * first, self.w.signed and 2 * end >= self.w.bits)
        ends = [a * b for a in (self.x.min, self.x.max) for b in (part.min, part.max)]
        shape = shape_of(min(ends), max(ends))
        return int(shape.width), bool(shape.signed)

    def _row(self, lane: Hashable, values: Sequence[int], place: int) -> _Part:
        width, signed = self._shape(place, place + 1)
        top = self.w.signed and 2 * place + 2 >= self.w.bits
        numbers = [value - (1 << (self.w.bits - 2 * place)) if top and self._negative(value, place) else value
                   for value in values]
        bits = [_bit(lane, [self._literal(number, index) for number in numbers]) for index in range(width)]
        return _Part((*bits, *(() if signed else (ZERO,))), ZERO)

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

    def _multiples(self, rows: Sequence[_Part]) -> None:
        """Registers of the input's multiples, as far as they are taken."""
        literals = {literal for row in rows for bit in row.bits for literal in _literals(bit)}
        taken = {literal[0] for literal in literals if not isinstance(literal, int)}
        self._flip_flops += len(taken)
        for kind in ("triple", "negative"):
            if any(isinstance(each, tuple) and each[0] == kind for each in taken):
                self._luts += adder(self.family, self.x.bits + 1)
                if kind == "negative" and FAMILIES[self.family].carry_bits == 1:  # a carry cell reads the complement
                    self._luts += self.x.bits


def _bit(lane: Hashable, literals: Sequence[Literal]) -> RowBit:
    alike = len(set(literals)) == 1
    if alike and isinstance(literals[0], int):
        return ONE if literals[0] else ZERO
    return RowBit(tuple(literals[:1] if alike else literals), lane)


def _possible(digits: Sequence[int]) -> tuple[int, ...]:
    """Digits of two bits, and behind them all others that synthesis does not exclude: what is in the table it sees only
    of a bit that never changes, and of two that are alike."""
    columns = [tuple(digit >> bit & 1 for digit in digits) for bit in range(2)]
    if columns[0] == columns[1] or any(len(set(column)) == 1 for column in columns):
        return tuple(digits)
    return *digits, 0, 1, 2, 3


def _literals(bit: Bit) -> tuple[Literal, ...]:
    return bit.literals if isinstance(bit, RowBit) else ()


def _held(bit: Bit) -> Bit:
    """What a register's bit is behind it."""
    return bit if bit in (ZERO, ONE) else SumBit(bit)


def _complemented(literals: set[Literal]) -> bool:
    return any(not isinstance(literal, int) and literal[1] for literal in literals)


def _extended(bits: tuple[Bit, ...], width: int) -> tuple[Bit, ...]:
    """With copies of the sign, or cut."""
    return (bits + bits[-1:] * max(0, width - len(bits)))[:width]


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
