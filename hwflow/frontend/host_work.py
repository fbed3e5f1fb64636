"""What is left to the host, and how much of the network's work that is.

Pre- and postprocessing has no linear operators (convolutions, matrix products, recurrent layers, attention): where the
host is left with one, a part of the network itself is not in hardware, however small it is, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.frontend.stream_types import DECLARE
from hwflow.ir.graph import Graph
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel
from hwflow.operators.work import macs

HOST_WORK = "host-work"
"""The rule of the warning."""

_SHOWN = 8  # nodes, in a line


@dataclass(frozen=True)
class HostWork:
    """The nodes that the host runs, in order, each with its multiply-accumulates a frame; ``total``: those of the
    whole model. ``before``: the names of those in front of the core; ``reasons``: why hardware could not be made of
    nodes behind it."""

    nodes: tuple[tuple[OnnxNode, int], ...]
    total: int
    before: frozenset[str] = frozenset()
    reasons: tuple[Finding, ...] = ()

    @staticmethod
    def of(model: ResolvedModel, graph: Graph) -> HostWork:
        """Of a model and its graph, at any stage."""
        left = frozenset((*graph.prefix, *graph.suffix))
        counts = [  # of constants, once for all frames: none
            (node, macs(node, model.values) if model.fixed.isdisjoint(node.outputs) else 0) for node in model.nodes
        ]
        nodes = tuple((node, count) for node, count in counts if node.name in left)
        return HostWork(nodes, sum(count for _, count in counts), frozenset(graph.prefix), graph.deferred)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a frame that the host does."""
        return sum(count for _, count in self.nodes)

    @property
    def share(self) -> float:
        """The same as a share (0 to 1) of the model's."""
        return self.macs / self.total if self.total else 0.0

    @property
    def linear(self) -> tuple[OnnxNode, ...]:
        """The linear operators among the host's nodes."""
        return tuple(node for node, count in self.nodes if count)

    def table(self) -> dict[str, Any]:
        """What `host` of the report says beside the nodes' names."""
        nodes = [{"name": node.name, "op": node.op_type, "macs": count} for node, count in self.nodes]
        return {"macs": self.macs, "share": self.share, "nodes": nodes}

    def line(self) -> str:
        """The same for people."""
        if not self.nodes:
            return "left to the host: nothing"
        return f"left to the host: {_listing([node for node, _ in self.nodes])}; {self.said_share()}"

    def said_share(self) -> str:
        """How much of the multiply-accumulates that is."""
        if not self.macs:
            return f"none of the {self.total:,} multiply-accumulates of a frame"
        return f"{100 * self.share:.3g} % of the {self.total:,} multiply-accumulates of a frame"

    def findings(self, model: ResolvedModel) -> tuple[Finding, ...]:
        """A warning where that is more than pre- and postprocessing."""
        if not self.linear:
            return ()
        count = len(self.linear)
        message = (
            f"the host must run pre- and postprocessing only, not {count} linear operator{'s' if count > 1 else ''} "
            f"with {self.said_share()}: {_listing(self.linear)}"
        )
        remedy = "quantize them, and what stands between them and the core, too (see 'hwflow quantize')"
        names = {node.where for node, _ in self.nodes}
        reason = next((f for f in self.reasons if f.where in names), None)
        if any(node.name in self.before for node in self.linear):
            remedy += f", or {DECLARE}"
        elif reason is not None:
            remedy = f"hardware ends at {reason.where}: {reason.message}: {reason.remedy}"
        return (Finding(HOST_WORK, f"model {show(model.name)}", message, remedy, "warning"),)


def _listing(nodes: list[OnnxNode] | tuple[OnnxNode, ...]) -> str:
    shown = [f"{show(node.name)} ({node.op_type})" for node in nodes[:_SHOWN]]
    more = len(nodes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
