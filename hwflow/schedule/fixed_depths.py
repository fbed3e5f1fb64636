"""Queues whose depth is no decision: schedules count with it from the beginning."""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.cores.beat_movers import FrameSyncAttributes
from hwflow.cores.external.memory_queue import MemoryQueueAttributes, queue_depth
from hwflow.cores.external.weight_memory import WeightMemoryAttributes, counted_depth
from hwflow.ir.graph import Delaying, Graph, Value

SYNC_DEPTH = 2  # of a frame synchroniser
AHEAD_DEPTH = 2  # behind a memory, in front of what waits for another input: the memory's own queues are ahead

MOST_AHEAD = 64
"""Elements of a pixel that are ahead besides, behind a queue in memory: what joins streams may take a pixel of each."""


def fixed_depths(graph: Graph) -> Mapping[Value, int]:
    """Return the depths of the queues of frame synchronisers, of those behind queues in memory outside, and of what
    brings weights: nothing but its depths keeps that from being any number of frames ahead."""
    found: dict[Value, int] = {}
    ahead: dict[Value, int] = {}
    for node in graph.nodes:
        if isinstance(node.attributes, FrameSyncAttributes):
            found[node.outputs[0]] = SYNC_DEPTH
        elif isinstance(node.attributes, WeightMemoryAttributes):
            found.update((value, counted_depth(node, index)) for index, value in enumerate(node.outputs))
            ahead.update(dict.fromkeys(node.outputs, AHEAD_DEPTH))
        elif isinstance(node.attributes, MemoryQueueAttributes):
            (value,) = node.outputs
            found[value] = queue_depth(node.attributes, value.typed)
            if not isinstance(node.attributes, Delaying):  # which its own circuit holds back
                ahead[value] = AHEAD_DEPTH + min(value.typed.shape[1], MOST_AHEAD)
        elif node.inputs and all(value in ahead for value in node.inputs):
            found.update(dict.fromkeys(node.outputs, max(ahead[value] for value in node.inputs)))
            ahead.update({value: found[value] for value in node.outputs})
    return found


def has_sources(graph: Graph) -> bool:
    """Tell whether something in a graph begins without an input: its depths decide how far it is ahead."""
    return any(isinstance(node.attributes, WeightMemoryAttributes) for node in graph.nodes)
