"""Queues whose depth is no decision: schedules count with it from the beginning."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.cores.beat_movers import FrameSyncAttributes
from hwflow.cores.external.weight_memory import WeightMemoryAttributes, counted_depth
from hwflow.ir.graph import Graph, Value

SYNC_DEPTH = 2  # of a frame synchroniser
AHEAD_DEPTH = 2  # behind a memory, in front of what waits for an input: the memory's own queues are ahead


def fixed_depths(graph: Graph) -> Mapping[Value, int]:
    """Return the depths of the queues of frame synchronisers, and of what brings weights: nothing but its depths keeps
    that from being any number of frames ahead."""
    found: dict[Value, int] = {}
    ahead: set[Value] = set()
    for node in graph.nodes:
        if isinstance(node.attributes, FrameSyncAttributes):
            found[node.outputs[0]] = SYNC_DEPTH
        elif isinstance(node.attributes, WeightMemoryAttributes):
            found.update((value, counted_depth(node, index)) for index, value in enumerate(node.outputs))
            ahead.update(node.outputs)
        elif node.inputs and ahead.issuperset(node.inputs):
            found.update(dict.fromkeys(node.outputs, AHEAD_DEPTH))
            ahead.update(node.outputs)
    return found


def has_sources(graph: Graph) -> bool:
    """Tell whether something in a graph begins without an input: its depths decide how far it is ahead."""
    return any(isinstance(node.attributes, WeightMemoryAttributes) for node in graph.nodes)
