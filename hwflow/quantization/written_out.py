"""Write out a float model's control flow, sequences and recurrent operators, so that quantizers can stand inside."""

from __future__ import annotations

import re
from collections.abc import Mapping

import onnx

from hwflow.onnxspec import resolve_with_graph
from hwflow.onnxspec.graphs.inline import graphs_of
from hwflow.operators.onnx_operators import OPERATORS
from hwflow.quantization.calibration import Range

_WHOLE = frozenset(key for key, record in OPERATORS.items() if record.definition is None)
_ROUND = re.compile(r"/round_\d+/")


def written_out(model: onnx.ModelProto, dimensions: Mapping[str, int]) -> onnx.ModelProto:
    """Return ``model`` with loops unrolled and recurrent operators as their definitions, and with the variables in
    ``dimensions`` bound; the model itself where there is nothing of that. Raises :class:`ModelRefused`."""
    result = model
    if any(map(_is_to_be_written_out, model.graph.node)):
        result = resolve_with_graph(model, dimensions, _WHOLE, validated=True)[1]
    if not dimensions:
        return result
    bound = onnx.ModelProto()
    bound.CopyFrom(result)
    for info in (*bound.graph.input, *bound.graph.output, *bound.graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param in dimensions:
                dim.dim_value = dimensions[dim.dim_param]
    return bound


def _is_to_be_written_out(node: onnx.NodeProto) -> bool:
    record = OPERATORS.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
    return any(map(graphs_of, node.attribute)) or (record is not None and record.definition is not None)


def of_all_rounds(ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return ranges that are the same in all rounds of a loop: the least and the greatest of all. So one body, with one
    scale for each of its values, is all that the rounds need."""
    together: dict[str, Range] = {}
    for name, (low, high) in ranges.items():
        key = _ROUND.sub("//", name)
        before = together.get(key, (low, high))
        together[key] = min(low, before[0]), max(high, before[1])
    return {name: together[_ROUND.sub("//", name)] for name in ranges}
