"""Relays: a register in the way of every handshake that may have to cross the part.

A core with multiplier blocks stands where the part has them: in a few rows or columns, far from each other. In a design
that takes many of them, two neighbours of a stream may thus lie at opposite ends of the part; the way there, and into
the logic that decides about a step, then is the longest of the design (4.5 of 8.1 ns, seen in ResNet-8 on an
LFE5U-85F). Between any two such cores stands a relay (:class:`hwflow.cores.beat_movers.Relay`), where the stream
between them is narrowest; a fork or a core with several inputs, whose neighbours pull at it from all sides, counts as
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Node, Value
from hwflow.schedule.converters import Fresh, insert
from hwflow.schedule.plan import Plan
from hwflow.schedule.search.folding_search import Chip

_SHARE = 0.5  # of a part's multiplier blocks: a design with fewer finds a place where they are close together


def insert_relays(plan: Plan, device: Chip) -> None:
    """Insert relays into a plan with plumbing, where its cores take more than :data:`_SHARE` of the blocks."""
    graph = plan.graph
    blocks = {
        node: hardware(node.op).resources(node, replace(plan[node], depths=(2,) * len(node.outputs)), device).dsp
        for node in graph.nodes
    }
    if sum(blocks.values()) <= _SHARE * device.dsp:
        return
    ends = {node for node in graph.nodes if blocks[node] or len(node.inputs) > 1 or len(node.outputs) > 1}
    makers = graph.producers()
    ways = list(_ways(graph, ends, makers))

    def width(value: Value) -> int:
        """Bits of a beat."""
        return plan.folding(makers[value]).output_lanes * value.typed.element.bits

    _insert(plan, {min(way, key=width) for way in ways if way})


def _ways(graph: Graph, ends: set[Node], makers: dict[Value, Node]) -> Iterator[list[Value]]:
    """The streams between each two of ``ends``, from the reader's on backwards."""
    for node in graph.nodes:
        if node not in ends:
            continue
        for value in node.inputs:
            way = []
            while value in makers:
                way.append(value)
                if makers[value] in ends:
                    break
                value = makers[value].inputs[0]
            yield way


def _insert(plan: Plan, values: set[Value]) -> None:
    """Insert a relay behind each of ``values``."""
    graph, names = plan.graph, Fresh(plan.graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes.append(node)
        lanes = plan.folding(node).output_lanes
        for value in node.outputs:
            if value in values:
                for reader, place in consumers[value]:
                    reader.inputs[place] = insert(plan, value, "relay", Folding(lanes, lanes), names, nodes)
    graph.nodes = nodes
