"""Insert the plumbing between folded nodes: frame synchronisers at the inputs, width converters where lanes differ."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from hwflow.cores.beat_movers import (
    FifoAttributes,
    FrameSyncAttributes,
    RelayAttributes,
    ViewAttributes,
    WidthConverterAttributes,
)
from hwflow.cores.operator import Decision, Folding, grouped
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph, Names, Node, Value
from hwflow.schedule.plan import Plan

View = tuple[int, int]  # (pixels, channels) as which a core takes a stream; a pixel's last beat may have surplus lanes


@dataclass(frozen=True)
class Conversion:
    """A width converter from ``folding.input_lanes`` to ``folding.output_lanes`` of a stream seen as ``view``."""

    view: View
    folding: Folding


def conversions(
    value: Value, reader: Node, here: int, there: int, *, whole_vector: bool = False, index: int = 0
) -> list[Conversion]:
    """Return the width converters from a producer of ``value`` with ``here`` lanes to input ``index`` of a ``reader``
    with ``there``, which are lanes of a ``whole_vector`` if its folding says so.

    Lanes that divide the channels of a pixel leave no lane empty, so that such a stream may be seen with any number of
    elements per pixel; with other lanes it has the pixels that its producer or its reader sees. A converter works on
    pixels that suit both of its sides; where none do, elements go by way of a whole pixel per beat. No intermediate
    stream has more beats than both ends.

    Raises ValueError if the lanes suit neither a part of a pixel nor whole pixels that divide the frame.
    """
    target = hardware(reader.op).input_view(reader, value.typed.shape, there, whole_vector=whole_vector, index=index)
    return [Conversion(view, Folding(a, b)) for view, a, b in steps_between(value.typed.shape, target, here, there)]


def steps_between(shape: tuple[int, ...], target: View, here: int, there: int) -> list[tuple[View, int, int]]:
    """Return the same as (view, lanes from, lanes to), for a stream of this ``shape`` whose reader sees it as
    ``target``."""
    source = grouped(shape, here)
    fills, suits = source[1] % here == 0, target[1] % there == 0
    if fills and suits:
        return _within(shape, lcm(here, there), here, there)
    if fills and target[1] % here == 0:
        return _within(shape, target[1], here, there)
    if (suits and source[1] % there == 0) or source == target:
        return _within(shape, source[1], here, there)
    if not fills:
        return _within(shape, source[1], here, source[1]) + steps_between(shape, target, source[1], there)
    return _within(shape, lcm(here, target[1]), here, target[1]) + _within(shape, target[1], target[1], there)


def _within(shape: tuple[int, ...], channels: int, here: int, there: int) -> list[tuple[View, int, int]]:
    """Convert ``here`` to ``there`` lanes of pixels of ``channels``: in one step if one divides the other or is the
    whole pixel, else up and then down."""
    if here == there:
        return []
    view, together = (shape[0] * shape[1] // channels, channels), lcm(here, there)
    if together in (here, there) or channels in (here, there):
        return [(view, here, there)]
    middle = min(together, channels)
    return [(view, here, middle), (view, middle, there)]


def insert_plumbing(plan: Plan) -> None:
    """Insert a frame synchroniser behind every input and width converters where neighbours' lanes differ."""
    graph, names = plan.graph, FreshNames(plan.graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    for port in graph.inputs:
        readers, view = consumers[port.value], grouped(port.value.typed.shape, 1)
        lanes = 1
        if readers:
            (reader, index), folding = readers[0], plan.folding(readers[0][0])
            lanes = hardware(reader.op).lanes_of(reader, index, folding)
            view = hardware(reader.op).input_view(
                reader, port.value.typed.shape, lanes, whole_vector=folding.whole_vector, index=index
            )
        synced = insert(plan, port.value, FrameSyncAttributes, Folding(lanes, lanes), names, nodes, view)
        for node, index in readers:
            node.inputs[index] = synced
        _redirect_outputs(graph, port.value, synced, nodes[-1])
    for node in graph.nodes:
        nodes.append(node)
        for value in list(node.outputs):
            for reader, index in consumers[value]:
                here, there = plan.folding(node).output_lanes, plan.folding(reader)
                made, whole = value, there.whole_vector
                lanes = hardware(reader.op).lanes_of(reader, index, there)
                for step in conversions(value, reader, here, lanes, whole_vector=whole, index=index):
                    made = insert(plan, made, WidthConverterAttributes, step.folding, names, nodes, step.view)
                reader.inputs[index] = made
    graph.nodes = nodes


def _redirect_outputs(graph: Graph, old: Value, new: Value, sync: Node) -> None:
    for port in graph.outputs:
        if port.value is old and sync.inputs[0] is old:
            port.value = new


_SUFFIXES: dict[type[ViewAttributes], str] = {
    FrameSyncAttributes: "sync", FifoAttributes: "queue", RelayAttributes: "relay"
}


def insert(
    plan: Plan, value: Value, kind: type[ViewAttributes], folding: Folding, names: FreshNames, nodes: list[Node],
    view: View | None = None,
) -> Value:
    """Append a node with attributes of ``kind`` to ``nodes`` that reads ``value``; return its output. ``view``: how it
    sees the stream, by default as the node before it does."""
    wish = f"{value.name}_{_SUFFIXES.get(kind, f'x{folding.input_lanes}_to_x{folding.output_lanes}')}"
    result = Value(names.values.fresh(wish), value.type, value.origin)
    if view is None:
        producer = next((node for node in reversed(nodes) if value in node.outputs), None)
        given = None if producer is None else producer.attributes
        view = given.view if isinstance(given, ViewAttributes) else None
    nodes.append(Node(names.nodes.fresh(wish), [value], [result], kind(view)))
    plan[nodes[-1]] = Decision(folding)
    return result


class FreshNames:
    """Unused names for inserted nodes and values."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = Names([n.name for n in graph.nodes])
        self.values = Names([v.name for v in graph.values()])
