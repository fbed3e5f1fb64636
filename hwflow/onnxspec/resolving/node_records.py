"""The candidate nodes of a resolved model, and the live ones among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hwflow.errors import Finding
from hwflow.onnxspec.resolving.resolved_model import OnnxNode


@dataclass(slots=True)
class NodeRecord:
    """A node that remains after folding; ``opaque``: it is refused, or follows a refused one."""

    node: OnnxNode
    opaque: bool = False
    findings: list[Finding] = field(default_factory=list)


def needed(
    records: Sequence[NodeRecord], outputs: Iterable[str]
) -> tuple[list[OnnxNode], frozenset[str], list[Finding]]:
    """Return the nodes that an output needs, the names of those among them that are refused or stand behind such, and
    what was found about these nodes.

    Folding, and an If with one branch left, make nodes dead."""
    names = set(outputs)
    nodes: list[OnnxNode] = []
    opaque: set[str] = set()
    findings: list[Finding] = []
    for record in reversed(records):
        if not any(name in names for name in record.node.outputs if name):
            continue
        names.update(name for name in record.node.inputs if name)
        findings.extend(record.findings)
        nodes.append(record.node)
        if record.opaque:
            opaque.add(record.node.name)
    return nodes[::-1], frozenset(opaque), findings[::-1]
