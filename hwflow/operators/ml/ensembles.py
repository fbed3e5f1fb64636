"""Ensembles of decision trees, read from the attributes of ONNX's three operators into arrays of one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Attributes = Mapping[str, Any]

# A file of a few megabytes may claim more of either than any memory holds: each level of a ladder of shared nodes has
# more of them than the one before.
_MOST_LEVELS = 1024
_MOST_COPIES = 1 << 20


class Mode(IntEnum):
    """What a node asks of its feature, by the numbers of nodes_modes since version 5 of ai.onnx.ml."""

    LEQ = 0
    LT = 1
    GTE = 2
    GT = 3
    EQ = 4
    NEQ = 5
    MEMBER = 6


class Malformed(ValueError):
    """Raised for attributes that describe no ensemble: a sentence "X must be Y, not Z"."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees of nodes and leaves. ``true`` and ``false``: where a node leads, the index of a node, or ``~leaf``; nodes
    come before those to which they lead. ``roots``: likewise, one for each tree. ``tracks_true``: where NaN leads.
    ``members[member_start[k]:member_start[k + 1]]``: the numbers of the k-th node, none unless it asks for members.
    Leaf k adds ``leaf_value[leaf_start[k]:leaf_start[k + 1]]`` to its targets ``leaf_target``; ``leaf_tree``: the tree
    of each, rising."""

    feature: IntArray
    mode: IntArray
    value: Floats
    true: IntArray
    false: IntArray
    tracks_true: BoolArray
    roots: IntArray
    member_start: IntArray
    members: Floats
    leaf_start: IntArray
    leaf_target: IntArray
    leaf_value: Floats
    leaf_tree: IntArray

    @property
    def trees(self) -> int:
        """The number of trees."""
        return len(self.roots)


def of_named_nodes(attributes: Attributes, kind: str) -> Ensemble:
    """Read an ensemble whose nodes have names, as up to version 3 of ai.onnx.ml: those of attributes ``nodes_*``, with
    the leaves' ``{kind}_*``, "class" or "target". Raises :class:`Malformed`."""
    trees, ids = _integers(attributes, "nodes_treeids"), _integers(attributes, "nodes_nodeids")
    names = [m.decode() if isinstance(m, bytes) else str(m) for m in _listed(attributes, "nodes_modes")]
    distinct = {name: _MODES.get(name) for name in set(names)}
    unknown = sorted(name for name, mode in distinct.items() if mode is None)
    if unknown:
        raise Malformed(f"nodes_modes must be one of {', '.join(_MODES)}, not {unknown[0]!r}")
    mode = np.array([distinct[name] for name in names], dtype=np.int64)
    count = len(ids)
    value = floats_of(attributes, "nodes_values")
    tracks = _integers(attributes, "nodes_missing_value_tracks_true")
    columns: dict[str, npt.NDArray[Any]] = {
        "nodes_treeids": trees, "nodes_modes": mode, "nodes_featureids": _integers(attributes, "nodes_featureids"),
        "nodes_values": value, "nodes_truenodeids": _integers(attributes, "nodes_truenodeids"),
        "nodes_falsenodeids": _integers(attributes, "nodes_falsenodeids"),
        "nodes_missing_value_tracks_true": tracks if len(tracks) else np.zeros(count, np.int64),
    }
    for name, column in columns.items():
        _require_length(name, column, count, "nodes_nodeids")
    find = _Named(trees, ids)
    inner = mode != _LEAF
    leads = [
        np.where(inner, find(trees, columns[name], inner, name), -1)
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    ]
    pointed = np.zeros(count, bool)
    for lead in leads:
        pointed[lead[inner]] = True
    roots = np.flatnonzero(~pointed)
    if len(roots) != len(np.unique(trees)) or len(np.unique(trees[roots])) != len(roots):
        raise Malformed(f"each of {len(np.unique(trees))} trees must have one root, not {len(roots)} in all")
    roots = roots[np.argsort(trees[roots], kind="stable")]
    weights = floats_of(attributes, f"{kind}_weights")
    targets = _integers(attributes, f"{kind}_ids")
    owners = [_integers(attributes, f"{kind}_{part}") for part in ("treeids", "nodeids")]
    for name, column in ((f"{kind}_ids", targets), (f"{kind}_treeids", owners[0]), (f"{kind}_nodeids", owners[1])):
        _require_length(name, column, len(weights), f"{kind}_weights")
    owner = find(owners[0], owners[1], np.ones(len(weights), bool), f"{kind}_nodeids")
    kept = ~inner[owner]  # what is said of other nodes is never reached
    order = np.argsort(owner[kept], kind="stable")
    leaf_of = np.cumsum(~inner) - 1
    starts = np.searchsorted(leaf_of[owner[kept]][order], np.arange(int((~inner).sum()) + 1))
    node_of = np.cumsum(inner) - 1
    place = np.where(inner, node_of, ~leaf_of)
    return _ordered(Ensemble(
        columns["nodes_featureids"][inner], mode[inner], value[inner], place[leads[0][inner]], place[leads[1][inner]],
        columns["nodes_missing_value_tracks_true"][inner] != 0, place[roots], np.zeros(int(inner.sum()) + 1, np.int64),
        np.zeros(0), starts, targets[kept][order], weights[kept][order], trees[~inner],
    ))


