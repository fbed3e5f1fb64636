"""Queue depths on residual and U-shaped graphs: they keep the pace of the slowest core, and no queue has a step of its
storage to spare: with one less the interval grows or the design stands still."""

from __future__ import annotations

import gc
from collections.abc import Container, Iterator
from dataclasses import replace

import pytest

from hwflow.boards import find_board
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.errors import InternalError
from hwflow.ir.graph import Graph
from hwflow.schedule.plan import Plan
from hwflow.schedule.queues import MOST_FRAMES
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.throughput.evaluate import evaluate
from hwflow.schedule.throughput.events import Actor, Arc, EventGraph
from hwflow.schedule.throughput.firing import Firing
from hwflow.schedule.throughput.periodic import PeriodicSchedule
from tests.schedule.graphs import dataflow, meeting_graph, random_graph, skewed_graph
from tests.schedule.shorter import a_step_shorter
from tests.schedule.skips import KINDS, skip_graph

PART = find_board("ulx3s_85f").part


def scheduled(graph: Graph, share: int = 3, slower: int = 1) -> Schedule:
    """For one ``share``th of the part, ``slower`` times the least interval."""
    budget = Budget(PART.lut // share, PART.ff // share, PART.dsp // share, PART.bram // share)
    result = schedule(dataflow(graph), PART, budget)
    if slower > 1:
        result = schedule(dataflow(graph), PART, budget, slower * result.initiation_interval)
    return result


def pace(plan: Plan, frames: int) -> float:
    """Cycles per frame in the long run; infinite if it stands still."""
    try:
        last = evaluate(plan, frames).last_output
    except InternalError as error:
        assert [finding.rule for finding in error.findings] == ["no-deadlock"]
        return float("inf")
    return (last[-1] - last[frames // 2]) / (frames - 1 - frames // 2)


def smaller(plan: Plan, operators: Container[str]) -> Iterator[str]:
    """With each queue a step of its storage shorter, where there is one; of nodes of these operators."""
    for node in (node for node in plan.graph.nodes if node.op in operators and node.op != "frame_sync"):
        decided = plan[node]
        for index in range(len(node.outputs)):
            shorter = a_step_shorter(plan, node, index)
            if shorter is not None:
                plan[node] = shorter
                yield f"{node.name} of depths {shorter.depths} instead of {decided.depths}"
                plan[node] = decided


def test_nothing_of_a_search_for_depths_stays_in_memory() -> None:
    """Processes and what they wait for refer to each other; Python's collector, which looks for such cycles, rarely
    runs in a command, and of a large frame they take gigabytes."""
    gc.collect()
    gc.disable()
    try:
        kept = scheduled(skewed_graph())
        kinds = (PeriodicSchedule, Firing, EventGraph, Actor, Arc)
        left = {type(o).__name__ for o in gc.get_objects() if isinstance(o, kinds)}
    finally:
        gc.enable()
    assert kept.initiation_interval
    assert not left


def slowest(plan: Plan) -> int:
    return max(hardware(node.op).cycles(node, plan[node].folding) for node in plan.graph.nodes)


def check(found: Schedule, operators: Container[str] = OPERATORS) -> int:
    """The pace is kept, and by nothing smaller; how many smaller ones there were."""
    plan = found.plan
    assert found.initiation_interval == slowest(plan)
    assert pace(plan, 8) == slowest(plan)
    tries = 0
    for what in smaller(plan, operators):
        # A shortage may take many frames to be felt: until all that is on its way piles up.
        assert any(pace(plan, frames) > slowest(plan) for frames in (8, 24, MOST_FRAMES)), what
        tries += 1
    return tries


@pytest.mark.parametrize(("kind", "slower"), [*((kind, 1) for kind in KINDS), ("one", 4)])
def test_no_queue_has_a_step_to_spare(kind: str, slower: int) -> None:
    assert check(scheduled(skip_graph(kind), slower=slower)) >= 3


@pytest.mark.parametrize("seed", range(4))
def test_nor_where_streams_meet(seed: int) -> None:
    check(scheduled(meeting_graph(seed)))


@pytest.mark.parametrize("seed", range(4))
def test_nor_in_chains(seed: int) -> None:
    check(scheduled(random_graph(seed), 12))


def test_nor_with_queues_in_block_ram() -> None:
    found = scheduled(skewed_graph(), 2)
    assert [node.op for node in found.graph.nodes].count("fifo") == 1
    assert check(found, {"fifo", "fork"}) >= 1


def test_a_short_way_of_one_entry_stands_still() -> None:
    """The long way of the residual block needs several rows before its first sum: without room for them on the short
    way nothing moves, and who waits is named."""
    plan = scheduled(skip_graph("one"), slower=50).plan  # one channel per beat
    for node in plan.graph.nodes:
        plan[node] = replace(plan[node], depths=(1,) * len(node.outputs))
    with pytest.raises(InternalError) as raised:
        evaluate(plan, 2)
    (finding,) = raised.value.findings
    assert finding.rule == "no-deadlock"
    for op in ("fork", "scaled_add"):
        assert any(repr(node.name) in finding.where for node in plan.graph.nodes if node.op == op)
