"""Minimize sums of tables that share variables, by bucket elimination.

A :class:`Table` gives, for some values of its variables (its *cells*), several rows of integer costs (resources). A
*selection* is a value of every variable and a row of every table in the cell of these values. Under given weights a
table's cell costs as much as its cheapest row, and the least selection is found by bucket elimination (Dechter: Bucket
elimination, a unifying framework for reasoning, Artificial Intelligence 113, 1999): variables are eliminated in an
order that keeps the tables small, in time linear in the length of a chain and of any graph made of chains and branches
that rejoin. A backward pass gives the least cost of the rest at each point of the elimination: lower bounds for the
exact search of :mod:`hwflow.schedule.search.selection`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from heapq import heapify, heappop, heappush
from math import prod
from operator import add
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows of ``needs`` [rows, resources] in cells of one or two different variables: ``places`` [rows, variables]."""

    variables: tuple[int, ...]
    places: IntArray
    needs: IntArray


@dataclass(frozen=True)
class Selection:
    """The row chosen in each table, and their sum."""

    rows: tuple[int, ...]
    needs: IntArray


class Part(NamedTuple):
    """A summand of a bucket: a table, or the message of another bucket, by its ``number``."""

    number: int
    is_message: bool = False


@dataclass
class Bucket:
    """One elimination step: ``variable`` is eliminated from the sum of ``tables`` and the messages of ``children``.
    ``scope``: the variables of the resulting message; ``clique``: these and the variable itself, last. ``parent``: the
    bucket that takes the message."""

    variable: int
    scope: tuple[int, ...]
    tables: list[int]
    children: list[int]
    parent: int | None = None

    @cached_property
    def clique(self) -> tuple[int, ...]:
        return (*self.scope, self.variable)

    @cached_property
    def parts(self) -> list[Part]:
        """Return the summands, tables first."""
        return [Part(t) for t in self.tables] + [Part(c, is_message=True) for c in self.children]


class Elimination:
    """Tables over variables of ``sizes`` values each, and their elimination order."""

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int]) -> None:
        self.tables, self.sizes = tables, sizes
        self.buckets = _buckets(tables, sizes)
        self.shapes = [tuple(sizes[v] for v in bucket.clique) for bucket in self.buckets]
        self._axes = {
            part: _axes(self._variables(part), bucket.clique, sizes) for bucket in self.buckets for part in bucket.parts
        }
        spans = [prod(sizes[v] for v in t.variables) for t in tables]
        self._offsets = [0, *np.cumsum(spans).tolist()]
        cells = [
            np.ravel_multi_index(tuple(t.places.T), tuple(sizes[v] for v in t.variables)) + offset
            for t, offset in zip(tables, self._offsets, strict=False)
        ]
        # All rows of all tables, sorted by cell: one product with the weights serves them all.
        self._first = [0, *np.cumsum([len(t.needs) for t in tables]).tolist()]
        flat = np.concatenate(cells)
        self._order = np.argsort(flat, kind="stable")
        self._needs = np.concatenate([t.needs for t in tables])[self._order]
        self._cells, self._starts = np.unique(flat[self._order], return_index=True)
        self._ends = np.append(self._starts[1:], len(flat))
        self._places = np.zeros(self._offsets[-1], dtype=np.int64)
        self._places[self._cells] = np.arange(len(self._cells))

    def weigh(self, weights: FloatArray) -> Weighed:
        """Return the tables under ``weights`` of the resources."""
        rows = self._needs @ weights
        flat = np.full(self._offsets[-1], np.inf)
        flat[self._cells] = np.minimum.reduceat(rows, self._starts)
        shapes = [tuple(self.sizes[v] for v in t.variables) for t in self.tables]
        cells = [
            flat[a:b].reshape(shape)
            for a, b, shape in zip(self._offsets, self._offsets[1:], shapes, strict=False)
        ]
        return Weighed(self, weights, cells, rows)

    def rows_of(self, values: Sequence[int], weighed: FloatArray) -> tuple[int, ...]:
        """Return the cheapest row of each table at these ``values`` of the variables; the first of equal ones."""
        chosen = []
        for index, table in enumerate(self.tables):
            cell = 0
            for v in table.variables:
                cell = cell * self.sizes[v] + values[v]
            at = self._places[self._offsets[index] + cell]
            start, end = int(self._starts[at]), int(self._ends[at])
            best = start if end == start + 1 else start + int(weighed[start:end].argmin())
            chosen.append(int(self._order[best]) - self._first[index])
        return tuple(chosen)

    def spread(self, part: Part, table: FloatArray) -> FloatArray:
        """Return a table or message with an axis for each variable of its bucket's clique, of length one where it does
        not depend on the variable."""
        order, shape = self._axes[part]
        return table.transpose(order).reshape(shape)

    def _variables(self, part: Part) -> tuple[int, ...]:
        return self.buckets[part.number].scope if part.is_message else self.tables[part.number].variables

    def sum_of(self, rows: Sequence[int]) -> IntArray:
        """Return the sum of these rows of the tables."""
        total: IntArray = np.sum([t.needs[r] for t, r in zip(self.tables, rows, strict=True)], axis=0)
        return total


