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
from tests.schedule.graphs import Builder, dataflow, random_graph

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
    dense(1, 6, 4), dense(2, 5, 7), two_dense(3, (4, 3, 5)), two_dense(4, (6, 4, 2)), convolution(5, 3, 2), convolution(6, 2, 4),
]


def least_interval(graph: Graph, budget: Budget) -> int | None:
    """By trying every combination of foldings of every node: the definition."""
    options = [
        [(hardware(n.op).cycles(n, f), hardware(n.op).resources(n, f, [4] * len(n.outputs), PART)) for f in hardware(n.op).foldings(n, PART)]
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
        (100_000, 100_000, 156), (3000, 3000, 100), (2000, 100_000, 20), (1500, 1500, 4), (1000, 1000, 6), (100_000, 1200, 3),
        (1200, 100_000, 0), (700, 700, 8), (300, 300, 0),
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
