"""A bound of the error of probabilities that couple the decisions of a support vector machine.

Of the pairwise probabilities r the iteration (:func:`hwflow.onnxspec.reference.svm_defects.coupled`) ends with p where
Q p = s + d, sum(p) = 1, for some number s and |d| below a tolerance t; Q is made of r. So K (p, -s) = (d, 1), K being Q
with a border of ones. Two ends, of Q and of a Q' that is as near as the errors of the decisions let it be, differ by
K^-1 times (2 t + max |Q' - Q|), p being not negative: the iteration may end a step sooner or later.
"""

from __future__ import annotations

import numpy as np

from hwflow.onnxspec.reference.svm_defects import TOLERANCE, coupling_matrix, pairwise
from hwflow.operators.float_errors.step_errors import Errors, NoBound, Step, unit

_ROUNDED = 2.0**-40
"""More than what float64 rounds in the iteration, of numbers of at most 1."""


def coupling(step: Step) -> tuple[Errors, Errors]:
    """Bound the label and the probabilities of a node whose inputs, [frames, pairs], are the decisions. Infinite where
    a decision may be of another sign, or where the iteration did not end."""
    slopes, offsets = (np.array(step.attributes.get(name) or (), np.float64) for name in ("prob_a", "prob_b"))
    decisions, reach = step.value(0).astype(np.float64), step.error(0)
    classes = step.outputs[-1].shape[-1]
    if len(slopes) != classes * (classes - 1) // 2 or decisions.shape[-1:] != slopes.shape:
        raise NoBound
    label = np.where(((np.abs(decisions) <= reach) & (reach > 0)).any(axis=-1), np.inf, 0.0)
    shares = [
        _shares(pairwise(row, slopes, offsets, classes), np.abs(slopes) * near / 4, found.astype(np.float64))
        for row, near, found in zip(decisions, reach, step.outputs[-1], strict=True)
    ]
    return label, np.array(shares).reshape(step.outputs[-1].shape) + unit(step.outputs[-1].dtype)


def _shares(pairs: Errors, moved: Errors, found: Errors) -> Errors:
    """Return the bound of a frame's probabilities ``found``; ``moved``: by how much its pairwise ones may be off, whose
    slope is a quarter at most."""
    count, tolerance = len(found), TOLERANCE / len(found)
    matrix, off = coupling_matrix(pairs), np.zeros((count, count))
    off[np.triu_indices(count, 1)] = moved + _ROUNDED
    off += off.T
    products = matrix @ found
    rounding = 2.0**-20 * count
    if not np.abs(products - found @ products).max() < tolerance + rounding:
        return np.full(count, np.inf)
    change = off + off**2
    np.fill_diagonal(change, (2 * pairs.T * off + off**2).sum(axis=1))
    bordered = np.ones((count + 1, count + 1))
    bordered[:count, :count], bordered[count, count] = matrix, 0
    inverse = np.abs(np.linalg.inv(bordered))[:count, :count]
    bound: Errors = inverse @ (2 * (tolerance + rounding) + change.max(axis=1))
    return bound
