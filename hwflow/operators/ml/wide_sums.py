"""Ensembles whose sums no 62 bits hold, as two ensembles: one sums what is large in the leaves' values, one the rest.

Each sum is an exact float64 number, and the sum of both, which the host adds, is the exact one rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwflow.operators.ml.ensembles import Ensemble, Floats, IntArray
from hwflow.operators.ml.tree_values import MOST_BITS, least_exponent, length_of

_EXACT_BITS = 53
"""Of the integers that float64 holds."""


def is_wide(values: Floats, trees: int) -> bool:
    """Tell whether sums of values, one of each tree, are too long, but not for two ensembles."""
    finite = bool(np.isfinite(values).all())
    return finite and MOST_BITS < length_of(values, trees) <= longest(trees)


def longest(trees: int) -> int:
    """Return the bits of the longest sums of so many trees that two ensembles have."""
    return 2 * _EXACT_BITS - trees.bit_length() - 2


def parts(values: Floats, trees: int) -> tuple[Floats, Floats]:
    """Return numbers whose sums are the values, those of either exact in float64 over all trees."""
    unit = least_exponent(values) + _EXACT_BITS - 2 - trees.bit_length()
    large = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    return large, values - large


def one_target_each(ensemble: Ensemble, targets: int) -> Ensemble | None:
    """Return an ensemble whose leaves name one target each: a copy of all trees for each target, if some name more or
    none. None if a leaf names a target twice."""
    named = np.diff(ensemble.leaf_start)
    if (named == 1).all():
        return ensemble
    leaves, nodes = len(named), len(ensemble.feature)
    values = np.zeros((targets, leaves))
    leaf = np.repeat(np.arange(leaves), named)
    if len(np.unique(leaf * targets + ensemble.leaf_target)) < len(leaf):
        return None
    values[ensemble.leaf_target, leaf] = ensemble.leaf_value

    def copies(lead: IntArray) -> IntArray:
        return np.concatenate([np.where(lead < 0, ~(~lead + k * leaves), lead + k * nodes) for k in range(targets)])

    starts = [ensemble.member_start[:-1] + k * len(ensemble.members) for k in range(targets)]
    return Ensemble(
        np.tile(ensemble.feature, targets), np.tile(ensemble.mode, targets), np.tile(ensemble.value, targets),
        copies(ensemble.true), copies(ensemble.false), np.tile(ensemble.tracks_true, targets), copies(ensemble.roots),
        np.append(np.concatenate(starts), targets * len(ensemble.members)), np.tile(ensemble.members, targets),
        np.arange(targets * leaves + 1), np.repeat(np.arange(targets), leaves), values.reshape(-1),
        np.concatenate([ensemble.leaf_tree + k * ensemble.trees for k in range(targets)]),
    )


def attributes_of(ensemble: Ensemble, values: Floats) -> dict[str, Any]:
    """Return the attributes of version 5 of ai.onnx.ml, tensors of float64, of an ensemble whose leaves name one target
    each and have other ``values``."""
    single = ensemble.roots[ensemble.roots < 0]  # a tree that is a leaf is a node with it on both sides
    count = len(ensemble.feature)
    roots = ensemble.roots.copy()
    roots[roots < 0] = count + np.arange(len(single))
    true, false = np.append(ensemble.true, single), np.append(ensemble.false, single)

    def padded(column: Any) -> Any:
        return np.append(column, np.zeros(len(single), column.dtype))

    sets = [ensemble.members[a:b] for a, b in zip(ensemble.member_start, ensemble.member_start[1:], strict=False)]
    members = [np.append(each, np.nan) for each, mode in zip(sets, ensemble.mode, strict=True) if mode == _MEMBER]
    result = {
        "nodes_featureids": padded(ensemble.feature).tolist(), "nodes_modes": padded(ensemble.mode).astype(np.uint8),
        "nodes_splits": padded(ensemble.value), "tree_roots": roots.tolist(),
        "nodes_missing_value_tracks_true": padded(ensemble.tracks_true).astype(int).tolist(),
        "leaf_targetids": ensemble.leaf_target.tolist(), "leaf_weights": values,
    }
    for side, lead in (("true", true), ("false", false)):
        result[f"nodes_{side}nodeids"] = np.where(lead < 0, ~lead, lead).tolist()
        result[f"nodes_{side}leafs"] = (lead < 0).astype(int).tolist()
    return result | ({"membership_values": np.concatenate(members)} if members else {})


_MEMBER = 6
