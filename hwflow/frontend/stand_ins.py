"""Placeholders for the results of refused nodes, so that the nodes after them are checked too: no finding hides
another."""

from __future__ import annotations

from collections.abc import Iterable

from hwflow.frontend import boundary
from hwflow.frontend.context import Lowering, made
from hwflow.frontend.stream_types import COMPUTED_TYPES, REAL_TYPES
from hwflow.frontend.views import HostInput, HostOutput, Integers, Masked, Reals, Refused, Source, View, fractions
from hwflow.ir.graph import Value
from hwflow.onnxspec.dialect_operators import can_run
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.onnx_operators import HANDLERS


def source_of(node: OnnxNode, views: Iterable[View]) -> Source | None:
    """Return the source of a refused node's result."""
    sources = {_of(view) for view in views}
    if Source.STREAM in sources:
        return Source.STREAM
    if sources <= {None}:
        return None
    if boundary.quantizes(node):  # whatever it was before
        return Source.STREAM
    known = (node.domain, node.op_type) in HANDLERS or can_run(node.domain, node.op_type)
    return Source.HOST if known and Source.EITHER not in sources else Source.EITHER


def _of(view: View) -> Source | None:
    if isinstance(view, Refused):
        return view.source
    if isinstance(view, Integers | Reals | Masked):
        return Source.STREAM
    return Source.HOST if isinstance(view, HostInput | HostOutput) else None


def refuse_results(state: Lowering, node: OnnxNode, source: Source | None) -> None:
    """Give all results of a refused node a refused view."""
    for name in node.outputs:
        if name:
            state.views[name] = Refused(_stand_in(state, node, name, source), source)


def _stand_in(
    state: Lowering, node: OnnxNode, name: str, source: Source | None
) -> HostInput | Integers | Reals | None:
    """Guess the view of a refused node's result: the host's, or hardware's by its element type."""
    info = state.model.values.get(name)  # there is none after a node of unknown shapes
    if source in (None, Source.EITHER) or info is None or info.shape[:1] != (1,) or min(info.shape) < 1:
        return None
    shape = state.frame_shape(name)
    element = COMPUTED_TYPES.get(info.dtype)
    if element is None and info.dtype not in REAL_TYPES:
        return None
    if source is Source.HOST:
        return HostInput(name, shape)
    value = Value(state.value_names.fresh(name))
    if element is not None:
        return Integers(value, shape, element.min, element.max)
    return made(value, shape, fractions(1), fractions(0), node)
