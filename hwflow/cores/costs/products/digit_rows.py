"""Products of look-up tables with weights from a table of few words, bit by bit: what is the same in all words, or the
same as another bit, is made once or not at all (:mod:`hdl_lib.arithmetic.digit_product`).

A product is a sum of rows, one for each digit of the weight, added two at a time. A bit of a row is in each word a bit
of the input, its complement, the one below it, the complement of that, 1 or 0: a *choice*, by the word's digit. Bits
are told from one another by numbers: equal are those with the same number, whatever they come from. Arrays have a row
for each product, so that many take hardly longer than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.digit_product import Digits
from hwflow.cores.costs.basics import carried_chain, chain
from hwflow.cores.operator import Resources
from hwflow.ir.graph import IntArray
from hwflow.types import IntType

MOST_WORDS = 16
"""Of a table whose products are looked at: so many choices of a bit, and the input's number, fit 63 bits."""

ZERO, ONE = 0, 1  # bits that never change
CONSTANTS = 2
_INNER_SPAN = 1  # of a row's

# What a bit is in a word, where it is not 0: the input's bit at that place, its complement, the one below it, the
# complement of that, 1.
OWN, NOT_OWN, BELOW, NOT_BELOW, SET = 1, 2, 3, 4, 5
KINDS = 6
_Kinds = tuple[int, int, int, int, int]  # of a bit, by the word's digit from -2 to 2
LOWEST_DIGIT = -2
_FIRST: _Kinds = (SET, NOT_OWN, 0, OWN, 0)  # a row's lowest bit
_INNER: _Kinds = (NOT_BELOW, NOT_OWN, 0, OWN, BELOW)  # those at the other places of the input
_SIGN: _Kinds = (NOT_OWN, NOT_OWN, 0, OWN, OWN)  # the copy of the input's sign
_ABOVE: _Kinds = (NOT_BELOW, SET, 0, 0, BELOW)  # the one above an input without sign
_NEGATIVE: _Kinds = (SET, SET, 0, 0, 0)  # the one above that, and what a negative digit's product lacks


def row_products(family: str, x: IntType, digits: Digits, weights: Sequence[Sequence[int]]) -> list[Resources]:
    """What each product of an input of type ``x`` takes by itself, with a register behind every adder and every part
    that is left over. ``weights``: of each product one for each word of its table, at most :data:`MOST_WORDS`."""
    most = max(map(len, weights), default=0)
    # A word that stands twice in a table changes nothing.
    filled = [[*words, *words[:1] * (most - len(words))] for words in map(tuple, weights)]
    return _Products(family, x, digits, filled, None).resources() if filled else []


def row_product(family: str, x: IntType, digits: Digits, weights: Sequence[int]) -> Resources:
    """One product alone."""
    return row_products(family, x, digits, [weights])[0]


def joint_row_products(
    family: str, x: IntType, digits: Digits, weights: Sequence[Sequence[int]], lanes: Sequence[int]
) -> Resources:
    """What different products take together; ``lanes``: the input of each, by a number from 0 on. All have the same
    number of words."""
    return _Products(family, x, digits, weights, lanes).resources()[0] if weights else Resources()


class _Part:
    """A sum of rows: its ``bits`` [products, bits], the last one the sign, and the bit that it lacks; ``name``: for
    each product a number that tells the input and the digits."""

    def __init__(self, bits: IntArray, carry: IntArray, name: IntArray) -> None:
        self.bits, self.carry, self.name = bits, carry, name


