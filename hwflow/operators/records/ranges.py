"""Range: numbers from a start to a limit, which must be constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, isfinite

from hwflow.frontend.context import Lowering, constant, refuse
from hwflow.frontend.frames import axes
from hwflow.frontend.views import View
from hwflow.onnxspec.resolving.resolved_model import Array, OnnxNode
from hwflow.operators.record import Operator, attributes


def range_of(state: Lowering, node: OnnxNode) -> View:
    """Refuse Range with a parameter computed at run time; of constants it has been folded."""
    for index, what in enumerate(("start", "limit", "delta")):
        constant(state, node, index, what)
    message = "the numbers must be computable before the first frame"
    raise refuse(node, "constant-parameter", message, "make them initializers")


def _length(bounds: Sequence[Array]) -> tuple[int, ...] | None:
    """Return max(0, ceil((limit - start) / delta)); onnx infers it of some element types only (1.23.2)."""
    if any(bound.size != 1 for bound in bounds):
        return None
    start, limit, delta = (float(bound.reshape(-1)[0]) for bound in bounds)
    steps = (limit - start) / delta if delta else inf
    return (max(0, ceil(steps)),) if isfinite(steps) else None


RECORDS = (
    Operator(
        "Range", lower=range_of, honours=attributes("stash_type"), limits="of constants: a constant",
        stated_shape=_length, frames=axes.NOT_INDEPENDENT
    ),
)
