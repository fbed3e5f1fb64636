"""What connects folded nodes: frame synchronisers at the inputs, width converters where lanes differ."""

from __future__ import annotations

from math import lcm

from hwflow.ir.graph import Graph, Names, Node, Value
from hwflow.ops.operator import Folding


def insert_plumbing(graph: Graph) -> None:
    """A frame synchroniser behind every input and width converters where neighbours' lanes differ."""
    names = Fresh(graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    for port in graph.inputs:
        readers = consumers[port.value]
        lanes = readers[0][0].attributes["folding"].input_lanes if readers else 1
        folding = Folding(lanes, lanes)
        synced = insert(graph, port.value, "frame_sync", folding, names, nodes)
        for node, index in readers:
            node.inputs[index] = synced
        _redirect_outputs(graph, port.value, synced, nodes[-1])
    for node in graph.nodes:
        nodes.append(node)
        for value in list(node.outputs):
            for reader, index in consumers[value]:
                here, there = node.attributes["folding"].output_lanes, reader.attributes["folding"].input_lanes
                reader.inputs[index] = _convert(graph, value, here, there, names, nodes)
    graph.nodes = nodes


def _redirect_outputs(graph: Graph, old: Value, new: Value, sync: Node) -> None:
    for port in graph.outputs:
        if port.value is old and sync.inputs[0] is old:
            port.value = new


def _convert(graph: Graph, value: Value, here: int, there: int, names: Fresh, nodes: list[Node]) -> Value:
    """Width converters from ``here`` to ``there`` lanes: one where one divides the other, else up and then down."""
    middle = lcm(here, there)
    for source, target in ((here, middle), (middle, there)):
        if source != target:
            value = insert(graph, value, "width_converter", Folding(source, target), names, nodes)
    return value


def insert(graph: Graph, value: Value, op: str, folding: Folding, names: Fresh, nodes: list[Node]) -> Value:
    suffixes = {"frame_sync": "sync", "fifo": "queue"}
    wish = f"{value.name}_{suffixes.get(op, f'x{folding.input_lanes}_to_x{folding.output_lanes}')}"
    result = Value(names.values.fresh(wish), value.type, value.origin)
    nodes.append(Node(names.nodes.fresh(wish), op, [value], [result], {"folding": folding}))
    return result


class Fresh:
    """Names for what is inserted."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = Names([n.name for n in graph.nodes])
        self.values = Names([v.name for v in graph.values()])
