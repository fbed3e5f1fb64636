"""Random ensembles of trees, and what they mean, one frame, one tree, one node at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwflow.ir.graph import IntArray
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes


class Grower:
    """Grows trees of up to ``depth`` tests; ``reach``: the greatest rank of each feature."""

    def __init__(
        self, seed: int, reach: tuple[int, ...], targets: int, *, aggregate: Aggregate = Aggregate.SUM,
        missing: bool = False, shared: bool = False, whole: bool = False, full: bool = False, bits: int = 10,
        apart: bool = False, distinct: int = 0,
    ) -> None:
        """``missing``: some nodes take the top rank, too; ``shared``: some children have several parents; ``whole``:
        leaves name every target, else trees one or leaves some; ``full``: no leaf before the last level; ``apart``:
        values of one tree lie about a number of its own, far from those of others; of values with so many ``bits``
        there are at most ``distinct`` ones (0: any)."""
        self.rng = np.random.default_rng(seed)
        self.reach, self.targets, self.aggregate = reach, targets, aggregate
        self.missing, self.shared, self.full, self.bits = missing, shared, full, bits
        self.apart, self.middle = apart, 0
        self.pool = self.rng.integers(-(1 << bits), 1 << bits, distinct)
        self.whole = whole or aggregate != Aggregate.SUM
        self.nodes: list[list[int]] = []  # feature, limit, missing, true, false
        self.leaves: list[dict[int, int]] = []
        self.roots: list[int] = []

    def tree(self, depth: int, target: int | None = None) -> None:
        """``target``: the only one that the tree's leaves name."""
        first = len(self.nodes)
        self.middle = int(self.rng.integers(-1, 2)) << self.bits + 1 if self.apart else 0
        self.roots.append(self._grown(depth, target))
        if self.shared:
            self._share(first)

    def _grown(self, depth: int, target: int | None) -> int:
        if depth == 0 or (not self.full and self.rng.random() < 0.2):
            self.leaves.append(self._values(target))
            return ~(len(self.leaves) - 1)
        feature = int(self.rng.integers(len(self.reach)))
        limit = int(self.rng.integers(1, self.reach[feature] + 1))
        node = [feature, limit, int(self.missing and self.rng.random() < 0.5), 0, 0]
        index = len(self.nodes)
        self.nodes.append(node)
        node[3:] = self._grown(depth - 1, target), self._grown(depth - 1, target)
        return index

    def _values(self, target: int | None) -> dict[int, int]:
        named = range(self.targets) if target is None else [target]
        if len(self.pool):
            values = self.rng.choice(self.pool, self.targets)
        else:
            values = self.middle + self.rng.integers(-(1 << self.bits), 1 << self.bits, self.targets)
        return {t: int(values[t]) for t in named if self.whole or target is not None or self.rng.random() < 0.7}

    def _share(self, first: int) -> None:
        for index in range(first, len(self.nodes)):
            later = [n for n in range(index + 1, len(self.nodes))]
            if later and self.rng.random() < 0.3:
                self.nodes[index][3] = int(self.rng.choice(later))

    def values(self) -> dict[str, Any]:
        """The attributes by name."""
        columns = np.array(self.nodes, dtype=np.int64).reshape(-1, 5).T
        entries = [entry for leaf in self.leaves for entry in leaf.items()]
        table = np.array(entries, dtype=np.int64).reshape(-1, 2).T
        return {
            "feature": columns[0], "limit": columns[1], "missing": columns[2].astype(bool),
            "missing_rank": np.array([r if self.missing and n % 3 != 2 else -1 for n, r in enumerate(self.reach)]),
            "true": columns[3], "false": columns[4], "roots": np.array(self.roots, dtype=np.int64),
            "leaf_start": np.concatenate([[0], np.cumsum([len(leaf) for leaf in self.leaves])]).astype(np.int64),
            "leaf_target": table[0], "leaf_value": table[1], "targets": self.targets, "aggregate": self.aggregate,
        }

    def ensemble(self) -> TreeEnsembleAttributes:
        return TreeEnsembleAttributes(**self.values())

    def ranks(self, *shape: int) -> IntArray:
        """Random frames."""
        return np.stack([self.rng.integers(0, r + 1, shape) for r in self.reach], axis=-1)


def recursive(ensemble: TreeEnsembleAttributes, ranks: IntArray) -> list[int | None]:
    """What one row of ranks gives, tree after tree; None for a target that no tree names (a sum is 0)."""
    row = ranks.tolist()

    def leaf(at: int) -> int:
        if at < 0:
            return ~at
        rank, feature = row[ensemble.feature[at]], ensemble.feature[at]
        holds = rank < ensemble.limit[at] or bool(ensemble.missing[at] and rank == ensemble.missing_rank[feature])
        return leaf(int(ensemble.true[at] if holds else ensemble.false[at]))

    named: list[list[int]] = [[] for _ in range(ensemble.targets)]
    for root in ensemble.roots:
        end = leaf(int(root))
        for entry in range(ensemble.leaf_start[end], ensemble.leaf_start[end + 1]):
            named[ensemble.leaf_target[entry]].append(int(ensemble.leaf_value[entry]))
    join = {Aggregate.SUM: sum, Aggregate.MIN: min, Aggregate.MAX: max}[ensemble.aggregate]
    return [join(values) if values or join is sum else None for values in named]
