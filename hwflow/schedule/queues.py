"""Size FIFOs: choose the depth and storage of the queues between cores that sustain the interval of the slowest core.

Storage comes in steps: an entry of registers, a row of 16 entries of look-up tables, a block RAM
(:mod:`hwflow.cores.costs.storage_steps`). The result is a local minimum: no queue can do with a step less while no
other is deeper, as far as :class:`hwflow.schedule.throughput.periodic.PeriodicSchedule` can tell within its patience.
Latency is not optimized. Queues are shrunk in the order of their bits per frame, most first, so that beats wait where
they are few or narrow, before windows are formed, for example.

Line buffers get the fewest rows, or pixels, with which their core sustains an even schedule. Frames of more than
:data:`MOST_BEATS` beats get the depths of an even schedule of all cores (:mod:`hwflow.schedule.throughput.even`), which
are proved to sustain the interval but are not minimal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from math import ceil, prod
from typing import NoReturn

from hwflow.cores import costs
from hwflow.cores.beat_movers import FifoAttributes, ForkAttributes, queue_styles
from hwflow.cores.costs import StorageStyle
from hwflow.cores.costs.storage_steps import storage_steps
from hwflow.cores.matrix.depthwise import DepthwiseAttributes, least_pixels, released_by_pixel
from hwflow.cores.operator import Device, Folding
from hwflow.cores.streams.rearrange import RearrangeAttributes
from hwflow.cores.windows.sliding_window import has_line_buffer, least_rows
from hwflow.display import show
from hwflow.errors import InternalError, ModelRefused
from hwflow.ir.graph import Node, Value
from hwflow.schedule.converters import FreshNames, insert
from hwflow.schedule.fixed_depths import fixed_depths, has_sources
from hwflow.schedule.plan import Plan
from hwflow.schedule.shares import shares
from hwflow.schedule.throughput.circuits import circuit_interval, has_delays, held_frames
from hwflow.schedule.throughput.evaluate import Run, evaluate
from hwflow.schedule.throughput.even import EvenSchedule
from hwflow.schedule.throughput.events import Channel, EventGraph, event_graph
from hwflow.schedule.throughput.periodic import PeriodicSchedule

FRAMES = 6  # usually enough to reach the steady state
MOST_FRAMES = 96  # simulated if it takes longer
MOST_BEATS = 1 << 22  # beats per frame of all streams: minimizing depths takes some hundred bytes each
_MOST_BESIDE_MEMORY = 1 << 18  # the same where weights are fetched: runs are bounds anyway
_MOST_EVENTS = 1 << 24  # beats per frame from which on there is no schedule but an even one: 250 bytes each
_MOST_LONGER = 2  # periods than a bound that is not proved
_PIXEL_STEPS = 16  # parts of the least to which the pixels beyond it are searched
_BLOCK_RAM_LATENCY = 2  # additional cycles of a beat through block RAM


def make_room(plan: Plan) -> PeriodicSchedule | EvenSchedule:
    """Decide the rows of line buffers and the intervals of rearrangers so that with unbounded queues nothing waits for
    longer than the slowest core takes, or the slowest circuit through delays; return the schedule that proves it. Call
    :func:`size_queues` next: it may insert nodes."""
    period = slowest(plan)
    even = _give_buffers(plan, period)
    if not has_delays(plan.graph) and not has_sources(plan.graph):
        return _room(plan, even) or _without_room(plan, period)
    while has_delays(plan.graph) and (bound := circuit_interval(plan)) > period:  # in which buffers may be smaller
        period = bound
        even = _give_buffers(plan, period)
    if room := _room(plan, even):
        return room
    longer = _longer(period)
    if _room(plan, _give_buffers(plan, longer[-1])) is None:  # what the longest is too short for, all are
        _without_room(plan, longer[-1])
    rooms = (_room(plan, _give_buffers(plan, each)) for each in longer)
    return next(room for room in rooms if room is not None)


def _longer(period: int) -> list[int]:
    """Return the periods to try after one that is too short, at growing distances: bounds of it are of so many frames,
    and know nothing of fixed depths."""
    most, longer, step = _MOST_LONGER * period, [period + 1], 2
    while longer[-1] < most:
        longer.append(longer[-1] + step)
        step *= 2
    return longer


def _give_buffers(plan: Plan, period: int) -> EvenSchedule:
    """Decide the buffers for a period."""
    for node in plan.graph.nodes:
        if isinstance(node.attributes, RearrangeAttributes):
            plan[node] = replace(plan[node], interval=period)
    even = EvenSchedule(plan, period)
    for node in plan.graph.nodes:
        if isinstance(node.attributes, DepthwiseAttributes) and released_by_pixel(node):
            _give_pixels(plan, node, even)
        elif has_line_buffer(node):
            _give_rows(plan, node, even)
    return even


def _room(plan: Plan, even: EvenSchedule) -> PeriodicSchedule | EvenSchedule | None:
    """Return a schedule with unbounded queues."""
    streamed = streamed_beats(plan)
    most = min(MOST_BEATS, _MOST_BESIDE_MEMORY) if has_sources(plan.graph) else MOST_BEATS
    if streamed > most:
        _give_pace(plan, even)
        if even.settle():
            return even
    even.release()
    if streamed > _MOST_EVENTS:
        return None
    schedule = PeriodicSchedule(event_graph(plan), even.period)
    return schedule if schedule.settle(_fixed_depths(plan, schedule.graph)) else None


def _give_pace(plan: Plan, even: EvenSchedule) -> None:
    """Let buffers whose frames come and go in a part of the period, one after the other, have room for frames that take
    all of it, where an even schedule wants that."""
    for node in plan.graph.nodes:
        if isinstance(node.attributes, RearrangeAttributes) and not even.allows(node):
            plan[node] = replace(plan[node], interval=None)


def _without_room(plan: Plan, period: int) -> NoReturn:
    if (beats := streamed_beats(plan)) > _MOST_EVENTS:
        raise ModelRefused.of(
            "even-schedule", f"model {show(plan.graph.name)}",
            f"frames of {beats:,} beats must have an even schedule, and none was found at {period:,} cycles per frame "
            f"(up to {_MOST_EVENTS:,} beats any schedule does)",
            "use smaller images or a smaller model, or a larger --budget",
        )
    raise InternalError.of(
        "interval-kept",
        f"cores {', '.join(repr(node.name) for node in plan.graph.nodes)}",
        f"must sustain an initiation interval of {period} cycles with unbounded FIFOs",
        "report this model as a defect of hwflow",
    )


def size_queues(
    plan: Plan, device: Device, room: PeriodicSchedule | EvenSchedule, scarce: bool = False, left: int = 0
) -> Run:
    """Decide the depths of queues and their storage (``styles`` of forks, ``fifo`` nodes in block RAM) so that the
    slowest core never waits; return the run of the design from its first frame on. ``room``: of :func:`make_room`;
    ``scarce``: block RAMs are (:func:`hwflow.cores.costs.cheapest_style`), but ``left`` of them, for the queues of
    which they replace most."""
    if isinstance(room, EvenSchedule):
        return _size_evenly(plan, device, room, scarce)
    schedule = room
    _shrink_all(plan, device, schedule, scarce)
    found = _found(schedule)
    chosen = _worth_most(plan, device, found, left)
    while moved := _into_block_ram(plan, device, found, scarce, chosen):
        # Where all are sized again, others become too large.
        schedule.release()
        schedule = _shrunk_again(plan, device, schedule.period, found, moved, scarce)
        found = _found(schedule)
    schedule.release()
    _decide_depths(plan, found)
    # Circuits delay what comes after the frames that their delays hold at first.
    cyclic = max(1, held_frames(plan.graph)) if schedule.period > slowest(plan) else 1
    return evaluate(plan, FRAMES + 2 * (cyclic - 1), schedule.graph, cyclic)


def _found(schedule: PeriodicSchedule) -> dict[Value, int]:
    return {channel.value: depth for channel, depth in schedule.depths.items()}


def slowest(plan: Plan) -> int:
    """Return the cycles per frame of the slowest core, which may have but a share of these: the interval that queues
    must sustain."""
    less = shares(plan.graph)
    return max(ceil(plan.cycles(node) / less.get(node, 1)) for node in plan.graph.nodes)


def streamed_beats(plan: Plan) -> int:
    """Return the beats per frame of all streams together, surplus lanes aside."""
    return sum(
        prod(value.typed.shape) // plan.folding(node).output_lanes
        for node in plan.graph.nodes for value in node.outputs
    )


def queue_width(plan: Plan, channel: Channel) -> int:
    """Return the bits of an entry."""
    return plan.folding(channel.node).output_lanes * channel.value.typed.element.bits


def _give_rows(plan: Plan, node: Node, even: EvenSchedule) -> None:
    """Give a line buffer the fewest rows with which its core sustains an even schedule."""
    for rows in range(least_rows(node), 2 * node.attributes.geometry.height + 1):
        plan[node] = replace(plan[node], rows=rows)
        if even.allows(node):
            return


def _give_pixels(plan: Plan, node: Node[DepthwiseAttributes], even: EvenSchedule) -> None:
    """Give a line buffer that is released pixel by pixel the fewest pixels with which its core sustains an even
    schedule: what is beyond the least is doubled, then halved again as far as possible."""

    def allowed(pixels: int) -> bool:
        plan[node] = replace(plan[node], pixels=pixels)
        return even.allows(node)

    least, geometry = least_pixels(node), node.attributes.geometry
    most = 2 * geometry.height * geometry.width
    low, high = -1, 0  # so many more than the least do not suffice
    while not allowed(least + high) and least + high < most:
        low, high = high, 2 * high + 1
    while high - low > 1 + high // _PIXEL_STEPS:
        middle = (low + high) // 2
        if allowed(least + middle):
            high = middle
        else:
            low = middle
    plan[node] = replace(plan[node], pixels=least + high)


def _size_evenly(plan: Plan, device: Device, even: EvenSchedule, scarce: bool) -> Run:
    """Do :func:`size_queues` by an even schedule."""
    depths = even.depths()
    if _into_block_ram(plan, device, depths, scarce):
        even.release()
        even = EvenSchedule(plan, even.period)
        if not even.settle():
            _without_room(plan, even.period)
        depths = even.depths()
    _decide_depths(plan, depths)
    return even.run()


def _fixed_depths(plan: Plan, graph: EventGraph) -> dict[Channel, int]:
    depths = fixed_depths(plan.graph)
    return {channel: depths[channel.value] for channel in graph.channels if channel.value in depths}


def _shrink_all(
    plan: Plan, device: Device, schedule: PeriodicSchedule, scarce: bool, near: Mapping[Value, int] | None = None
) -> None:
    """Give every queue without a depth the least one that the others allow, one after the other. ``near``: likely
    depths, tried first."""
    near = near or {}
    rest = [channel for channel in schedule.graph.channels if channel not in schedule.depths]
    moved = {node.inputs[0] for node in plan.graph.nodes if isinstance(node.attributes, FifoAttributes)}
    for channel in sorted(rest, key=lambda c: -queue_width(plan, c) * c.beats):
        steps = storage_steps(
            device.family, queue_width(plan, channel), schedule.least(channel), schedule.backlog(channel),
            in_block=isinstance(channel.node.attributes, FifoAttributes),
            scarce=scarce or channel.value in moved,  # a core's own queue is not in block RAM
        )
        likely = next((step for step in steps if step >= near.get(channel.value, steps[-1])), steps[-1])
        if likely < steps[-1] and schedule.shrink(channel, likely):
            continue
        shrink_queue(schedule, channel, steps)


def shrink_queue(schedule: PeriodicSchedule, channel: Channel, steps: Sequence[int]) -> None:
    """Give a queue the least of ``steps`` (ascending; the last one suffices) that the others allow. Steps are tried
    downwards, since a failing trial takes many times longer than a successful one."""
    for step in reversed(steps):
        if not schedule.shrink(channel, step):
            return


def _shrunk_again(
    plan: Plan, device: Device, period: int, found: Mapping[Value, int], moved: Mapping[Value, Value], scarce: bool
) -> PeriodicSchedule:
    """Return a schedule of the plan after some queues have ``moved`` to block RAM: depths stay as ``found`` except
    those of moved queues, or if that costs interval, all are sized again."""
    schedule = PeriodicSchedule(event_graph(plan), period)
    kept = {c: found[c.value] for c in schedule.graph.channels if c.value in found and c.value not in moved}
    near = {moved[value]: found[value] + _BLOCK_RAM_LATENCY for value in moved}
    most, step = _MOST_LONGER * period, 1
    settled = schedule.settle(_fixed_depths(plan, schedule.graph) | kept)
    while not settled:
        schedule = PeriodicSchedule(event_graph(plan), period)
        settled = schedule.settle(_fixed_depths(plan, schedule.graph))
        if not settled and (not (has_delays(plan.graph) or has_sources(plan.graph)) or period >= most):
            _without_room(plan, period)
        if not settled:  # in block RAM, queues of a circuit make it longer
            period, step = period + step, 2 * step
    _shrink_all(plan, device, schedule, scarce, near)
    return schedule


def _worth_most(plan: Plan, device: Device, depths: Mapping[Value, int], room: int) -> set[Value]:
    """Return the values whose queues ``room`` block RAMs hold, those first of which a block RAM replaces most look-up
    tables and flip-flops."""
    found: list[tuple[int, int, int, Value]] = []
    producers = plan.graph.producers() if room else {}
    for value, producer in producers.items():
        if isinstance(producer.attributes, FifoAttributes) or value not in depths:
            continue
        width, depth = plan.folding(producer).output_lanes * value.typed.element.bits, depths[value]
        if costs.cheapest_style(device.family, width, depth) == StorageStyle.BLOCK:
            flat, block = (way(device.family, width, depth) for way in (costs.queue, costs.block_queue))
            found.append((flat.lut + flat.ff - block.lut - block.ff, len(found), int(block.bram), value))
    chosen: set[Value] = set()
    for _, _, blocks, value in sorted(found, key=lambda each: (-each[0] / max(1, each[2]), each[1])):
        if blocks <= room:
            chosen.add(value)
            room -= blocks
    return chosen


def _into_block_ram(
    plan: Plan, device: Device, depths: Mapping[Value, int], scarce: bool, chosen: Set[Value] = frozenset()
) -> dict[Value, Value]:
    """Move queues that are too large for look-up tables, and those that are ``chosen``, to block RAM: those of a fork
    by their style, others to a node of their own behind the core. Return for each value whose queue moved the value
    whose queue it is now; what lies in block RAM already stays there."""
    names = FreshNames(plan.graph)
    consumers = plan.graph.consumers()
    nodes: list[Node] = []
    moved: dict[Value, Value] = {}
    fixed = fixed_depths(plan.graph)
    for node in plan.graph.nodes:
        nodes.append(node)
        if isinstance(node.attributes, FifoAttributes) or not fixed.keys().isdisjoint(node.outputs):
            continue
        if any(isinstance(r.attributes, FifoAttributes) for value in node.outputs for r, _ in consumers[value]):
            continue  # moved already: what stays is the core's own
        lanes = plan.folding(node).output_lanes
        styles = [
            StorageStyle.BLOCK if value in chosen
            else costs.cheapest_style(device.family, lanes * value.typed.element.bits, depths[value], scarce=scarce)
            for value in node.outputs
        ]
        deep = [value for value, style in zip(node.outputs, styles, strict=True) if style == StorageStyle.BLOCK]
        if isinstance(node.attributes, ForkAttributes):
            before = queue_styles(node, plan[node])
            there = [value for value, style in zip(node.outputs, before, strict=True) if style == StorageStyle.BLOCK]
            both = {*there, *deep}
            styles = [StorageStyle.BLOCK if value in both else StorageStyle.AUTO for value in node.outputs]
            plan[node] = replace(plan[node], styles=tuple(styles))
            moved.update((value, value) for value in deep if value not in there)
            continue
        for value in deep:
            for reader, place in consumers[value]:
                queue = insert(plan, value, FifoAttributes, Folding(lanes, lanes), names, nodes)
                moved[value] = reader.inputs[place] = queue
    plan.graph.nodes = nodes
    return moved


def _decide_depths(plan: Plan, depths: Mapping[Value, int]) -> None:
    for node in plan.graph.nodes:
        plan[node] = replace(plan.decisions[node], depths=tuple(depths[value] for value in node.outputs))
