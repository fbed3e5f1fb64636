"""Bounds of the float errors of ensembles of trees: rounded sums, and decisions that features' own errors may turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hwflow.operators.float_errors.step_errors import INFLATION, Errors, Step, magnitude
from hwflow.operators.ml.ensembles import Ensemble, of_named_nodes, of_positions

_SUM = 2.0**-52
"""Relative error of an addition of float64, doubled."""


def regressor(step: Step) -> Errors:
    """Bound TreeEnsembleRegressor."""
    return _bound(step, of_named_nodes(_arrays(step), "target"))


def ensemble(step: Step) -> Errors:
    """Bound TreeEnsemble."""
    return _bound(step, of_positions(_arrays(step)))


def _arrays(step: Step) -> dict[str, Any]:
    """Return the node's attributes, tensors as arrays."""
    values = step.attributes.items()
    return {name: numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for name, v in values}


def _bound(step: Step, trees: Ensemble) -> Errors:
    """Return the error of sums in float64, rounded to the result's type; where a threshold lies within the error of its
    feature, by how much all trees may differ."""
    greatest = float(np.abs(trees.leaf_value).max(initial=0.0))
    rounding = np.finfo(step.output.dtype)
    error = float(rounding.eps) * magnitude(step.output) + float(rounding.tiny)
    error = (error + _SUM * trees.trees**2 * greatest) * INFLATION
    unsure = _unsure(step, trees)
    error[unsure] += 2 * trees.trees * greatest * INFLATION
    return error


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
