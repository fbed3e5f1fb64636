"""Insert relays: a register in both directions of every handshake that may cross the part.

Cores with multiplier blocks stand where the part has these, in a few rows or columns. In a design that takes many of
them, neighbours of a stream may lie at opposite ends of the part, and the wires between them become the critical path
(4.5 of 8.1 ns, seen in ResNet-8 on an LFE5U-85F). Between any two such cores stands a relay
(:class:`hwflow.cores.beat_movers.Relay`), where the stream between them is narrowest. A fork or a core with several
inputs counts as one, since its neighbours pull at it from all sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hwflow.cores.beat_movers import RelayAttributes
from hwflow.cores.costs import FAMILIES
from hwflow.cores.operator import Folding
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Node, Value
from hwflow.schedule.converters import FreshNames, insert
from hwflow.schedule.plan import Plan
from hwflow.schedule.search.folding_search import Chip

_SHARE = 0.5  # of a part's multiplier blocks: a design with fewer can be placed close together


def insert_relays(plan: Plan, device: Chip) -> None:
    """Insert relays if the plan's cores take more than :data:`_SHARE` of the multiplier blocks, and the clock is so
    fast that wires across the part are a large share of a cycle."""
    if FAMILIES[device.family].crosses_quickly(device.clock_mhz):
        return
    graph = plan.graph
    blocks = {
        node: hardware(node.op).resources(node, replace(plan[node], depths=(2,) * len(node.outputs)), device).dsp
        for node in graph.nodes
    }
    if sum(blocks.values()) <= _SHARE * device.dsp:
        return
    ends = {node for node in graph.nodes if blocks[node] or len(node.inputs) != 1 or len(node.outputs) > 1}
    producers = graph.producers()
    paths = list(_paths(graph, ends, producers))

    def width(value: Value) -> int:
        """Return the bits of a beat."""
        return plan.folding(producers[value]).output_lanes * value.typed.element.bits

    _insert(plan, {min(path, key=width) for path in paths if path})


def _paths(graph: Graph, ends: set[Node], producers: dict[Value, Node]) -> Iterator[list[Value]]:
    """Yield the streams on the path between each two of ``ends``, from the consumer backwards."""
    for node in graph.nodes:
        if node not in ends:
            continue
        for value in node.inputs:
            path = []
            while value in producers:
                path.append(value)
                if producers[value] in ends:
                    break
                value = producers[value].inputs[0]
            yield path


def _insert(plan: Plan, values: set[Value]) -> None:
    """Insert a relay behind each of ``values``."""
    graph, names = plan.graph, FreshNames(plan.graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes.append(node)
        lanes = plan.folding(node).output_lanes
        for value in node.outputs:
            if value in values:
                for reader, place in consumers[value]:
                    reader.inputs[place] = insert(plan, value, RelayAttributes, Folding(lanes, lanes), names, nodes)
    graph.nodes = nodes
