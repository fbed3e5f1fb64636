"""Whole designs against budgets: never above, searched again where queues take what cores were given."""

from __future__ import annotations

import re

import pytest

from boards import find_board
from hwflow.api.budget import Amount, budgets_for
from hwflow.codegen.board.board_top import surroundings
from hwflow.cores.beat_movers import FifoAttributes
from hwflow.cores.operator import Resources
from hwflow.cores.registry import hardware
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Node
from hwflow.schedule import schedule as module
from hwflow.schedule.schedule import OutOfReach, Schedule, schedule
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from tests.schedule.graphs import dataflow, meeting_graph, skewed_graph

PART = find_board("ulx3s_85f").part


def whole(scheduled: Schedule) -> Resources:
    """Every node's, at the depths that its queues have."""
    total = Resources()
    for n in scheduled.plan.parts:
        total += hardware(n.op).resources(n, scheduled.plan[n], PART)
    return total


def test_what_queues_need_is_taken_from_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where queues need what the search does not know of, here 100 look-up tables, a budget of exactly what it says for
    a design does not hold the design: a slower one is made, within what is left."""
    graph = dataflow(meeting_graph(0))
    generous = FoldingSearch(graph, PART, Budget(60_000, 60_000, 100, 100))
    _, foldings = generous.best()
    need = generous.total(foldings)
    budget = Budget(need.lut, need.ff + 2000, need.dsp + 60, need.bram + 20)
    real = module._with_foldings

    def larger(*arguments: object) -> Schedule:
        made = real(*arguments)  # type: ignore[arg-type]
        first = made.graph.nodes[0]
        return Schedule(made.plan, made.run, {**made.parts, first: made.parts[first] + Resources(lut=100)})

    monkeypatch.setattr(module, "_with_foldings", larger)
    scheduled = schedule(graph, PART, budget)
    assert scheduled.resources == whole(scheduled) + Resources(lut=100)
    assert not budget.shortages(scheduled.resources)
    assert scheduled.initiation_interval >= FoldingSearch(graph, PART, budget).best()[0]


def test_shallow_queues_leave_block_ram_before_cores_do() -> None:
    """A budget without the block RAM of a queue that 200 entries of look-up tables can be: the same design but for
    that queue, which is no slower."""
    graph = dataflow(skewed_graph())
    interval = 20_000
    plenty = schedule(graph, PART, Budget(60_000, 60_000, 100, 100), interval)
    queues = [n for n in plenty.graph.nodes if isinstance(n.attributes, FifoAttributes) and plenty.parts[n].bram == 1]
    assert queues
    scarce = Budget(60_000, 60_000, 100, plenty.resources.bram - 1)
    made = schedule(graph, PART, scarce, interval)
    assert not scarce.shortages(whole(made))
    assert made.resources.bram < plenty.resources.bram and made.resources.lut > plenty.resources.lut
    assert {n.name: made.plan.folding(n) for n in graph_nodes(made)} == {
        n.name: plenty.plan.folding(n) for n in graph_nodes(plenty)
    }
    assert made.initiation_interval <= interval


def test_queues_share_the_block_rams_that_are_left() -> None:
    """Of three queues in block RAM one leaves for each block RAM that the budget lacks; the cores stay."""
    graph = dataflow(skewed_graph(2))
    interval = 20_000
    plenty = schedule(graph, PART, Budget(60_000, 60_000, 100, 100), interval)
    for less in range(4):
        budget = Budget(60_000, 60_000, 100, plenty.resources.bram - less)
        made = schedule(graph, PART, budget, interval)
        queues = [n for n in made.graph.nodes if isinstance(n.attributes, FifoAttributes)]
        assert sum(made.parts[n].bram for n in queues) == 3 - less
        assert not budget.shortages(whole(made)) and made.initiation_interval <= interval
        assert {n.name: made.plan.folding(n) for n in graph_nodes(made)} == {
            n.name: plenty.plan.folding(n) for n in graph_nodes(plenty)
        }


def graph_nodes(made: Schedule) -> list[Node]:
    """Return the nodes of the design that do work of the network."""
    return [n for n in made.graph.nodes if not isinstance(n.attributes, FifoAttributes)]


@pytest.mark.parametrize("seed", range(4))
def test_never_above_the_budget(seed: int) -> None:
    """Budgets that shrink: each design within its own, no faster than the one before; in the end there is none."""
    graph = dataflow(meeting_graph(seed))
    lut, before = 6000, 0
    while True:
        budget = Budget(lut, lut, 60, 30)
        try:
            scheduled = schedule(graph, PART, budget)
        except ModelRefused as refused:
            assert {f.rule for f in refused.findings} <= {"device-budget"}
            break
        assert not budget.shortages(whole(scheduled))
        assert scheduled.initiation_interval >= before
        before, lut = scheduled.initiation_interval, lut * 3 // 4
    assert before > 0


def test_a_target_is_met_by_the_design_not_only_by_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where queues cost cycles, the foldings are chosen for a shorter interval; here they are made to cost five."""
    graph = dataflow(meeting_graph(0))
    budget = Budget(40_000, 40_000, 156, 100)
    least = schedule(graph, PART, budget).initiation_interval
    real = module._with_foldings

    class Late(Schedule):
        @property
        def initiation_interval(self) -> int:
            return self.run.initiation_interval + 5

    def slower(*arguments: object) -> Schedule:
        made = real(*arguments)  # type: ignore[arg-type]
        return Late(made.plan, made.run, made.parts)

    monkeypatch.setattr(module, "_with_foldings", slower)
    target = 3 * least
    scheduled = schedule(graph, PART, budget, target)
    assert scheduled.initiation_interval <= target
    with pytest.raises(OutOfReach) as raised:
        schedule(graph, PART, budget, least)
    assert raised.value.best == schedule(graph, PART, budget).initiation_interval > least