class Weighed:
    """The tables under one vector of weights. ``least``: the least sum; infinite if no selection is possible."""

    def __init__(self, order: Elimination, weights: FloatArray, cells: list[FloatArray], rows: FloatArray) -> None:
        self._order, self.weights, self._cells, self._rows = order, weights, cells, rows
        self._messages: list[FloatArray] = []  # sums over cliques are not kept: they are many times as large
        for bucket, shape in zip(order.buckets, order.shapes, strict=True):
            self._messages.append(_of_shape(reduce(add, map(self._part, bucket.parts)), shape).min(axis=-1))
        roots = [m for m, b in zip(self._messages, order.buckets, strict=True) if b.parent is None]
        self.least = float(sum(float(m) for m in roots))
        self._outside: list[FloatArray] | None = None
        self._around: dict[tuple[int, frozenset[Part], tuple[int, ...]], FloatArray] = {}

    def _part(self, part: Part) -> FloatArray:
        """Return a table or a child's message, with an axis for each variable of its bucket's clique."""
        return self._order.spread(part, (self._messages if part.is_message else self._cells)[part.number])

    def _line(self, part: Part, scope: Sequence[int]) -> FloatArray:
        """Return a part at these values of its bucket's scope, by the variable that is eliminated."""
        table = self._part(part)
        line: FloatArray = table[tuple(min(v, size - 1) for v, size in zip(scope, table.shape, strict=False))]
        return line

    def selection(self) -> Selection:
        """Return a selection with the least sum."""
        values = [0] * len(self._order.sizes)
        for bucket in self._order.buckets[::-1]:
            scope = [values[v] for v in bucket.scope]
            values[bucket.variable] = int(np.argmin(reduce(add, (self._line(part, scope) for part in bucket.parts))))
        rows = self._order.rows_of(values, self._rows)
        return Selection(rows, self._order.sum_of(rows))

    @property
    def outside(self) -> list[FloatArray]:
        """Return for each bucket, by the values of its scope, the least sum of everything outside its message."""
        if self._outside is None:
            buckets = self._order.buckets
            others = self.least
            found: list[FloatArray] = [np.zeros(())] * len(buckets)
            for index in range(len(buckets) - 1, -1, -1):
                bucket = buckets[index]
                if bucket.parent is None:
                    found[index] = np.array(others - float(self._messages[index]))
                    continue
                above = buckets[bucket.parent]
                rest = self.rest(bucket.parent, {Part(index, is_message=True)}, found[bucket.parent])
                gone = tuple(axis for axis, v in enumerate(above.clique) if v not in bucket.scope)
                kept = [v for v in above.clique if v in bucket.scope]
                found[index] = rest.min(axis=gone).transpose([kept.index(v) for v in bucket.scope])
            self._outside = found
        return self._outside

    def rest(self, index: int, without: Collection[Part], outside: FloatArray) -> FloatArray:
        """Sum ``outside`` of a bucket's message and all its parts except ``without``, over its clique."""
        total = outside[..., None]
        for part in self._order.buckets[index].parts:
            if part not in without:
                total = total + self._part(part)
        return _of_shape(total, self._order.shapes[index])

    def around(self, index: int, without: frozenset[Part], variables: tuple[int, ...]) -> FloatArray:
        """Return, by the values of ``variables`` (of a bucket's clique), the least sum of everything except the parts
        ``without``."""
        key = index, without, variables
        if key not in self._around:
            clique = self._order.buckets[index].clique
            rest = self.rest(index, without, self.outside[index])
            gone = tuple(axis for axis, v in enumerate(clique) if v not in variables)
            kept = [v for v in clique if v in variables]
            self._around[key] = rest.min(axis=gone).transpose([kept.index(v) for v in variables])
        return self._around[key]


def _of_shape(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _axes(
    variables: tuple[int, ...], clique: tuple[int, ...], sizes: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the transposition and shape that give a table over ``variables`` an axis for each variable of ``clique``.
    """
    order = sorted(range(len(variables)), key=lambda axis: clique.index(variables[axis]))
    return order, [sizes[v] if v in variables else 1 for v in clique]


def _buckets(tables: Sequence[Table], sizes: Sequence[int]) -> list[Bucket]:
    """Eliminate next the variable with the smallest table (the first of equal ones), in time linear in the tables but
    for the logarithm of a heap."""
    near: dict[int, set[int]] = {v: set() for v in range(len(sizes))}
    parts: dict[int, list[Part]] = {v: [] for v in near}  # the summands with a variable, used up or not
    for index, table in enumerate(tables):
        for v in table.variables:
            near[v] |= set(table.variables) - {v}
            parts[v].append(Part(index))
    used: set[Part] = set()
    buckets: list[Bucket] = []

    def span_of(v: int) -> int:
        """Return the size of the table that eliminating ``v`` makes."""
        return prod(sizes[n] for n in near[v]) * sizes[v]

    spans = {v: span_of(v) for v in near}
    smallest = [(span, v) for v, span in spans.items()]
    heapify(smallest)
    while near:
        span, variable = heappop(smallest)
        if variable not in near or span != spans[variable]:  # an old size
            continue
        scope = near.pop(variable)
        for v in scope:
            near[v] = (near[v] | scope) - {v, variable}
            spans[v] = span_of(v)
            heappush(smallest, (spans[v], v))
        taken = [part for part in parts.pop(variable) if part not in used]
        used.update(taken)
        children = [part.number for part in taken if part.is_message]
        for index in children:
            buckets[index].parent = len(buckets)
        for v in scope:
            parts[v].append(Part(len(buckets), is_message=True))
        tables_of = [part.number for part in taken if not part.is_message]
        buckets.append(Bucket(variable, tuple(sorted(scope)), tables_of, children))
    return buckets
