"""Dataflow graph to scheduled graph: foldings, frame synchronisers, width converters, queue depths, exact timing.

Requires: single-consumer, stream-shape. Ensures: scheduled-nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hwflow.ir.graph import Graph, Stage
from hwflow.ops.operator import Device, Resources
from hwflow.ops.registry import hardware
from hwflow.schedule.evaluate import Run, evaluate
from hwflow.schedule.folding import Budget, FoldingSearch
from hwflow.schedule.plumbing import insert_plumbing
from hwflow.schedule.queues import MOST_FRAMES, size_queues


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
    insert_plumbing(graph)
    graph.stage = Stage.SCHEDULED
    run = _settled(graph, size_queues(graph, device))
    total = Resources()
    for node in graph.nodes:
        total += hardware(node.op).resources(node, node.attributes["folding"], node.attributes["depths"], device)
    return Schedule(graph, run, total)


def _settled(graph: Graph, run: Run) -> Run:
    """More frames, if it takes them, until the interval between frames no longer changes: while queues fill it may."""
    frames = len(run.last_output)
    while frames < MOST_FRAMES and len({b - a for a, b in pairwise(run.last_output[-4:])}) > 1:
        frames *= 2
        run = evaluate(graph, frames)
    return run
