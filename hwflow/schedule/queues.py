"""Depths and storage of the queues between cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwflow.ir.graph import Graph, Node
from hwflow.ops import costs
from hwflow.ops.operator import Device, Folding
from hwflow.ops.registry import hardware
from hwflow.ops.sliding_window import line_buffer_rows
from hwflow.schedule.evaluate import Network, Run, evaluate
from hwflow.schedule.plumbing import Fresh, insert

FRAMES = 6  # enough for the slowest core to set the pace
MOST_FRAMES = 96  # looked at where it takes longer
PACED_FRAMES = 4  # to measure how full queues get
_UNBOUNDED = 1 << 40


def size_queues(graph: Graph, device: Device) -> Run:
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
    names = Fresh(graph)
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
                reader.inputs[place] = insert(graph, value, "fifo", Folding(lanes, lanes), names, nodes)
                nodes[-1].attributes["depths"] = [depths[index]]
                depths[index] = own[node][index]
    graph.nodes = nodes


def _set_depths(graph: Graph, depths: dict[Node, list[int]]) -> None:
    for node in graph.nodes:
        node.attributes["depths"] = list(depths[node])
