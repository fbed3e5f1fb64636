"""Bounds of the float errors of ensembles of trees: rounded sums, and decisions that features' own errors may turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hwflow.operators.float_errors.step_errors import INFLATION, Errors, Step, magnitude
from hwflow.operators.ml.ensembles import Ensemble, base_values, of_named_nodes, of_positions

_SUM, _SHORT_SUM = 2.0**-52, 2.0**-23
"""Relative errors of an addition of float64 and of float32, doubled."""


def regressor(step: Step) -> Errors:
    """Bound TreeEnsembleRegressor."""
    arrays = _arrays(step)
    return _bound(step, of_named_nodes(arrays, "target"), float(np.abs(base_values(arrays)).max(initial=0.0)))


def ensemble(step: Step) -> Errors:
    """Bound TreeEnsemble."""
    return _bound(step, of_positions(_arrays(step)))


def _arrays(step: Step) -> dict[str, Any]:
    """Return the node's attributes, tensors as arrays."""
    values = step.attributes.items()
    return {name: numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for name, v in values}


def _bound(step: Step, trees: Ensemble, base: float = 0.0) -> Errors:
    """Return the error of sums in float64 or float32, rounded to the result's type; where a threshold lies within the
    error of its feature, by how much all trees may differ. ``base``: the greatest magnitude of what is added to the
    leaves."""
    greatest = float(np.abs(trees.leaf_value).max(initial=0.0))
    rounding, sums = np.finfo(step.output.dtype), _partial_sums(trees, base)
    error = np.zeros(step.output.shape)
    if sums or not np.array_equal(trees.leaf_value.astype(step.output.dtype), trees.leaf_value):
        error += float(rounding.eps) * magnitude(step.output) + float(rounding.tiny)
        error = (error + (_SHORT_SUM if step.runtime else _SUM) * sums) * INFLATION
    unsure = _unsure(step, trees)
    error[unsure] += 2 * trees.trees * greatest * INFLATION
    return error


def _partial_sums(trees: Ensemble, base: float) -> float:
    """Bound the sum of the magnitudes of all partial sums, in any order: each has the greatest leaf of every tree. A
    leaf may have several values for a target; one value alone is no sum."""
    leaf = np.repeat(np.arange(len(trees.leaf_tree)), np.diff(trees.leaf_start))
    _, key, terms = np.unique(np.stack([leaf, trees.leaf_target]), axis=1, return_inverse=True, return_counts=True)
    sums = np.bincount(key.reshape(-1), np.abs(trees.leaf_value), minlength=len(terms))
    greatest = np.zeros(trees.trees)
    np.maximum.at(greatest, trees.leaf_tree[leaf], sums[key.reshape(-1)])
    additions = trees.trees * int(terms.max(initial=1)) - (not base)
    return additions * (float(greatest.sum()) + base)


def _unsure(step: Step, trees: Ensemble) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell which rows have a threshold within the error of its feature."""
    x, reach = step.value(0).astype(np.float64), step.error(0)
    result = np.zeros(len(x), bool)
    if not reach.any():
        return result
    owner = np.append(trees.feature, np.repeat(trees.feature, np.diff(trees.member_start)))
    bounds = np.append(trees.value, trees.members)
    for feature in np.unique(owner):
        near = np.sort(bounds[owner == feature])
        low, high = (x[:, feature] + sign * reach[:, feature] for sign in (-1, 1))
        within = np.searchsorted(near, high, side="right") > np.searchsorted(near, low, side="left")
        result |= within & (reach[:, feature] > 0)
    return result
