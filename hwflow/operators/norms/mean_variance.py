"""MeanVarianceNormalization: each element less the mean, over the standard deviation and 1e-9."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx

from hwflow.frontend.context import Lowering, reals
from hwflow.frontend.frames import axes
from hwflow.frontend.frames.frame_model import Build, set_attribute
from hwflow.frontend.views import Integers, Reals, View
from hwflow.onnxspec.reference.framewise import FramedNode
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.float_errors import norm_errors
from hwflow.operators.float_errors.step_errors import Step
from hwflow.operators.norms.normalizations import finished, normalized
from hwflow.operators.norms.rows import frame_axes
from hwflow.operators.record import Operator, attributes

_AXES = (0, 2, 3)
"""The default."""

EPSILON = Fraction(float(np.float32(1e-9)))
"""Of the operator's definition."""


def _axes(node: OnnxNode) -> tuple[int, ...]:
    return node.integers("axes") or _AXES


def mean_variance_normalization(state: Lowering, node: OnnxNode) -> View:
    """Lower MeanVarianceNormalization: a row of equal elements gives 0."""
    view, rank = reals(state, node, 0), len(state.model.values[node.inputs[0]].shape)
    result, _ = normalized(state, node, view, frame_axes(node, _axes(node), rank), EPSILON, outside=True)
    return finished(node, view, result)


def _independent(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    rank = len(build.shape(node.inputs[0]))
    return all(axis % rank for axis in _axes(node))


def _batched(build: Build, node: OnnxNode, copy: onnx.NodeProto) -> bool:
    set_attribute(copy, "axes", [axis + 1 if axis >= 0 else axis for axis in _axes(node)])
    return True


def _inner(node: FramedNode) -> bool:
    return all(axis > 0 for axis in node.attributes.get("axes", _AXES))


def _rows(step: Step) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = step.value(0).shape
    return shape, tuple(axis % len(shape) for axis in step.attributes.get("axes", _AXES))


RECORDS = (
    Operator(
        "MeanVarianceNormalization", lower=mean_variance_normalization, honours=attributes("axes"),
        limits="axes within a frame, before a quantizer", becomes=("product", "quotient", "root", "scaled_add"),
        needs=(Integers, Reals), approximates=True, whole=True, frames=axes.BatchingRule(_independent, _batched),
        error=norm_errors.mean_variance(_rows), framewise=_inner, needs_defaults=True,
    ),
)
