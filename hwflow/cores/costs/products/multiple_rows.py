"""Products of look-up tables by multiples of the input, with weights from a table of few words, bit by bit: what is the
same in all words, or the same as another bit, is made once or not at all (:mod:`hdl_lib.arithmetic.multiplier`, the
form "lut").

A product is a sum of rows, one for each two bits of the weight, added two at a time. Bits are told from one another by
numbers: equal are those with the same number, whatever they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hdl_lib.arithmetic.adder_tree import shape_of
from hwflow.cores.costs.basics import adder, chain
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.operator import Resources
from hwflow.types import IntType

ZERO = 0  # the number of what is always 0
CONTROLS = 2  # bits that choose a multiple

_Multiple = tuple[str, int] | None  # a bit of a multiple of the input; None: 0
_Name = frozenset[tuple[_Multiple, int]] | None  # a row's bit, by what it is in which words; None: 0


@lru_cache(maxsize=1 << 12)
def multiple_product(family: str, x: IntType, w: IntType, weights: tuple[int, ...]) -> Resources:
    """One product of an input of type ``x`` with one of the ``weights``, one for each word of the table, with registers
    of the input's multiples, behind every adder and every part that is left over."""
    return _Product(family, x, w, weights).resources


class _Product:
    def __init__(self, family: str, x: IntType, w: IntType, weights: Sequence[int]) -> None:
        self._family, self._x, self._w = family, x, w
        self._numbers: dict[_Name, int] = {}
        # Of those numbers, the least of all: tables of a bit in front of an adder, in front of a register.
        self._inputs: list[tuple[int, int]] = [(0, 0)]
        self._luts = self._flip_flops = 0
        columns = [
            _possible([weight >> first & (3 if first + 1 < w.bits else 1) for weight in weights])
            for first in range(0, w.bits, 2)
        ]
        taken: set[_Multiple] = set()
        rows = []
        for place, column in enumerate(columns):
            names, multiples = _row(x, w, column, place)
            rows.append([self._number(name) for name in names])
            taken |= multiples
        self._multiples(taken)
        self._add(rows)

    @property
    def resources(self) -> Resources:
        return Resources(lut=self._luts, ff=self._flip_flops)

    def _number(self, name: _Name) -> int:
        """The number of a row's bit."""
        if name is None:
            return ZERO
        if name not in self._numbers:
            self._numbers[name] = len(self._inputs)
            kinds, zero = len(name), any(multiple is None for multiple, _ in name)
            # A multiple's bit as it is takes no table.
            tables = 1 + (kinds - zero + min(CONTROLS, (kinds - 1).bit_length()) > 4) if kinds > 1 else 0
            # A register of a bit of the input or 0 is cleared without a table.
            self._inputs.append((tables, tables if kinds - zero > 1 else 0))
        return self._numbers[name]

    def _multiples(self, taken: set[_Multiple]) -> None:
        """Registers of the input's multiples, as far as they are taken."""
        taken.discard(None)
        self._flip_flops += len(taken)
        kinds = {multiple[0] for multiple in taken if multiple is not None}
        self._luts += adder(self._family, self._x.bits + 1) * len(kinds & {"triple", "negative"})
        if "negative" in kinds and FAMILIES[self._family].carry_bits == 1:  # a carry cell reads the complement
            self._luts += self._x.bits

    def _add(self, rows: Sequence[list[int]]) -> None:
        """The sum of rows, each two places above the one before it."""
        parts = [(place, place + 1, row) for place, row in enumerate(rows)]
        made = len(self._inputs)  # numbers that are taken
        tables: set[int] = set()  # that are made, in front of the first adders; behind them are registers
        first_level = True
        while len(parts) > 1 or first_level:
            sums, registers = [], {ZERO}
            for index in range(0, len(parts), 2):
                first, end, part = parts[index]
                if index + 1 < len(parts):
                    middle, end, upper = parts[index + 1]
                    width, signed = _shape(self._x, self._w, first, end)
                    part, added = self._sum(part, upper, 2 * (middle - first), width, made)
                    made += width
                    part += [] if signed else [ZERO]
                    if first_level:
                        self._luts += sum([self._inputs[bit][0] for bit in added - tables])
                        tables |= added
                new = set(part) - registers
                registers |= new
                self._flip_flops += len(new)
                if first_level:
                    self._luts += sum([self._inputs[bit][1] for bit in new - tables if bit < len(self._inputs)])
                sums.append((first, end, part))
            parts, first_level = sums, False

    def _sum(
        self, lower: list[int], upper: list[int], distance: int, width: int, made: int
    ) -> tuple[list[int], set[int]]:
        """The bits of the sum, those of its adder numbered from ``made`` on, and what is in front of that."""
        bits = _extended(lower, width)
        low, above, other = bits[:distance], bits[distance:], _extended(upper, width - distance)
        # Bits that meet zeros pass by the adder.
        kept = next((place for place, pair in enumerate(zip(above, other, strict=True)) if all(pair)), len(above))
        places = len(above) - kept
        self._luts += chain(self._family, places)
        passing = [a or b for a, b in zip(above[:kept], other[:kept], strict=True)]
        return [*low, *passing, *range(made, made + places)], {*above[kept:], *other[kept:]}