def of_positions(attributes: Attributes) -> Ensemble:
    """Read an ensemble whose nodes lead to positions, as since version 5 of ai.onnx.ml. Raises :class:`Malformed`."""
    mode = np.asarray(attributes["nodes_modes"]).astype(np.int64).reshape(-1)
    count = len(mode)
    weights, targets = floats_of(attributes, "leaf_weights"), _integers(attributes, "leaf_targetids")
    _require_length("leaf_targetids", targets, len(weights), "leaf_weights")
    tracks = _integers(attributes, "nodes_missing_value_tracks_true")
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    columns = {f"nodes_{name}": _integers(attributes, f"nodes_{name}") for name in names}
    columns["nodes_missing_value_tracks_true"] = tracks if len(tracks) else np.zeros(count, np.int64)
    value = floats_of(attributes, "nodes_splits")
    for name, column in (*columns.items(), ("nodes_splits", value)):
        _require_length(name, column, count, "nodes_modes")
    if ((mode < 0) | (mode > Mode.MEMBER)).any():
        raise Malformed(f"nodes_modes must be 0 to {int(Mode.MEMBER)}, not {mode[(mode < 0) | (mode > 6)][0]}")
    leads = []
    for side in ("true", "false"):
        place, leaf = columns[f"nodes_{side}nodeids"], columns[f"nodes_{side}leafs"] != 0
        most = np.where(leaf, len(weights), count)
        if ((place < 0) | (place >= most)).any():
            wrong = place[(place < 0) | (place >= most)][0]
            raise Malformed(f"nodes_{side}nodeids must be positions of nodes or leaves, not {wrong}")
        leads.append(np.where(leaf, ~place, place))
    roots = _integers(attributes, "tree_roots")
    if ((roots < 0) | (roots >= count)).any():
        raise Malformed(f"tree_roots must be positions of nodes, not {roots.min()}..{roots.max()}")
    single = (leads[0][roots] < 0) & (leads[0][roots] == leads[1][roots])
    member_start, members = _members(mode, attributes)
    return _ordered(Ensemble(
        columns["nodes_featureids"], mode, value, leads[0], leads[1], columns["nodes_missing_value_tracks_true"] != 0,
        np.where(single, leads[0][roots], roots), member_start, members, np.arange(len(weights) + 1), targets, weights,
        np.zeros(len(weights), np.int64),
    ))


def _members(mode: IntArray, attributes: Attributes) -> tuple[IntArray, Floats]:
    """Return what belongs to each node's set: those of the nodes that ask for members, in order, end with a NaN."""
    asks = mode == Mode.MEMBER
    numbers = floats_of(attributes, "membership_values")
    ends = np.flatnonzero(np.isnan(numbers))
    if asks.any() and len(ends) < asks.sum():  # the last NaN may be missing
        ends = np.append(ends, len(numbers))
    if len(ends) < asks.sum():
        raise Malformed(f"membership_values must have {asks.sum()} sets, each with a NaN behind it, not {len(ends)}")
    sizes = np.zeros(len(mode), np.int64)
    sizes[asks] = np.diff(np.append(-1, ends))[: asks.sum()] - 1
    return np.append(0, np.cumsum(sizes)), numbers[~np.isnan(numbers)]


def _ordered(ensemble: Ensemble) -> Ensemble:
    """Bring nodes before those to which they lead, level by level, and give each tree its own copy of what trees share;
    drop what no root leads to. Raises :class:`Malformed` for a cycle."""
    count, leaves = len(ensemble.feature), len(ensemble.leaf_start) - 1
    front = np.flatnonzero(ensemble.roots >= 0)
    front = front * count + ensemble.roots[front]  # a tree's node
    levels: list[IntArray] = []
    copies = 0
    while len(front):
        if len(levels) > count:
            raise Malformed("no node may lead to itself, but one does")
        levels.append(front)
        copies += len(front)
        if len(levels) > _MOST_LEVELS or copies > _MOST_COPIES:
            raise Malformed(
                f"trees must have at most {_MOST_LEVELS} levels and {_MOST_COPIES} nodes in all, with a copy for each "
                "of what several share"
            )
        tree, node = front // count, front % count
        leads = np.concatenate([ensemble.true[node], ensemble.false[node]])
        front = np.unique((np.tile(tree, 2) * count + leads)[leads >= 0])
    met = np.concatenate([np.zeros(0, np.int64), *levels])[::-1]
    kept = met[np.sort(np.unique(met, return_index=True)[1])][::-1]  # each where it is met last
    tree, node = kept // max(count, 1), kept % max(count, 1)
    trees = np.arange(ensemble.trees)

    def leaf_codes(tree: IntArray, lead: IntArray) -> IntArray:
        return np.where(lead < 0, tree * leaves + ~lead, -1)

    sides = [(tree, ensemble.true[node]), (tree, ensemble.false[node]), (trees, ensemble.roots)]
    found = np.unique(np.concatenate([leaf_codes(*side) for side in sides]))
    found = found[found >= 0]
    order = np.argsort(kept)
    true, false, roots = (
        np.where(lead < 0, ~np.searchsorted(found, leaf_codes(of, lead)), _place(kept, order, of * count + lead))
        for of, lead in sides
    )
    member_start, members = _parts(ensemble.member_start, node)
    leaf_start, entries = _parts(ensemble.leaf_start, found % max(leaves, 1))
    return Ensemble(
        ensemble.feature[node], ensemble.mode[node], ensemble.value[node], true, false, ensemble.tracks_true[node],
        roots, member_start, ensemble.members[members], leaf_start, ensemble.leaf_target[entries],
        ensemble.leaf_value[entries], found // max(leaves, 1),
    )


