"""What follows from the trees of an ensemble: where nodes and leaves are, what trees give at least and at most, what
they give to frames. Everything is linear in nodes and leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hwflow.ir.graph import IntArray
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes
from hwflow.types import Interval

_STANDS = 1 << 21  # of trees with frames that are walked together


@dataclass(frozen=True, eq=False)
class Places:
    """The tree of each node and leaf, -1 where no tree has it, and the greatest number of nodes on a way to a leaf."""

    node_tree: IntArray
    leaf_tree: IntArray
    leaf_depth: IntArray

    @classmethod
    def of(cls, ensemble: TreeEnsembleAttributes) -> Places:
        """Find them level by level: a node follows once all nodes before it are known."""
        nodes, leaves = len(ensemble.feature), len(ensemble.leaf_start) - 1
        tree, depth = np.full(nodes + leaves, -1), np.zeros(nodes + leaves, dtype=np.int64)
        children = np.stack([ensemble.true, ensemble.false])
        children = np.where(children < 0, nodes + ~children, children)
        roots = np.where(ensemble.roots < 0, nodes + ~ensemble.roots, ensemble.roots)
        tree[roots] = np.arange(len(roots))
        open_ = np.bincount(children.reshape(-1), minlength=nodes + leaves)
        level = np.flatnonzero(open_[:nodes] == 0)
        while level.size:
            for below in children[:, level]:
                np.maximum.at(tree, below, tree[level])
                np.maximum.at(depth, below, depth[level] + 1)
                np.subtract.at(open_, below, 1)
            reached = np.unique(children[:, level])
            level = reached[(open_[reached] == 0) & (reached < nodes)]
        return cls(tree[:nodes], tree[nodes:], depth[nodes:])


def entry_leaves(ensemble: TreeEnsembleAttributes) -> IntArray:
    """Return the leaf of each entry of ``leaf_value``."""
    return np.repeat(np.arange(len(ensemble.leaf_start) - 1), np.diff(ensemble.leaf_start))


def intervals(ensemble: TreeEnsembleAttributes) -> tuple[Interval, ...]:
    """Return what each target is at least and at most, if every leaf of a tree may be reached whatever the others."""
    targets, leaf_tree = ensemble.targets, Places.of(ensemble).leaf_tree
    tree = leaf_tree[entry_leaves(ensemble)]
    kept = tree >= 0
    pairs, place, count = np.unique(
        tree[kept] * targets + ensemble.leaf_target[kept], return_inverse=True, return_counts=True
    )
    values = ensemble.leaf_value[kept]
    least, most = values[np.unique(place, return_index=True)[1]], np.zeros(len(pairs), dtype=np.int64)
    most[:] = least
    np.minimum.at(least, place, values)
    np.maximum.at(most, place, values)
    target = pairs % targets
    if ensemble.aggregate == Aggregate.SUM:
        leaves = np.bincount(leaf_tree[leaf_tree >= 0], minlength=len(ensemble.roots))
        silent = leaves[pairs // targets] > count  # some leaf gives nothing
        least[silent], most[silent] = np.minimum(least[silent], 0), np.maximum(most[silent], 0)
    return tuple(
        Interval(int(lo), int(hi))
        for lo, hi in zip(*(aggregated(ensemble, target, ends) for ends in (least, most)), strict=True)
    )


def within_results(ensemble: TreeEnsembleAttributes) -> TreeEnsembleAttributes:
    """Return the same ensemble with leaves of minima and maxima brought to the nearest possible result: hardware then
    needs no more bits for a value than for a result."""
    if ensemble.aggregate == Aggregate.SUM:
        return ensemble
    ends = intervals(ensemble)
    least, most = np.array([end.lo for end in ends]), np.array([end.hi for end in ends])
    target = ensemble.leaf_target
    return replace(ensemble, leaf_value=np.clip(ensemble.leaf_value, least[target], most[target]))


def aggregated(ensemble: TreeEnsembleAttributes, place: IntArray, values: IntArray, rows: int = 1) -> IntArray:
    """Return the sum, minimum or maximum of the values at each place below ``rows * targets``."""
    result = np.zeros(rows * ensemble.targets, dtype=np.int64)
    if ensemble.aggregate == Aggregate.SUM:
        np.add.at(result, place, values)
    elif ensemble.aggregate == Aggregate.MIN:
        result[:] = np.iinfo(np.int64).max
        np.minimum.at(result, place, values)
    else:
        result[:] = np.iinfo(np.int64).min
        np.maximum.at(result, place, values)
    return result


def evaluate(ensemble: TreeEnsembleAttributes, ranks: IntArray) -> IntArray:
    """Return [rows, targets] for ``ranks`` [rows, features]."""
    trees = max(1, len(ensemble.roots))
    step = max(1, _STANDS // trees)
    parts = [_some(ensemble, ranks[first : first + step]) for first in range(0, len(ranks), step)]
    return np.concatenate(parts) if parts else np.zeros((0, ensemble.targets), dtype=np.int64)


def _some(ensemble: TreeEnsembleAttributes, ranks: IntArray) -> IntArray:
    rows, features = ranks.shape
    flat, stands = ranks.reshape(-1), np.tile(ensemble.roots, rows)
    walking = np.flatnonzero(stands >= 0)
    start = walking // max(1, len(ensemble.roots)) * features
    while walking.size:
        node = stands[walking]
        feature = ensemble.feature[node]
        rank = flat[start + feature]
        holds = (rank < ensemble.limit[node]) | (ensemble.missing[node] & (rank == ensemble.missing_rank[feature]))
        stands[walking] = np.where(holds, ensemble.true[node], ensemble.false[node])
        inside = stands[walking] >= 0
        walking, start = walking[inside], start[inside]
    leaf = ~stands
    count = np.diff(ensemble.leaf_start)[leaf]
    behind = np.cumsum(count)
    entry = np.arange(int(count.sum())) - np.repeat(behind - count, count) + np.repeat(ensemble.leaf_start[leaf], count)
    row = np.repeat(np.arange(len(stands)) // max(1, len(ensemble.roots)), count)
    place = row * ensemble.targets + ensemble.leaf_target[entry]
    return aggregated(ensemble, place, ensemble.leaf_value[entry], rows).reshape(rows, ensemble.targets)
