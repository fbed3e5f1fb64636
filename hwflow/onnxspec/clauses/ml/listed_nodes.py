"""The nodes of a tree ensemble that lists give: classifier and regressor, versions 1, 3 and 5.

A node is known by the ids of its tree and its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hwflow.onnxspec.clauses.ml.node_reading import NodeReading, stop
from hwflow.onnxspec.clauses.ml.tree_shapes import Indices, group_starts

TREE_IDS, NODE_IDS, MODES, FEATURES = "nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_featureids"
CHILDREN = ("nodes_truenodeids", "nodes_falsenodeids")
TRACKS = "nodes_missing_value_tracks_true"
NODES = (TREE_IDS, NODE_IDS, FEATURES, MODES, *CHILDREN)
BRANCHES = tuple(f"BRANCH_{mode}" for mode in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))
LEAF_CODE, UNKNOWN_CODE = len(BRANCHES), -1


class _Codes(dict[bytes, int]):
    """The numbers of the modes."""

    def __missing__(self, mode: bytes) -> int:
        return UNKNOWN_CODE


_MODES = _Codes({name.encode(): code for code, name in enumerate((*BRANCHES, "LEAF"))})


@dataclass(frozen=True)
class Nodes:
    """The nodes of an ensemble, whose lists are equally long. ``tree``: by node the number of its tree, in the order
    of the trees' first nodes if ``together``, which tells whether the nodes of a tree stand together."""

    tree_ids: Indices
    node_ids: Indices
    codes: NDArray[np.int8]
    named: tuple[Indices, Indices]  # what the two lists of children say

    @property
    def leaf(self) -> NDArray[np.bool_]:
        """The leaves."""
        leaf: NDArray[np.bool_] = self.codes == LEAF_CODE
        return leaf

    @property
    def branch(self) -> NDArray[np.bool_]:
        """The nodes that compare."""
        branch: NDArray[np.bool_] = (self.codes != LEAF_CODE) & (self.codes != UNKNOWN_CODE)
        return branch

    def place(self, node: int) -> str:
        """Return the node's name in messages."""
        return f"node {self.node_ids[node]} of tree {self.tree_ids[node]}"

    @cached_property
    def _trees(self) -> tuple[Indices, bool]:
        starts = group_starts(self.tree_ids)
        heads = self.tree_ids[starts]
        together = len(np.unique(heads)) == len(heads)
        if together:
            lengths = np.diff(np.append(starts, len(self.tree_ids)))
            return np.repeat(np.arange(len(starts)), lengths), True
        return np.unique(self.tree_ids, return_inverse=True)[1].astype(np.int64), False

    @property
    def tree(self) -> Indices:
        """By node the number of its tree."""
        return self._trees[0]

    @property
    def together(self) -> bool:
        """Whether the nodes of each tree stand together."""
        return self._trees[1]

    @cached_property
    def first(self) -> Indices:
        """By tree its first node."""
        return np.unique(self.tree, return_index=True)[1].astype(np.int64)

    @cached_property
    def regular(self) -> bool:
        """Whether each tree's nodes stand together and have the ids 0, 1, 2, ..."""
        return self.together and bool(
            (self.node_ids == np.arange(len(self.tree_ids)) - self.first[self.tree]).all()
        )

    @cached_property
    def _order(self) -> tuple[Indices, Indices, Indices]:
        """The distinct node ids, the sorted keys of the nodes, and the nodes in that order."""
        ids, number = np.unique(self.node_ids, return_inverse=True)
        keys = self.tree * len(ids) + number
        order = np.argsort(keys, kind="stable")
        return ids, keys[order], order

    def find(self, tree: Indices, node_id: Indices) -> Indices:
        """Return the nodes with these tree numbers (-1: no tree) and ids, the first of equal ones; -1 for none."""
        if self.regular:
            sizes = np.diff(np.append(self.first, len(self.tree_ids)))
            inside = (tree >= 0) & (node_id >= 0) & (node_id < sizes[tree])
            return np.where(inside, self.first[tree] + np.where(inside, node_id, 0), -1)
        ids, keys, order = self._order
        number = np.minimum(np.searchsorted(ids, node_id), len(ids) - 1)
        known = (ids[number] == node_id) & (tree >= 0)
        key = tree * len(ids) + number
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(known & (keys[place] == key), order[place], -1)

    def tree_numbers(self, tree_ids: Indices) -> Indices:
        """Return the numbers of trees by their ids, -1 for none."""
        known = self.tree_ids[self.first]
        order = np.argsort(known, kind="stable")
        place = np.minimum(np.searchsorted(known[order], tree_ids), len(known) - 1)
        found = order[place]
        return np.where(known[found] == tree_ids, found, -1)

    @cached_property
    def repeated(self) -> NDArray[np.bool_]:
        """The nodes whose ids an earlier one has."""
        again = np.zeros(len(self.tree_ids), np.bool_)
        if not self.regular:
            _, keys, order = self._order
            again[order[1:]] = keys[1:] == keys[:-1]
        return again

    @cached_property
    def children(self) -> Indices:
        """By node its two children, -1 for a leaf and where there is none of that id."""
        found = np.stack([self.find(self.tree, named) for named in self.named], axis=1)
        found[~self.branch] = -1
        return found


def node_lists(r: NodeReading) -> Nodes:
    """Return the nodes. Raises :class:`Unreadable` unless the lists have equally many entries."""
    found = r.kept.get("nodes")
    if found is None:
        if len({r.length(name) for name in NODES}) != 1 or not r.length(TREE_IDS):
            stop()
        modes = np.fromiter(map(_MODES.__getitem__, r.strings(MODES)), np.int8, r.length(MODES))
        named = (r.ints(CHILDREN[0]), r.ints(CHILDREN[1]))
        found = r.kept["nodes"] = Nodes(r.ints(TREE_IDS), r.ints(NODE_IDS), modes, named)
    assert isinstance(found, Nodes)
    return found


def votes_prefix(r: NodeReading) -> str:
    """Return the prefix of the lists of leaf weights."""
    return "class" if "class_ids" in r.declared else "target"
