"""Find the cheapest selection within limits, exactly: Lagrangian bounds, then labels that no other dominates.

The problem: choose one row of each table, consistent in the shared variables
(:mod:`hwflow.schedule.search.elimination`), such that the sum of resources is within the limits and the price is least.
Without limits that is plain elimination. With them:

- *Bound*: resources over their limits are charged for. Under any charge, no selection within the limits is cheaper than
the least one including its charge. The charge with the highest bound is the dual of a linear program over selections
(Dantzig and Wolfe: Decomposition principle for linear programs, Operations Research 8, 1960). If no mixture of
selections is within the limits, no selection is. - *Search*: eliminate variables as before, but keep as labels all
partial sums that no other dominates in price and resources, and with which the bound of the whole can be at most a
target. The target starts a little above the bound and is raised until something is found, which then is the cheapest of
all.

Only what cannot be part of a better selection is dropped, so the result is exact; the bounds only decide how long it
takes. If several resources are nearly used up, many selections are nearly as cheap as the cheapest, and proving the
best takes minutes for some tenths of a percent: once something is found, the search ends after :data:`MOST_SUMS`
labels. Feasibility is exact up to :data:`MOST_UNTIL_FOUND` labels. Beyond, a beam search keeps the :data:`BEAM` labels
at each point that leave most room; if that finds nothing, the problem counts as infeasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwflow.schedule.search.elimination import Elimination, IntArray, Part, Selection, Table, Weighed

_ROUNDING = 1e-9  # relative; prices and resources are whole numbers below 2**40
_ROUNDS = 60  # of the linear program: few resources take few
_FIRST_STEP, _GROWTH = 1 / 4096, 4  # of the target above the bound
MOST_SUMS = 100_000  # labels to improve on a known selection: about a second
MOST_UNTIL_FOUND = 400_000  # labels while none is known
BEAM = 200
_FEW = 8
_TOGETHER = 24  # rows compared pairwise
_EARLIER = np.arange(_TOGETHER)[:, None] < np.arange(_TOGETHER)
_PIVOTS = 256  # rows that others are compared with: of the rest, dominated ones may be kept


@dataclass
class _Bound:
    """Result of the linear program. ``least``: the lower bound; ``best``: the cheapest selection within the limits that
    occurred; ``charged``: weights, and the most that a selection within the limits can cost under them, without and
    with its price."""

    possible: bool = True
    least: float = 0.0
    best: Selection | None = None
    charged: list[tuple[Weighed, float, bool]] = field(default_factory=list)


def cheapest(
    tables: Sequence[Table], sizes: Sequence[int], price: IntArray, limits: IntArray, *, any_at_all: bool = False
) -> Selection | None:
    """Return the selection of the least ``price`` within ``limits`` (one of each resource), or None. Deterministic.

    ``any_at_all``: return whichever selection within the limits is found first.
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
    """Remove values that some table of their variable has no row for. Return the tables and sizes left and the numbers
    of the rows left, or None if a table becomes empty."""
    rows = [np.arange(len(t.needs)) for t in tables]
    possible = [np.ones(size, dtype=bool) for size in sizes]
    of: list[list[int]] = [[] for _ in sizes]  # each variable's tables
    for index, table in enumerate(tables):
        for v in table.variables:
            of[v].append(index)
    waiting = dict.fromkeys(range(len(tables)))  # tables with a variable that lost values
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
    """Solve the linear program: the cheapest mixture of selections with resources within the limits on average.

    Columns are generated on demand: the selection that is least under the present charges. Basic columns are
    selections, slack of a resource, or (only at first) a shortage of it.
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
                    break  # feasible within rounding: the search decides
                return bound
            entering, its_price = np.append(selection.needs / scale, 1.0), _cost(selection, price) / unit
        change = np.linalg.solve(basis, entering)
        ratios = np.where(change > 1e-9, np.maximum(amounts, 0.0) / np.where(change > 1e-9, change, 1.0), np.inf)
        if not feasibility:
            ratios[short & (np.abs(change) > 1e-9)] = 0.0  # a shortage that has gone must not return
        leaving = int(np.argmin(ratios))
        if not np.isfinite(ratios[leaving]):
            break
        basis[:, leaving], prices[leaving], short[leaving] = entering, its_price, False
    return bound


def _search(
    order: Elimination, price: IntArray, limits: IntArray, bound: _Bound, any_at_all: bool
) -> Selection | None:
    """Return the cheapest selection within the limits, or with ``any_at_all`` the first one found."""
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
        if found is not None:  # above the target it may not be the cheapest
            best, ceiling = found, _cost(found, price) - 1
        if target >= ceiling or not labels.left_out:
            break
        step *= _GROWTH
    return best


@dataclass
class _Relation:
    """Labels: ``values`` [rows, variables] of ``variables`` and ``needs``; ``made_of``: the rows of other relations
    that each combines; ``table``: the table that the rows are of, if any."""

    variables: tuple[int, ...]
    values: IntArray
    needs: IntArray
    table: int | None = None
    made_of: list[tuple[_Relation, IntArray]] = field(default_factory=list)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> _Relation:
        origin = [(self, np.arange(len(self.needs))[rows])]
        return _Relation(self.variables, self.values[rows], self.needs[rows], None, origin)

    def trace(self, row: int) -> dict[int, int]:
        """Return the row of each table that ``row`` combines. Iterative, as a long chain of nodes is a long chain of
        relations."""
        chosen: dict[int, int] = {}
        waiting = [(self, row)]
        while waiting:
            relation, row = waiting.pop()
            if relation.table is not None:
                chosen[relation.table] = row
            waiting += [(part, int(rows[row])) for part, rows in relation.made_of]
        return chosen


class _TooMany(Exception):
    """More labels than allowed."""


class _Labels:
    """The search below one target. ``most``: the number of labels before :class:`_TooMany` is raised; with a ``beam``
    there is no such limit, but at most that many are kept at each point. ``left_out``: whether labels were dropped only
    because of the target."""

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
                tables[number] = self._possible(index, self._rows(number), {Part(number)})
                if not len(tables[number].needs):
                    return None
                everything += tables[number].needs.max(axis=0)
        self._tight = np.flatnonzero(everything > self._limits)
        messages: dict[int, _Relation] = {}
        roots: list[_Relation] = []
        for index, bucket in enumerate(order.buckets):
            joined: _Relation | None = None
            left_out: set[Part] = set()
            for part in sorted(bucket.parts, key=lambda part: not part.is_message):
                if part.is_message:
                    relation = self._possible(index, messages.pop(part.number), {part})
                else:
                    relation = tables[part.number]
                left_out.add(part)
                joined = relation if joined is None else self._possible(index, self._joined(joined, relation), left_out)
                if not len(joined.needs):
                    return None
            assert joined is not None
            message = self._nondominated(joined, bucket.scope)
            if bucket.parent is None:
                roots.append(message)
            else:
                messages[index] = message
        whole = roots[0]
        for root in roots[1:]:
            whole = self._nondominated(self._joined(whole, root), ())
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

    def _possible(self, index: int, relation: _Relation, without: set[Part]) -> _Relation:
        """Return the rows with which the whole can stay within every bound; ``without``: the parts that they combine.
        """
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

    def _nondominated(self, relation: _Relation, scope: tuple[int, ...]) -> _Relation:
        """Project to the variables of ``scope`` and keep, for each of their values, the rows that no other dominates in
        price and in the resources that may run short."""
        values = relation.values[:, [relation.variables.index(v) for v in scope]]
        keys = np.ravel_multi_index(tuple(values.T), tuple(self._order.sizes[v] for v in scope)) if scope else None
        if keys is None:
            keys = np.zeros(len(values), dtype=np.int64)
        columns = np.column_stack([relation.needs @ self._price, relation.needs[:, self._tight]])
        rows = pareto_rows(keys, columns)
        return _Relation(scope, values[rows], relation.needs[rows], None, [(relation, rows)])


def pareto_rows(keys: IntArray, columns: IntArray) -> IntArray:
    """Return the numbers of the nondominated rows of ``columns`` among those of the same key, by key and in lexical
    order. Of equal rows the first is kept; of very many rows with one key, some dominated ones may stay."""
    order = np.lexsort((*columns.T[::-1], keys))
    sorted_rows = columns[order]
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    counts = np.diff(starts, append=len(order))
    kept = np.ones(len(order), dtype=bool)
    few = np.flatnonzero((counts > 1) & (counts <= _FEW))
    if len(few):
        places, there = starts[few, None] + np.arange(_FEW), np.arange(_FEW) < counts[few, None]
        good = _dominated_by_no_other(sorted_rows[np.where(there, places, 0)])
        kept[places[there]] = good[there]
    for many in np.flatnonzero(counts > _FEW):
        start, end = starts[many], starts[many] + counts[many]
        kept[start:end] = False
        kept[start + pareto_front(sorted_rows[start:end])] = True
    found: IntArray = order[kept]
    return found


def pareto_front(rows: IntArray) -> IntArray:
    """Return the indices of the rows that no other equals or dominates (the first of equal ones); of very many, some
    dominated ones may stay. Rows are sorted by their first column, then the second and so on."""
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
        count = some.shape[1]  # a row can only be dominated by earlier ones
        first = ~(_dominates(some, some) & _EARLIER[:count, :count]).any(axis=0)
        pivots = np.flatnonzero(first)[:missing]
        missing -= len(pivots)
        kept.append(left[pivots])
        good = np.logical_not(_dominates(columns[:, pivots], columns).any(axis=0))  # a pivot dominates itself
        left, columns = left[good], columns[:, good]
    return np.concatenate([*kept, left])


def _dominated_by_no_other(groups: IntArray) -> npt.NDArray[np.bool_]:
    """Tell which rows of ``groups`` [groups, rows, columns] no earlier row of their group equals or dominates: [groups,
    rows]. Groups are small and sorted by the first column, so that all pairs are compared at once."""
    count = groups.shape[1]
    pairs: npt.NDArray[np.bool_] = np.broadcast_to(_EARLIER[:count, :count], (len(groups), count, count))
    for column in range(1, groups.shape[2]):
        pairs = pairs & (groups[:, :, None, column] <= groups[:, None, :, column])
    undercut: npt.NDArray[np.bool_] = np.asarray(pairs.any(axis=1))
    return ~undercut


def _dominates(pivots: IntArray, columns: IntArray) -> npt.NDArray[np.bool_]:
    """Tell for [pivots, rows] whether a pivot equals or dominates a row; both come as [columns, rows]."""
    found: npt.NDArray[np.bool_] = pivots[0][:, None] <= columns[0]
    for own, other in zip(pivots[1:], columns[1:], strict=True):
        found &= own[:, None] <= other
    return found


def _join(left: _Relation, right: _Relation) -> _Relation:
    """Return every pair of rows that agree in the shared variables."""
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
