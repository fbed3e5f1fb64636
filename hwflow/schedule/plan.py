"""The plan beside a graph: the scheduling decision of each node. The graph itself holds none of it."""

from __future__ import annotations

from dataclasses import dataclass

from hwflow.cores.chain import ChainAttributes, ChainDecision
from hwflow.cores.operator import Decision, Device, Folding, Resources
from hwflow.cores.registry import LEGAL, hardware
from hwflow.cores.timing import Timing
from hwflow.display import show
from hwflow.errors import Finding, InternalError
from hwflow.ir import legality
from hwflow.ir.graph import Graph, Node


@dataclass(eq=False)
class Plan:
    """A graph with all plumbing inserted and the decision of each node. The scheduler owns it until all depths are
    decided; code generation, report and simulation only read it."""

    graph: Graph
    decisions: dict[Node, Decision]

    def __getitem__(self, node: Node) -> Decision:
        """Return the node's decision; that of a chain has those of its cores."""
        decision = self.decisions[node]
        if isinstance(node.attributes, ChainAttributes):
            members = tuple(self.decisions[member.node] for member in node.attributes.members)
            return ChainDecision(decision.folding, decision.depths, members=members)
        return decision

    def __setitem__(self, node: Node, decision: Decision) -> None:
        self.decisions[node] = decision

    def folding(self, node: Node) -> Folding:
        return self.decisions[node].folding

    @property
    def cores(self) -> list[Node]:
        """Return the graph's nodes with those of chains in their place."""
        return [
            core for node in self.graph.nodes
            for core in (
                [member.node for member in node.attributes.members]
                if isinstance(node.attributes, ChainAttributes) else [node]
            )
        ]

    @property
    def parts(self) -> list[Node]:
        """Return the graph's nodes and those of chains: what has resources of its own."""
        return [*dict.fromkeys([*self.graph.nodes, *self.cores])]

    def cycles(self, node: Node) -> int:
        """Return the steps per frame of the node's longest process."""
        return hardware(node.op).cycles(node, self.folding(node))

    def timing(self, node: Node) -> Timing:
        """Return the node's exact static schedule."""
        return hardware(node.op).timing(node, self[node])

    def resources(self, node: Node, device: Device) -> Resources:
        """Return the node's predicted resources."""
        return hardware(node.op).resources(node, self[node], device)

    def check(self) -> None:
        """Raise :class:`InternalError` with every violation of the scheduled stage's rules: those of the graph, and
        that every node has a folding and a depth for each of its queues."""
        legality.check(self.graph, "schedule", LEGAL)
        findings = [
            Finding(
                "scheduled-nodes", f"node {show(node.name)}",
                f"every node must have a folding and a depth for each queue; found: {self.decisions.get(node)}",
                "report this model as a defect of hwflow",
            )
            for node in self.graph.nodes
            if node not in self.decisions or len(self[node].depths) != len(node.outputs)
        ]
        if findings:
            raise InternalError(findings)
