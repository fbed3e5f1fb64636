"""Write out a model's control flow, sequences and recurrent operators, so that quantizers can stand inside."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from hwflow.onnxspec.graphs.inline import graphs_of
from hwflow.onnxspec.graphs.operator_facts import all_facts, facts_of
from hwflow.onnxspec.resolving.resolver import resolve_with_graph


def written_out(model: onnx.ModelProto, dimensions: Mapping[str, int], *, whole: bool = False) -> onnx.ModelProto:
    """Return ``model`` with loops unrolled and recurrent operators as their definitions, and with the variables in
    ``dimensions`` bound; the model itself where there is nothing of that. ``whole``: as for
    :func:`~hwflow.onnxspec.resolving.resolver.resolve_with_graph`. Raises :class:`ModelRefused`."""
    result = model
    if any(map(_is_to_be_written_out, model.graph.node)):
        kept = {key for key, facts in all_facts() if facts.definition is None}
        result = resolve_with_graph(model, dimensions, kept, whole=whole, to_quantize=True)[1]
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
    facts = facts_of("" if node.domain == "ai.onnx" else node.domain, node.op_type)
    return any(map(graphs_of, node.attribute)) or facts.definition is not None
