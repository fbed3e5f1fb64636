"""GroupNormalization: InstanceNormalization of groups of channels, then a scale and a bias for each channel."""

from __future__ import annotations

import numpy as np
import onnx

from hwflow.frontend.frames import axes
from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Use
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.record import Operator


def _by_instance_normalization(use: Use) -> onnx.FunctionProto | None:
    """Define it with the mean of squared distances, which is not negative however it is rounded; onnx's function has
    the difference of two means, which quantizers or floats may bring below 0."""
    call = Call.of(use)
    body, shape, groups = DialectWriter(call), call.shape(0), call.integer("num_groups")
    if shape is None or len(shape) < 2 or groups < 1:
        return None
    x, scale, bias = map(body.argument, range(3))
    ones, zeros = (body.constant(np.full(groups, value), call.kind(0)) for value in (1, 0))
    grouped = body.let(f"Reshape ({x}, {body.integers([0, groups, -1])})")
    epsilon = f"{call.real('epsilon', 1e-5):.9e}"
    norm = body.let(f"InstanceNormalization <epsilon = {epsilon}> ({grouped}, {ones}, {zeros})")
    whole = body.let(f"Reshape ({norm}, {body.integers([0, *shape[1:]])})")
    of_channels = body.integers([-1, *(1 for _ in shape[2:])])
    scale, bias = (body.let(f"Reshape ({each}, {of_channels})") for each in (scale, bias))
    return body.returned(body.let(f"Add ({body.let(f'Mul ({whole}, {scale})')}, {bias})"))


RECORDS = (
    Operator(
        "GroupNormalization", definition=_by_instance_normalization, frames=axes.IMAGE, same_shape=True,
        sizes=size_facts.GROUPS,
    ),
)
