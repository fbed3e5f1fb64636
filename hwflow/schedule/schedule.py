"""Schedule a dataflow graph: choose foldings, insert frame synchronisers and width converters, size FIFOs, and compute
the exact timing.

Requires: single-consumer, stream-shape. Ensures: :meth:`hwflow.schedule.plan.Plan.check`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hwflow.cores.operator import Decision, Folding, Resources
from hwflow.cores.registry import hardware
from hwflow.display import show
from hwflow.errors import DoesNotFit, Finding, ModelRefused
from hwflow.ir.graph import Graph, Node, Recurring, Stage
from hwflow.schedule.chains import join_chains
from hwflow.schedule.converters import insert_plumbing
from hwflow.schedule.fixed_depths import has_sources
from hwflow.schedule.plan import Plan
from hwflow.schedule.queues import MOST_FRAMES, make_room, size_queues, slowest
from hwflow.schedule.relays import insert_relays
from hwflow.schedule.search.folding_search import RESOURCES, Budget, Chip, FoldingSearch, enough_text, free_text
from hwflow.schedule.tables_for_matrices import insert_truth_tables, saving
from hwflow.schedule.tables_in_blocks import takes_much, with_moved_tables
from hwflow.schedule.throughput.evaluate import Run, evaluate

_NEAR = 0.05  # relative distance to the least interval at which the search among whole designs ends
_WIDENINGS = 16  # of a budget, each by 1/32 of the short resources
_CIRCUIT_TRIES = 8  # more, with faster cores on circuits
_TRIES = 4  # designs of one interval, each with a budget of the cores reduced by the excess of the one before


@dataclass(frozen=True)
class Schedule:
    """A plan with its results: ``run``, the cycles of its outputs, and ``parts``, the predicted resources of its nodes,
    those of chains included. ``search``: what found its foldings, to ask what others would cost."""

    plan: Plan
    run: Run
    parts: Mapping[Node, Resources]
    search: FoldingSearch | None = field(default=None, repr=False, compare=False)

    @property
    def graph(self) -> Graph:
        """Return the plan's graph."""
        return self.plan.graph

    @property
    def resources(self) -> Resources:
        """Return the resources of all nodes together."""
        return sum(self.parts.values(), Resources())

    @property
    def initiation_interval(self) -> int:
        return self.run.initiation_interval

    @property
    def limited_by_circuit(self) -> bool:
        """Whether what is kept from frame to frame, or from round to round of a loop, limits the interval, and no
        core."""
        return any(isinstance(node.attributes, Recurring) for node in self.graph.nodes) and (
            self.initiation_interval > max(map(self.plan.cycles, self.graph.nodes))
        )

    @property
    def latency(self) -> int:
        return self.run.latency


@dataclass(frozen=True)
class _Task:
    """The arguments of :func:`schedule` that all candidate designs share. ``free``: what the device has for the design;
    ``chosen`` is called with each candidate."""

    graph: Graph
    device: Chip
    free: Budget | Chip
    chosen: Callable[[Plan], None]


class OutOfReach(ModelRefused):
    """No design reaches the requested interval. ``best``: the least interval of a design that fits."""

    def __init__(self, findings: list[Finding], best: int) -> None:
        super().__init__(findings)
        self.best = best


