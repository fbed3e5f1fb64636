"""LpNormalization: each element over the norm of its row; 0 where the norm is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, reals, refuse
from hwflow.frontend.facts import Limits
from hwflow.frontend.frames import axes
from hwflow.frontend.views import Integers, Reals, View
from hwflow.onnxspec.reference import framewise
from hwflow.onnxspec.reference.defect import AnyArray, Attributes, Defect, Inputs, Mended, exactly
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors.step_errors import Errors, Step, gamma, magnitude
from hwflow.operators.norms.approximations import magnitude as magnitudes
from hwflow.operators.norms.approximations import quotient, root, square
from hwflow.operators.norms.based import based
from hwflow.operators.norms.rows import Rows, frame_axes
from hwflow.operators.record import Operator, attributes


def lp_normalization(state: Lowering, node: OnnxNode) -> View:
    """Lower LpNormalization with p 1 or 2."""
    view, power = reals(state, node, 0), node.integer("p", 2)
    if power not in (1, 2):
        raise refuse(node, "norm-power", f"p must be 1 or 2, not {power}", "use 1 or 2")
    rank = len(state.model.values[node.inputs[0]].shape)
    rows = Rows(state, node, view.shape, frame_axes(node, (node.integer("axis", -1),), rank))
    elements = based(state, node, rows.prepared(view))
    parts = square(state, node, elements) if power == 2 else magnitudes(state, node, elements)
    norms = rows.total(parts)
    if power == 2:
        norms = root(state, node, norms)
    # Integers that are not all 0 have a norm of at least 1.
    apart = min(abs(Fraction(scale)) for scale in elements.scale.reshape(-1))
    result = quotient(state, node, elements, rows.spread(norms), Limits(Fraction(1), None, apart))
    return replace(result, anchor=view.anchor, after=(*view.after, node.name))


def definition(inputs: Inputs, attributes: Attributes) -> AnyArray:
    """Compute LpNormalization, with 0 where the norm is 0."""
    (x, *_) = inputs
    assert x is not None
    power, axis = int(attributes.get("p", 2)), int(attributes.get("axis", -1))
    norm = (np.abs(x) ** power).sum(axis=axis, keepdims=True)
    norm = np.sqrt(norm) if power == 2 else norm
    result: AnyArray = np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))
    return result.astype(x.dtype)


def _signs(attributes: Attributes, inputs: Inputs) -> bool:
    return int(attributes.get("p", 2)) % 2 == 1 and inputs[0] is not None and bool((inputs[0] < 0).any())


MENDED = Mended(
    (
        Defect("lpnormalization-signs", "with p = 1 the elements are added with their signs", _signs),
    ),
    exactly(definition),
)


def _error(step: Step) -> Errors:
    """Bound x / norm: a norm moves by no more than the sum of the elements' errors, and the roundings of n + 1
    operations."""
    axis, size = int(step.attributes.get("axis", -1)), magnitude(step.value(0))
    error = np.broadcast_to(step.error(0), size.shape)
    norm: Any = (size ** int(step.attributes.get("p", 2))).sum(axis=axis, keepdims=True)
    norm = np.sqrt(norm) if int(step.attributes.get("p", 2)) == 2 else norm
    moved = error.sum(axis=axis, keepdims=True) + gamma(2 * size.shape[axis] + 8, step.unit) * norm
    exact = (norm == 0) & (moved == 0)  # all zeros
    with np.errstate(all="ignore"):
        least = np.where(norm > moved, norm - moved, 0)
        result = np.where(exact, 0.0, (error + size * moved / norm) / least)
    return np.asarray(np.nan_to_num(result, nan=np.inf, posinf=np.inf)) + step.rounded(2)


RECORDS = (
    Operator(
        "LpNormalization", lower=lp_normalization, honours=attributes("axis", "p"),
        limits="p 1 or 2, before a quantizer", becomes=("elementwise", "product", "quotient", "root", "sum_pool2d"),
        needs=(Integers, Reals), approximates=True, whole=True, frames=axes.along(-1), error=_error, tame=True,
        framewise=framewise.inner_axis, mended=MENDED,
    ),
)