@lru_cache(maxsize=1 << 12)
def _row(x: IntType, w: IntType, values: tuple[int, ...], place: int) -> tuple[list[_Name], frozenset[_Multiple]]:
    """The bits of the product with a digit that has these ``values``, and the bits of multiples that it takes."""
    width, signed = _shape(x, w, place, place + 1)
    top = w.signed and 2 * place + 2 >= w.bits
    bits_above = w.bits - 2 * place
    words: dict[int, int] = {}  # that have a number, a bit for each
    for word, value in enumerate(values):
        number = value - (1 << bits_above) if top and value >> bits_above - 1 else value
        words[number] = words.get(number, 0) | 1 << word
    names: list[_Name] = []
    taken: set[_Multiple] = set()
    for index in range(width):
        choices: dict[_Multiple, int] = {}
        for number, those in words.items():
            multiple = _multiple(x, number, index)
            choices[multiple] = choices.get(multiple, 0) | those
        taken.update(choices)
        names.append(_name(choices))
    return names if signed else [*names, None], frozenset(taken)


@lru_cache(maxsize=1 << 12)
def _shape(x: IntType, w: IntType, first: int, end: int) -> tuple[int, bool]:
    """Bits of the product with the digits ``first .. end - 1``, and whether it has a sign."""
    part = IntType(min(2 * end, w.bits) - 2 * first, w.signed and 2 * end >= w.bits)
    ends = [a * b for a in (x.min, x.max) for b in (part.min, part.max)]
    shape = shape_of(min(ends), max(ends))
    return int(shape.width), bool(shape.signed)


def _multiple(x: IntType, number: int, index: int) -> _Multiple:
    """Bit ``index`` of the input times a number within -2 .. 3."""
    index -= abs(number) == 2
    if not number or index < 0:
        return None
    if number < 0:
        return "negative", min(index, x.bits)
    end = x.bits + 2 * (number == 3)
    if index >= end and not x.signed:
        return None
    return "triple" if number == 3 and index else "x", min(index, end - 1)  # the lowest bit is the input's own


def _name(choices: Mapping[_Multiple, int]) -> _Name:
    """What takes these, each in so many words."""
    if len(choices) == (None in choices):
        return None
    return frozenset(choices.items() if len(choices) > 1 else ((multiple, 0) for multiple in choices))


def _possible(digits: Sequence[int]) -> tuple[int, ...]:
    """Digits of two bits, and behind them all others that synthesis does not exclude: what is in the table it sees only
    of a bit that never changes, and of two that are alike."""
    columns = [tuple(digit >> bit & 1 for digit in digits) for bit in range(2)]
    if columns[0] == columns[1] or any(len(set(column)) == 1 for column in columns):
        return tuple(digits)
    return *digits, 0, 1, 2, 3


def _extended(bits: list[int], width: int) -> list[int]:
    """Sign-extend or truncate."""
    return bits[:width] if width <= len(bits) else bits + bits[-1:] * (width - len(bits))
