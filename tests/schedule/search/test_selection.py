"""The exact solver against all combinations, on random tables over random graphs of variables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hwflow.schedule.search import elimination
from hwflow.schedule.search import selection as solver
from hwflow.schedule.search.elimination import Elimination, IntArray, Selection, Table
from hwflow.schedule.search.selection import cheapest, pareto_front, pareto_rows

PRICE = np.array([3, 2, 40], dtype=np.int64)


def problem(seed: int) -> tuple[list[Table], list[int]]:
    """Three to five variables of up to three values, a table of rows for each and for some pairs: trees, cycles, parts
    that have nothing to do with each other, values without rows."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 6))
    sizes = [int(random.integers(1, 4)) for _ in range(count)]
    pairs = list(itertools.combinations(range(count), 2))
    scopes = [(v,) for v in range(count)]
    scopes += [pairs[k] for k in random.permutation(len(pairs))[: int(random.integers(1, len(pairs) + 1))]]
    tables = []
    for scope in scopes:
        scope = tuple(random.permutation(scope).tolist())
        cells = list(itertools.product(*(range(sizes[v]) for v in scope)))
        rows = [cell for cell in cells for _ in range(int(random.integers(0 if len(scope) > 1 else 1, 3)))] or cells[:1]
        rows = [rows[k] for k in random.permutation(len(rows))]
        needs = random.integers(0, 30, (len(rows), 3)) // np.array([1, 1, 6])
        tables.append(Table(scope, np.array(rows, dtype=np.int64), needs.astype(np.int64)))
    return tables, sizes


def combinations(tables: list[Table], sizes: list[int]) -> list[tuple[int, IntArray]]:
    """(price, sum) of every selection: the definition."""
    found = []
    for values in itertools.product(*map(range, sizes)):
        fitting = [
            [n for p, n in zip(t.places, t.needs, strict=True) if tuple(p) == tuple(values[v] for v in t.variables)]
            for t in tables
        ]
        found += [(int(sum(c) @ PRICE), sum(c)) for c in itertools.product(*fitting)]
    return found


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_equal_to_all_combinations(first: int) -> None:
    hit = 0
    for seed in range(first, first + 20):
        tables, sizes = problem(seed)
        every = combinations(tables, sizes)
        sums = np.array([needs for _, needs in every]).reshape(-1, 3)
        random = np.random.default_rng(seed)
        for _ in range(8):
            middle = np.median(sums, axis=0) if len(sums) else np.full(3, 50.0)
            limits = (middle * random.uniform(0.3, 1.2, 3)).astype(np.int64)
            if random.random() < 0.3:
                limits[int(random.integers(3))] = 10_000
            within = [price for price, needs in every if (needs <= limits).all()]
            found = cheapest(tables, sizes, PRICE, limits)
            some = cheapest(tables, sizes, PRICE, limits, any_at_all=True)
            assert (found is None) == (some is None) == (not within)
            if found is None or some is None:
                continue
            hit += 1
            for selection in (found, some):
                rows = [t.needs[r] for t, r in zip(tables, selection.rows, strict=True)]
                assert (sum(rows) == selection.needs).all() and (selection.needs <= limits).all()
                values: dict[int, int] = {}
                for t, r in zip(tables, selection.rows, strict=True):
                    for v, place in zip(t.variables, t.places[r], strict=True):
                        assert values.setdefault(v, int(place)) == place
            assert int(found.needs @ PRICE) == min(within)
            assert cheapest(tables, sizes, PRICE, limits).rows == found.rows  # type: ignore[union-attr]
    assert hit > 10


def test_a_selection_that_is_one_cheaper_than_the_first() -> None:
    """At prices of 1 and 2 the cheapest of all, 21, needs 9 of the first resource, of which there are 7. With the last
    table's other row it is 23, and the needs are 7 and 8; with the first one's, too, 24, which bounds come upon."""
    needs = [[(1, 4), (2, 3)], [(1, 4), (2, 1)], [(3, 1), (4, 1)], [(2, 1), (0, 3)]]
    tables = [
        Table((v,), np.zeros((2, 1), dtype=np.int64), np.array(rows, dtype=np.int64)) for v, rows in enumerate(needs)
    ]
    found = cheapest(tables, [1] * 4, np.array([1, 2], dtype=np.int64), np.array([7, 9]))
    assert found is not None and found.needs.tolist() == [7, 8]


