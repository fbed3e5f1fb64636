"""Let all that shares a memory know its plan."""

from __future__ import annotations

from dataclasses import replace

from hwflow.cores.external.weight_memory import (
    MemoryPlan,
    SharingAttributes,
    WeightMemoryAttributes,
    plan_of,
    require_room,
)
from hwflow.ir.graph import Graph, Node


def memory_shared(graph: Graph, memory: Node[WeightMemoryAttributes]) -> MemoryPlan:
    """Give the plan of a graph's ``memory`` to the nodes that share it, and return it. Raises :class:`ModelRefused`
    where the memory is too small."""
    plan = plan_of(memory)
    require_room(plan, graph.name)
    for node in graph.nodes:
        if isinstance(node.attributes, SharingAttributes):
            node.attributes, node.kept = replace(node.attributes, plan=plan), {}
    return plan
