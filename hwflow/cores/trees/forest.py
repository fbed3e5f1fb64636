"""Trees in groups that are walked together, and the memories of the units that walk them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hdl_lib.trees.tree_units import Record
from hwflow.cores.memory_words import pack_words
from hwflow.cores.trees.ensemble import Places, entry_leaves, within_results
from hwflow.ir.graph import IntArray, Node
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes
from hwflow.types import Interval, IntType

NO_TREE = -1


@dataclass(frozen=True, eq=False)
class Groups:
    """``trees`` [groups, slots, units]: tree numbers, or :data:`NO_TREE`; ``rounds`` and ``ends`` of each group (see
    :class:`hdl_lib.trees.tree_units.TreeWalk`)."""

    trees: IntArray
    rounds: IntArray
    ends: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Memories:
    """``nodes`` and ``leaves``: the words of each unit's tables; ``record``: how nodes lie in them; ``values``: the
    least and the greatest of each element of a leaf's row."""

    record: Record
    nodes: list[Sequence[int]]
    leaves: list[Sequence[int]]
    values: list[Interval]

    @property
    def leaf_bits(self) -> int:
        """Return the bits of a leaf's row."""
        return sum(IntType.holding(value).bits for value in self.values)


class Forest:
    """The trees of a node, each of one test or more: what all foldings share."""

    def __init__(self, node: Node[TreeEnsembleAttributes]) -> None:
        self.ensemble = with_tests(within_results(node.attributes))
        self.features = int(node.inputs[0].typed.shape[1])
        self.greatest = max(1, node.inputs[0].typed.interval.hi)
        self.places = Places.of(self.ensemble)
        trees, leaf_tree = len(self.ensemble.roots), self.places.leaf_tree
        self.depths = depths_of(self.places, trees)
        self.sizes = np.bincount(self.places.node_tree[self.places.node_tree >= 0], minlength=trees)
        tree = leaf_tree[entry_leaves(self.ensemble)]
        self.target = np.full(trees, NO_TREE)  # the last one that a tree names
        self.target[tree[tree >= 0]] = self.ensemble.leaf_target[tree >= 0]
        of_others = self.ensemble.leaf_target != self.target[tree]
        self.of_one_target = not bool(of_others[tree >= 0].any())

    @property
    def missing(self) -> bool:
        """Tell whether some test takes missing ranks."""
        return bool(self.ensemble.missing.any())

    def groups(self, units: int, slots: int, *, serial: bool) -> Groups:
        """Deal the trees to ``units`` with so many slots: the deepest first, so that the depths in a group are much the
        same, and of equal ones the largest, in turns. ``serial``: one target after the other, each in groups of its
        own."""
        together = units * slots
        order = np.lexsort((-self.sizes, -self.depths))
        parts = [order]
        if serial:
            by_target = np.maximum(self.target, 0)[order]
            parts = [order[by_target == target] for target in range(self.ensemble.targets)]
        found, ends = [], []
        for part in parts:
            count = max(1, -(-len(part) // together))
            padded = np.full(count * together, NO_TREE)
            padded[: len(part)] = part
            group = padded.reshape(count, slots, units)
            group[:, 1::2] = group[:, 1::2, ::-1]
            found.append(group)
            ends += [False] * (count - 1) + [True]
        trees, closing = np.concatenate(found), np.array(ends)
        depths = np.append(self.depths, 1)  # of no tree
        rounds = depths[trees].max(axis=(1, 2))
        rounds[closing] = rounds[closing].max()
        return Groups(trees, rounds, closing)

    @property
    def rank_bits(self) -> int:
        """Return the bits of a limit: beside those that ranks reach one that none does."""
        return (self.greatest + 1).bit_length()

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray]:
        """Return the different rows of what leaves give to all targets, [rows, targets], the last one of no tree, and
        each leaf's row."""
        leaves = len(self.ensemble.leaf_start) - 1
        dense = np.zeros((leaves + 1, self.ensemble.targets), dtype=np.int64)
        dense[entry_leaves(self.ensemble), self.ensemble.leaf_target] = self.ensemble.leaf_value
        return _distinct(self._with_neutral(dense))

    @cached_property
    def _values(self) -> tuple[IntArray, IntArray]:
        """Return the same of what leaves give to the only target of each, [rows, 1]."""
        leaves = len(self.ensemble.leaf_start) - 1
        dense = np.zeros((leaves + 1, 1), dtype=np.int64)
        dense[entry_leaves(self.ensemble), 0] = self.ensemble.leaf_value
        return _distinct(self._with_neutral(dense))

    def _with_neutral(self, dense: IntArray) -> IntArray:
        """Set the last row to what changes no result."""
        if self.ensemble.aggregate == Aggregate.MIN:
            dense[-1] = dense[:-1].max(axis=0, initial=np.iinfo(np.int64).min)
        elif self.ensemble.aggregate == Aggregate.MAX:
            dense[-1] = dense[:-1].min(axis=0, initial=np.iinfo(np.int64).max)
        return dense

    @cached_property
    def _last_tests(self) -> int:
        """Return the tests with a leaf at both ends."""
        return int(((self.ensemble.true < 0) & (self.ensemble.false < 0)).sum())

    def estimated(
        self, groups: Groups, lanes: int, *, serial: bool
    ) -> tuple[Record, list[Interval], Sequence[int], Sequence[int]]:
        """Return record and values as in :meth:`memories`, and about as many nodes and leaves for each unit."""
        slots, units = groups.trees.shape[0] * groups.trees.shape[1], groups.trees.shape[2]
        table, _ = self._values if serial else self._rows
        nodes = slots + -(-2 * (len(self.ensemble.feature) - self._last_tests) // units)
        leaves = min(len(table), -(-(len(self.ensemble.leaf_start) - 1) // units))
        record = self._record(max(nodes, leaves), lanes)
        return record, _values_of(table), [nodes] * units, [leaves] * units

    def _record(self, depth: int, lanes: int) -> Record:
        """Return how nodes lie in memories that are at most so deep."""
        return Record.of((depth - 1).bit_length() - 1, self.rank_bits, self.features, lanes, missing=self.missing)

    def memories(self, groups: Groups, lanes: int, *, serial: bool) -> Memories:
        """Return the memories of all units."""
        ensemble, tree = self.ensemble, self.places.node_tree
        units = groups.trees.shape[2]
        unit_of, place_of = np.full(len(ensemble.roots), 0), np.full(len(ensemble.roots), 0)
        flat = groups.trees.reshape(-1, units)
        row, column = np.nonzero(flat != NO_TREE)
        unit_of[flat[row, column]], place_of[flat[row, column]] = column, row
        reached = np.flatnonzero(tree >= 0)
        by_unit = reached[np.argsort(unit_of[tree[reached]], kind="stable")]
        bounds = np.searchsorted(unit_of[tree[by_unit]], np.arange(units + 1))
        table, of_leaf = self._values if serial else self._rows
        images = [
            self._image(by_unit[begin:end], flat[:, unit], table, of_leaf)
            for unit, (begin, end) in enumerate(pairwise(bounds))
        ]
        record = self._record(max(max(len(nodes), len(leaves)) for nodes, leaves in images), lanes)
        values = _values_of(table)
        widths = [IntType.holding(value).bits for value in values]
        return Memories(
            record,
            [pack_words(with_beats(nodes, lanes), record.bits) for nodes, _ in images],
            [pack_words(table[leaves], widths) for _, leaves in images],
            values,
        )

    def _image(self, nodes: IntArray, trees: IntArray, table: IntArray, of_leaf: IntArray) -> tuple[IntArray, IntArray]:
        """Return the records of a unit with these ``nodes`` and ``trees`` (pair, leaf, limit, feature, missing) and the
        rows of its leaves.

        The two places behind a test are neighbours. Where one is a leaf and the other one a node, the leaf has a record
        as well, whose test always leads to it.
        """
        ensemble = self.ensemble
        children = np.stack([ensemble.true[nodes], ensemble.false[nodes]])
        ends = (children < 0).all(axis=0)
        # Leaves: pairs that stand behind one test, then those that stand beside nodes, unless a pair has their row.
        lasts = of_leaf[~children[:, ends]]
        pairs, pair_of = np.unique(lasts[0] * len(table) + lasts[1], return_inverse=True)
        beside = children[:, ~ends]
        alone = np.unique(of_leaf[~beside[beside < 0]])
        if (trees == NO_TREE).any():
            alone = np.unique(np.append(alone, of_leaf[-1]))
        rows = np.stack([pairs // len(table), pairs % len(table)], axis=1).reshape(-1)
        rows = np.concatenate([rows, alone[~np.isin(alone, rows)]])
        known, first = np.unique(rows, return_index=True)

        # Nodes: roots, then a pair for each test that is not the last one.
        roots = len(trees) + len(trees) % 2
        number = np.zeros(len(nodes), dtype=np.int64)
        number[ends] = pair_of
        number[~ends] = roots // 2 + np.arange(int((~ends).sum()))
        at = np.zeros(len(ensemble.feature), dtype=np.int64)
        at[nodes] = np.arange(len(nodes))
        limit = np.clip(ensemble.limit[nodes], 0, (1 << self.rank_bits) - 1)
        own = np.stack([number, ends, limit, ensemble.feature[nodes], ensemble.missing[nodes]], axis=1)
        records = np.zeros((roots + 2 * int((~ends).sum()), 5), dtype=np.int64)

        def placed(where: IntArray, stands: IntArray) -> None:
            inside = stands >= 0
            records[where[inside]] = own[at[stands[inside]]]
            leaf = first[np.searchsorted(known, of_leaf[~stands[~inside]])]
            always = np.where(leaf % 2 == 1, 0, (1 << self.rank_bits) - 1)
            nothing = np.zeros(len(leaf), dtype=np.int64)
            records[where[~inside]] = np.stack([leaf // 2, nothing + 1, always, nothing, nothing], axis=1)

        of_no_tree = ~(len(of_leaf) - 1)
        placed(np.arange(len(trees)), np.where(trees == NO_TREE, of_no_tree, ensemble.roots[trees]))
        for side in (0, 1):
            placed(2 * number[~ends] + side, beside[side])
        return records, rows


def depths_of(places: Places, trees: int) -> IntArray:
    """Return the tests on the longest way through each tree."""
    depths = np.zeros(trees, dtype=np.int64)
    named = places.leaf_tree >= 0
    np.maximum.at(depths, places.leaf_tree[named], places.leaf_depth[named])
    return depths


def with_tests(ensemble: TreeEnsembleAttributes) -> TreeEnsembleAttributes:
    """Return the ensemble with a test in front of each tree that is a leaf; both of its ends are that leaf."""
    single = np.flatnonzero(ensemble.roots < 0)
    if not len(single):
        return ensemble
    leaf, zeros = ensemble.roots[single], np.zeros(len(single), dtype=np.int64)
    roots = ensemble.roots.copy()
    roots[single] = len(ensemble.feature) + np.arange(len(single))
    return replace(
        ensemble, roots=roots, feature=np.append(ensemble.feature, zeros), limit=np.append(ensemble.limit, zeros),
        missing=np.append(ensemble.missing, zeros.astype(bool)), true=np.append(ensemble.true, leaf),
        false=np.append(ensemble.false, leaf),
    )


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the different rows, and which one each is."""
    if rows.shape[1] == 1:
        table, places = np.unique(rows[:, 0], return_inverse=True)
        return table[:, np.newaxis], places
    table, places = np.unique(rows, axis=0, return_inverse=True)
    return table, places.reshape(-1)


def _values_of(rows: IntArray) -> list[Interval]:
    return [Interval(int(column.min()), int(column.max())) for column in rows.T]


def with_beats(records: IntArray, lanes: int) -> IntArray:
    """Return records with beat and lane instead of the feature."""
    pair, leaf, limit, feature, missing = records.T
    return np.stack([pair, leaf, limit, feature // lanes, feature % lanes, missing], axis=1)
