"""Dataflow graph to scheduled graph: foldings, frame synchronisers, width converters, queue depths, exact timing.

Requires: single-consumer, stream-shape. Ensures: scheduled-nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hwflow.errors import Finding, ModelRefused
from hwflow.ir.graph import Graph, Node, Stage
from hwflow.ops.operator import Folding, Resources
from hwflow.ops.registry import hardware
from hwflow.schedule.evaluate import Run, evaluate
from hwflow.schedule.folding import RESOURCES, Budget, Chip, FoldingSearch
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


class OutOfReach(ModelRefused):
    """No design has the interval that was asked for; ``best``: the least interval of one that fits."""

    def __init__(self, findings: list[Finding], best: int) -> None:
        super().__init__(findings)
        self.best = best


def schedule(graph: Graph, device: Chip, budget: Budget, interval: int | None = None) -> Schedule:
    """Fold for at most ``interval`` cycles a frame at least cost, or (None) for the least interval that fits.

    ``graph`` stays as it is. The search for foldings takes queues of a few beats for granted. How deep they must be is
    known when there are foldings: where the whole then exceeds the budget, the search is asked again with so much less,
    until the whole fits.

    Raises :class:`ModelRefused` if nothing fits at any interval, :class:`OutOfReach` if only slower designs do.
    """
    whole = FoldingSearch(graph, device, budget)
    search, left = whole, budget
    while True:
        if interval is None:
            try:
                _, foldings = search.best()
            except ModelRefused as refused:
                raise ModelRefused([*_queues(graph, budget, left), *refused.findings]) from None
        else:
            chosen = search.choose(interval)
            if chosen is None:
                best = schedule(graph, device, budget).initiation_interval
                raise OutOfReach([*_queues(graph, budget, left), *search.refusal(interval, best)], best)
            foldings = chosen
        scheduled = _with_foldings(graph, device, foldings)
        short = budget.shortages(scheduled.resources)
        if not short:
            return scheduled
        counted = search.total(foldings)
        most = {name: getattr(left, name) for name in RESOURCES}
        for name, wanted, there in short:
            most[name] = min(most[name], getattr(counted, name)) - (wanted - there)
        left = Budget(**most)
        search = whole.within(left)


def _with_foldings(graph: Graph, device: Chip, foldings: dict[Node, Folding]) -> Schedule:
    own = graph.copy()
    for node, original in zip(own.nodes, graph.nodes, strict=True):
        node.attributes["folding"] = foldings[original]
    insert_plumbing(own)
    own.stage = Stage.SCHEDULED
    run = _settled(own, size_queues(own, device))
    total = Resources()
    for node in own.nodes:
        total += hardware(node.op).resources(node, node.attributes["folding"], node.attributes["depths"], device)
    return Schedule(own, run, total)


def _queues(graph: Graph, budget: Budget, left: Budget) -> list[Finding]:
    """What the cores may not have because of the queues between them."""
    return [
        Finding(
            "queue-budget",
            f"model '{graph.name}'",
            f"{name} of all but deep queues must be at most {getattr(left, name)}, not {getattr(budget, name)}: "
            "the queues of the designs tried need the rest",
            "see the other findings",
        )
        for name in RESOURCES
        if getattr(left, name) < getattr(budget, name)
    ]


def _settled(graph: Graph, run: Run) -> Run:
    """More frames, if it takes them, until the interval between frames no longer changes: while queues fill it may."""
    frames = len(run.last_output)
    while frames < MOST_FRAMES and len({b - a for a, b in pairwise(run.last_output[-4:])}) > 1:
        frames *= 2
        run = evaluate(graph, frames)
    return run
