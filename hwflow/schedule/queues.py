"""Depths and storage of the queues between cores: as few bits as keep the pace of the slowest core.

The measure is the bits of all queues, depth times lanes times bits an element; that storage comes in steps (a block
RAM, 16 rows of look-up tables) does not count, nor does latency. The depths found are a minimum in this sense: no queue
can lose an entry, whatever the others that are no deeper do, without loss of interval. Among such minima the order of
shrinking chooses: first the queues of which an entry that waits a cycle longer costs most, that is those through which
most bits a frame go, so that beats wait where they are few or narrow (before windows are made of them, say). What a
line buffer could do without once the queues are settled is taken from it last.

Depths are judged by :class:`hwflow.schedule.throughput.steady.Steady`, exactly as long as it can tell within its
patience; what it cannot tell counts as loss of interval. Where a frame has more than :data:`MOST_BEATS` beats, queues
are as deep as an even schedule (:mod:`hwflow.schedule.throughput.even`) wants them: proved to keep the interval, but
not the least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from hwflow.cores import costs
from hwflow.cores.operator import Device, Folding
from hwflow.cores.registry import hardware
from hwflow.cores.windows.sliding_window import has_line_buffer, least_rows, line_buffer_rows, row_bits
from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Graph, Node, Value
from hwflow.schedule.converters import Fresh, insert
from hwflow.schedule.throughput.evaluate import Run, evaluate
from hwflow.schedule.throughput.even import SYNC_DEPTH, EvenSchedule
from hwflow.schedule.throughput.events import Channel
from hwflow.schedule.throughput.steady import Bases, Steady

FRAMES = 6  # enough for the slowest core to set the pace
MOST_FRAMES = 96  # looked at where it takes longer
_PART = 6  # of the depths in question: tried is above all but one of them, for what fails takes many times longer
MOST_BEATS = 1 << 22  # of a frame in all streams: looking for the least depths takes up to 400 bytes for each


@dataclass(frozen=True)
class _Before:
    """Of queues: the depth that was found, and the greatest one that is known to be too small."""

    depths: Mapping[Value, int]
    too_small: Mapping[Value, int]


def size_queues(graph: Graph, device: Device, roomy: Callable[[Graph], None] = lambda graph: None) -> Run:
    """Set queue depths (``depths``), storage (``styles`` of forks, nodes ``fifo`` in block RAM) and line buffer rows
    (``rows``) so that the slowest core never waits; what the design does with them from its first frame on.

    ``roomy`` is called when all but depths is set, though rows may still become fewer, and nodes more."""
    period = slowest(graph)
    if streamed_beats(graph) > MOST_BEATS:
        run = _size_evenly(graph, device, period, roomy)
        if run is not None:
            return run
    steady = _roomy(graph, period)
    roomy(graph)
    _shrink_all(steady)
    found = {channel.value: depth for channel, depth in steady.depths.items()}
    moved = _into_block_ram(graph, device, found)
    if moved:
        before = _carried_over(steady, moved)
        rest = {value: depth for value, depth in found.items() if value not in moved}
        steady = _with_depths(graph, period, steady.release(), rest)
        _shrink_all(steady, before)
    _shrink_rows(graph, steady)
    _set_depths(graph, {channel.value: depth for channel, depth in steady.depths.items()})
    events, cycles = steady.events, steady.cycles()
    steady.release()
    return evaluate(graph, FRAMES, events, cycles)


def slowest(graph: Graph) -> int:
    """Cycles a frame of the slowest core: the interval that queues must not add to."""
    return max(hardware(n.op).cycles(n, n.attributes["folding"]) for n in graph.nodes)


def streamed_beats(graph: Graph) -> int:
    """Of a frame, in all streams, if no beat has surplus lanes."""
    return sum(
        prod(value.typed.shape) // node.attributes["folding"].output_lanes
        for node in graph.nodes for value in node.outputs
    )


def queue_width(channel: Channel) -> int:
    """Bits of an entry."""
    return int(channel.node.attributes["folding"].output_lanes * channel.value.typed.element.bits)


def _roomy(graph: Graph, period: int) -> Steady:
    """A schedule with queues as deep as they like, and line buffers as long as that takes; rearrangers' buffers are for
    this period."""
    _set_interval(graph, period)
    windows = [node for node in graph.nodes if has_line_buffer(node)]
    for node in windows:
        node.attributes["rows"] = line_buffer_rows(node)
    while True:
        steady = Steady(graph, period)
        good = steady.settle()
        short = [n for n in windows if n.attributes["rows"] < 2 * n.attributes["geometry"].height]
        if good or not short:
            _hold(graph, good, period)
            return steady
        for node in short:
            node.attributes["rows"] += node.attributes["geometry"].strides[0]


def _set_interval(graph: Graph, period: int) -> None:
    for node in graph.nodes:
        if node.op == "rearrange":
            node.attributes["interval"] = period


def _size_evenly(graph: Graph, device: Device, period: int, roomy: Callable[[Graph], None]) -> Run | None:
    """What :func:`size_queues` does, by an even schedule; None if there is none."""
    _set_interval(graph, period)
    even = EvenSchedule(graph, period)
    windows = [node for node in graph.nodes if has_line_buffer(node)]
    if not (all(_give_rows(node, even) for node in windows) and even.settle()):
        for node in windows:
            node.attributes.pop("rows", None)
        return None
    roomy(graph)
    depths = even.depths()
    if _into_block_ram(graph, device, depths):
        even = EvenSchedule(graph, period)
        _hold(graph, even.settle(), period)
        depths = even.depths()
    _set_depths(graph, depths)
    return even.run()


def _give_rows(node: Node, even: EvenSchedule) -> bool:
    """Give a line buffer the fewest rows that an even schedule can do with; whether there are any."""
    for rows in range(least_rows(node), 2 * node.attributes["geometry"].height + 1):
        node.attributes["rows"] = rows
        if even.allows(node):
            return True
    return False


def _with_depths(graph: Graph, period: int, like: Bases, depths: Mapping[Value, int]) -> Steady:
    """A schedule of the graph with some nodes more than one with cycles ``like`` these, with these queues so deep, or
    as deep as they like where the period could then not be kept."""
    steady = Steady(graph, period, like)
    if steady.settle({c: depths[c.value] for c in steady.events.channels if c.value in depths}):
        return steady
    steady.release()
    steady = Steady(graph, period)
    _hold(graph, steady.settle(), period)
    for channel in steady.events.channels:
        if channel.value in depths:
            steady.shrink(channel, depths[channel.value])
    return steady


def _hold(graph: Graph, good: bool, period: int) -> None:
    if not good:
        raise InternalError(
            Finding(
                "interval-kept",
                f"cores {', '.join(repr(node.name) for node in graph.nodes)}",
                f"must make a frame every {period} cycles with queues of any depth, not fewer",
                "report this model as a defect of hwflow",
            )
        )


def _shrink_all(steady: Steady, before: _Before | None = None) -> None:
    """Give every queue the least depth that the others allow, one after the other. ``before``: what was found in the
    graph as it was."""
    before = before or _Before({}, {})
    for channel in steady.events.channels:
        if channel.node.op == "frame_sync":
            steady.shrink(channel, SYNC_DEPTH)
    rest = [channel for channel in steady.events.channels if channel.node.op != "frame_sync"]
    for channel in sorted(rest, key=lambda c: -queue_width(c) * c.beats):
        near = before.depths.get(channel.value)
        low = max(steady.least(channel), before.too_small.get(channel.value, 0) + 1)
        shrink_queue(steady, channel, low, near)


def shrink_queue(steady: Steady, channel: Channel, low: int, near: int | None) -> None:
    """Give a queue the least depth, ``low`` at the least, that the others allow. It is looked for in growing strides
    from ``near`` on, then by parts; without, at ``low`` first, then from the greatest down."""
    if steady.depths.get(channel) == low:
        return
    high = steady.backlog(channel)
    if near is None and low < high:
        if steady.shrink(channel, low):
            high = low
        else:
            low = steady.too_small + 1
    tried = max(low, min(near or high, high) - 1)
    stride, hit, missed = 1, False, False
    while low < high:
        if steady.shrink(channel, tried):
            high, hit, following = steady.backlog(channel), True, tried - stride
        else:
            low, missed, following = steady.too_small + 1, True, tried + stride
        stride, part = 2 * stride, high - -(-(high - low) // _PART)
        tried = part if hit and missed else max(following, low) if hit else min(following, high - 1)
    if steady.depths.get(channel) != high:
        steady.shrink(channel, high)


def _shrink_rows(graph: Graph, steady: Steady) -> None:
    """Take from line buffers the rows that nothing needs, beginning with the widest rows."""
    windows = [node for node in graph.nodes if has_line_buffer(node)]
    for node in sorted(windows, key=row_bits, reverse=True):
        while line_buffer_rows(node) > least_rows(node):
            node.attributes["rows"] -= 1
            if not steady.refit(node):
                node.attributes["rows"] += 1
                break


def _into_block_ram(graph: Graph, device: Device, depths: Mapping[Value, int]) -> dict[Value, Value]:
    """Move queues that are too large for look-up tables to block RAM: those of a fork by their style, others to a node
    of their own behind the core. The values whose queues moved, with those whose queues they are now."""
    names = Fresh(graph)
    consumers = graph.consumers()
    nodes: list[Node] = []
    moved: dict[Value, Value] = {}
    for node in graph.nodes:
        nodes.append(node)
        lanes = node.attributes["folding"].output_lanes
        styles = [
            costs.cheapest_style(device.family, lanes * value.typed.element.bits, depths[value])
            for value in node.outputs
        ]
        deep = [value for value, style in zip(node.outputs, styles, strict=True) if style == "block"]
        if node.op == "fork":
            node.attributes["styles"] = tuple(styles)
            moved.update((value, value) for value in deep)
            continue
        for value in deep:
            for reader, place in consumers[value]:
                moved[value] = reader.inputs[place] = insert(graph, value, "fifo", Folding(lanes, lanes), names, nodes)
    graph.nodes = nodes
    return moved


def _carried_over(steady: Steady, moved: Mapping[Value, Value]) -> _Before:
    """What was found, for the graph with some queues moved: the depths are near what they were, and what is too small
    stays so unless the circuit that says so led through one of these queues."""
    depths = {moved.get(channel.value, channel.value): depth for channel, depth in steady.depths.items()}
    too_small = {
        channel.value: depth
        for channel, (depth, circuit) in steady.refused.items()
        if moved.keys().isdisjoint((channel.value, *(other.value for other in circuit)))
    }
    return _Before(depths, too_small)


def _set_depths(graph: Graph, depths: Mapping[Value, int]) -> None:
    for node in graph.nodes:
        node.attributes["depths"] = [depths[value] for value in node.outputs]
