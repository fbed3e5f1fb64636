"""Which layers are loadable: those that are named, by nodes or tensors, or those whose weights ONNX lets override."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph
from hwflow.onnxspec import ModelProto, ResolvedModel
from hwflow.passes import pipeline
from hwflow.passes.hold_layers import Holding

_SINCE = 4  # versions of the IR: before, every initializer must be an input


def of_nodes(holding: Holding, model: ResolvedModel) -> Holding:
    """Return the same with the nodes that read what ``holding`` names, where that is a constant tensor."""
    if holding.names is None:
        return holding
    tensors = frozenset(name for name in holding.names if name in model.constants)
    return replace(holding, names=holding.names - tensors | readers(model, tensors)) if tensors else holding


def by_themselves(proto: ModelProto, model: ResolvedModel, quantized: Graph) -> Holding | None:
    """Return the layers that read initializers that are graph inputs, as far as they can be loaded; None if none can.
    """
    tensors = overridable(proto)
    names = readers(model, tensors) if tensors else frozenset()
    if not names:
        return None
    graph = pipeline.run(quantized, pipeline.SIMPLER)
    found = Holding(frozenset(filter(lambda name: _holds(graph, frozenset({name})), names)), loadable=True)
    return found if found.names and _holds(graph, found.names) else None


def _holds(graph: Graph, names: frozenset[str]) -> bool:
    try:
        Holding(names, loadable=True).hold(graph)
    except ModelRefused:
        return False
    return True


def overridable(proto: ModelProto) -> frozenset[str]:
    """Return the names of the initializers that ONNX says may be overridden. Exporters that list every initializer
    among the inputs do so as before version 4, where it said nothing: then there are none."""
    if proto.ir_version < _SINCE:
        return frozenset()
    inputs = {value.name for value in proto.graph.input}
    every = {tensor.name for tensor in (*proto.graph.initializer, *(s.values for s in proto.graph.sparse_initializer))}
    found = frozenset(every & inputs)
    return found if found != every else frozenset()


def readers(model: ResolvedModel, tensors: Iterable[str]) -> frozenset[str]:
    """Return the names of the nodes with inputs of their own that read ``tensors``, constants, or what follows from
    them."""
    wanted = frozenset(tensors)
    origins = {name: frozenset({name}) & wanted for name in model.constants}
    found = set()
    for node in model.nodes:
        inputs = [name for name in node.inputs if name]
        read = [origins[name] for name in inputs if name in origins]
        made: frozenset[str] = frozenset().union(*read)
        if inputs and len(read) == len(inputs):
            origins |= {name: made for name in node.outputs if name}
        elif made:
            found.add(node.name)
    return frozenset(found)
