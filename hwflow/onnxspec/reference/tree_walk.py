"""Ensembles of trees for the reference evaluator, all rows of the input at once, sums in float64.

onnx's own operators (1.23) walk each row through each tree in Python, which takes minutes for a thousand trees, and
differ from the specification in the cases that :data:`REGRESSOR` and :data:`ENSEMBLE` name. Roots are the nodes to
which none leads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx.reference.op_run import OpRun

from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, Tell, operator_class

DOMAIN = "ai.onnx.ml"
Floats = npt.NDArray[np.float64]

_ROWS = 4096
"""Rows that walk at once."""

_ASKS: Sequence[Callable[[Any, Any], Any]] = (
    np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal
)
_MEMBER = 6
_MODES = {f"BRANCH_{name}": place for place, name in enumerate(("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))} | {"LEAF": -1}


@dataclass
class _Trees:
    """Nodes in the model's order: ``mode`` is -1 of leaves, and ``starts[k]:starts[k + 1]`` are the places of leaf k's
    targets and weights; ``sets``: the members by node."""

    mode: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int64]
    value: Floats
    true: npt.NDArray[np.int64]
    false: npt.NDArray[np.int64]
    tracks: npt.NDArray[np.bool_]
    roots: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    weights: Floats
    sets: dict[int, Floats]

    def leaves(self, x: AnyArray) -> npt.NDArray[np.int64]:
        """Return the leaf that each row reaches in each tree, [rows, trees]."""
        rows = np.arange(len(x))[:, None]
        place = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        while (inner := self.mode[place] >= 0).any():
            number = x[rows, self.feature[place]]
            taken = np.zeros(place.shape, bool)
            for mode, asks in enumerate(_ASKS):
                taken = np.where(self.mode[place] == mode, asks(number, self.value[place]), taken)
            for node in np.unique(place[self.mode[place] == _MEMBER]):
                taken = np.where(place == node, np.isin(number, self.sets[int(node)]), taken)
            if number.dtype.kind == "f":
                taken = np.where(np.isnan(number), self.tracks[place], taken)
            place = np.where(inner, np.where(taken, self.true[place], self.false[place]), place)
        return place

    def scores(self, x: AnyArray, targets: int, aggregate: str) -> Floats:
        """Return what the leaves add up to, [rows, targets]."""
        result = np.full((len(x), targets), {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0))
        join = {"MIN": np.minimum, "MAX": np.maximum}.get(aggregate, np.add)
        for first in range(0, len(x), _ROWS):
            for column in self.leaves(x[first : first + _ROWS]).T:
                starts, ends = self.starts[column], self.starts[column + 1]
                for k in range(int((ends - starts).max(initial=0))):
                    rows = np.flatnonzero(starts + k < ends)
                    entry = starts[rows] + k
                    join.at(result, (first + rows, self.targets[entry]), self.weights[entry])
        return result / len(self.roots) if aggregate == "AVERAGE" else result


def _numbers(attributes: Attributes, name: str) -> Floats:
    for each in (f"{name}_as_tensor", name):
        value = attributes.get(each)
        if value is not None and np.size(value):
            single = isinstance(value, list | tuple)
            return np.asarray(value, np.float32 if single else None).astype(np.float64).reshape(-1)
    return np.zeros(0)


def _named(attributes: Attributes, kind: str) -> _Trees:
    """Read nodes with names, those of versions 1 and 3."""
    trees, ids = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    place = {key: number for number, key in enumerate(zip(trees, ids, strict=True))}
    mode = np.array([_MODES[text] for text in attributes["nodes_modes"]])
    leads = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        to = zip(trees, attributes[name], mode, strict=True)
        leads.append(np.array([place[tree, node] if inner >= 0 else -1 for tree, node, inner in to]))
    pointed = {int(number) for lead in leads for number in lead}
    roots = sorted((trees[number], number) for number in range(len(ids)) if number not in pointed)
    owners = zip(attributes[f"{kind}_treeids"], attributes[f"{kind}_nodeids"], strict=True)
    owner = np.array([place[key] for key in owners])
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(ids) + 1))
    targets, weights = np.array(attributes[f"{kind}_ids"]), _numbers(attributes, f"{kind}_weights")
    tracks = attributes.get("nodes_missing_value_tracks_true") or [0] * len(ids)
    return _Trees(
        mode, np.array(attributes["nodes_featureids"]), _numbers(attributes, "nodes_values"), leads[0], leads[1],
        np.array(tracks, bool), np.array([number for _, number in roots]), starts, targets[order], weights[order], {},
    )


def _placed(attributes: Attributes) -> _Trees:
    """Read nodes by their places, those of version 5; leaves follow the nodes."""
    mode = np.asarray(attributes["nodes_modes"]).astype(np.int64).reshape(-1)
    count = len(mode)
    weights = _numbers(attributes, "leaf_weights")
    leads = [
        np.array(attributes[f"nodes_{side}nodeids"]) + count * (np.array(attributes[f"nodes_{side}leafs"]) != 0)
        for side in ("true", "false")
    ]
    roots = np.array(attributes["tree_roots"])
    single = (leads[0][roots] >= count) & (leads[0][roots] == leads[1][roots])
    members, sets, numbers = np.flatnonzero(mode == _MEMBER), {}, _numbers(attributes, "membership_values")
    ends = np.append(np.flatnonzero(np.isnan(numbers)), len(numbers))
    for node, start, end in zip(members, np.append(-1, ends), ends, strict=False):
        sets[int(node)] = numbers[start + 1 : end]

    def padded(values: Any, fill: Any) -> AnyArray:
        return np.append(np.asarray(values), np.full(len(weights), fill))

    starts = np.append(np.zeros(count, np.int64), np.arange(len(weights) + 1))
    tracks = attributes.get("nodes_missing_value_tracks_true") or [0] * count
    return _Trees(
        padded(mode, -1), padded(attributes["nodes_featureids"], 0), padded(_numbers(attributes, "nodes_splits"), 0.0),
        padded(leads[0], 0), padded(leads[1], 0), padded(tracks, 0) != 0, np.where(single, leads[0][roots], roots),
        starts, np.array(attributes["leaf_targetids"]), weights, sets,
    )


def _rows(x: AnyArray) -> AnyArray:
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    return rows if rows.dtype.kind == "f" else rows.astype(np.longdouble)  # which holds every int64


def _regress(trees: _Trees, x: AnyArray, attributes: Attributes) -> AnyArray:
    """Evaluate TreeEnsembleRegressor without a post_transform; float32."""
    targets = int(attributes.get("n_targets") or 1)
    scores = trees.scores(_rows(x), targets, attributes["aggregate_function"])
    base = _numbers(attributes, "base_values")
    return (scores + base if len(base) else scores).astype(np.float32)


def _predict(trees: _Trees, x: AnyArray, attributes: Attributes) -> AnyArray:
    """Evaluate TreeEnsemble without a post_transform, in the input's type."""
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[int(attributes["aggregate_function"])]
    return trees.scores(_rows(x), int(attributes.get("n_targets") or 1), aggregate).astype(x.dtype)


