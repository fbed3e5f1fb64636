"""The search for foldings against brute force, and what it says when nothing fits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.errors import ModelRefused
from hwflow.ir.graph import Graph, Node
from hwflow.ops.operator import Folding, Resources
from hwflow.ops.registry import hardware
from hwflow.schedule.folding import Budget, FoldingSearch
from hwflow.schedule.schedule import schedule
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow, meeting_graph, random_graph

PART = find_board("ulx3s_85f").part
U4, I4, U8, I8 = IntType(4, False), IntType(4, True), IntType(8, False), IntType(8, True)


def dense(seed: int, inputs: int, outputs: int) -> Graph:
    """mvu, requantize"""
    build = Builder(np.random.default_rng(seed))
    build.output(build.requantize(build.dense(build.input((inputs,), U8), outputs, I8), U8, per_channel=False))
    return dataflow(build.done())


def two_dense(seed: int, widths: tuple[int, int, int]) -> Graph:
    """mvu, mvu of bytes without a requantizer between: the second one's input is at most 16 bits wide."""
    build = Builder(np.random.default_rng(seed))
    value = build.dense(build.input((widths[0],), U4), widths[1], I4)
    build.output(build.dense(value, widths[2], I4))
    return dataflow(build.done())


def convolution(seed: int, channels: int, outputs: int) -> Graph:
    """sliding_window, mvu, max_pool"""
    build = Builder(np.random.default_rng(seed))
    value = build.conv2d(build.input((channels, 5, 4), U4), outputs, 2, 1, 1, I4)
    build.output(build.max_pool2d(value, 1, 1))
    return dataflow(build.done())


GRAPHS = [
    dense(1, 6, 4),
    dense(2, 5, 7),
    two_dense(3, (4, 3, 5)),
    two_dense(4, (6, 4, 2)),
    convolution(5, 3, 2),
    convolution(6, 2, 4),
]


def least_interval(graph: Graph, budget: Budget) -> int | None:
    """By trying every combination of foldings of every node: the definition."""
    options = [
        [
            (hardware(n.op).cycles(n, f), hardware(n.op).resources(n, f, [4] * len(n.outputs), PART))
            for f in hardware(n.op).foldings(n, PART)
        ]
        for n in graph.nodes
    ]
    best = None
    for combination in itertools.product(*options):
        interval = max(cycles for cycles, _ in combination)
        need = sum((r for _, r in combination), Resources())
        fits = need.lut <= budget.lut and need.ff <= budget.ff and need.dsp <= budget.dsp and need.bram <= budget.bram
        if fits and (best is None or interval < best):
            best = interval
    return best


BUDGETS = [
    Budget(lut, ff, dsp, 20)
    for lut, ff, dsp in [
        (100_000, 100_000, 156),
        (3000, 3000, 100),
        (2000, 100_000, 20),
        (1500, 1500, 4),
        (1000, 1000, 6),
        (100_000, 1200, 3),
        (1200, 100_000, 0),
        (700, 700, 8),
        (300, 300, 0),
    ]
]


@pytest.mark.parametrize("graph", GRAPHS, ids=["dense1", "dense2", "two3", "two4", "conv5", "conv6"])
def test_the_least_interval_is_that_of_brute_force(graph: Graph) -> None:
    for budget in BUDGETS:
        expected = least_interval(graph, budget)
        search = FoldingSearch(graph, PART, budget)
        if expected is None:
            with pytest.raises(ModelRefused):
                search.best()
            continue
        interval, foldings = search.best()
        assert interval == expected, budget
        need = sum((search.resources(n, f) for n, f in foldings.items()), Resources())
        assert not budget.shortages(need)
        assert max(hardware(n.op).cycles(n, f) for n, f in foldings.items()) <= interval


def test_a_target_takes_the_cheapest_foldings_that_reach_it() -> None:
    graph = convolution(5, 3, 2)
    search = FoldingSearch(graph, PART, BUDGETS[0])
    for target in (120, 300, 2000):
        interval, foldings = search.for_interval(target)
        assert interval == target
        assert max(hardware(n.op).cycles(n, f) for n, f in foldings.items()) <= target
    slow = sum((search.resources(n, f) for n, f in search.for_interval(2000)[1].items()), Resources())
    fast = sum((search.resources(n, f) for n, f in search.for_interval(120)[1].items()), Resources())
    assert slow.lut < fast.lut