def _place(codes: IntArray, order: IntArray, asked: IntArray) -> IntArray:
    """Return where ``asked`` are among ``codes``, which ``order`` sorts; anything for those that are not."""
    if not len(codes):
        return np.zeros(len(asked), np.int64)
    place = np.searchsorted(codes, asked, sorter=order)
    return order[np.minimum(place, len(codes) - 1)]


def _parts(start: IntArray, taken: IntArray) -> tuple[IntArray, IntArray]:
    """Take parts of an array that begin at ``start``: return where they begin then, and the indices of all elements."""
    sizes = np.diff(start)[taken]
    starts = np.append(0, np.cumsum(sizes))
    return starts, np.arange(starts[-1]) + np.repeat(start[:-1][taken] - starts[:-1], sizes)


class _Named:
    """Finds nodes by their tree and name."""

    def __init__(self, trees: IntArray, ids: IntArray) -> None:
        self._order = np.lexsort((ids, trees))
        self._trees, self._ids = trees[self._order], ids[self._order]
        same = (self._trees[1:] == self._trees[:-1]) & (self._ids[1:] == self._ids[:-1])
        if same.any():
            first = int(np.flatnonzero(same)[0])
            raise Malformed(f"tree {self._trees[first]} must have one node {self._ids[first]}, not several")

    def __call__(self, trees: IntArray, ids: IntArray, asked: BoolArray, what: str) -> IntArray:
        """Return the positions of nodes, anything where it is not ``asked``."""
        some = self._ids[0] if len(self._ids) else 0
        ids = np.where(asked, ids, some)  # what a leaf says of nodes counts for nothing
        kinds, number = np.unique(np.concatenate([self._trees, trees]), return_inverse=True)
        low = min(int(self._ids.min(initial=0)), int(ids.min(initial=0)))
        span = max(int(self._ids.max(initial=0)), int(ids.max(initial=0))) - low + 1
        if len(kinds) * span >= 1 << 62:
            raise Malformed("ids of nodes must be small numbers, not spread over the whole of int64")
        known = number[: len(self._trees)] * span + self._ids - low
        wanted = number[len(self._trees) :] * span + ids - low
        place = np.searchsorted(known, wanted)
        place[place == len(known)] = 0
        missing = asked & (known[place] != wanted) if len(known) else asked
        if missing.any():
            first = int(np.flatnonzero(missing)[0])
            raise Malformed(f"{what} must be nodes of their tree, not {ids[first]} of tree {trees[first]}")
        found: IntArray = self._order[place]
        return found


_LEAF = -1
_MODES: Mapping[str, int] = {f"BRANCH_{mode.name}": int(mode) for mode in Mode if mode != Mode.MEMBER} | {"LEAF": _LEAF}


def base_values(attributes: Attributes) -> Floats:
    """Return what is added to the targets, empty where it is not given."""
    return floats_of(attributes, "base_values")


def _listed(attributes: Attributes, name: str) -> Any:
    value = attributes.get(name)
    return () if value is None else value


def _integers(attributes: Attributes, name: str) -> IntArray:
    return np.asarray(_listed(attributes, name), dtype=np.int64).reshape(-1)


def floats_of(attributes: Attributes, name: str) -> Floats:
    """Return a list of float32 numbers, or the tensor that may stand for it."""
    tensor = attributes.get(f"{name}_as_tensor")
    if tensor is not None and np.size(np.asarray(tensor)):
        return np.asarray(tensor).astype(np.float64).reshape(-1)
    value = _listed(attributes, name)
    if isinstance(value, np.ndarray):
        return value.astype(np.float64).reshape(-1)
    return np.asarray(value, dtype=np.float32).astype(np.float64).reshape(-1)


def _require_length(name: str, column: npt.NDArray[Any], count: int, other: str) -> None:
    if len(column) != count:
        raise Malformed(f"{name} must have {count} entries as {other} has, not {len(column)}")
