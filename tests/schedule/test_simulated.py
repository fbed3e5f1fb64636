"""Whole random graphs, scheduled and simulated: values equal the golden model's, every beat of every output comes in
the cycle the schedule predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.boards.board import Part
from hwflow.cores.registry import hardware
from hwflow.ir.graph import Graph
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import Schedule, schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.schedule.throughput.evaluate import evaluate
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow, meeting_graph, random_graph, skewed_graph
from tests.schedule.mixed import mixed_graph
from tests.schedule.shorter import shorten_deepest
from tests.schedule.simulation import FRAMES, check_emitted, check_simulated
from tests.schedule.skips import skip_graph

PART = find_board("ulx3s_85f").part


@pytest.mark.parametrize(
    ("seed", "slower"),
    [(0, 1), (2, 3), (3, 10), (4, 1), (9, 4)],
    ids=lambda v: str(v),
)
def test_simulated_cycles_are_the_predicted_ones(seed: int, slower: int) -> None:
    """``slower``: the target interval, in units of the least one the part allows."""
    check(random_graph(seed), seed, slower, 12)


@pytest.mark.parametrize(
    ("seed", "slower"), [(0, 1), (2, 1), (4, 3), (7, 5)], ids=lambda v: str(v)
)
def test_where_streams_part_and_meet_again(seed: int, slower: int) -> None:
    """Nothing stands still, nothing costs interval, and every cycle is the predicted one."""
    scheduled = check(meeting_graph(seed), seed, slower, 3)
    assert scheduled.initiation_interval == slowest(scheduled.plan)


@pytest.mark.parametrize("seed", [6, 13, 170])
def test_operators_of_every_kind(seed: int) -> None:
    check(mixed_graph(seed), seed, (1, 1, 3)[seed % 3], (12, 3, 1)[seed // 3 % 3])


@pytest.mark.parametrize(
    ("graph", "slower", "share"), [(meeting_graph(4), 3, 3), (mixed_graph(8), 1, 1)], ids=["meeting", "mixed"]
)
def test_emitted_verilog_does_the_same(graph: Graph, slower: int, share: int, tmp_path: Path) -> None:
    check_emitted(graph, fitted(graph, slower, share), tmp_path)


@pytest.mark.parametrize(
    ("axis", "k", "take", "slower"),
    [(0, 1, "index", 1), (0, 1, "index", 3), (1, 1, "both", 1), (0, 3, "index", 1), (2, 2, "value", 1)],
)
def test_the_greatest_of_sums(axis: int, k: int, take: str, slower: int) -> None:
    scheduled = check(ranked_graph(axis, k, take), 0, slower, 12)
    assert "stream_top_k" in [n.op for n in scheduled.graph.nodes]


def ranked_graph(axis: int, k: int, take: str) -> Graph:
    build = Builder(np.random.default_rng(0))
    sums = build.conv2d(build.input((2, 5, 4), IntType(4, True)), 6, 3, 1, 1, IntType(3, True))
    build.output(build.node("top_k", sums, axis=axis, k=k, least=False, last=False, take=take))
    return build.done()


def test_a_queue_in_block_ram_between_two_cores(tmp_path: Path) -> None:
    scheduled = fitted(skewed_graph(), 1, 12)
    check_emitted(skewed_graph(), scheduled, tmp_path)
    assert "fifo" in [n.op for n in scheduled.graph.nodes]


@pytest.mark.parametrize("kind", ["two", "nested", "u"])
def test_ways_around_other_ways(kind: str) -> None:
    scheduled = check(skip_graph(kind), 0, 1, 3)
    assert scheduled.initiation_interval == slowest(scheduled.plan)


@pytest.mark.parametrize("make", [meeting_graph, random_graph], ids=["meeting", "random"])
def test_relays_between_cores_that_lie_far_apart(make: Callable[[int], Graph]) -> None:
    """Where most of the part's multiplier blocks are taken, relays stand between them, and nothing becomes slower."""
    part = replace(PART, dsp=8, lut=PART.lut // 40, bram=2)  # too few tables not to want blocks
    scheduled = check(make(2), 2, 1, 1, part=part)
    assert "relay" in [n.op for n in scheduled.graph.nodes]
    assert scheduled.initiation_interval == slowest(scheduled.plan)


@pytest.mark.parametrize("kind", ["one", "u"])
def test_a_step_less_on_a_short_way_costs_interval(kind: str) -> None:
    scheduled = check(skip_graph(kind), 0, 12, 3, shorten_deepest_branch)
    assert scheduled.run.initiation_interval > slowest(scheduled.plan)


def shorten_deepest_branch(scheduled: Schedule) -> Schedule:
    shorten_deepest(scheduled.plan, "fork")
    return replace(scheduled, run=evaluate(scheduled.plan, FRAMES))


def slowest(plan: Plan) -> int:
    return max(hardware(node.op).cycles(node, plan[node].folding) for node in plan.graph.nodes)


def check(
    quantized: Graph,
    seed: int,
    slower: int,
    share: int,
    change: Callable[[Schedule], Schedule] = lambda scheduled: scheduled,
    part: Part = PART,
) -> Schedule:
    """Simulate the graph, scheduled for one ``share``th of the part and then changed."""
    scheduled = change(fitted(quantized, slower, share, part))
    check_simulated(quantized, scheduled, seed=seed)
    return scheduled


def fitted(quantized: Graph, slower: int, share: int, part: Part = PART) -> Schedule:
    budget = Budget(part.lut // share, part.ff // share, part.dsp // share, part.bram // share)
    interval = None
    if slower > 1:
        interval = slower * schedule(dataflow(quantized), part, budget).initiation_interval
    return schedule(dataflow(quantized), part, budget, interval)