def test_a_target_no_core_can_reach_is_refused() -> None:
    """All windows of an image, all of their products and all of their pixels in a beat: a frame a cycle."""
    graph = convolution(5, 3, 2)
    with pytest.raises(ModelRefused) as raised:
        FoldingSearch(graph, PART, BUDGETS[0]).for_interval(0)
    assert str(raised.value) == (
        "error: node 'conv2d0_window' (sliding_window): the target must be at least 1 cycles a frame, not 0 "
        "[reachable-interval]\n  remedy: ask for fewer frames a second"
    )


def stub_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every core costs 10 LUTs for each lane at its output, and 2 DSPs a multiplier; a frame takes as ever."""

    def resources(self: object, node: Node, folding: Folding, depths: object, device: object) -> Resources:
        return Resources(lut=10 * folding.output_lanes, dsp=2 * folding.multipliers)

    for op in ("mvu", "requantize"):
        monkeypatch.setattr(type(hardware(op)), "resources", resources)


def test_a_target_that_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 outputs of 6 inputs: 24 products. 2 cycles need 12 multipliers and 2 lanes behind them: 24 DSPs, 40 LUTs.

    9 DSPs are 4 multipliers, so 6 cycles; 29 LUTs are 2 lanes in all, so 1 output at a time, 4 cycles at the least.
    """
    stub_costs(monkeypatch)
    search = FoldingSearch(dense(1, 6, 4), PART, Budget(29, 1000, 9, 20))
    with pytest.raises(ModelRefused) as raised:
        search.for_interval(2)
    assert str(raised.value) == (
        "error: model 'random': lut must be at most 29, not 40, at 2 cycles a frame [device-budget]\n"
        "  remedy: ask for fewer frames a second: 8 cycles a frame fit\n"
        "error: model 'random': dsp must be at most 9, not 24, at 2 cycles a frame [device-budget]\n"
        "  remedy: ask for fewer frames a second: 8 cycles a frame fit"
    )


def test_a_model_that_fits_at_no_rate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slowest: one multiplier (2 DSPs), one lane at both cores (20 LUTs), 24 cycles."""
    stub_costs(monkeypatch)
    search = FoldingSearch(dense(1, 6, 4), PART, Budget(19, 1000, 1, 20))
    for ask in (search.best, lambda: search.for_interval(24)):
        with pytest.raises(ModelRefused) as raised:
            ask()
        assert str(raised.value) == (
            "error: model 'random': lut must be at most 19, not 20, at 24 cycles a frame [device-budget]\n"
            "  remedy: use a larger board or a smaller model\n"
            "error: model 'random': dsp must be at most 1, not 2, at 24 cycles a frame [device-budget]\n"
            "  remedy: use a larger board or a smaller model"
        )


@pytest.mark.parametrize("seed", range(20))
def test_no_queue_costs_the_slowest_core_a_cycle(seed: int) -> None:
    """Random chains and branches: the interval is that of the slowest core, and within the target."""
    quantized = random_graph(seed)
    for share, slower in ((8, 1), (2, 1 + seed % 3)):
        budget = Budget(PART.lut // share, PART.ff // share, PART.dsp // share, PART.bram // share)
        scheduled = schedule(dataflow(quantized), PART, budget)
        if slower > 1:
            target = slower * scheduled.initiation_interval
            scheduled = schedule(dataflow(quantized), PART, budget, target)
            assert scheduled.initiation_interval <= target
        slowest = max(hardware(n.op).cycles(n, n.attributes["folding"]) for n in scheduled.graph.nodes)
        assert scheduled.initiation_interval == slowest


@pytest.mark.parametrize("seed", range(16))
def test_no_queue_costs_interval_where_streams_meet(seed: int) -> None:
    for share in (2, 1):
        budget = Budget(PART.lut // share, PART.ff // share, PART.dsp // share, PART.bram // share)
        scheduled = schedule(dataflow(meeting_graph(seed)), PART, budget)
        slowest = max(hardware(n.op).cycles(n, n.attributes["folding"]) for n in scheduled.graph.nodes)
        assert scheduled.initiation_interval == slowest
