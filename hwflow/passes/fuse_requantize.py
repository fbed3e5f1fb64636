"""Fuse consecutive requantizers, and remove identities. Requires: types. Ensures: none is the identity; one that is the
sole reader of another is a table that serves all channels, or one of the two a curve of many levels.

An optimisation: step functions compose exactly, so every value stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.ir.graph import Graph, Node
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.functions.piecewise import Abs, LeakyRelu, Rational, ThresholdedRelu
from hwflow.numerics.requantizers.quadratics import MOST_ENTRIES
from hwflow.numerics.requantizers.requantizer import MAX_LOOKUP_BITS
from hwflow.numerics.requantizers.stages import QuantizerStage, Stage
from hwflow.passes.infer_types import infer_types

TABLE_BITS = 8
"""Of integers whose functions are tables of a few look-up tables."""

MANY_CHANNELS = 16
"""From here on 255 thresholds of some 20 bits for each channel take several block RAMs."""

BENT = (Abs, LeakyRelu, ThresholdedRelu)
"""Rational functions that are no limited line."""

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
        if _is_table_for_all(node, first, second) or _is_smooth(inner, node):
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
    """Tell whether a curve of few integers follows a requantizer per channel: one small table, or thresholds of the
    first one's input for every channel. Or a curve with many levels follows: a table of its inputs is smaller than one
    of as many thresholds of the first one's, which are wider."""
    if not _is_curve_for_all(second):
        return False
    few = node.inputs[0].typed.element.bits <= TABLE_BITS
    return len(first) >= MANY_CHANNELS if few else _levels(node) >= 1 << TABLE_BITS


def _is_smooth(inner: Node[RequantizeAttributes], node: Node[RequantizeAttributes]) -> bool:
    """Tell whether ``inner`` is a curve of so many integers that piecewise quadratics are its smallest form, and many
    levels are left behind ``node``: rounded twice, or with a factor for each channel, it has none."""
    x = inner.inputs[0].typed.interval
    many = 1 << MAX_LOOKUP_BITS < x.hi - x.lo + 1 <= MOST_ENTRIES
    return many and _is_curve_for_all(inner.attributes.stages) and _levels(node) >= 1 << TABLE_BITS


def _is_curve_for_all(of_channels: Stages) -> bool:
    """Tell whether all channels have the same stages, of which one has a function that no multiply-add-shift is."""
    if len(of_channels) > 1:
        return False
    stages = [stage for stage in of_channels[0] if isinstance(stage, QuantizerStage)]
    functions = [function for stage in stages for function in stage.functions]
    return any(isinstance(each, BENT) or not isinstance(each, Rational) for each in functions)


def _levels(node: Node[RequantizeAttributes]) -> int:
    """Return how often the results of a channel change, at most."""
    return max(step.count for step in node.attributes.steps)


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
