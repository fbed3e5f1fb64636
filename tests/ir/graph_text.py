"""A graph as text, one line per node, for comparisons of whole graphs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from hwflow.ir.graph import Graph


def to_text(graph: Graph) -> str:
    """Return the whole graph as text: ports, and a line ``outputs = op(inputs) {attributes} : type`` per node."""
    lines = [f"graph {graph.name} ({graph.stage.value})"]
    lines += [f"  input {p.name}: {p.value.name}: {p.value.type}" for p in graph.inputs]
    for node in graph.nodes:
        outputs = ", ".join(v.name for v in node.outputs)
        inputs = ", ".join(v.name for v in node.inputs)
        types = ", ".join(str(v.type) for v in node.outputs)
        lines.append(f"  {outputs} = {node.op}({inputs}) {{{attributes_text(node.attributes)}}} : {types}")
    lines += [f"  output {p.name}: {p.value.name}: {p.value.type}" for p in graph.outputs]
    return "\n".join(lines) + "\n"


def attributes_text(attributes: Any) -> str:
    """Attributes other than their defaults in one line; arrays by shape."""
    parts = []
    for each in fields(attributes):
        value = getattr(attributes, each.name)
        if value is not each.default:
            text = f"array{list(value.shape)}" if isinstance(value, np.ndarray) else str(value)
            parts.append(f"{each.name}={text if len(text) <= 60 else text[:57] + '...'}")
    return ", ".join(parts)
