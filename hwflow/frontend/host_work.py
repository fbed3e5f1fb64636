"""The nodes left to the host, and their share of the network's work.

Pre- and postprocessing has no linear operators (convolutions, matrix products, recurrent layers, attention). Where the
host is left with one, a part of the network itself, however small, is not in hardware, which is worth a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hwflow.display import show
from hwflow.errors import Finding, Severity
from hwflow.frontend.stream_types import DECLARE
from hwflow.ir.graph import Graph
from hwflow.onnxspec.resolving.resolved_model import OnnxNode, ResolvedModel
from hwflow.operators.work import macs

HOST_WORK = "host-work"
"""The rule of the warning."""

_SHOWN = 8  # nodes on a line


@dataclass(frozen=True)
class HostWork:
    """The nodes that the host runs, in order, each with its multiply-accumulates per frame; ``total``: those of the
    whole model. ``before``: the names of the nodes before the hardware; ``reasons``: why nodes after it are not in
    hardware."""

    nodes: tuple[tuple[OnnxNode, int], ...]
    total: int
    before: frozenset[str] = frozenset()
    reasons: tuple[Finding, ...] = ()

    @staticmethod
    def of(model: ResolvedModel, graph: Graph) -> HostWork:
        """Return the host's work for a model and its graph, at any stage."""
        left = frozenset((*graph.prefix, *graph.suffix))
        counts = [  # 0 for constants, computed once for all frames
            (node, macs(node, model.values) if model.fixed.isdisjoint(node.outputs) else 0) for node in model.nodes
        ]
        nodes = tuple((node, count) for node, count in counts if node.name in left)
        return HostWork(nodes, sum(count for _, count in counts), frozenset(graph.prefix), graph.deferred)

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame on the host."""
        return sum(count for _, count in self.nodes)

    @property
    def share(self) -> float:
        """The host's share (0 to 1) of the model's multiply-accumulates."""
        return self.macs / self.total if self.total else 0.0

    @property
    def linear(self) -> tuple[OnnxNode, ...]:
        """The linear operators among the host's nodes."""
        return tuple(node for node, count in self.nodes if count)

    def table(self) -> dict[str, Any]:
        """Return the entries of the report's `host` besides the nodes' names."""
        nodes = [{"name": node.name, "op": node.op_type, "macs": count} for node, count in self.nodes]
        return {"macs": self.macs, "share": self.share, "nodes": nodes}

    def line(self) -> str:
        """Return the host's work as a line of text."""
        if not self.nodes:
            return "left to the host: nothing"
        return f"left to the host: {_listing([node for node, _ in self.nodes])}; {self.said_share()}"

    def said_share(self) -> str:
        """Return the host's share of the multiply-accumulates in words."""
        if not self.macs:
            return f"none of the {self.total:,} multiply-accumulates of a frame"
        return f"{100 * self.share:.3g} % of the {self.total:,} multiply-accumulates of a frame"

    def findings(self, model: ResolvedModel) -> tuple[Finding, ...]:
        """Return a warning if the host is left with linear operators."""
        if not self.linear:
            return ()
        count = len(self.linear)
        message = (
            f"the host must run pre- and postprocessing only, not {count} linear operator{'s' if count > 1 else ''} "
            f"with {self.said_share()}: {_listing(self.linear)}"
        )
        remedy = "quantize them, and the nodes between them and the core, too (see 'hwflow quantize')"
        names = {node.where for node, _ in self.nodes}
        reason = next((f for f in self.reasons if f.where in names), None)
        if any(node.name in self.before for node in self.linear):
            remedy += f", or {DECLARE}"
        elif reason is not None:
            remedy = f"hardware ends at {reason.where}: {reason.message}: {reason.remedy}"
        return (Finding(HOST_WORK, f"model {show(model.name)}", message, remedy, Severity.WARNING),)


def _listing(nodes: list[OnnxNode] | tuple[OnnxNode, ...]) -> str:
    shown = [f"{show(node.name)} ({node.op_type})" for node in nodes[:_SHOWN]]
    more = len(nodes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
