"""Fuse consecutive requantizers, and remove identities. Requires: types. Ensures: no requantize is the sole reader of
another, none is the identity.

An optimisation: step functions compose exactly, so every value stays the same.
"""

from __future__ import annotations

from hwflow.ir.graph import Graph
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.passes.infer_types import infer_types


def fuse_requantize(graph: Graph) -> Graph:
    """Return a copy of the graph with requantizers fused and types inferred again."""
    graph = graph.copy()
    producers, consumers = graph.producers(), graph.consumers()
    outputs = {p.value for p in graph.outputs}
    for node in list(graph.nodes):
        inner = producers.get(node.inputs[0]) if isinstance(node.attributes, RequantizeAttributes) else None
        if inner is None or not isinstance(inner.attributes, RequantizeAttributes):
            continue
        if len(consumers[node.inputs[0]]) > 1 or node.inputs[0] in outputs:
            continue
        first, second = inner.attributes.stages, node.attributes.stages
        rank = len(node.inputs[0].typed.shape)
        axes = [n.attributes.axis % rank for n, stages in ((inner, first), (node, second)) if len(stages) > 1]
        if len(set(axes)) > 1:
            continue
        count = max(len(first), len(second))
        first, second = (stages * count if len(stages) == 1 else stages for stages in (first, second))
        stages = tuple(a + b for a, b in zip(first, second, strict=True))
        epsilon = max(inner.attributes.epsilon, node.attributes.epsilon)
        node.attributes = RequantizeAttributes(axes[0] if axes else 0, stages, epsilon=epsilon)
        node.inputs = list(inner.inputs)
        node.sources = inner.sources + node.sources
        graph.nodes.remove(inner)
    infer_types(graph)
    _drop_identities(graph)
    return infer_types(graph)


def _drop_identities(graph: Graph) -> None:
    """Bypass every requantizer that maps each value of its interval to itself."""
    for node in list(graph.nodes):
        made = node.attributes
        if not isinstance(made, RequantizeAttributes) or not all(step.is_identity for step in made.steps):
            continue
        (before,), (after,) = node.inputs, node.outputs
        for reader in graph.nodes:
            reader.inputs = [before if v is after else v for v in reader.inputs]
        for port in graph.outputs:
            if port.value is after:
                port.value = before
        graph.nodes.remove(node)
