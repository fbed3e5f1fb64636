"""Products of look-up tables with weights from a table of few words, bit by bit: what is the same in all words, or the
same as another bit, is made once or not at all (:mod:`hdl_lib.digit_product`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache

from hdl_lib.adder_tree import shape_of
from hdl_lib.digit_product import Digits
from hwflow.ops.costs.basics import carried_chain, chain
from hwflow.ops.operator import Resources
from hwflow.types import IntType

Literal = int | tuple[int, bool]  # 0, 1, or a bit of the input and whether it is complemented


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
ZERO, ONE = RowBit((0,)), RowBit((1,))


@dataclass(frozen=True)
class _Part:
    """A sum of rows: its bits, the last one the sign, and the bit that it lacks."""

    bits: tuple[Bit, ...]
    carry: Bit


class DigitRows:
    """Products of inputs of type ``x`` with weights in ``digits``: what several of them have alike is made once."""

    def __init__(self, family: str, x: IntType, digits: Digits) -> None:
        self.family, self.x, self.digits = family, x, digits
        self._made: set[Hashable] = set()  # tables in front of adders, and registers
        self._luts = self._flip_flops = 0

    @property
    def resources(self) -> Resources:
        """With a register behind every adder and every part that is left over."""
        return Resources(lut=self._luts, ff=self._flip_flops)

    def product(self, lane: Hashable, weights: Sequence[int]) -> None:
        """One more: of an input, by its name, with one of the ``weights`` for each word of the table."""
        columns = [tuple(self._digit(weight, place) for weight in weights) for place in range(self.digits.count)]
        parts = [(place, place + 1, self._row(lane, columns[place], place)) for place in range(self.digits.count)]
        level = 0
        while len(parts) > 1 or level == 0:
            sums = []
            for index in range(0, len(parts), 2):
                first, end, part = parts[index]
                if index + 1 < len(parts):
                    middle, end, upper = parts[index + 1]
                    name = lane, first, *columns[first:end]
                    part = self._sum(part, upper, 2 * (middle - first), self._width(first, end), name)
                self._hold(part, level)
                sums.append((first, end, _Part(tuple(map(_held, part.bits)), _held(part.carry))))
            parts = sums
            level += 1

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

    def _sum(self, lower: _Part, upper: _Part, distance: int, width: int, name: tuple[Hashable, ...]) -> _Part:
        above = _extended(lower.bits, width)[distance:]
        other = _extended(upper.bits, width - distance)
        if upper.carry == ZERO and (set(above) == {ZERO} or set(other) == {ZERO}):
            both = other if set(above) == {ZERO} else above
            return _Part(_extended(lower.bits, distance)[:distance] + both, lower.carry)
        kept = 0
        if upper.carry == ZERO:  # bits that meet zeros pass by the adder
            kept = next(place for place, pair in enumerate(zip(above, other, strict=True)) if ZERO not in pair)
        passing = tuple(b if a == ZERO else a for a, b in zip(above[:kept], other[:kept], strict=True))
        made = tuple(SumBit((*name, place)) for place in range(kept, width - distance))
        result = _Part(_extended(lower.bits, distance)[:distance] + passing + made, lower.carry)
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
        controls = min(2 + self.digits.wide, (len(different) - 1).bit_length())
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


def _bit(lane: Hashable, literals: Sequence[Literal]) -> RowBit:
    alike = len(set(literals)) == 1
    if alike and isinstance(literals[0], int):
        return ONE if literals[0] else ZERO
    return RowBit(tuple(literals[:1] if alike else literals), lane)


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
    """One product alone."""
    rows = DigitRows(family, x, digits)
    rows.product(0, weights)
    return rows.resources
