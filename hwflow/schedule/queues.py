"""Depths and storage of the queues between cores: as few bits as keep the pace of the slowest core.

The measure is the bits of all queues, depth times lanes times bits an element; that storage comes in steps (a block
RAM, 16 rows of look-up tables) does not count, nor does latency. The depths found are a minimum in this sense: no queue
can lose an entry, whatever the others that are no deeper do, without loss of interval. Among such minima the order of
shrinking chooses: first the queues of which an entry that waits a cycle longer costs most, that is those through which
most bits a frame go, so that beats wait where they are few or narrow (before windows are made of them, say). What a
line buffer could do without once the queues are settled is taken from it last.

Depths are judged by :class:`hwflow.schedule.steady.Steady`, exactly as long as it can tell within its patience; what it
cannot tell counts as loss of interval.
"""

from __future__ import annotations

from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Graph, Node, Value
from hwflow.ops import costs
from hwflow.ops.operator import Device, Folding
from hwflow.ops.registry import hardware
from hwflow.ops.sliding_window import least_rows, line_buffer_rows, row_bits
from hwflow.schedule.evaluate import Run, evaluate
from hwflow.schedule.events import Channel
from hwflow.schedule.plumbing import Fresh, insert
from hwflow.schedule.steady import Steady

FRAMES = 6  # enough for the slowest core to set the pace
MOST_FRAMES = 96  # looked at where it takes longer
_SYNC_DEPTH = 2  # of a frame synchroniser, which has no choice


def size_queues(graph: Graph, device: Device) -> Run:
    """Set queue depths (``depths``), storage (``styles`` of forks, nodes ``fifo`` in block RAM) and line buffer rows
    (``rows``) so that the slowest core never waits; what the design does with them from its first frame on."""
    period = slowest(graph)
    steady = _roomy(graph, period)
    _shrink_all(steady)
    known = {channel.value: depth for channel, depth in steady.depths.items()}
    changed = _into_block_ram(graph, device, known)
    if changed:
        steady = Steady(graph, period)
        _hold(steady, steady.settle(), period)
        for channel in steady.events.channels:
            if channel.value in known and channel.value not in changed:
                steady.shrink(channel, known[channel.value])  # no loss where it fails: it is as deep as it likes
        _shrink_all(steady)
    _shrink_rows(graph, steady)
    _set_depths(graph, steady)
    return evaluate(graph, FRAMES)


def slowest(graph: Graph) -> int:
    """Cycles a frame of the slowest core: the interval that queues must not add to."""
    return max(hardware(n.op).cycles(n, n.attributes["folding"]) for n in graph.nodes)


def queue_width(channel: Channel) -> int:
    """Bits of an entry."""
    return int(channel.node.attributes["folding"].output_lanes * channel.value.typed.element.bits)


def _roomy(graph: Graph, period: int) -> Steady:
    """A schedule with queues as deep as they like, and line buffers as long as that takes."""
    windows = [node for node in graph.nodes if node.op == "sliding_window"]
    for node in windows:
        node.attributes["rows"] = line_buffer_rows(node)
    while True:
        steady = Steady(graph, period)
        good = steady.settle()
        short = [n for n in windows if n.attributes["rows"] < 2 * n.attributes["geometry"].height]
        if good or not short:
            _hold(steady, good, period)
            return steady
        for node in short:
            node.attributes["rows"] += node.attributes["geometry"].strides[0]


def _hold(steady: Steady, good: bool, period: int) -> None:
    if not good:
        raise InternalError(
            Finding(
                "interval-kept",
                f"cores {', '.join(dict.fromkeys(repr(t.owner) for t in steady.events.tracks if t.owner))}",
                f"must make a frame every {period} cycles with queues of any depth, not fewer",
                "report this model as a defect of hwflow",
            )
        )


def _shrink_all(steady: Steady) -> None:
    for channel in sorted(steady.events.channels, key=lambda c: c.node.op != "frame_sync"):
        if channel.node.op == "frame_sync":
            steady.shrink(channel, _SYNC_DEPTH)
    rest = [channel for channel in steady.events.channels if channel.node.op != "frame_sync"]
    for channel in sorted(rest, key=lambda c: -queue_width(c) * c.beats):
        shrink_queue(steady, channel)


def shrink_queue(steady: Steady, channel: Channel) -> None:
    """Give a queue the least depth that the others allow."""
    low, high = 1, steady.backlog(channel)
    while low < high:  # what its two cores ask for by themselves: more often than not that is all
        middle = (low + high) // 2
        if steady.shrink(channel, middle, alone=True):
            high = middle
        else:
            low = middle + 1
    high, tried = steady.backlog(channel), low
    while low < high:
        if steady.shrink(channel, tried):
            high = tried
        else:
            low = tried + 1
        tried = (low + high) // 2
    if steady.depths.get(channel) != high:
        steady.shrink(channel, high)


def _shrink_rows(graph: Graph, steady: Steady) -> None:
    """Take from line buffers the rows that nothing needs, beginning with the widest rows."""
    windows = [node for node in graph.nodes if node.op == "sliding_window"]
    for node in sorted(windows, key=row_bits, reverse=True):
        while line_buffer_rows(node) > least_rows(node):
            node.attributes["rows"] -= 1
            if not steady.refit(node):
                node.attributes["rows"] += 1
                break


def _into_block_ram(graph: Graph, device: Device, depths: dict[Value, int]) -> set[Value]:
    """Move queues that are too large for look-up tables to block RAM: those of a fork by their style, others to a node
    of their own behind the core. The values whose queues have changed by that."""
    names = Fresh(graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    changed: set[Value] = set()
    for node in graph.nodes:
        nodes.append(node)
        lanes = node.attributes["folding"].output_lanes
        styles = [
            costs.cheapest_style(device.family, lanes * value.typed.element.bits, depths[value])
            for value in node.outputs
        ]
        deep = [value for value, style in zip(node.outputs, styles, strict=True) if style == "block"]
        changed.update(deep)
        if node.op == "fork":
            node.attributes["styles"] = tuple(styles)
            continue
        for value in deep:
            for reader, place in consumers[value]:
                reader.inputs[place] = insert(graph, value, "fifo", Folding(lanes, lanes), names, nodes)
    graph.nodes = nodes
    return changed


def _set_depths(graph: Graph, steady: Steady) -> None:
    for node in graph.nodes:
        node.attributes["depths"] = [0] * len(node.outputs)
    for channel, depth in steady.depths.items():
        channel.node.attributes["depths"][channel.index] = depth
