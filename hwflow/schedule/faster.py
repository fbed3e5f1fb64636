"""What limits a design's interval, and what the next shorter one would cost."""

from __future__ import annotations

from dataclasses import dataclass

from hwflow.cores.beat_movers import PLUMBING
from hwflow.cores.operator import Resources
from hwflow.ir.graph import Node
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import Schedule
from hwflow.schedule.search.folding_search import UNLIMITED, Budget

_STEP = 0.01  # relative: foldings of one long stream differ by cycles that nobody asks for


@dataclass(frozen=True)
class Faster:
    """The cheapest foldings of at most ``interval`` cycles take ``more`` resources than those of the present interval,
    both as the folding search counts them."""

    interval: int
    more: Resources


def slowest(plan: Plan) -> tuple[Node, ...]:
    """Return the cores with the most cycles per frame; where none is as slow, what only passes beats on between cores.
    """
    cycles = {node: plan.cycles(node) for node in plan.graph.nodes}
    found = [node for node, count in cycles.items() if count == max(cycles.values())]
    return tuple([node for node in found if not isinstance(node.attributes, PLUMBING)] or found)


def faster(schedule: Schedule) -> Faster | None:
    """Return the next interval that is shorter by a hundredth or more, whether or not the part has room for it; None
    where no foldings are faster, where a circuit rather than a core limits the interval, or where the search is not
    known."""
    search = schedule.search
    if search is None or schedule.limited_by_circuit:
        return None
    most = max(map(schedule.plan.cycles, schedule.graph.nodes))
    shorter = [interval for interval in search.intervals if interval <= most * (1 - _STEP)]
    if not shorter:
        return None
    any_size = search.within(Budget(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED))
    now, then = any_size.choose(most), any_size.choose(shorter[-1])
    if now is None or then is None:
        return None
    pairs = zip(any_size.total(then), any_size.total(now), strict=True)
    return Faster(shorter[-1], Resources(*(after - before for after, before in pairs)))
