"""The cheapest selection within limits, exactly: Lagrangian bounds, then partial sums that no other undercuts.

The problem: of tables that share variables (:mod:`hwflow.schedule.search.elimination`) one row each, of which those of
variables in common agree, with a sum of resources within the limits and of the least price. Without the limits that is
an elimination of variables. With them:

- A *bound*: resources over their limits are charged for. Whatever the charge, no selection within the limits is
  cheaper than the least one that pays it; the charge for which that bound is highest is found as the dual of a linear
  program over selections (Dantzig and Wolfe: Decomposition principle for linear programs, Operations Research 8, 1960).
  Where no mixture of selections is within the limits, there is none at all.
- The *search*: eliminate variables as before, but of each table keep every partial sum that no other undercuts in price
  and in all resources, and with which the bound of the whole can be at most a target. The target is a little above the
  bound at first and is raised until something is found; what is cheapest then is the cheapest of all.

Nothing is dropped but what cannot be part of a better selection: the result is exact whatever the bounds are worth.
They only decide how long it takes. Where several resources are nearly used up, many selections are nearly as cheap as
the cheapest, and to tell which one is takes minutes for some tenths of a percent: once something is found, looking for
something cheaper ends after :data:`MOST_SUMS` partial sums. Whether there is anything at all is exact up to
:data:`MOST_UNTIL_FOUND` of them: beyond, what is found is what comes of the :data:`BEAM` partial sums at each place
that leave most room, and if that is nothing, there is taken to be nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwflow.schedule.search.elimination import Elimination, IntArray, Selection, Table, Weighed

_ROUNDING = 1e-9  # relative; prices and resources are whole numbers below 2**40
_ROUNDS = 60  # of the linear program: few resources take few
_FIRST_STEP, _GROWTH = 1 / 4096, 4  # of the target above the bound
MOST_SUMS = 100_000  # partial sums that are looked at to make what is found cheaper: about a second
MOST_UNTIL_FOUND = 400_000  # where nothing is found yet
BEAM = 200
_FEW = 8
_TOGETHER = 24  # rows that are looked at at once
_EARLIER = np.arange(_TOGETHER)[:, None] < np.arange(_TOGETHER)
_PIVOTS = 256  # rows that others are compared with: what they all leave may be undercut, and is only carried along


@dataclass
class _Bound:
    """What the linear program says: ``least``, the bound; ``best``, the cheapest selection within the limits that came
    by; ``charged``: weights and the least that anything within the limits must reach under them."""

    possible: bool = True
    least: float = 0.0
    best: Selection | None = None
    charged: list[tuple[Weighed, float, bool]] = field(default_factory=list)


def cheapest(
    tables: Sequence[Table], sizes: Sequence[int], price: IntArray, limits: IntArray, *, any_at_all: bool = False
) -> Selection | None:
    """The selection of the least ``price`` among those within ``limits`` (one of each resource), None if there is none.

    ``any_at_all``: whichever selection within the limits comes first. Of selections of one price always the same.
    """
    reduced = _reduced(tables, sizes)
    if reduced is None:
        return None
    kept, own_sizes, own_rows = reduced
    order = Elimination(kept, own_sizes)
    bound = _bound(order, price, limits, any_at_all)
    if not bound.possible:
        return None
    found = bound.best
    if found is None or not (any_at_all or _cost(found, price) < bound.least + 1 - 1e-3):
        found = _search(order, price, limits, bound, any_at_all)
    if found is None:
        return None
    return Selection(tuple(int(rows[r]) for rows, r in zip(own_rows, found.rows, strict=True)), found.needs)


def _cost(selection: Selection, price: IntArray) -> int:
    return int(selection.needs @ price)


def _reduced(
    tables: Sequence[Table], sizes: Sequence[int]
) -> tuple[list[Table], list[int], list[IntArray]] | None:
    """The tables without values that some table of their variable has no row for, the sizes left and the numbers of the
    rows left; None if nothing is left of a table."""
    rows = [np.arange(len(t.needs)) for t in tables]
    possible = [np.ones(size, dtype=bool) for size in sizes]
    of: list[list[int]] = [[] for _ in sizes]  # each variable's tables
    for index, table in enumerate(tables):
        for v in table.variables:
            of[v].append(index)
    waiting = dict.fromkeys(range(len(tables)))  # tables of whose variables values have gone
    while waiting:
        index = next(iter(waiting))
        del waiting[index]
        variables, columns = tables[index].variables, tables[index].places[rows[index]].T
        good = np.logical_and.reduce([possible[v][column] for v, column in zip(variables, columns, strict=True)])
        if not good.all():
            rows[index], columns = rows[index][good], columns[:, good]
        for v, column in zip(variables, columns, strict=True):
            there = np.zeros(sizes[v], dtype=bool)
            there[column] = True
            if (possible[v] & ~there).any():
                possible[v] &= there
                waiting |= dict.fromkeys(other for other in of[v] if other != index)
    if not all(len(r) for r in rows):
        return None
    names = [np.cumsum(p) - 1 for p in possible]
    kept = [
        Table(
            t.variables,
            np.stack([names[v][t.places[r, axis]] for axis, v in enumerate(t.variables)], axis=1),
            t.needs[r],
        )
        for t, r in zip(tables, rows, strict=True)
    ]
    return kept, [int(p.sum()) for p in possible], rows


def _bound(order: Elimination, price: IntArray, limits: IntArray, any_at_all: bool) -> _Bound:
    """The linear program: mixtures of selections, of the least price, with resources within the limits on average.

    Columns are made when they are wanted: the selection that is least under the present charges. Basic columns are
    selections, what is left of a resource (``slack``) or missing (``short``; only at first).
    """
    bound = _Bound()
    count = len(limits)
    scale = np.maximum(limits, 1).astype(np.float64)
    right = np.append(limits / scale, 1.0)
    unit = float(max(1, int(price @ limits)))
    weighed = order.weigh(price.astype(np.float64))
    if not np.isfinite(weighed.least):
        return _Bound(possible=False)
    first = weighed.selection()
    bound.least = weighed.least
    bound.charged.append((weighed, 0.0, True))
    if (first.needs <= limits).all():
        bound.best = first
        return bound
    lacking = first.needs > limits
    basis = np.zeros((count + 1, count + 1))
    basis[:, 0] = [*(first.needs / scale), 1.0]
    basis[:count, 1:] = np.diag(np.where(lacking, -1.0, 1.0))
    prices = np.array([_cost(first, price) / unit, *np.zeros(count)])
    short = np.array([False, *lacking])
    for _ in range(_ROUNDS):
        amounts = np.linalg.solve(basis, right)
        feasibility = bool((short & (amounts > _ROUNDING)).any())  # first bring all resources within their limits
        dual = np.linalg.solve(basis.T, short.astype(np.float64) if feasibility else prices)
        charge = -dual[:count]
        if charge.min() < -1e-7:
            entering, its_price = np.eye(count + 1)[int(np.argmin(charge))], 0.0
        else:
            charge = np.maximum(charge, 0.0)
            weights = charge / scale + (0.0 if feasibility else 1.0) * price / unit
            weighed = order.weigh(weights)
            selection = weighed.selection()
            allowed = float(charge @ right[:count])
            if feasibility and weighed.least > allowed + 1e-7:
                bound.possible = False
                return bound
            if not feasibility and (weighed.least - allowed) * unit > bound.least:
                bound.least = (weighed.least - allowed) * unit
                bound.charged = [c for c in bound.charged if not c[2]]
                bound.charged.append((order.weigh(weights * unit), allowed * unit, True))
            if feasibility:
                bound.charged.append((weighed, allowed, False))
            if (selection.needs <= limits).all() and (
                bound.best is None or _cost(selection, price) < _cost(bound.best, price)
            ):
                bound.best = selection
                if any_at_all:
                    return bound
            if weighed.least >= dual[count] - 1e-9:
                if feasibility:
                    break  # within rounding of possible: the search decides
                return bound
            entering, its_price = np.append(selection.needs / scale, 1.0), _cost(selection, price) / unit
        change = np.linalg.solve(basis, entering)
        ratios = np.where(change > 1e-9, np.maximum(amounts, 0.0) / np.where(change > 1e-9, change, 1.0), np.inf)
        if not feasibility:
            ratios[short & (np.abs(change) > 1e-9)] = 0.0  # what was missing never comes back
        leaving = int(np.argmin(ratios))
        if not np.isfinite(ratios[leaving]):
            break
        basis[:, leaving], prices[leaving], short[leaving] = entering, its_price, False
    return bound


def _search(
    order: Elimination, price: IntArray, limits: IntArray, bound: _Bound, any_at_all: bool
) -> Selection | None:
    """The cheapest selection within the limits, or ``any_at_all``."""
    best = bound.best
    ceiling = sum(int((t.needs @ price).max()) for t in order.tables) if best is None else _cost(best, price) - 1
    step, left = max(1.0, bound.least * _FIRST_STEP), MOST_UNTIL_FOUND
    while bound.least < ceiling + 1:
        target = min(ceiling, int(bound.least + step))
        labels = _Labels(order, price, limits, bound.charged, target, left if best is None else MOST_SUMS)
        try:
            found = labels.best()
        except _TooMany:
            if best is None:
                best = _Labels(order, price, limits, bound.charged, ceiling, beam=BEAM).best()
            break
        if found is not None and any_at_all:
            return found
        left = labels.most
        if found is not None:  # it may be above the target, where not everything has been looked at
            best, ceiling = found, _cost(found, price) - 1
        if target >= ceiling or not labels.left_out:
            break
        step *= _GROWTH
    return best


@dataclass
class _Relation:
    """Partial selections: ``values`` [rows, variables] of ``variables``, their ``needs``, and what each is made of:
    rows of other relations, or of one table."""

    variables: tuple[int, ...]
    values: IntArray
    needs: IntArray
    table: int | None = None
    made_of: list[tuple[_Relation, IntArray]] = field(default_factory=list)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> _Relation:
        origin = [(self, np.arange(len(self.needs))[rows])]
        return _Relation(self.variables, self.values[rows], self.needs[rows], None, origin)

    def trace(self, row: int) -> dict[int, int]:
        """The row of each table that ``row`` is made of. A long chain of nodes is a long chain of relations."""
        chosen: dict[int, int] = {}
        waiting = [(self, row)]
        while waiting:
            relation, row = waiting.pop()
            if relation.table is not None:
                chosen[relation.table] = row
            waiting += [(part, int(rows[row])) for part, rows in relation.made_of]
        return chosen


class _TooMany(Exception):
    """Partial sums."""


class _Labels:
    """The search below one target. ``most``: partial sums, of which more raise :class:`_TooMany`; with a ``beam`` any
    number, but no more than those are kept at each place. ``left_out``: whether anything was that a greater target
    would not leave out."""

    def __init__(
        self, order: Elimination, price: IntArray, limits: IntArray, charged: Sequence[tuple[Weighed, float, bool]],
        target: int, most: int = 0, beam: int | None = None,
    ) -> None:
        self._order, self._price, self._limits = order, price, limits
        self.most, self._beam = most, beam
        self.left_out = False
        self._tests = [
            (weighed, (allowed + (target + 0.5 if priced else 0.0)) * (1 + _ROUNDING) + _ROUNDING, priced)
            for weighed, allowed, priced in charged
        ]

    def best(self) -> Selection | None:
        order = self._order
        everything = np.zeros(len(self._limits), dtype=np.int64)
        tables: dict[int, _Relation] = {}
        for index, bucket in enumerate(order.buckets):
            for number in bucket.tables:
                tables[number] = self._possible(index, self._rows(number), {("table", number)})
                if not len(tables[number].needs):
                    return None
                everything += tables[number].needs.max(axis=0)
        self._tight = np.flatnonzero(everything > self._limits)
        messages: dict[int, _Relation] = {}
        roots: list[_Relation] = []
        for index, bucket in enumerate(order.buckets):
            joined: _Relation | None = None
            left_out: set[tuple[str, int]] = set()
            for kind, number in sorted(bucket.parts, key=lambda part: part[0] == "table"):
                part = tables[number]
                if kind == "message":
                    part = self._possible(index, messages.pop(number), {(kind, number)})
                left_out.add((kind, number))
                joined = part if joined is None else self._possible(index, self._joined(joined, part), left_out)
                if not len(joined.needs):
                    return None
            assert joined is not None
            message = self._undercut_by_none(joined, bucket.scope)
            if bucket.parent is None:
                roots.append(message)
            else:
                messages[index] = message
        whole = roots[0]
        for root in roots[1:]:
            whole = self._undercut_by_none(self._joined(whole, root), ())
        within = np.flatnonzero((whole.needs <= self._limits).all(axis=1))
        if not len(within):
            return None
        row = within[int(np.argmin(whole.needs[within] @ self._price))]
        chosen = whole.trace(int(row))
        return Selection(tuple(chosen[t] for t in range(len(order.tables))), whole.needs[row])

    def _joined(self, left: _Relation, right: _Relation) -> _Relation:
        result = _join(left, right)
        if self._beam is None:
            self.most -= len(result.needs)
            if self.most < 0:
                raise _TooMany
        return result

    def _rows(self, number: int) -> _Relation:
        table = self._order.tables[number]
        return _Relation(table.variables, table.places, table.needs, number)

    def _possible(self, index: int, relation: _Relation, without: set[tuple[str, int]]) -> _Relation:
        """Rows with which the whole can stay within every bound; ``without``: the parts that they are made of."""
        good = np.ones(len(relation.needs), dtype=bool)
        cheap = good.copy()
        fullest = np.full(len(good), -np.inf)
        places, needs, parts = tuple(relation.values.T), relation.needs.astype(np.float64), frozenset(without)
        for weighed, most, priced in self._tests:
            tested = cheap if priced else good
            reached = needs @ weighed.weights + weighed.around(index, parts, relation.variables)[places]
            tested &= reached <= most
            if self._beam is not None:
                fullest = np.maximum(fullest, reached / most)
        self.left_out |= bool((good & ~cheap).any())
        rows = np.flatnonzero(good & cheap)
        if self._beam is not None and len(rows) > self._beam:
            rows = np.sort(rows[np.argsort(fullest[rows], kind="stable")[: self._beam]])
        return relation.take(rows)

    def _undercut_by_none(self, relation: _Relation, scope: tuple[int, ...]) -> _Relation:
        """Only the variables of ``scope``, and for each of their values the rows that no other equals or undercuts in
        price and in all resources that may get short."""
        values = relation.values[:, [relation.variables.index(v) for v in scope]]
        keys = np.ravel_multi_index(tuple(values.T), tuple(self._order.sizes[v] for v in scope)) if scope else None
        if keys is None:
            keys = np.zeros(len(values), dtype=np.int64)
        columns = np.column_stack([relation.needs @ self._price, relation.needs[:, self._tight]])
        rows = cell_by_cell(keys, columns)
        return _Relation(scope, values[rows], relation.needs[rows], None, [(relation, rows)])


def cell_by_cell(keys: IntArray, columns: IntArray) -> IntArray:
    """Numbers of the rows of ``columns`` that no other of the same key equals or undercuts in every column (of equal
    ones the first), by key and then as they sort; of very many of a key, some that others do may stay."""
    order = np.lexsort((*columns.T[::-1], keys))
    sorted_rows = columns[order]
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    counts = np.diff(starts, append=len(order))
    kept = np.ones(len(order), dtype=bool)
    few = np.flatnonzero((counts > 1) & (counts <= _FEW))
    if len(few):
        places, there = starts[few, None] + np.arange(_FEW), np.arange(_FEW) < counts[few, None]
        good = _undercut_by_no_other(sorted_rows[np.where(there, places, 0)])
        kept[places[there]] = good[there]
    for many in np.flatnonzero(counts > _FEW):
        start, end = starts[many], starts[many] + counts[many]
        kept[start:end] = False
        kept[start + undercut_by_none(sorted_rows[start:end])] = True
    found: IntArray = order[kept]
    return found


def undercut_by_none(rows: IntArray) -> IntArray:
    """Places of the rows that no other equals or undercuts in every column (of equal ones the first); of very many,
    some that others do may stay. Rows ascend by their first column, then the second and so on."""
    if rows.shape[1] == 1:
        return np.zeros(1, dtype=np.int64)
    if rows.shape[1] == 2:
        least = np.minimum.accumulate(rows[:, 1])
        return np.flatnonzero(np.append(True, rows[1:, 1] < least[:-1]))
    columns = np.ascontiguousarray(rows.T[1:])
    left = np.arange(len(rows))
    kept: list[IntArray] = []
    missing = _PIVOTS
    while len(left) and missing:
        some = columns[:, :_TOGETHER]
        count = some.shape[1]  # what undercuts others comes before them
        first = ~(_undercut(some, some) & _EARLIER[:count, :count]).any(axis=0)
        pivots = np.flatnonzero(first)[:missing]
        missing -= len(pivots)
        kept.append(left[pivots])
        good = np.logical_not(_undercut(columns[:, pivots], columns).any(axis=0))  # a pivot undercuts itself
        left, columns = left[good], columns[:, good]
    return np.concatenate([*kept, left])


def _undercut_by_no_other(groups: IntArray) -> npt.NDArray[np.bool_]:
    """[groups, rows]: which rows no earlier one of their group equals or undercuts in every column, of groups [groups,
    rows, columns] of few rows each, sorted by the first column: all pairs at once."""
    count = groups.shape[1]
    pairs: npt.NDArray[np.bool_] = np.broadcast_to(_EARLIER[:count, :count], (len(groups), count, count))
    for column in range(1, groups.shape[2]):
        pairs = pairs & (groups[:, :, None, column] <= groups[:, None, :, column])
    undercut: npt.NDArray[np.bool_] = np.asarray(pairs.any(axis=1))
    return ~undercut


def _undercut(pivots: IntArray, columns: IntArray) -> npt.NDArray[np.bool_]:
    """[pivots, rows]: whether a pivot equals or undercuts a row in every column; both come as [columns, rows]."""
    found: npt.NDArray[np.bool_] = pivots[0][:, None] <= columns[0]
    for own, other in zip(pivots[1:], columns[1:], strict=True):
        found &= own[:, None] <= other
    return found


def _join(left: _Relation, right: _Relation) -> _Relation:
    """Every pair of rows with the same values of the variables in common."""
    common = [v for v in left.variables if v in right.variables]
    keys = []
    for relation in (left, right):
        key = np.zeros(len(relation.needs), dtype=np.int64)
        for v in common:
            key = key * 65536 + relation.values[:, relation.variables.index(v)]
        keys.append(key)
    order = np.argsort(keys[1], kind="stable")
    first = np.searchsorted(keys[1][order], keys[0], side="left")
    count = np.searchsorted(keys[1][order], keys[0], side="right") - first
    mine = np.repeat(np.arange(len(keys[0])), count)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
    theirs = order[np.repeat(first, count) + within]
    new = [axis for axis, v in enumerate(right.variables) if v not in common]
    return _Relation(
        (*left.variables, *(right.variables[axis] for axis in new)),
        np.concatenate([left.values[mine], right.values[theirs][:, new]], axis=1),
        left.needs[mine] + right.needs[theirs], None, [(left, mine), (right, theirs)],
    )