class _Products:
    """Products that are counted together, or without ``lanes`` each by itself: a group is what is counted together."""

    def __init__(
        self, family: str, x: IntType, digits: Digits, weights: Sequence[Sequence[int]], lanes: Sequence[int] | None
    ) -> None:
        count = len(weights)
        self._x, self._digits, self._widths = x, digits, _digit_widths(x, digits)
        self._lanes = np.arange(count) if lanes is None else np.array(lanes, dtype=np.int64)
        self._groups = self._lanes if lanes is None else np.zeros(count, dtype=np.int64)
        self._luts = np.zeros(int(self._groups[-1]) + 1, dtype=np.int64)
        self._owners = [np.zeros(CONSTANTS, dtype=np.int64)]  # of each number the group
        self._numbers = CONSTANTS  # that are taken
        # [2, numbers] of the bits of rows: tables in front of an adder, in front of a register.
        self._tables: IntArray
        # Numbers [products, bits] in front of an adder, or in a register behind, of the first sums one after the other.
        self._added: list[IntArray] = []
        self._held: list[list[IntArray]] = []  # of all levels' sums, the bits they lack among them
        widest = range(self._widths[0, digits.count] + 1)
        self._chains = np.array([[length(family, width) for width in widest] for length in (chain, carried_chain)])
        self._add(self._rows(_digits_of(weights, digits.count)))

    def resources(self) -> list[Resources]:
        """Of each group."""
        owners, groups = np.concatenate(self._owners), len(self._luts)
        flip_flops = np.zeros(groups, dtype=np.int64)
        for level in self._held:
            held = np.zeros(self._numbers, dtype=bool)
            for bits in level:
                held[bits] = True
            held[:CONSTANTS] = False
            flip_flops += np.bincount(owners[held], minlength=groups)
        end = CONSTANTS + self._tables.shape[1]
        added, held_first = self._first(self._added)[CONSTANTS:end], self._first(self._held[0])[CONSTANTS:end]
        luts = np.where(added < _NEVER, self._tables[0], 0) + np.where(held_first < added, self._tables[1], 0)
        total = self._luts + np.bincount(owners[CONSTANTS:end], weights=luts, minlength=groups).astype(np.int64)
        return [Resources(lut=a, ff=b) for a, b in zip(total.tolist(), flip_flops.tolist(), strict=True)]

    def _first(self, sums: Sequence[IntArray]) -> IntArray:
        """For each number in which sum it comes first, product by product."""
        bits = np.concatenate(sums, axis=1)
        places = np.repeat(np.arange(len(sums)), [part.shape[1] for part in sums])
        turns = np.arange(len(bits))[:, None] * len(sums) + places
        found = np.full(self._numbers, _NEVER)
        found[bits.reshape(-1)[::-1]] = turns.reshape(-1)[::-1]  # of several the last one stays
        return found

    def _take(self, groups: IntArray, each: int) -> IntArray:
        """The first of ``each`` new numbers for things that belong to these groups."""
        first = self._numbers + each * np.arange(len(groups))
        self._owners.append(np.repeat(groups, each))
        self._numbers += each * len(groups)
        return first

    def _rows(self, digits: IntArray) -> list[_Part]:
        """The inputs times their digits [words, products, places], less one of a negative digit."""
        size = self._x.bits
        spans = [(_FIRST, 0), (_INNER, 1)]  # with the place of their first bit; the second has bits at all others
        spans += [(_SIGN, size - 1)] if self._x.signed else [(_ABOVE, size), (_NEGATIVE, 0)]
        is_digit = digits == np.arange(LOWEST_DIGIT, LOWEST_DIGIT + 5).reshape(-1, 1, 1, 1)
        words = np.tensordot(KINDS ** np.arange(len(digits)), is_digit.astype(np.int64), (0, 1))
        firsts, carry = self._choices([*spans, (_NEGATIVE, 0)], words)
        spread = [firsts[0][..., None], firsts[1][..., None] + np.arange(size - 1)]
        bits = np.concatenate([*spread, *(first[..., None] for first in firsts[2:])], axis=2)
        bits[(digits == 0).all(axis=0)] = ZERO
        names = np.tensordot(np.arange(5), words, 1) * (int(self._lanes.max()) + 1) + self._lanes[:, None]
        names = np.unique(names, return_inverse=True)[1].reshape(names.shape)
        return [
            _Part(_extended(bits[:, place], self._widths[place, place + 1]), carry[:, place], names[:, place])
            for place in range(self._digits.count)
        ]

    def _choices(self, spans: Sequence[tuple[_Kinds, int]], words: IntArray) -> tuple[IntArray, IntArray]:
        """Numbers of the first bits of ``spans`` [spans, products, places], and of those of the last one, which is the
        same for all inputs. ``words``: by digit those that have it, each a power of :data:`KINDS`."""
        kinds = np.array([kinds for kinds, _ in spans])
        own = _present(kinds, words)
        lowered = np.array([0, 0, 0, OWN, NOT_OWN, SET])[kinds]  # where no word has the own bit, the one below is that
        at_own, below = own[OWN] | own[NOT_OWN], _present(lowered, words)
        at_below = ~at_own & (below[OWN] | below[NOT_OWN])
        present = np.where(at_own, own, below)
        choice = np.where(at_own, np.tensordot(kinds, words, 1), np.tensordot(lowered, words, 1))
        place = np.array([first for _, first in spans])[:, None, None]
        place = np.where(at_own, place, np.where(at_below, place - 1, 0))
        changing = at_own | at_below | (present[0] & present[SET])
        inputs = int(self._lanes.max()) + 1
        source = np.broadcast_to(self._lanes[:, None], choice.shape).copy()
        source[-1] = inputs + self._groups[:, None]
        names = choice * (inputs + len(self._luts)) + source
        numbers = present[SET].astype(np.int64) * ONE
        inner = np.zeros(names.shape, dtype=bool)
        inner[_INNER_SPAN] = changing[_INNER_SPAN]
        # An inner span has numbers for all places of the input, and other bits that are like its own have these.
        known, at, which = np.unique(names[inner], return_index=True, return_inverse=True)
        groups = np.broadcast_to(self._groups[:, None], names.shape)
        blocks = self._take(groups[inner][at], self._x.bits)
        tables = [np.repeat(_tables(present[:, inner][:, at], 2 + self._digits.wide), self._x.bits, axis=1)]
        numbers[inner] = blocks[which] + place[inner]
        found = np.searchsorted(known, names)
        alike = changing & ~inner & (np.append(known, -1)[found] == names)
        numbers[alike] = blocks[found[alike]] + place[alike]
        rest = changing & ~inner & ~alike  # single bits, at the first place or the last
        _, at, which = np.unique(names[rest] * 2 + (place[rest] > 0), return_index=True, return_inverse=True)
        numbers[rest] = self._take(groups[rest][at], 1)[which]
        tables.append(_tables(present[:, rest][:, at], 2 + self._digits.wide))
        self._tables = np.concatenate(tables, axis=1)
        return numbers[:-1], numbers[-1]

    def _add(self, rows: Sequence[_Part]) -> None:
        """The sums of rows, each two places above the one before it."""
        parts = [(place, place + 1, row) for place, row in enumerate(rows)]
        while len(parts) > 1 or not self._held:
            sums, held = [], []
            for index in range(0, len(parts), 2):
                first, end, part = parts[index]
                added = np.zeros((len(part.bits), 0), dtype=np.int64)
                if index + 1 < len(parts):
                    middle, end, upper = parts[index + 1]
                    part, added = self._sum(part, upper, 2 * (middle - first), self._widths[first, end])
                if not self._held:
                    self._added.append(added)
                held.append(np.column_stack([part.bits, part.carry]))
                sums.append((first, end, part))
            self._held.append(held)
            parts = sums

    def _sum(self, lower: _Part, upper: _Part, distance: int, width: int) -> tuple[_Part, IntArray]:
        """The sum, and the bits in front of its adder."""
        at = which = np.arange(len(lower.name))
        if len(self._luts) == 1:  # else each has an input of its own
            names = lower.name * (int(upper.name.max()) + 1) + upper.name
            _, at, which = np.unique(names, return_index=True, return_inverse=True)
        low, above = np.split(_extended(lower.bits, width), [distance], axis=1)
        other = _extended(upper.bits, width - distance)
        # Without a bit that is lacking, those that meet zeros pass by the adder.
        passes = upper.carry == ZERO
        both = (above != ZERO) & (other != ZERO)
        alone = passes & ~both.any(axis=1)
        kept = np.where(passes, both.argmax(axis=1), 0)
        places = np.where(alone, 0, width - distance - kept)
        inside = np.arange(width - distance) >= (width - distance - places)[:, None]
        first = self._take(self._groups[at], width - distance)[which]
        made = first[:, None] + np.arange(width - distance)
        result = np.where(inside, made, np.where(above != ZERO, above, other))
        tables = self._chains[(upper.carry >= CONSTANTS).astype(np.int64), places]
        self._luts += np.bincount(
            self._groups[at], weights=np.where(alone, 0, tables)[at], minlength=len(self._luts)
        ).astype(np.int64)
        added = np.where(np.column_stack([inside, inside]), np.column_stack([above, other]), ZERO)
        return _Part(np.column_stack([low, result]), lower.carry, which), added


