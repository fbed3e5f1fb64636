"""Print a graph as text, one line per node: for people, tests and messages."""

from __future__ import annotations

from hwflow.ir.graph import Graph, attributes_text


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
