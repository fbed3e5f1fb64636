"""EyeLike: ones on a diagonal of a matrix of a tensor's sizes, a constant."""

from __future__ import annotations

from hwflow.frontend.context import Lowering, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import View
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.record import Operator, attributes


def eye_like(state: Lowering, node: OnnxNode) -> View:
    """Refuse EyeLike of an unknown number of frames; of known sizes it has been folded."""
    raise refuse(
        node, "frame-axis", "the sizes of the matrix must be known, not the first one be any number of frames",
        "give the model a fixed first size, or the node a constant of the matrix's shape",
    )


RECORDS = (
    Operator(
        "EyeLike", lower=eye_like, honours=attributes("dtype", "k"), limits="of tensors of known sizes: a constant",
        wild=True, of_shapes=True, frames=axes.NOT_INDEPENDENT
    ),
)
