"""Common subexpression elimination over canonical signed digits.

Every row of the matrix is a sum of digits: a term (at first an input) times ``2**shift``, added or subtracted. A *pair*
``(a, b, d, s)`` is the sum ``a + s * (b << d)``; it occurs in a row wherever that row has a digit of ``a`` at some
shift and one of ``b``, ``d`` above, whose signs agree but for ``s``. The most frequent pair becomes an adder, a new
term, and each of its occurrences a single digit; and so on until none occurs twice (R. Pasko et al., "A new
algorithm for elimination of common subexpressions", 1999; A. Hosangadi et al., "Optimizing hardware for linear
systems by two-term common subexpression elimination", 2005; C. Sun et al., "da4ml", 2025). An occurrence is worth the
bits in which its operands overlap, and :data:`_BASE` more: adders of operands far apart are wide for what they add.
(Other weights, and other orders of equal pairs, change the adders' bits by less than one percent.)

Counting. The digits of a term are two bit sets, of the added and the subtracted ones, with a bit per row and shift;
occurrences are the ones in the AND of two such sets, shifted. New digits belong to new terms only, so that the count of
a pair of known terms can only fall: a priority queue holds counts that may be stale, and a pair is recounted when it
comes first. The counts with a new term come from the rows that have it.

Depth. A row whose digits have the depths ``d_k`` can be summed in ``D`` levels of adders if and only if
``sum(2**d_k) <= 2**D`` (a tree with leaves at these depths; Kraft's inequality). Merging two digits of equal depth
keeps the sum, any other merge raises it; occurrences that would exceed a row's limit are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.numerics.shift_add.network import IntArray, Network, Output, Terms, digits_of
from hwflow.numerics.shift_add.row_sum import Digit, row_sum

Pair = tuple[int, int, int, int]  # a, b, d, s: a + s * (b << d)
_BASE = 4  # common bits that an occurrence is worth without any


def shift_add_network(
    matrix: npt.NDArray[Any], inputs: Sequence[tuple[int, int]], extra_depth: int = 0
) -> Network:
    """Return a network that multiplies vectors within the intervals ``inputs`` by ``matrix`` [rows, inputs].

    Its depth is :func:`depth_of` the matrix, or up to ``extra_depth`` more, which leaves more occurrences to merge.
    Rows that are equal up to sign and a power of two are summed once.
    """
    if matrix.ndim != 2 or matrix.shape[1] != len(inputs):
        raise ValueError(f"the matrix must have {len(inputs)} columns (inputs), not the shape {matrix.shape}")
    search = _Search(matrix, inputs, extra_depth)
    search.run()
    return search.network()


def depth_of(matrix: npt.NDArray[Any]) -> int:
    """Return the depth of the network: the levels of a tree over a row's digits, plus one where the sum must be
    negated."""
    rows = _Rows.of(matrix)
    return max(rows.levels(digits_of(rows.matrix)).sum(axis=0).tolist(), default=0)


@dataclass(frozen=True)
class _Rows:
    """Distinct rows. ``matrix``: the rows up to sign and a power of two, each with the sign needed. ``negated``: the
    negative is needed too. ``sources``: each row as (index of a distinct row or None for zero, sign, shift)."""

    matrix: IntArray
    negated: npt.NDArray[np.bool_]
    sources: list[tuple[int | None, int, int]]

    @classmethod
    def of(cls, matrix: npt.NDArray[Any]) -> _Rows:
        """Find the distinct rows of a matrix."""
        found: dict[bytes, int] = {}
        kept: list[IntArray] = []
        negated: list[bool] = []
        sources: list[tuple[int | None, int, int]] = []
        for row in np.asarray(matrix, dtype=np.int64):
            if not row.any():
                sources.append((None, 1, 0))
                continue
            together = int(np.bitwise_or.reduce(row))
            shift = (together & -together).bit_length() - 1
            reduced = row >> shift
            index = found.setdefault(reduced.tobytes(), len(kept))
            sign = 1
            if index == len(kept):
                kept.append(reduced)
                negated.append(False)
                found[(-reduced).tobytes()] = ~index
            elif index < 0:
                index, sign = ~index, -1
                negated[index] = True
            sources.append((index, sign, shift))
        for index in np.flatnonzero(negated).tolist():
            if all((digits <= 0).all() for digits in digits_of(kept[index])):  # the sum without a negation first
                kept[index] = -kept[index]
                sources = [(k, -sign if k == index else sign, shift) for k, sign, shift in sources]
        return cls(np.array(kept, dtype=np.int64).reshape(len(kept), matrix.shape[1]), np.array(negated, bool), sources)

    def levels(self, places: list[npt.NDArray[np.int8]]) -> IntArray:
        """Return [2, rows]: the levels of a tree over the digits, and of the negation after it."""
        counts = sum((np.count_nonzero(digits, axis=1) for digits in places), np.zeros(len(self.matrix), np.int64))
        positive = sum(((digits > 0).any(axis=1) for digits in places), np.zeros(len(self.matrix), np.int64)) > 0
        levels = np.array([(int(count) - 1).bit_length() for count in counts], dtype=np.int64)
        return np.stack([levels, (self.negated | ~positive).astype(np.int64)])


class _Search:
    def __init__(self, matrix: npt.NDArray[Any], inputs: Sequence[tuple[int, int]], extra_depth: int) -> None:
        self.matrix = _Rows.of(matrix)
        places = digits_of(self.matrix.matrix)
        self.terms = Terms(inputs)
        self.count = len(self.matrix.matrix)  # rows
        self.rows: list[dict[tuple[int, int], int]] = [{} for _ in range(self.count)]
        self.added = [0] * len(inputs)
        self.subtracted = [0] * len(inputs)
        for shift, digits in enumerate(places):
            for row, term in zip(*(axis.tolist() for axis in np.nonzero(digits)), strict=True):
                self._put(row, term, shift, int(digits[row, term]))
        self.load = [len(row) for row in self.rows]  # sum of 2**depth
        trees, negations = self.matrix.levels(places)
        most = max((trees + negations).tolist(), default=0) + extra_depth
        self.limits: list[int] = [1 << (most - negation) for negation in negations.tolist()]
        self.every_shift = sum(1 << shift * self.count for shift in range(len(places)))
        self.room: dict[int, int] = {}
        self.waiting: dict[int, list[tuple[int, int, int, int, int]]] = {}  # by worth: occurrences, pair
        self.top = 0
        self._initial_pairs(places)

    def _put(self, row: int, term: int, shift: int, sign: int) -> None:
        self.rows[row][term, shift] = sign
        digits = self.added if sign > 0 else self.subtracted
        digits[term] |= 1 << (shift * self.count + row)

    def _take(self, row: int, term: int, shift: int, sign: int) -> None:
        del self.rows[row][term, shift]
        digits = self.added if sign > 0 else self.subtracted
        digits[term] &= ~(1 << (shift * self.count + row))

    def _initial_pairs(self, places: list[npt.NDArray[np.int8]]) -> None:
        """Count the pairs of inputs by matrix products: equal signs minus unequal ones, and both together."""
        inputs = len(self.added)
        widths = np.array(self.terms.width)
        digits = [place.astype(np.float32) for place in places]
        found = []
        for distance in range(len(places)):
            net, all_of = (np.zeros((inputs, inputs), dtype=np.float32) for _ in range(2))
            for low, high in zip(digits, digits[distance:], strict=False):
                net += low.T @ high
                all_of += np.abs(low).T @ np.abs(high)
            for sign in (1, -1):
                counts = ((all_of + sign * net) / 2).astype(np.int64)
                if distance == 0:
                    counts = np.triu(counts, 1)
                a, b = np.nonzero(counts >= 2)
                common = np.maximum(0, np.minimum(widths[a] - distance, widths[b]))
                ends = np.full((2, len(a)), ((distance,), (sign,)))
                found.append(np.stack([counts[a, b] * (_BASE + common), counts[a, b], a, b, *ends]))
        table = np.concatenate([np.zeros((6, 0), dtype=np.int64), *found], axis=1)
        table = table[:, np.argsort(table[0], kind="stable")]
        scores, starts = np.unique(table[0], return_index=True)
        pairs = list(map(tuple, table[1:].T.tolist()))
        for score, start, end in zip(scores.tolist(), starts, [*starts, len(pairs)][1:], strict=True):
            self.waiting[score] = pairs[start:end]
            self.top = score

    def _wait(self, count: int, pair: Pair) -> None:
        a, b, distance, _ = pair
        worth = count * (_BASE + max(0, min(self.terms.width[a] - distance, self.terms.width[b])))
        self.waiting.setdefault(worth, []).append((count, *pair))
        self.top = max(self.top, worth)

    def run(self) -> None:
        """Merge pairs until none occurs twice."""
        while self.top:
            pairs = self.waiting.get(self.top)
            if not pairs:
                self.waiting.pop(self.top, None)
                self.top -= 1
                continue
            known, a, b, distance, sign = pairs.pop()
            pair = a, b, distance, sign
            added, subtracted = self._occurrences(pair)
            count = added.bit_count() + subtracted.bit_count()
            if count < known:
                if count >= 2:
                    self._wait(count, pair)
            else:
                self._merge(pair, added, subtracted)

    def _occurrences(self, pair: Pair) -> tuple[int, int]:
        """Return the occurrences of the pair and of its negative, by the place of ``a``'s digit."""
        a, b, distance, sign = pair
        up = distance * self.count
        same, other = self.added[b] >> up, self.subtracted[b] >> up
        if sign < 0:
            same, other = other, same
        added, subtracted = self.added[a] & same, self.subtracted[a] & other
        depth = self.terms.depth
        if depth[a] != depth[b]:
            room = self._room(abs((1 << depth[a]) - (1 << depth[b])))
            added, subtracted = added & room, subtracted & room
        return added, subtracted

    def _may_take(self, row: int, more: int) -> bool:
        return self.load[row] + more <= self.limits[row]

    def _room(self, more: int) -> int:
        """Return the rows, at every shift, whose load may grow by ``more``."""
        if more not in self.room:
            rows = sum(1 << row for row in range(self.count) if self._may_take(row, more))
            self.room[more] = rows * self.every_shift
        return self.room[more]

    def _merge(self, pair: Pair, added: int, subtracted: int) -> None:
        a, b, distance, sign = pair
        depth = self.terms.depth
        more = abs((1 << depth[a]) - (1 << depth[b]))
        places = sorted([(place, 1) for place in _ones(added)] + [(place, -1) for place in _ones(subtracted)])
        taken = []
        for place, first in places:
            shift, row = divmod(place, self.count)
            digits = self.rows[row]
            # Occurrences may share digits of one term, and a row's limit may be reached.
            if digits.get((a, shift)) != first or digits.get((b, shift + distance)) != first * sign:
                continue
            if not self._may_take(row, more):
                continue
            self._take(row, a, shift, first)
            self._take(row, b, shift + distance, first * sign)
            if more:
                self._load(row, more)
            taken.append((row, shift, first))
        if len(taken) == 1:  # two occurrences overlapped: one is not worth an adder
            row, shift, first = taken[0]
            self._put(row, a, shift, first)
            self._put(row, b, shift + distance, first * sign)
            return
        term = self.terms.add(a, 0, b, distance, subtract=sign < 0)
        self.added.append(0)
        self.subtracted.append(0)
        for row, shift, first in taken:
            self._put(row, term, shift, first)
        self._new_pairs(term, taken)

    def _load(self, row: int, more: int) -> None:
        self.load[row] += more
        for step, room in self.room.items():
            if not self._may_take(row, step):
                self.room[step] = room & ~(self.every_shift << row)

    def _new_pairs(self, term: int, places: list[tuple[int, int, int]]) -> None:
        """Count the pairs of a new term in the rows that have it."""
        counts: dict[tuple[int, int, int], int] = {}
        for row, shift, sign in places:
            for (other, there), value in self.rows[row].items():
                key = other, there - shift, value * sign
                counts[key] = counts.get(key, 0) + 1
        for (other, distance, sign), count in counts.items():
            if count >= 2 and (other != term or distance > 0):
                pair = (term, other, distance, sign) if distance >= 0 else (other, term, -distance, sign)
                self._wait(count, pair)

    def network(self) -> Network:
        """Return the network, with every row's remaining digits summed."""
        sums: list[dict[int, tuple[int, int]]] = []
        for row, digits in enumerate(self.rows):
            left = [Digit(term, shift, sign) for (term, shift), sign in digits.items()]
            total, shift = row_sum(self.terms, left, self.limits[row])
            sums.append({1: (total, shift)})
            if self.matrix.negated[row]:
                sums[row][-1] = self.terms.add(None, 0, total, 0, subtract=True), shift
        outputs = []
        for source, sign, more in self.matrix.sources:
            if source is None:
                outputs.append(Output(None, 0))
            else:
                term, shift = sums[source][sign]
                outputs.append(Output(term, shift + more))
        return Network(self.terms.inputs, tuple(self.terms.adders), tuple(outputs))


def _ones(number: int) -> list[int]:
    """Return the places of the ones, lowest first."""
    places = []
    while number:
        low = number & -number
        places.append(low.bit_length() - 1)
        number ^= low
    return places
