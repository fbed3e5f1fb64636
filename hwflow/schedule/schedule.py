"""Dataflow graph to scheduled graph: foldings, frame synchronisers, width converters, queue depths, exact timing.

Requires: single-consumer, stream-shape. Ensures: scheduled-nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import lcm

from hwflow.ir.graph import Graph, Names, Node, Stage, Value
from hwflow.ops import costs
from hwflow.ops.operator import Device, Folding, Resources
from hwflow.ops.registry import hardware
from hwflow.ops.sliding_window import line_buffer_rows
from hwflow.schedule.evaluate import Network, Run, evaluate
from hwflow.schedule.folding import Budget, FoldingSearch

FRAMES = 6  # enough for the slowest core to set the pace
MOST_FRAMES = 96  # looked at where it takes longer
PACED_FRAMES = 4  # to measure how full queues get
_UNBOUNDED = 1 << 40


@dataclass(frozen=True)
class Schedule:
    """A scheduled graph and what it will do: ``run`` is exact, ``resources`` predicted."""

    graph: Graph
    run: Run
    resources: Resources

    @property
    def initiation_interval(self) -> int:
        return self.run.initiation_interval

    @property
    def latency(self) -> int:
        return self.run.latency


def schedule(graph: Graph, device: Device, budget: Budget, interval: int | None = None) -> Schedule:
    """Fold for at most ``interval`` cycles a frame at least cost, or (None) for the least interval that fits."""
    search = FoldingSearch(graph, device, budget)
    _, foldings = search.best() if interval is None else search.for_interval(interval)
    for node, folding in foldings.items():
        node.attributes["folding"] = folding
    _insert_plumbing(graph)
    graph.stage = Stage.SCHEDULED
    run = _settled(graph, _size_queues(graph, device))
    total = Resources()
    for node in graph.nodes:
        total += hardware(node.op).resources(node, node.attributes["folding"], node.attributes["depths"], device)
    return Schedule(graph, run, total)


def _insert_plumbing(graph: Graph) -> None:
    """A frame synchroniser behind every input and width converters where neighbours' lanes differ."""
    names = _Fresh(graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    for port in graph.inputs:
        readers = consumers[port.value]
        lanes = readers[0][0].attributes["folding"].input_lanes if readers else 1
        folding = Folding(lanes, lanes)
        synced = _insert(graph, port.value, "frame_sync", folding, names, nodes)
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


def _convert(graph: Graph, value: Value, here: int, there: int, names: _Fresh, nodes: list[Node]) -> Value:
    """Width converters from ``here`` to ``there`` lanes: one where one divides the other, else up and then down."""
    middle = lcm(here, there)
    for source, target in ((here, middle), (middle, there)):
        if source != target:
            value = _insert(graph, value, "width_converter", Folding(source, target), names, nodes)
    return value


def _insert(graph: Graph, value: Value, op: str, folding: Folding, names: _Fresh, nodes: list[Node]) -> Value:
    suffixes = {"frame_sync": "sync", "fifo": "queue"}
    wish = f"{value.name}_{suffixes.get(op, f'x{folding.input_lanes}_to_x{folding.output_lanes}')}"
    result = Value(names.values.fresh(wish), value.type, value.origin)
    nodes.append(Node(names.nodes.fresh(wish), op, [value], [result], {"folding": folding}))
    return result


class _Fresh:
    """Names for what is inserted."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = Names([n.name for n in graph.nodes])
        self.values = Names([v.name for v in graph.values()])


def _size_queues(graph: Graph, device: Device) -> Run:
    """Queue depths (and line buffer rows) with which the slowest core never waits.

    First the depths that the average rates ask for (where streams meet, with as deep queues there as it takes); where
    bursts make those cost interval, full-rate depths; then those of a run in which queues have all the room they want,
    with line buffers a stride longer each time.
    """
    ideal = max(hardware(n.op).cycles(n, n.attributes["folding"]) for n in graph.nodes)
    timings = {n: hardware(n.op).timing(n, n.attributes["folding"]) for n in graph.nodes}
    average: dict[Node, list[int]] = {}
    full: dict[Node, list[int]] = {}
    for node, timing in timings.items():
        counts = [len(p.produces[o]) for o in range(len(node.outputs)) for p in timing.processes if o in p.produces]
        if node.op == "frame_sync":
            average[node] = full[node] = [2]
            continue
        average[node] = [
            max(2, -(-(latency + 1) * n // ideal) + 1) for latency, n in zip(timing.latency, counts, strict=True)
        ]
        full[node] = [latency + 2 for latency in timing.latency]
    joins = [node for node in graph.nodes if len(node.inputs) > 1]
    if joins:
        # Where streams part and meet again, a queue on the shorter way, behind the fork or before the meeting, holds
        # what is under way on the longer one: more than any rate tells.
        producers = graph.producers()
        meeting = {producers[v] for node in joins for v in node.inputs if v in producers}
        _set_depths(graph, average)
        deep = [n for n in graph.nodes if n.op == "fork" or (n in meeting and n.op != "frame_sync")]
        run = _with_measured(graph, device, deep, ideal, full)
        if run is not None:
            return run
    else:
        for depths in (average, full):
            _set_depths(graph, depths)
            run = evaluate(graph, FRAMES)
            if run.initiation_interval <= ideal:
                return run
    # Windows are made as fast as there is room for them: what waits should wait before they are made, which takes less.
    _set_depths(graph, full)
    others = [node for node in graph.nodes if node.op != "frame_sync"]
    deep = [node for node in others if node.op != "sliding_window"]
    for _ in range(4):
        run = _with_measured(graph, device, deep, ideal, full)
        if run is not None:
            return run
        if deep is others:
            for node in graph.nodes:
                if node.op == "sliding_window":
                    node.attributes["rows"] = line_buffer_rows(node) + node.attributes["geometry"].strides[0]
        deep = others
    _measure(graph, device, others, ideal)
    _queues_in_block_ram(graph, device, full)
    return evaluate(graph, FRAMES)


def _with_measured(
    graph: Graph, device: Device, nodes: Sequence[Node], pace: int, own: Mapping[Node, Sequence[int]]
) -> Run | None:
    """The run with the queues of ``nodes`` as :func:`_measure` sizes them; None if it does not keep pace."""
    if _measure(graph, device, nodes, pace) > pace:
        return None
    run = evaluate(graph, FRAMES)
    if run.initiation_interval > pace:
        return None  # the backlogs were still growing
    _queues_in_block_ram(graph, device, own)
    return run if all(node.op != "fifo" for node in graph.nodes) else evaluate(graph, FRAMES)


def _measure(graph: Graph, device: Device, nodes: Sequence[Node], pace: int) -> int:
    """Give the queues of ``nodes`` the depths that they need if the sources keep ``pace`` (cycles a frame) and these
    queues have all the room they want; the interval there is then."""
    for node in nodes:
        node.attributes["depths"] = [_UNBOUNDED] * len(node.outputs)
        if node.op == "fork":
            node.attributes["styles"] = ("block",) * len(node.outputs)  # with any other, beats come earlier
    network, frames = Network(graph, 2 * MOST_FRAMES, pace), PACED_FRAMES
    run = network.run(frames)
    # As many frames as are under way at once, unless it cannot keep pace anyway.
    while run.initiation_interval <= pace and run.latency > (frames - 2) * pace and frames < MOST_FRAMES:
        frames *= 2
        run = network.run(frames)
    least = network.least_depths()
    for node in nodes:
        depths = [max(2, least[value]) for value in node.outputs]
        node.attributes["depths"] = depths
        if node.op == "fork":
            width = node.attributes["folding"].output_lanes * node.inputs[0].typed.element.bits
            node.attributes["styles"] = tuple(costs.cheapest_style(device.family, width, depth) for depth in depths)
    return run.initiation_interval


def _queues_in_block_ram(graph: Graph, device: Device, own: Mapping[Node, Sequence[int]]) -> None:
    """A queue in block RAM behind each core (but a fork, which has such queues itself) whose queue is too large for
    look-up tables; the core keeps one of the depth that it would have by itself."""
    names = _Fresh(graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes.append(node)
        if node.op == "fork":
            continue
        lanes, depths = node.attributes["folding"].output_lanes, node.attributes["depths"]
        for index, value in enumerate(node.outputs):
            style = costs.cheapest_style(device.family, lanes * value.typed.element.bits, depths[index])
            for reader, place in consumers[value] if style == "block" else ():
                reader.inputs[place] = _insert(graph, value, "fifo", Folding(lanes, lanes), names, nodes)
                nodes[-1].attributes["depths"] = [depths[index]]
                depths[index] = own[node][index]
    graph.nodes = nodes


def _settled(graph: Graph, run: Run) -> Run:
    """More frames, if it takes them, until the interval between frames no longer changes: while queues fill it may."""
    frames = len(run.last_output)
    while frames < MOST_FRAMES and len({b - a for a, b in pairwise(run.last_output[-4:])}) > 1:
        frames *= 2
        run = evaluate(graph, frames)
    return run


def _set_depths(graph: Graph, depths: dict[Node, list[int]]) -> None:
    for node in graph.nodes:
        node.attributes["depths"] = list(depths[node])