def _substitute(
    read: Callable[[Attributes], _Trees], evaluate: Callable[[_Trees, AnyArray, Attributes], AnyArray]
) -> Callable[[str, int, Tell], type[OpRun] | None]:
    def substitute(name: str, version: int, tell: Tell) -> type[OpRun] | None:
        def run(self: Any, *inputs: AnyArray | None, **attributes: Any) -> tuple[AnyArray]:
            tell(attributes, inputs)
            (x,) = inputs
            assert x is not None, "an operator of one input"
            if not hasattr(self, "trees"):  # a node is evaluated again and again
                self.trees = read(attributes)
            return (evaluate(self.trees, x, attributes),)

        return operator_class(name, version, (OpRun,), run, DOMAIN)

    return substitute


def _tensors(attributes: Attributes, inputs: Inputs) -> bool:
    return any(attributes.get(f"{name}_as_tensor") is not None for name in ("nodes_values", "target_weights"))


def _base_tensor(attributes: Attributes, inputs: Inputs) -> bool:
    return attributes.get("base_values_as_tensor") is not None


def _integers(attributes: Attributes, inputs: Inputs) -> bool:
    return inputs[0] is not None and inputs[0].dtype.kind in "iu"


def _unequal_nan(attributes: Attributes, inputs: Inputs) -> bool:
    x = inputs[0]
    asks = bool((np.asarray(attributes["nodes_modes"]) == _NOT_EQUAL).any())
    return asks and x is not None and bool(np.isnan(x).any())


def _zero_member(attributes: Attributes, inputs: Inputs) -> bool:
    return bool((_numbers(attributes, "membership_values") == 0).any())


def _single_leaf(attributes: Attributes, inputs: Inputs) -> bool:
    roots = np.array(attributes["tree_roots"])
    leads = [np.array(attributes[f"nodes_{side}nodeids"])[roots] for side in ("true", "false")]
    leaf = [np.array(attributes[f"nodes_{side}leafs"])[roots] != 0 for side in ("true", "false")]
    return bool((leaf[0] & leaf[1] & (leads[0] == leads[1]) & (leads[0] != roots)).any())


_NOT_EQUAL = 5

REGRESSOR = Mended(
    (
        Defect("treeregressor-tensors", "thresholds and weights given as tensors are not read", _tensors),
        Defect("treeregressor-base", "base values given as a tensor are not added", _base_tensor),
        Defect("treeregressor-integers", "of integer features results are cut off to integers", _integers),
    ),
    _substitute(partial(_named, kind="target"), _regress),
)
ENSEMBLE = Mended(
    (
        Defect("treeensemble-nan", "NaN differs from every number even where it does not track true", _unequal_nan),
        Defect("treeensemble-members", "sets of members end at a 0", _zero_member),
        Defect("treeensemble-leaf", "of a tree that is one leaf, the root is taken as the leaf's place", _single_leaf),
    ),
    _substitute(_placed, _predict),
)