def schedule(
    graph: Graph, device: Chip, budget: Budget, interval: int | None = None, others: Sequence[Budget] = (),
    executor: Executor | None = None, chosen: Callable[[Plan], None] | None = None, free: Budget | None = None,
) -> Schedule:
    """Return the cheapest design with an interval of at most ``interval`` cycles, or (None) the fastest one that fits.

    ``graph`` is not changed. The folding search assumes queues of a few beats; their depths are known only afterwards.
    If the whole design then exceeds the budget, or is slower than its cores, the search is repeated with a budget or
    interval reduced by as much. Without an ``interval``, the least one is thus found among those that the search calls
    feasible: exactly if the first of them fits, else to within :data:`_NEAR`.

    ``others``: alternative budgets; the result is the fastest design within any of them, or (with an ``interval``) one
    within the first that holds such a design. ``executor``: of processes that share the work. ``chosen`` is called with
    each candidate plan while only the depths of its queues are open; the last one most likely becomes the design.
    ``free``: what a refusal may advise to ask for (None: all that the device has).

    Raises :class:`ModelRefused` if nothing fits at any interval, :class:`OutOfReach` if only slower designs do.
    """
    task = _Task(graph, device, free or device, chosen or (lambda plan: None))
    search = FoldingSearch(graph, device, budget, executor)
    budgets = _by_interval(search, [budget, *others]) if others else [(0, budget)]
    findings: list[Finding] = []
    if interval is not None:
        for _, some in budgets:
            made, why = _attempt(task, some, search, interval)
            made = made or _with_tables(task, some, search, interval)
            if made is not None:
                return _relieved(task, budget, replace(made, search=search))
            findings = findings or why
    fastest = _fastest_of(task, budgets, search)
    best = fastest.initiation_interval
    if interval is None or best <= interval:
        return _relieved(task, budget, replace(fastest, search=search))
    raise OutOfReach(findings or search.within(budgets[0][1]).refusal(interval, best), best)


def _relieved(task: _Task, budget: Budget, made: Schedule) -> Schedule:
    """Return a design in which block RAMs are used that are left, where it takes much of the part."""
    if not takes_much(made.resources, task.device):
        return made
    plan = with_moved_tables(made.plan, task.device, budget.bram - int(made.resources.bram))
    moved = [node for node in plan.parts if plan[node] != made.plan[node]]
    return replace(made, plan=plan, parts={**made.parts, **{node: plan.resources(node, task.device) for node in moved}})


def _by_interval(search: FoldingSearch, budgets: Sequence[Budget]) -> list[tuple[int, Budget]]:
    """Return the budgets that hold some design, each with its least feasible interval according to the search,
    ascending; the first budget if none does."""
    found = []
    for budget in budgets:
        try:
            found.append((search.within(budget).least(), budget))
        except ModelRefused:
            continue
    return sorted(found, key=lambda pair: pair[0]) or [(0, budgets[0])]


def _fastest_of(task: _Task, budgets: Sequence[tuple[int, Budget]], search: FoldingSearch) -> Schedule:
    """Return the fastest design within any of the budgets, which come from :func:`_by_interval`."""
    best: Schedule | None = None
    refused: ModelRefused | None = None
    for least, budget in budgets:
        if best is None or least < best.initiation_interval:
            try:
                made = _fastest(task, budget, search)
            except ModelRefused as why:
                refused = refused or why
                continue
            best = made if best is None else min(best, made, key=lambda design: design.initiation_interval)
    if best is None:
        assert refused is not None, "there is a budget"
        raise refused
    return best


def _fastest(task: _Task, budget: Budget, search: FoldingSearch) -> Schedule:
    """Return the fastest design within a budget. Intervals are tried from the least one that the search calls feasible,
    at growing distance until one fits, then by bisection."""
    search, fastest = search.within(budget), search.intervals[0]
    try:
        least = search.least()
    except ModelRefused:
        if tabled := _with_tables(task, budget, search, fastest):
            return tabled
        raise DoesNotFit(partial(_what_would_fit, task, budget, search)) from None
    if least > fastest and (tabled := _with_tables(task, budget, search, fastest)):
        return tabled
    there = [i for i in search.intervals if i >= least]
    low, step = -1, 1  # the interval of index low does not fit
    found: Schedule | None = None
    high = 0
    while found is None:
        found, _ = _attempt(task, budget, search, there[high], exact=False)
        if found is None:
            if high == len(there) - 1:
                raise DoesNotFit(partial(_what_would_fit, task, budget, search))
            low, high, step = high, min(high + step, len(there) - 1), 2 * step
    while high - low > 1 and there[high] > there[low + 1] * (1 + _NEAR):
        middle = (low + high) // 2
        better, _ = _attempt(task, budget, search, there[middle], exact=False)
        if better is None:
            low = middle
        else:
            found, high = better, middle
    limited = search.in_circuits and found.initiation_interval > (1 + _NEAR) * there[high]  # by a circuit's latency
    return _relaxed(task, budget, search, found, there[high]) if limited else found