def test_out_of_reach_says_the_least_interval_that_fits() -> None:
    graph = dataflow(meeting_graph(1))
    budget = Budget(5000, 5000, 20, 20)
    with pytest.raises(OutOfReach) as raised:
        schedule(graph, PART, budget, FoldingSearch(graph, PART, budget).intervals[0])
    best = raised.value.best
    assert schedule(graph, PART, budget, best).initiation_interval <= best
    assert f"ask for fewer frames per second: {best} cycles per frame fit" in str(raised.value)


@pytest.mark.parametrize("seed", range(4))
def test_the_remedy_helps(seed: int) -> None:
    """Where nothing fits, the budget that is named is enough, and no less than what was asked for."""
    graph = dataflow(meeting_graph(seed))
    refusals = 0
    for asked in ((0, 0, 0, 0), (0, 80_000, 156, 200), (400, 400, 3, 3), (80_000, 80_000, 0, 0), (900, 900, 9, 0)):
        budget = Budget(*asked)
        try:
            assert not budget.shortages(schedule(graph, PART, budget).resources)
        except ModelRefused as refused:
            refusals += 1
            texts = set(re.findall(r"lut=(\d+), ff=(\d+), dsp=(\d+), bram=(\d+) suffices at (\d+)", str(refused)))
            *enough, interval = map(int, texts.pop())
            assert not texts
            raised = [name for name, _, _ in budget.shortages(Resources(*enough))]
            assert raised == [f.message.split()[0] for f in refused.findings]
            assert all(now >= then for now, then in zip(enough, asked, strict=True))
            scheduled = schedule(graph, PART, Budget(*enough))
            assert not Budget(*enough).shortages(scheduled.resources)
            assert scheduled.initiation_interval <= interval
    assert refusals >= 2


