"""Trees as decisions that are made at once: the tests that occur, each once, and what is behind each way through a
tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hdl_lib.trees.parallel_trees import Branch, RankTest
from hwflow.cores.trees.ensemble import within_results
from hwflow.ir.graph import IntArray, Node
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes

MOST_NODES = 20_000  # of an ensemble whose decisions are made at once
MOST_LEVELS = 10  # of a tree

_Row = tuple[tuple[int, int], ...]
"""What a leaf gives: targets and values."""


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """``root``, of so many ``levels``; ``values``: for each target that the tree gives something to what it gives after
    each way (see :class:`hdl_lib.trees.parallel_trees.Lookup`), [2 ** levels]."""

    root: Branch
    levels: int
    values: Mapping[int, IntArray]


class Decisions:
    """An ensemble's trees without tests that make no difference: those that always or never hold, and those with the
    same behind both ends.

    ``tests``: those that trees have; ``base``: what each target gets whatever the ranks. ``trees`` is None where there
    are more nodes or levels than :data:`MOST_NODES` and :data:`MOST_LEVELS`, or no test at all.
    """

    def __init__(self, node: Node[TreeEnsembleAttributes]) -> None:
        self.ensemble = within_results(node.attributes)
        self.tests: tuple[RankTest, ...] = ()
        self.base = dict.fromkeys(range(self.ensemble.targets), 0)
        self.trees: list[DecisionTree] | None = None
        if len(self.ensemble.feature) > MOST_NODES:
            return
        roots = list(self._roots(node))
        constants = [root for root in roots if isinstance(root, tuple)]
        branches = [root for root in roots if isinstance(root, _Node)]
        if not branches or max(branch.levels for branch in branches) > MOST_LEVELS:
            return
        numbers: dict[RankTest, int] = {}
        made: dict[_Node, Branch] = {}
        self.trees = [
            DecisionTree(branch.made(numbers, made), branch.levels, self._values(branch)) for branch in branches
        ]
        self.tests = tuple(numbers)
        for row in constants:
            self._take(row)

    def _roots(self, node: Node[TreeEnsembleAttributes]) -> Iterator[_Node | _Row]:
        """Yield what each tree is: a node, or what its only leaf gives."""
        ensemble, ranges = self.ensemble, node.inputs[0].typed.channel_intervals(1)
        rows = self._rows()
        found: list[_Node | _Row] = [()] * len(ensemble.feature)
        known: dict[tuple[RankTest, int, int], _Node] = {}
        columns = (ensemble.feature, ensemble.limit, ensemble.missing, ensemble.true, ensemble.false)
        lines = list(zip(*(column.tolist() for column in columns), strict=True))
        ranks = ensemble.missing_rank.tolist()
        for index in reversed(range(len(lines))):  # children come after their parents
            feature, limit, missing, *children = lines[index]
            true, false = (found[child] if child >= 0 else rows[~child] for child in children)
            ends, rank = ranges[feature], ranks[feature]
            taken = rank if missing and limit <= rank and ends.includes(rank) else None
            if limit > ends.hi or true is false:
                found[index] = true
            elif limit <= ends.lo and taken is None:
                found[index] = false
            else:
                test = RankTest(feature, max(0, limit), taken)
                key = (test, id(true), id(false))
                if key not in known:
                    known[key] = _Node(test, true, false)
                found[index] = known[key]
        for root in ensemble.roots.tolist():
            yield found[root] if root >= 0 else rows[~root]

    def _rows(self) -> list[_Row]:
        """Return what each leaf gives; equal ones are the same object."""
        ensemble = self.ensemble
        start = ensemble.leaf_start.tolist()
        entries = list(zip(ensemble.leaf_target.tolist(), ensemble.leaf_value.tolist(), strict=True))
        silent = 0 if ensemble.aggregate == Aggregate.SUM else None
        rows = [
            tuple(sorted(entry for entry in entries[begin:end] if entry[1] != silent))
            for begin, end in pairwise(start)
        ]
        known: dict[_Row, _Row] = {}
        return [known.setdefault(row, row) for row in rows]

    def _values(self, root: _Node) -> dict[int, IntArray]:
        leaves = list(root.leaves())
        targets = sorted({target for row, _, _ in leaves for target, _ in row})
        found = {target: np.zeros(1 << root.levels, dtype=np.int64) for target in targets}
        for row, way, levels in leaves:
            for target, value in row:
                found[target][way :: 1 << levels] = value
        return found

    def _take(self, row: _Row) -> None:
        """Take in a tree that always gives the same."""
        assert self.trees
        for target, value in row:
            if self.ensemble.aggregate == Aggregate.SUM:
                self.base[target] += value
            else:  # of every tree each target has a value
                better = np.minimum if self.ensemble.aggregate == Aggregate.MIN else np.maximum
                values = self.trees[0].values[target]
                better(values, value, out=values)


class _Node:
    """A test with nodes or rows behind it."""

    def __init__(self, test: RankTest, true: _Node | _Row, false: _Node | _Row) -> None:
        self.test, self.children = test, (true, false)
        self.levels: int = 1 + max(child.levels if isinstance(child, _Node) else 0 for child in self.children)

    def made(self, numbers: dict[RankTest, int], known: dict[_Node, Branch]) -> Branch:
        """Return the branch; ``numbers``: of tests, which it adds to."""
        if self not in known:
            number = numbers.setdefault(self.test, len(numbers))
            true, false = (
                child.made(numbers, known) if isinstance(child, _Node) else None for child in self.children
            )
            known[self] = Branch(number, true, false)
        return known[self]

    def leaves(self, way: int = 0, level: int = 0) -> Iterator[tuple[_Row, int, int]]:
        """Yield each way to a leaf: what that gives, the way's bits, how many."""
        for child, bit in zip(self.children, (1, 0), strict=True):
            here = way | bit << level
            if isinstance(child, _Node):
                yield from child.leaves(here, level + 1)
            else:
                yield child, here, level + 1
