"""Circuits through delays: how many cycles per frame they take, whatever the queues.

A circuit of latency L through which n frames are on their way takes L / n cycles a frame: the cycle mean of max-plus
algebra (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992, theorem 2.28).
"""

from __future__ import annotations

from hwflow.ir.graph import Delaying, Graph, Recurring
from hwflow.schedule.plan import Plan
from hwflow.schedule.throughput.events import event_graph
from hwflow.schedule.throughput.firing import NEVER, Firing


def has_delays(graph: Graph) -> bool:
    """Tell whether there may be circuits."""
    return any(isinstance(node.attributes, Recurring) for node in graph.nodes)


def held_frames(graph: Graph) -> int:
    """Return the most frames that a delay holds; 0 without delays."""
    delays = (node.attributes for node in graph.nodes if isinstance(node.attributes, Delaying))
    return max((len(delay.first_frames) for delay in delays), default=0)


def circuit_interval(plan: Plan, every: int | None = None) -> int:
    """Return the cycles per frame, rounded up, that self-timed cores take with unbounded queues, whose depths may be
    open: measured over ``every`` frames (by default as many as delays hold) after as many."""
    graph = event_graph(plan)
    firing, number = Firing(graph, {}), {actor: n for n, actor in enumerate(graph.actors)}
    for history in firing.history:
        history[:] = NEVER
    for source in graph.sources:
        firing.cycles[number[source.consumer]][source.consumes] = 0
    every = every or max(1, held_frames(plan.graph))
    lasts: list[int] = []
    for _ in range(2 * every + 1):
        firing.fire(range(len(graph.actors)))
        lasts.append(max(int(cycles[-1]) for cycles in firing.cycles))
        for history, cycles in zip(firing.history, firing.cycles, strict=True):
            history[: -len(cycles)] = history[len(cycles) :].copy()
            cycles[:] = NEVER
    return -((lasts[every] - lasts[-1]) // every)