def test_the_gap_between_bound_and_optimum_is_searched() -> None:
    """Six tables of (4, 0) or (0, 5) under limits of 11 and 17: two of the first and four of the second need 20, three
    and three 12 and 15: no selection fits, though a mixture of 2.75 and 3.25 does (11 and 16.25)."""
    tables = [
        Table((v,), np.zeros((2, 1), dtype=np.int64), np.array([[4, 0], [0, 5]], dtype=np.int64)) for v in range(6)
    ]
    price = np.array([1, 1], dtype=np.int64)
    assert cheapest(tables, [1] * 6, price, np.array([11, 17])) is None
    found = cheapest(tables, [1] * 6, price, np.array([12, 17]))
    assert found is not None and found.needs.tolist() == [12, 15]
    found = cheapest(tables, [1] * 6, price, np.array([11, 20]))
    assert found is not None and found.needs.tolist() == [8, 20]


def test_least_sums_and_what_is_outside() -> None:
    """For every bucket: message plus all the rest is never below the least sum, and equal to it somewhere."""
    for seed in range(30):
        tables, sizes = problem(seed)
        if not combinations(tables, sizes):
            continue
        order = Elimination(tables, sizes)
        weighed = order.weigh(PRICE.astype(np.float64))
        least = min(price for price, _ in combinations(tables, sizes))
        assert weighed.least == least == int(weighed.selection().needs @ PRICE)
        for index, bucket in enumerate(order.buckets):
            whole = weighed.rest(index, set(), weighed.outside[index])
            assert whole.min() == least, (seed, bucket)


def test_rows_that_others_undercut() -> None:
    rows = np.array([[1, 5, 5], [1, 5, 5], [2, 6, 4], [2, 7, 5], [3, 4, 9], [4, 4, 4]], dtype=np.int64)
    assert pareto_front(rows).tolist() == [0, 2, 4, 5]
    assert pareto_front(rows[:, :2]).tolist() == [0, 4]
    assert pareto_front(rows[:, :1]).tolist() == [0]


