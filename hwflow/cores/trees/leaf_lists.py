"""Trees whose leaves are lists of targets and values, and the memories of the units that walk them
(:class:`hdl_lib.trees.list_walk.ListWalk`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from hdl_lib.trees.tree_units import Record
from hwflow.cores.memory_words import pack_words
from hwflow.cores.trees.ensemble import Places, entry_leaves
from hwflow.cores.trees.forest import Groups, depths_of, with_beats, with_tests
from hwflow.ir.graph import IntArray, Node
from hwflow.ir.node_attributes import TreeEnsembleAttributes
from hwflow.types import Interval, IntType

_NO_LIST = 0


W = TypeVar("W")


@dataclass(frozen=True, eq=False)
class ListMemories(Generic[W]):
    """The words of each unit's tables, or how many they are about; ``record``: how nodes lie in them, ``base_bits`` and
    ``entry_bits`` of the fields of the others (target; value, or its number in the dictionary), ``value_bits`` of a
    word of the dictionary, which may have no tables."""

    record: Record
    base_bits: tuple[int, int]
    entry_bits: tuple[int, int]
    value_bits: int
    nodes: Sequence[W]
    bases: Sequence[W]
    entries: Sequence[W]
    dictionary: Sequence[W]


class ListForest:
    """The trees of a node, and one that gives nothing, with a test or more each; what all foldings share."""

    def __init__(self, node: Node[TreeEnsembleAttributes]) -> None:
        given = node.attributes
        nothing = replace(
            given, roots=np.append(given.roots, ~(len(given.leaf_start) - 1)),
            leaf_start=np.append(given.leaf_start, given.leaf_start[-1]),
        )
        self.ensemble = with_tests(nothing)
        self.trees = len(given.roots)
        self.features = int(node.inputs[0].typed.shape[1])
        greatest = max(1, node.inputs[0].typed.interval.hi)
        places = Places.of(self.ensemble)
        self.node_tree = places.node_tree
        self.depths = depths_of(places, len(self.ensemble.roots))
        self.limit = np.clip(self.ensemble.limit, 0, greatest + 1)
        # Of missing ones a rank that none reaches must be told apart, too.
        most = greatest + 1 if self.missing else int(self.limit[self.node_tree >= 0].max())
        self.rank_bits = max(1, most.bit_length())
        self._listed()
        self.longest = np.ones(len(self.ensemble.roots), dtype=np.int64)
        named = places.leaf_tree >= 0
        np.maximum.at(self.longest, places.leaf_tree[named], np.diff(self.start)[named])

        inside = self.node_tree >= 0
        children = np.stack([self.ensemble.true, self.ensemble.false])
        self.ends = inside & (children < 0).all(axis=0)
        self.inner = inside & ~self.ends
        counts = np.bincount(self.node_tree[self.inner], minlength=self.trees + 1)
        lengths = np.bincount(places.leaf_tree[named], np.diff(self.start)[named], self.trees + 1)
        self.most_pairs, self.most_entries = int(counts.max()), int(lengths.max())
        self.pairs, self.entries = int(counts.sum()), int(lengths.sum())

    def _listed(self) -> None:
        """Find the list of each leaf: one entry for each target it gives something to, ascending, or one that gives
        nothing."""
        ensemble = self.ensemble
        leaves, targets = len(ensemble.leaf_start) - 1, ensemble.targets
        keys, place = np.unique(entry_leaves(ensemble) * targets + ensemble.leaf_target, return_inverse=True)
        values = np.zeros(len(keys), dtype=np.int64)
        np.add.at(values, place, ensemble.leaf_value)
        keys, values = keys[values != 0], values[values != 0]
        silent = np.flatnonzero(np.bincount(keys // targets, minlength=leaves) == 0)
        order = np.argsort(np.append(keys, silent * targets), kind="stable")
        keys, values = np.append(keys, silent * targets)[order], np.append(values, np.zeros_like(silent))[order]
        self.start = np.append(0, np.cumsum(np.bincount(keys // targets, minlength=leaves)))
        self.target, self.value = keys % targets, values
        self.words, self.number = np.unique(values, return_inverse=True)
        least, most = np.zeros(targets, dtype=np.int64), np.zeros(targets, dtype=np.int64)
        np.minimum.at(least, self.target, values)
        np.maximum.at(most, self.target, values)
        self.values = [Interval(int(lo), int(hi)) for lo, hi in zip(least, most, strict=True)]
        self.of_all = Interval(int(least.min()), int(most.max()))

        # A number for each different list: one entry after the other.
        length, self.list = np.diff(self.start), np.full(leaves, _NO_LIST)
        for index in range(int(length.max())):
            some = np.flatnonzero(length > index)
            entry = self.start[some] + index
            code = (self.list[some] * targets + self.target[entry]) * len(self.words) + self.number[entry]
            self.list[some] = 1 + int(self.list.max()) + np.unique(code, return_inverse=True)[1]

    @property
    def missing(self) -> bool:
        """Tell whether some test takes missing ranks."""
        return bool(self.ensemble.missing.any())

    def has_dictionary(self, units: int) -> bool:
        """Tell whether numbers of values in tables of their own take fewer bits than values in every entry."""
        value, number = IntType.holding(self.of_all).bits, (len(self.words) - 1).bit_length()
        return units * len(self.words) * value < self.entries * (value - number)

    def groups(self, units: int, slots: int) -> Groups:
        """Deal the trees to ``units`` with so many slots, those first that need the most rounds. A list is read while
        the next group is walked."""
        depths, longest = self.depths[:-1], self.longest[:-1]
        order = np.lexsort((-longest, -depths, -np.maximum(depths, longest)))
        count = max(1, -(-len(order) // (units * slots)))
        padded = np.full(count * units * slots, self.trees)
        padded[: len(order)] = order
        trees = padded.reshape(count, slots, units)
        trees[:, 1::2] = trees[:, 1::2, ::-1]
        rounds = np.maximum(self.depths[trees].max(axis=(1, 2)), np.roll(self.longest[trees].max(axis=(1, 2)), 1))
        return Groups(trees, rounds, np.arange(count) == count - 1)

    def estimated(self, groups: Groups, lanes: int) -> ListMemories[int]:
        """Return about what :meth:`memories` does: so many words instead of tables."""
        begins, units = groups.trees.shape[0] * groups.trees.shape[1], groups.trees.shape[2]
        pairs, entries = begins + -(-self.pairs // units), -(-self.entries // units) + 2
        dictionary = self.has_dictionary(units)
        return self._memories(
            lanes, (self.most_pairs, self.most_entries), (pairs, entries), len(self.words) if dictionary else 0,
            [2 * pairs] * units, [begins] * units, [entries] * units,
            [min(len(self.words), entries)] * units if dictionary else [],
        )

    def _memories(
        self, lanes: int, offsets: tuple[int, int], bases: tuple[int, int], numbers: int,
        *tables: Sequence[W],
    ) -> ListMemories[W]:
        """Return the memories. ``offsets`` and ``bases``: of nodes' pairs and of entries, at most; ``numbers``: of
        values, so many."""
        record = Record.of(
            max(1, *(most.bit_length() for most in offsets)), self.rank_bits, self.features, lanes,
            missing=self.missing,
        )
        pair, entry = (max(1, most.bit_length()) for most in bases)
        value = IntType.holding(self.of_all).bits
        target = (self.ensemble.targets - 1).bit_length()
        number = max(1, (numbers - 1).bit_length()) if numbers else value
        return ListMemories(record, (pair, entry), (target, number), value, *tables)

    def memories(self, groups: Groups, lanes: int) -> ListMemories[Sequence[int]]:
        """Return the memories of all units."""
        flat = groups.trees.reshape(-1, groups.trees.shape[2])
        unit_of = np.zeros(self.trees + 1, dtype=np.int64)
        unit_of[flat] = np.arange(flat.shape[1])
        by_unit = np.flatnonzero(self.node_tree >= 0)
        by_unit = by_unit[self.node_tree[by_unit] < self.trees]
        by_unit = by_unit[np.argsort(unit_of[self.node_tree[by_unit]], kind="stable")]
        bounds = np.searchsorted(unit_of[self.node_tree[by_unit]], np.arange(flat.shape[1] + 1))
        images = [
            self._image(by_unit[begin:end], trees)
            for trees, (begin, end) in zip(flat.T, pairwise(bounds), strict=True)
        ]
        dictionaries = [np.unique(image.value) for image in images] if self.has_dictionary(flat.shape[1]) else []
        offsets = tuple(
            max(int(image.records[image.records[:, 1] == leaf, 0].max(initial=0)) for image in images)
            for leaf in (0, 1)
        )
        bases = tuple(max(int(image.bases[:, part].max()) for image in images) for part in (0, 1))
        bases = bases[0] + offsets[0], max(len(image.target) for image in images)
        found: ListMemories[Sequence[int]] = self._memories(
            lanes, (offsets[0], offsets[1]), bases, max((len(words) for words in dictionaries), default=0),
            [], [], [], [],
        )
        numbers = [image.value for image in images]
        if dictionaries:
            numbers = [np.searchsorted(words, value) for words, value in zip(dictionaries, numbers, strict=True)]
        return replace(
            found,
            nodes=[pack_words(with_beats(image.records, lanes), found.record.bits) for image in images],
            bases=[pack_words(image.bases, found.base_bits) for image in images],
            entries=[
                pack_words(np.stack([image.target, number], axis=1), found.entry_bits)
                for image, number in zip(images, numbers, strict=True)
            ],
            dictionary=[pack_words(words[:, np.newaxis], found.value_bits) for words in dictionaries],
        )

    def _image(self, nodes: IntArray, trees: IntArray) -> _Image:
        """Return what a unit with these ``nodes`` and ``trees`` has in its memories."""
        ensemble = self.ensemble
        place = np.full(self.trees + 1, -1)
        place[trees] = np.arange(len(trees))  # of no tree, which may come often: the last one
        if place[-1] >= 0:
            nodes = np.append(nodes, np.flatnonzero(self.node_tree == self.trees))
        nodes = nodes[np.argsort(place[self.node_tree[nodes]], kind="stable")]
        at = place[self.node_tree[nodes]]
        own = np.flatnonzero(place[trees] == np.arange(len(trees)))  # places with a tree in memory

        # Pairs of nodes: the root of a tree, with nothing beside it, then those behind tests.
        inner = self.inner[nodes]
        is_own = np.bincount(own, minlength=len(trees))
        first_pair = np.cumsum(is_own + np.bincount(at[inner], minlength=len(trees)))
        first_pair = np.append(0, first_pair[:-1])
        pair = np.cumsum(inner) - 1 + np.cumsum(is_own)[at]  # of an inner node, among all

        # Pairs of lists: behind the last tests, then of leaves beside nodes, unless one is false's behind a last test.
        ends, lists = nodes[~inner], int(self.list.max()) + 1
        behind = np.stack([ensemble.true[ends], ensemble.false[ends]])
        sides = np.stack([ensemble.true[nodes[inner]], ensemble.false[nodes[inner]]])
        alone_at, alone = np.broadcast_to(at[inner], sides.shape)[sides < 0], ~sides[sides < 0]
        keys_behind = (at[~inner] * lists + self.list[~behind[0]]) * lists + self.list[~behind[1]]
        false_behind, example = np.unique(at[~inner] * lists + self.list[~behind[1]], return_index=True)
        keys_alone = alone_at * lists + self.list[alone]
        found = np.searchsorted(false_behind, keys_alone)
        shared = np.append(false_behind, -1)[found] == keys_alone
        true_side = np.where(shared, self.list[~behind[0]][np.append(example, 0)[found]] if len(ends) else 0, _NO_LIST)
        keys_alone = (alone_at * lists + true_side) * lists + self.list[alone]
        keys, index, which = np.unique(
            np.concatenate([keys_behind, keys_alone]), return_index=True, return_inverse=True
        )
        true_leaf = np.append(~behind[0], np.full(len(alone), -1))[index]
        false_leaf = np.append(~behind[1], alone)[index]
        tree_of = keys // (lists * lists)
        lower, upper = self._ends(true_leaf, false_leaf)
        order = _chained(tree_of, lower, upper)
        laid, entry = self._laid_out(true_leaf[order], false_leaf[order], upper[order][:-1] < lower[order][1:])
        first_entry = np.zeros(len(trees), dtype=np.int64)
        first_entry[own] = laid[np.searchsorted(tree_of, own)]
        boundary = np.zeros_like(laid)
        boundary[order] = laid
        offset = boundary[which] - first_entry[tree_of[which]]

        records = np.zeros((2 * (len(own) + int(inner.sum())), 5), dtype=np.int64)
        words = np.zeros((len(nodes), 5), dtype=np.int64)
        words[inner, 0] = (pair - first_pair[at])[inner]
        words[~inner, 0], words[~inner, 1] = offset[: len(ends)], 1
        words[:, 2], words[:, 3] = self.limit[nodes], ensemble.feature[nodes]
        words[:, 4] = ensemble.missing[nodes]
        number = np.zeros(len(ensemble.feature), dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        records[2 * first_pair[own]] = words[number[ensemble.roots[trees[own]]]]
        stands = 2 * np.broadcast_to(pair[inner], sides.shape) + np.array([[0], [1]])
        records[stands[sides >= 0]] = words[number[sides[sides >= 0]]]
        # A leaf beside a node: a test that never holds.
        records[stands[sides < 0], 0], records[stands[sides < 0], 1] = offset[len(ends) :], 1
        bases = np.stack([first_pair, first_entry], axis=1)[place[trees]]
        return _Image(records, bases, self.target[entry], self.value[entry])

    def _ends(self, true_leaf: IntArray, false_leaf: IntArray) -> tuple[IntArray, IntArray]:
        """Return the targets at the lower and at the upper end of each pair of lists (-1: no true)."""
        lower = self.target[self.start[np.where(true_leaf < 0, false_leaf, true_leaf)]]
        return lower, self.target[self.start[false_leaf + 1] - 1]

    def _laid_out(
        self, true_leaf: IntArray, false_leaf: IntArray, goes_on: npt.NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray]:
        """Return the place between the two lists of each pair (-1: no true), and the entry in each place; a silent one
        stands where a list ``goes_on`` into the next one, and at both ends."""
        silent = int(self.start[-2])  # of the leaf that gives nothing
        length = np.append(np.diff(self.start), 0)
        of_true, of_false, stopped = length[true_leaf], length[false_leaf], np.append(goes_on, True)
        ends = 1 + np.cumsum(of_true + of_false + stopped)
        boundary = ends - stopped - of_false
        entry = np.full(int(ends[-1]), silent)
        for leaf, count, begin in ((true_leaf, of_true, boundary - of_true), (false_leaf, of_false, boundary)):
            within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            entry[np.repeat(begin, count) + within] = np.repeat(self.start[leaf], count) + within
        return boundary, entry


def _chained(tree: IntArray, lower: IntArray, upper: IntArray) -> IntArray:
    """Return the order in which pairs of lists of each ``tree`` (which ascends) begin no higher than the one before
    ends, where that may be."""
    found, last = [], 0
    low, high = lower.tolist(), upper.tolist()
    for some in np.split(np.arange(len(tree)), np.flatnonzero(np.diff(tree)) + 1):
        by_lower: dict[int, list[int]] = {}
        for pair in some.tolist():
            by_lower.setdefault(low[pair], []).append(pair)
        targets = sorted(by_lower)
        while targets:
            place = bisect_right(targets, last) - 1  # of the highest one, where all are higher
            pairs = by_lower[targets[place]]
            found.append(pairs.pop())
            last = high[found[-1]]
            if not pairs:
                del targets[place]
    return np.array(found)


@dataclass(frozen=True, eq=False)
class _Image:
    """Of a unit: nodes (pair, leaf, limit, feature, missing), the first pair and entry of each tree, targets and values
    of entries."""

    records: IntArray
    bases: IntArray
    target: IntArray
    value: IntArray
