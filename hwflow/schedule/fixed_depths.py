"""Queues whose depth is no decision: schedules count with it from the beginning."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Value


def fixed_depths(graph: Graph) -> Mapping[Value, int]:
    """Return the depths of queues that their cores fix, and of those behind what is ahead of its readers."""
    found: dict[Value, int] = {}
    ahead: dict[Value, int] = {}
    for node in graph.nodes:
        core = hardware(node.op)
        depths = [core.fixed_depth(node, index) for index in range(len(node.outputs))]
        own = {value: depth for value, depth in zip(node.outputs, depths, strict=True) if depth is not None}
        behind = core.depth_behind(node)
        if not own and node.inputs and all(value in ahead for value in node.inputs):
            behind = max(ahead[value] for value in node.inputs)
            own = dict.fromkeys(node.outputs, behind)
        found |= own
        if behind is not None:
            ahead |= dict.fromkeys(node.outputs, behind)
    return found


def has_sources(graph: Graph) -> bool:
    """Tell whether something in a graph begins without an input: its depths decide how far it is ahead."""
    return any(not node.inputs for node in graph.nodes)