def _relaxed(task: _Task, budget: Budget, search: FoldingSearch, found: Schedule, aim: int) -> Schedule:
    """Return the cheapest design that is nearly as fast as ``found``, whose cores take at most ``aim`` cycles, and its
    circuits more: the other cores may take as many as these, those on circuits may be slower as long as little else
    is."""
    most = int(found.initiation_interval * (1 + _NEAR))
    there = [interval for interval in search.intervals if aim <= interval <= most]
    low, high = -1, len(there)  # index low is known to do, high is not
    while high - low > 1:
        middle = max(0, low + 1 if low < 0 else (low + high) // 2)
        foldings = search.within(budget).choose(max(aim, found.initiation_interval), there[middle])
        made = None if foldings is None else _with_foldings(task, foldings)
        if made is None or made.initiation_interval > most or budget.of_whole_designs.shortages(made.resources):
            high = middle
        else:
            found, low = made, middle
    return found


def _attempt(
    task: _Task, budget: Budget, search: FoldingSearch, interval: int, *, exact: bool = True
) -> tuple[Schedule | None, list[Finding]]:
    """Try to build a design within the budget whose cores, or (``exact``) that as a whole, takes at most ``interval``
    cycles. Return None and the findings if queues leave too little (no findings if the cores alone do not fit)."""
    left, aim, inside, scarce = budget, interval, interval, False
    findings: list[Finding] = []
    for _ in range(_TRIES + (_CIRCUIT_TRIES if search.in_circuits else 0)):
        foldings = search.within(left).choose(aim, inside)
        if foldings is None:
            break
        made = _with_foldings(task, foldings, scarce)
        short = budget.of_whole_designs.shortages(made.resources)
        late = made.initiation_interval - interval
        if not short and (late <= 0 or not exact):
            return _with_some_in_blocks(task, budget, foldings, made) if scarce else made, []
        if not short and search.in_circuits:  # whose cores take their cycles one after the other
            inside = min(inside - 1, inside * interval // made.initiation_interval)
            continue
        if not short:  # bursts cost some cycles beyond those of the slowest core
            aim -= late
            continue
        findings = [_too_large(made, *shortage, _more_or_less(task, budget, shortage[0])) for shortage in short]
        if [name for name, _, _ in short] == ["bram"] and not scarce:
            scarce = True  # shallow queues in look-up tables cost less than other cores
            continue
        counted = search.total(foldings)
        most = {name: getattr(left, name) for name in RESOURCES}
        for name, wanted, there in short:
            most[name] = min(most[name], getattr(counted, name)) - (wanted - there)
        left = Budget(**most)
    return None, findings


def _with_some_in_blocks(task: _Task, budget: Budget, foldings: dict[Node, Folding], made: Schedule) -> Schedule:
    """Let queues have the block RAMs that a design leaves for which others were scarce, if it stays as fast."""
    left = budget.of_whole_designs.bram - int(made.resources.bram)
    if left <= 0:
        return made
    other = _with_foldings(task, foldings, scarce=True, left=left)
    fits = not budget.of_whole_designs.shortages(other.resources)
    return other if fits and other.initiation_interval <= made.initiation_interval else made


def _with_tables(task: _Task, budget: Budget, search: FoldingSearch, interval: int) -> Schedule | None:
    """Try to build a design that fits the budget only for its truth tables, of which the search knows nothing."""
    saved = saving(task.graph, task.device, interval)
    if not any(saved):
        return None
    most = {name: getattr(budget, name) + getattr(saved, name) for name in RESOURCES}
    foldings = search.within(Budget(**most)).choose(interval)
    if foldings is None:
        return None
    made = _with_foldings(task, foldings)
    fits = not budget.of_whole_designs.shortages(made.resources)
    return made if fits and made.initiation_interval <= interval else None


def _what_would_fit(task: _Task, budget: Budget, search: FoldingSearch) -> list[Finding]:
    """Explain why no design fits at any interval: the shortages of a slowest design, and a sufficient budget: raised by
    what cores lack, then by what their queues lack, until :func:`_attempt` would succeed at once."""
    task, interval = replace(task, chosen=lambda plan: None), search.intervals[-1]  # nobody builds it
    enough, _, known = search.enough(interval, task.free)
    widened = enough
    for _ in range(_WIDENINGS):  # until a search finds the design that is known to exist
        if search.within(widened).choose(interval) is not None:
            enough = widened
            break
        most = {name: getattr(widened, name) for name in RESOURCES}
        widened = Budget(**{n: most[n] * 33 // 32 + 1 if most[n] > getattr(budget, n) else most[n] for n in RESOURCES})
    while True:
        foldings = search.within(enough).choose(interval) or known
        made = _with_foldings(task, foldings)
        if not enough.shortages(made.resources):
            break
        enough = Budget(*(max(getattr(enough, name), getattr(made.resources, name)) for name in RESOURCES))
    remedy = enough_text(enough, made.initiation_interval, budget, task.free)
    rows = [(name, int(getattr(enough, name)), int(getattr(budget, name))) for name in RESOURCES]
    return [_too_large(made, name, wanted, there, remedy) for name, wanted, there in rows if wanted > there]


def _more_or_less(task: _Task, budget: Budget, name: str) -> str:
    """Return the remedy where a design of the requested rate needs more of a resource than the budget has."""
    more = free_text(budget.of_whole_designs, task.free, [name])
    act = f"request up to '--budget {more}'" if more else "use a larger board or a smaller model"
    return f"ask for fewer frames per second, {act}"


def _too_large(made: Schedule, name: str, wanted: int, there: int, remedy: str) -> Finding:
    """Return the finding that a whole design exceeds the budget of a resource."""
    parts = {node: int(getattr(need, name)) for node, need in made.parts.items()}
    most = max(parts, key=lambda node: parts[node])
    return Finding(
        "device-budget",
        f"model {show(made.graph.name)}",
        f"{name} must be at most {there}, not {wanted}, at {made.initiation_interval} cycles per frame with all queues "
        f"({wanted - there} too many; largest: node {show(most.name)} ({most.op}) with {parts[most]})",
        remedy,
    )


def _with_foldings(
    task: _Task, foldings: dict[Node, Folding], scarce: bool = False, left: int = 0
) -> Schedule:
    plan = planned(task.graph, foldings)
    insert_relays(plan, task.device)
    insert_truth_tables(plan, task.device)
    join_chains(plan, task.device)
    room = make_room(plan)
    task.chosen(plan)
    run = _settled(plan, size_queues(plan, task.device, room, scarce, left))
    if has_sources(plan.graph):
        run = _bound(run, slowest(plan))  # its memory is never later than the worst case, but often earlier
    plan.check()
    return Schedule(plan, run, {node: plan.resources(node, task.device) for node in plan.parts})


def planned(graph: Graph, foldings: Mapping[Node, Folding]) -> Plan:
    """Return the plan of a copy of a dataflow graph with these ``foldings``, the streams that some of them shorten, and
    the plumbing that they need."""
    chosen = {node: hardware(node.op).as_chosen(node, foldings[node]) for node in graph.nodes}
    own = graph.copy({node: other for node, (other, _) in chosen.items()})
    own.stage = Stage.SCHEDULED
    decisions = [Decision(folding) for _, folding in chosen.values()]
    plan = Plan(own, dict(zip(own.nodes, decisions, strict=True)))
    insert_plumbing(plan)
    return plan


def _bound(run: Run, least: int) -> Run:
    """Return a run whose cycles are upper bounds; frames go on at the pace of the slowest core, ``least`` cycles, where
    what it made before the first frame lasts for longer than the run."""
    outputs = run.outputs
    if run.initiation_interval < least:
        outputs = tuple(np.vstack([beats, beats[-run.cyclic] + least * run.cyclic]) for beats in outputs)
    return replace(run, outputs=outputs, exact=False)


def _settled(plan: Plan, run: Run) -> Run:
    """Simulate more frames, if needed, until the interval between frames is constant, and no shorter than the slowest
    core takes: it may change while queues fill, and while a core lives on what it made before the first frame."""
    frames, apart = len(run.last_output), run.cyclic
    least = slowest(plan)
    while frames < MOST_FRAMES * apart:
        last = run.last_output[-3 - apart :]
        apart_by = {b - a for a, b in zip(last, last[apart:], strict=False)}
        if len(apart_by) == 1 and apart_by.pop() >= least * apart:
            break
        frames *= 2
        run = evaluate(plan, frames, cyclic=apart)
    return run
