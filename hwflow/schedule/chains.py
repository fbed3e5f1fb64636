"""Join cores in series that take and give a beat in each step to chains, which need a single queue.

A core has a queue for the beats in its pipeline, since these leave it whether or not somebody takes them. In a chain
one queue at the end has room for the beats of all cores (:class:`hdl_lib.chain.Chain`). It is as deep as all of
them together, so a chain ends where its stream is narrowest. In a dense network of a frame a cycle these queues are 7 %
of all look-up tables (jet6: 2,900 of 43,700).
"""

from __future__ import annotations

from collections.abc import Sequence

from hwflow.cores.chain import NO_QUEUE, ChainAttributes, Member
from hwflow.cores.operator import Decision, Device, Folding
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Node
from hwflow.schedule.converters import FreshNames
from hwflow.schedule.plan import Plan


def join_chains(plan: Plan, device: Device) -> None:
    """Replace the nodes of each chain by one, whose :class:`hwflow.cores.chain.Member` they become."""
    names, graph = FreshNames(plan.graph), plan.graph
    producers = graph.producers()
    series: dict[Node, list[Node]] = {}  # by the last node
    for node in graph.nodes:
        if _is_steady(plan, node):
            series[node] = series.pop(producers.get(node.inputs[0], node), [])
            series[node].append(node)
    last_of: dict[Node, Sequence[Node]] = {}
    for nodes in series.values():
        while len(nodes) > 1:
            end = 1 + min(range(len(nodes)), key=lambda place: (_width(plan, nodes[place]), -place))
            if end > 1:
                last_of[nodes[end - 1]] = nodes[:end]
            nodes = nodes[end:]
    inside = {node for nodes in last_of.values() for node in nodes[:-1]}
    kept = []
    for node in graph.nodes:
        if node in last_of:
            node = _chain(plan, last_of[node], names, device)
        if node not in inside:
            kept.append(node)
    graph.nodes = kept


def _is_steady(plan: Plan, node: Node) -> bool:
    """Tell whether a node's core takes and gives a beat in each step, with a queue that can be left out."""
    return len(node.inputs) == len(node.outputs) == 1 and hardware(node.op).is_steady(node, plan.folding(node))


def _width(plan: Plan, node: Node) -> int:
    """Return the bits of a beat."""
    return plan.folding(node).output_lanes * node.outputs[0].typed.element.bits


def _chain(plan: Plan, nodes: Sequence[Node], names: FreshNames, device: Device) -> Node:
    """Return the node of a chain, and decide its folding and those of its members."""
    first, last = nodes[0], nodes[-1]
    members: list[Member] = []
    for node in nodes:
        operator, folding = hardware(node.op), plan.folding(node)
        if members and members[-1].operator.is_registered(members[-1].node, plan.folding(members[-1].node)):
            folding = operator.between_registers(node, folding, device)
        members.append(Member(node, operator))
        plan[node] = Decision(folding, NO_QUEUE)
    sources = dict.fromkeys(source for node in nodes for source in node.sources)
    made = Node(
        names.nodes.fresh(f"{first.name}_to_{last.name}"), first.inputs, last.outputs, ChainAttributes(tuple(members)),
        tuple(sources),
    )
    lanes = plan.folding(first), plan.folding(last)
    plan[made] = Decision(
        Folding(lanes[0].input_lanes, lanes[1].output_lanes, whole_vector=lanes[0].whole_vector)
    )
    return made