@pytest.mark.parametrize("more", [1.0, 1.2, 100.0])
def test_a_remedy_where_the_search_ends_too_soon(more: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Foldings within a budget exist, but are found only with ``more`` of what is short: the remedy names as much, or,
    where even more did not help, what is known to be enough."""
    graph = dataflow(meeting_graph(1))
    budget = Budget(0, 80_000, 156, 200)
    enough, _, _ = FoldingSearch(graph, PART, budget).enough(FoldingSearch(graph, PART, budget).intervals[-1])
    real = FoldingSearch.choose

    def late(self: FoldingSearch, interval: int) -> object:
        return real(self, interval) if self._budget.lut >= more * enough.lut else None

    monkeypatch.setattr(FoldingSearch, "choose", late)
    with pytest.raises(ModelRefused) as refused:
        schedule(graph, PART, budget)
    assert [f.message.split()[0] for f in refused.value.findings] == ["lut"]
    (named,) = {int(n) for n in re.findall(r"a budget of lut=(\d+)", str(refused.value))}
    assert named >= (more if more < 2 else 1) * enough.lut
    assert named < (more if more < 2 else 1) * enough.lut * 1.25


def test_enough_where_looking_for_the_cheapest_ends_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a search for any design finds one: what that needs is enough."""
    real = FoldingSearch._select

    def hasty(self: FoldingSearch, *arguments: object, any_at_all: bool = False, **named: object) -> object:
        return real(self, *arguments, any_at_all=True, **named) if any_at_all else None  # type: ignore[arg-type]

    monkeypatch.setattr(FoldingSearch, "_select", hasty)
    search = FoldingSearch(dataflow(meeting_graph(1)), PART, Budget(0, 80_000, 156, 200))
    enough, need, foldings = search.enough(search.intervals[-1])
    assert need == search.total(foldings)
    assert not enough.shortages(need)


def test_the_best_of_several_budgets() -> None:
    """Of two budgets, neither of which holds what the other does, the faster design is made, in whatever order they
    come; one that holds nothing does no harm, and if none does, the refusal is the first one's."""
    graph = dataflow(meeting_graph(0))
    tables, blocks, nothing = Budget(60_000, 60_000, 0, 100), Budget(6_000, 6_000, 20, 100), Budget(10, 10, 0, 0)
    alone = {budget: schedule(graph, PART, budget).initiation_interval for budget in (tables, blocks)}
    assert alone[tables] < alone[blocks]
    for first, *others in ((tables, blocks, nothing), (blocks, nothing, tables), (nothing, tables, blocks)):
        made = schedule(graph, PART, first, others=others)
        assert made.initiation_interval == alone[tables]
        assert not tables.shortages(whole(made))
    with pytest.raises(ModelRefused) as alone_refused:
        schedule(graph, PART, nothing)
    with pytest.raises(ModelRefused) as refused:
        schedule(graph, PART, nothing, others=[Budget(5, 5, 0, 0)])
    assert refused.value.findings == alone_refused.value.findings


def test_an_interval_within_the_first_budget_that_holds_it() -> None:
    graph = dataflow(meeting_graph(0))
    tables, blocks = Budget(60_000, 60_000, 0, 100), Budget(6_000, 6_000, 20, 100)
    slow, fast = (schedule(graph, PART, budget).initiation_interval for budget in (blocks, tables))
    made = schedule(graph, PART, blocks, slow, [tables])
    assert not blocks.shortages(whole(made))
    made = schedule(graph, PART, blocks, fast, [tables])
    assert made.initiation_interval <= fast
    assert not tables.shortages(whole(made))
    with pytest.raises(OutOfReach) as refused:
        schedule(graph, PART, blocks, 1, [tables])
    assert refused.value.best == fast


@pytest.mark.parametrize("name", ["icebreaker", "ulx3s_85f", "tang_nano_9k"])
def test_default_budgets(name: str) -> None:
    """Cells that a table and a flip-flop share: together never more than there are. Elsewhere half of each."""
    board, graph = find_board(name), dataflow(meeting_graph(0))
    budgets = budgets_for(board, graph, {}, for_rate=True)
    shared = name == "icebreaker"
    assert len(set(budgets)) == (8 if shared else 1)
    shell = surroundings(board)
    for budget in budgets:
        if shared:  # of the shell's own flip-flops at least every other one shares a cell
            assert budget.lut + budget.ff + shell["lut"] + shell["ff"] // 2 <= board.part.lut
        else:
            assert budget.lut + budget.ff <= board.part.lut + 1
    assert budgets[0].lut <= board.part.lut / 2
    asked = budgets_for(board, graph, {"lut": Amount(1234)}, for_rate=True)
    assert [budget.lut for budget in asked] == [1234]
    asked = budgets_for(board, graph, {"dsp": Amount(3)}, for_rate=True)
    assert [budget.dsp for budget in asked] == [3] * len(budgets)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 19])
def test_the_fastest_whole_design_is_found_in_few_attempts(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so many intervals (less than a twentieth apart none) only those from ``first`` on have a whole design."""
    tried: list[int] = []

    class Search:
        intervals = range(1, count + 1)
        in_circuits: frozenset[object] = frozenset()

        def within(self, budget: Budget) -> Search:
            return self

        def least(self) -> int:
            return 1

    def attempt(task: object, budget: object, search: object, interval: int, *, exact: bool) -> tuple[int | None, list]:
        assert interval not in tried, "no design is made twice"
        tried.append(interval)
        return (interval if interval >= first else None), []

    monkeypatch.setattr(module, "_attempt", attempt)
    monkeypatch.setattr(module, "_what_would_fit", lambda *_: [])
    for first in range(1, count + 1):
        tried.clear()
        assert module._fastest(None, None, Search()) == first  # type: ignore[arg-type]
        assert len(tried) <= 2 * first.bit_length()
    first = count + 1
    tried.clear()
    with pytest.raises(ModelRefused):
        module._fastest(None, None, Search())  # type: ignore[arg-type]