_NEVER = np.iinfo(np.int64).max


def _present(kinds: IntArray, words: IntArray) -> npt.NDArray[np.bool_]:
    """[KINDS, spans, products, places]: which ``kinds`` [spans, digits] a span's bits are in some word."""
    is_kind = (kinds == np.arange(KINDS)[:, None, None]).astype(np.int64)
    found: npt.NDArray[np.bool_] = np.tensordot(is_kind, (words > 0).astype(np.int64), 1) > 0
    return found


def _tables(present: npt.NDArray[np.bool_], controls: int) -> IntArray:
    """[2, choices]: look-up tables of bits that are of the kinds ``present`` [KINDS, choices] in front of an adder, and
    of a register. ``controls``: bits that choose the digit."""
    kinds = present.sum(axis=0)
    places = (present[OWN] | present[NOT_OWN]).astype(np.int64) + (present[BELOW] | present[NOT_BELOW])
    complemented = present[NOT_OWN] | present[NOT_BELOW]
    choosing = np.minimum(controls, np.array([(n - 1).bit_length() for n in range(1, KINDS + 1)])[kinds - 1])
    # Of one kind, or constants, the digit's sign alone matters.
    tables = np.where((kinds > 1) & (places > 0), 1 + (places + choosing > 4), complemented)
    # A register of a bit of the input or 0 is cleared without a table.
    behind = np.where((kinds - present[0] > 1) | complemented, tables, 0)
    return np.stack([tables, behind])


def _extended(bits: IntArray, width: int) -> IntArray:
    """Sign-extend or truncate."""
    return bits[:, np.minimum(np.arange(width), bits.shape[1] - 1)]


def _digits_of(weights: Sequence[Sequence[int]], count: int) -> IntArray:
    """[words, products, places], the lowest digit first; the top one is what is left."""
    left = np.array(weights, dtype=np.int64 if count < 31 else object).T
    digits = []
    for _ in range(count - 1):
        digits.append((left + 2 & 3) - 2)
        left = left - digits[-1] >> 2
    return np.stack([*digits, left], axis=2).astype(np.int64)


@cache
def _digit_widths(x: IntType, digits: Digits) -> Mapping[tuple[int, int], int]:
    """Bits of the product with the digits ``first .. end - 1``, less one of each that is negative."""
    found = {}
    for first in range(digits.count):
        for end in range(first + 1, digits.count + 1):
            ends = [a * b for a in (x.min, x.max) for b in digits.part(first, end)]
            found[first, end] = int(shape_of(min(ends) - 1, max(ends)).width)
    return MappingProxyType(found)