def test_each_key_has_rows_that_no_other_of_it_undercuts() -> None:
    """Against all pairs: keys of one row, of a few and of many, with equal rows among them."""
    rng = np.random.default_rng(5)
    for count, values in ((1, 3), (12, 4), (90, 6), (400, 5), (400, 40)):
        keys, columns = rng.integers(0, 1 + count // 12, count), rng.integers(0, values, (count, 4))
        rows = [(key, *row) for key, row in zip(keys.tolist(), columns.tolist(), strict=True)]
        best = {
            row for row in rows
            if not any(
                other != row and other[0] == row[0] and all(a <= b for a, b in zip(other, row, strict=True))
                for other in rows
            )
        }
        found = pareto_rows(keys, columns)
        assert [rows[k] for k in found] == sorted(best), (count, values)
        assert all(rows.index(rows[k]) == k for k in found), "of equal rows the first"


def test_of_many_rows_some_that_others_undercut_may_stay() -> None:
    """Of more than the rows that others are compared with, those stay that these do not undercut."""
    plane = np.array([(a, b, 600 - a - b) for a in range(20) for b in range(20)], dtype=np.int64)
    worse = plane + np.array([20, 0, 0])
    kept = pareto_front(np.concatenate([plane, worse]))
    assert kept[: len(plane)].tolist() == list(range(len(plane)))
    least = plane[:256]
    stays = [k for k, row in enumerate(worse.tolist()) if not (least <= row).all(axis=1).any()]
    assert kept[len(plane) :].tolist() == [len(plane) + k for k in stays]


def test_nothing_is_searched_for_again_that_no_target_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times (0, 3) or (3, 0): halves of both would be within limits of (5, 5), but no selection is, and a greater
    target does not change that."""
    needs = np.array([[0, 3, 0], [3, 0, 0]], dtype=np.int64)
    tables = [Table((v,), np.array([[0], [1]]), needs) for v in range(3)]
    targets = []
    search = solver._Labels.best
    monkeypatch.setattr(solver._Labels, "best", lambda labels: targets.append(labels) or search(labels))
    limits = np.array([5, 5, 0], dtype=np.int64)
    assert cheapest(tables, [2, 2, 2], PRICE, limits) is None
    assert len(targets) == 1


def test_where_the_search_ends_what_a_beam_finds_is_within_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not always something, and not always the cheapest; but nothing that is not there."""
    monkeypatch.setattr(solver, "MOST_UNTIL_FOUND", 0)
    monkeypatch.setattr(solver, "BEAM", 4)
    search, beams = solver._Labels.best, []

    def best(labels: solver._Labels) -> Selection | None:
        result = search(labels)
        beams.append(result is not None)
        return result

    monkeypatch.setattr(solver._Labels, "best", best)
    random = np.random.default_rng(0)
    for _ in range(40):
        rows = random.integers(0, 30, (6, 4, 3))  # six variables of four values
        places = np.arange(4)[:, None]
        tables = [Table((v,), places, needs) for v, needs in enumerate(rows)]
        tables.append(Table((0, 1), np.indices((4, 4)).reshape(2, -1).T, random.integers(0, 30, (16, 3))))
        limits = rows[:, 0].sum(axis=0) + tables[-1].needs[0]  # nothing to spare for all of place 0
        selection = cheapest(tables, [4] * 6, PRICE, limits)
        if selection is not None:
            taken = [table.needs[row] for table, row in zip(tables, selection.rows, strict=True)]
            assert (np.sum(taken, axis=0) == selection.needs).all()
            assert (selection.needs <= limits).all()
            assert tables[-1].places[selection.rows[-1]].tolist() == list(selection.rows[:2])
    assert sum(beams) > 3, "the linear program finds most, the beam some"


def test_a_long_chain() -> None:
    """Of 1,500 nodes in a row each takes two of the first resource or two of the second, of which there are five: two
    nodes get it, and what is left of it serves none (so that a mixture of selections would be cheaper)."""
    count = 1500
    row = np.array([[2, 0, 0], [0, 2, 0]], dtype=np.int64)
    nodes = [Table((v,), np.array([[0], [1]]), row) for v in range(count)]
    pairs = np.array(list(itertools.product(range(2), repeat=2)))
    edges = [Table((v, v + 1), pairs, np.zeros((4, 3), dtype=np.int64)) for v in range(count - 1)]
    found = cheapest([*nodes, *edges], [2] * count, PRICE, np.array([2 * count, 5, 0], dtype=np.int64))
    assert found is not None
    assert found.needs.tolist() == [2 * (count - 2), 4, 0]
    assert sum(found.rows[:count]) == 2


@pytest.mark.parametrize("count", [10, 1000])
def test_the_order_of_a_chain_is_found_in_proportion_to_its_length(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable is looked at once for itself, and once for each of at most two neighbours eliminated before it."""
    looked_at: list[object] = []
    whole = elimination.heappop
    monkeypatch.setattr(elimination, "heappop", lambda heap: looked_at.append(whole(heap)) or looked_at[-1])
    no_rows = np.zeros((1, 2), dtype=np.int64)
    tables = [Table((v, v + 1), no_rows, np.zeros((1, 3), dtype=np.int64)) for v in range(count - 1)]
    Elimination(tables, [1 + v % 3 for v in range(count)])
    assert count <= len(looked_at) <= 3 * count


@pytest.mark.parametrize("seed", range(10))
def test_the_variable_of_the_smallest_table_goes_first(seed: int) -> None:
    """Against the definition: of those left, the one whose table over itself and its neighbours is smallest, and of
    equal ones the first; its neighbours then are each other's."""
    random = np.random.default_rng(seed)
    count = 12
    sizes = random.integers(1, 6, count).tolist()
    pairs = [tuple(random.choice(count, 2, replace=False).tolist()) for _ in range(16)]
    near = {v: {w for pair in pairs if v in pair for w in pair} - {v} for v in range(count)}
    wanted = []
    while near:
        _, first = min((math.prod(sizes[w] for w in near[v] | {v}), v) for v in near)
        scope = near.pop(first)
        for v in scope:
            near[v] = near[v] - {first} | scope - {v}
        wanted.append((first, tuple(sorted(scope))))
    tables = [
        Table(scope, np.zeros((1, len(scope)), dtype=np.int64), np.zeros((1, 3), dtype=np.int64))
        for scope in (*((v,) for v in range(count)), *pairs)
    ]
    assert [(bucket.variable, bucket.scope) for bucket in Elimination(tables, sizes).buckets] == wanted
