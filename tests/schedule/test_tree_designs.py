"""Designs of requantizers and trees: what is computed, in the cycles predicted, from a row a cycle to a single unit."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.cores.chain import ChainAttributes
from hwflow.ir.graph import Graph
from hwflow.schedule.schedule import schedule
from hwflow.types import IntType
from tests.cores.random_trees import Grower
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.test_chains import WHOLE
from tests.schedule.test_simulated import PART, check


def trees_graph(targets: int = 1) -> Graph:
    """Six features of 12 bits become ranks of 3; forty trees."""
    build = Builder(np.random.default_rng(1))
    ranks = build.requantize(build.input((6,), IntType(12, True)), IntType(3, False))
    grower = Grower(1, tuple(max(1, i.hi) for i in ranks.typed.channel_intervals(0)), targets)
    for number in range(40):
        grower.tree(4, number % targets)
    build.output(build.node("tree_ensemble", ranks, **grower.values()))
    return build.done()


def test_a_row_a_cycle_is_a_chain() -> None:
    scheduled = check(trees_graph(), 0, 1, 1)
    assert scheduled.initiation_interval == 1
    joined = [node.attributes for node in scheduled.graph.nodes if isinstance(node.attributes, ChainAttributes)]
    assert [[member.node.op for member in each.members] for each in joined] == [
        ["frame_sync", "requantize", "tree_ensemble"]
    ]


@pytest.mark.parametrize(("interval", "units"), [(60, 3), (400, 1)])
def test_slower_designs_have_fewer_units(interval: int, units: int) -> None:
    scheduled = check(trees_graph(2), 1, interval, 1)
    (folding,) = [d.folding for node, d in scheduled.plan.decisions.items() if node.op == "tree_ensemble"]
    assert folding.units == units and scheduled.initiation_interval <= interval


def test_a_slower_design_is_smaller() -> None:
    sizes = [schedule(dataflow(trees_graph()), PART, WHOLE, interval).resources for interval in (1, 50, 400)]
    assert [total.lut for total in sizes] == sorted((total.lut for total in sizes), reverse=True)
