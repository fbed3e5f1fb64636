"""Fuse consecutive requantizers, and remove identities. Requires: types. Ensures: none is the identity; one that is the
sole reader of another is a table that serves all channels, or one of many levels.

An optimisation: step functions compose exactly, so every value stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.ir.graph import Graph, Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.piecewise import Rational
from hwflow.numerics.requantizers.stages import QuantizerStage, Stage
from hwflow.passes.infer_types import infer_types

TABLE_BITS = 8
"""Of integers whose functions are tables of a few look-up tables."""

MANY_CHANNELS = 16
"""From here on 255 thresholds of some 20 bits for each channel take several block RAMs."""

Stages = Sequence[tuple[Stage, ...]]


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
        if _is_table_for_all(node, first, second):
            continue
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


def _is_table_for_all(node: Node[RequantizeAttributes], first: Stages, second: Stages) -> bool:
    """Whether a curve of few integers follows a requantizer per channel: one small table, or thresholds of the first
    one's input for every channel. Or a curve with many levels follows: a table of its inputs is smaller than one of as
    many thresholds of the first one's, which are wider."""
    if len(second) > 1:
        return False
    stages = [stage for stage in second[0] if isinstance(stage, QuantizerStage)]
    if all(isinstance(function, Rational) for stage in stages for function in stage.functions):
        return False
    few = node.inputs[0].typed.element.bits <= TABLE_BITS
    return len(first) >= MANY_CHANNELS if few else max(step.count for step in node.attributes.steps) >= 1 << TABLE_BITS


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
