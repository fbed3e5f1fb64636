"""Depths and storage of the queues between cores: as little storage as keeps the pace of the slowest core.

Storage comes in steps: an entry of registers, a row of 16 entries of look-up tables, a block RAM. Queues are given
whole steps (:mod:`hwflow.cores.costs.storage_steps`). The depths found are a minimum in this sense: no queue can do
with a step less, whatever the others that are no deeper do, without loss of interval, as far as
:class:`hwflow.schedule.throughput.periodic.PeriodicSchedule` can tell within its patience. Latency does not count.
Among such minima the order of shrinking chooses: first the queues of which an entry that waits a cycle longer costs
most, that is those through which most bits a frame go, so that beats wait where they are few or narrow (before windows
are made of them, say).

Line buffers have the fewest rows with which the core can keep an even pace. Where a frame has more than
:data:`MOST_BEATS` beats, queues are as deep as an even schedule (:mod:`hwflow.schedule.throughput.even`) of all cores
wants them: proved to keep the interval, but not the least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from hwflow.cores import costs
from hwflow.cores.costs.storage_steps import storage_steps
from hwflow.cores.operator import Device, Folding
from hwflow.cores.windows.sliding_window import has_line_buffer, least_rows
from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Node, Value
from hwflow.schedule.converters import Fresh, insert
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.evaluate import Run, evaluate
from hwflow.schedule.throughput.even import SYNC_DEPTH, EvenSchedule
from hwflow.schedule.throughput.events import Channel, EventGraph, event_graph
from hwflow.schedule.throughput.periodic import PeriodicSchedule

FRAMES = 6  # enough for the slowest core to set the pace
MOST_FRAMES = 96  # looked at where it takes longer
MOST_BEATS = 1 << 22  # of a frame in all streams: looking for the least depths takes some hundred bytes for each
_LATER = 2  # cycles by which a beat comes later from block RAM


def make_room(plan: Plan) -> PeriodicSchedule | EvenSchedule:
    """Decide the rows of line buffers and the intervals of rearrangers so that the slowest core never waits if queues
    are as deep as they like; return the schedule that shows it. :func:`size_queues` comes next: there may be more nodes
    then."""
    period = slowest(plan)
    for node in plan.graph.nodes:
        if node.op == "rearrange":
            plan[node] = replace(plan[node], interval=period)
    even = EvenSchedule(plan, period)
    for node in plan.graph.nodes:
        if has_line_buffer(node):
            _give_rows(plan, node, even)
    if streamed_beats(plan) > MOST_BEATS and even.settle():
        return even
    even.release()
    schedule = PeriodicSchedule(event_graph(plan), period)
    _hold(plan, schedule.settle(_fixed_depths(schedule.graph)), period)
    return schedule


def size_queues(plan: Plan, device: Device, room: PeriodicSchedule | EvenSchedule) -> Run:
    """Decide depths of queues and their storage (``styles`` of forks, nodes ``fifo`` in block RAM) so that the slowest
    core never waits; return what the design does with them from its first frame on. ``room``: of :func:`make_room`."""
    if isinstance(room, EvenSchedule):
        return _size_evenly(plan, device, room)
    schedule = room
    _shrink_all(plan, device, schedule)
    found = {channel.value: depth for channel, depth in schedule.depths.items()}
    moved = _into_block_ram(plan, device, found)
    if moved:
        schedule.release()
        schedule = _shrunk_again(plan, device, found, moved)
    schedule.release()
    _decide_depths(plan, {channel.value: depth for channel, depth in schedule.depths.items()})
    return evaluate(plan, FRAMES, schedule.graph)


def slowest(plan: Plan) -> int:
    """Cycles a frame of the slowest core: the interval that queues must not add to."""
    return max(plan.cycles(node) for node in plan.graph.nodes)


def streamed_beats(plan: Plan) -> int:
    """Of a frame, in all streams, if no beat has surplus lanes."""
    return sum(
        prod(value.typed.shape) // plan.folding(node).output_lanes
        for node in plan.graph.nodes for value in node.outputs
    )


def queue_width(plan: Plan, channel: Channel) -> int:
    """Bits of an entry."""
    return plan.folding(channel.node).output_lanes * channel.value.typed.element.bits


def _give_rows(plan: Plan, node: Node, even: EvenSchedule) -> None:
    """Give a line buffer the fewest rows that an even schedule can do with."""
    for rows in range(least_rows(node), 2 * node.attributes.geometry.height + 1):
        plan[node] = replace(plan[node], rows=rows)
        if even.allows(node):
            return


def _size_evenly(plan: Plan, device: Device, even: EvenSchedule) -> Run:
    """What :func:`size_queues` does, by an even schedule."""
    depths = even.depths()
    if _into_block_ram(plan, device, depths):
        even.release()
        even = EvenSchedule(plan, even.period)
        _hold(plan, even.settle(), even.period)
        depths = even.depths()
    _decide_depths(plan, depths)
    return even.run()


def _hold(plan: Plan, good: bool, period: int) -> None:
    if not good:
        raise InternalError(
            Finding(
                "interval-kept",
                f"cores {', '.join(repr(node.name) for node in plan.graph.nodes)}",
                f"must make a frame every {period} cycles with queues of any depth, not fewer",
                "report this model as a defect of hwflow",
            )
        )


def _fixed_depths(graph: EventGraph) -> dict[Channel, int]:
    return {channel: SYNC_DEPTH for channel in graph.channels if channel.node.op == "frame_sync"}


def _shrink_all(
    plan: Plan, device: Device, schedule: PeriodicSchedule, near: Mapping[Value, int] | None = None
) -> None:
    """Give every queue without a depth the least one that the others allow, one after the other. ``near``: depths that
    are likely, and no more steps than needed."""
    near = near or {}
    rest = [channel for channel in schedule.graph.channels if channel not in schedule.depths]
    for channel in sorted(rest, key=lambda c: -queue_width(plan, c) * c.beats):
        steps = storage_steps(
            device.family, channel.node.op, queue_width(plan, channel), schedule.least(channel),
            schedule.backlog(channel),
        )
        likely = next((step for step in steps if step >= near.get(channel.value, steps[-1])), steps[-1])
        if likely < steps[-1] and schedule.shrink(channel, likely):
            continue
        shrink_queue(schedule, channel, steps)


def shrink_queue(schedule: PeriodicSchedule, channel: Channel, steps: Sequence[int]) -> None:
    """Give a queue the least of ``steps`` that the others allow; they ascend, and the last one is enough. They are
    tried from there down: a trial that fails takes many times longer than one that does not."""
    for step in reversed(steps):
        if not schedule.shrink(channel, step):
            return


def _shrunk_again(
    plan: Plan, device: Device, found: Mapping[Value, int], moved: Mapping[Value, Value]
) -> PeriodicSchedule:
    """Return a schedule of the plan with some queues in block RAM (``moved``): with depths as ``found``, but for those
    queues, or if that costs interval, with all of them looked for again."""
    period = slowest(plan)
    schedule = PeriodicSchedule(event_graph(plan), period)
    depths = _fixed_depths(schedule.graph)
    kept = {c: found[c.value] for c in schedule.graph.channels if c.value in found and c.value not in moved}
    near = {moved[value]: found[value] + _LATER for value in moved}
    if not schedule.settle(depths | kept):
        schedule = PeriodicSchedule(event_graph(plan), period)
        _hold(plan, schedule.settle(depths), period)
    _shrink_all(plan, device, schedule, near)
    return schedule


def _into_block_ram(plan: Plan, device: Device, depths: Mapping[Value, int]) -> dict[Value, Value]:
    """Move queues that are too large for look-up tables to block RAM: those of a fork by their style, others to a node
    of their own behind the core. The values whose queues moved, with those whose queues they are now."""
    names = Fresh(plan.graph)
    consumers = plan.graph.consumers()
    nodes: list[Node] = []
    moved: dict[Value, Value] = {}
    for node in plan.graph.nodes:
        nodes.append(node)
        lanes = plan.folding(node).output_lanes
        styles = [
            costs.cheapest_style(device.family, lanes * value.typed.element.bits, depths[value])
            for value in node.outputs
        ]
        deep = [value for value, style in zip(node.outputs, styles, strict=True) if style == "block"]
        if node.op == "fork":
            plan[node] = replace(plan[node], styles=tuple(styles))
            moved.update((value, value) for value in deep)
            continue
        for value in deep:
            for reader, place in consumers[value]:
                moved[value] = reader.inputs[place] = insert(plan, value, "fifo", Folding(lanes, lanes), names, nodes)
    plan.graph.nodes = nodes
    return moved


def _decide_depths(plan: Plan, depths: Mapping[Value, int]) -> None:
    for node in plan.graph.nodes:
        plan[node] = replace(plan[node], depths=tuple(depths[value] for value in node.outputs))
