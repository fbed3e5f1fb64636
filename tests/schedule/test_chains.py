"""Chains: which cores they join, that the design computes what the golden model does, in the cycles predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hwflow.boards import find_board
from hwflow.cores.chain import ChainAttributes, ChainDecision
from hwflow.cores.operator import Resources
from hwflow.ir.graph import Graph
from hwflow.schedule.chains import join_chains
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import schedule
from hwflow.schedule.search.folding_search import Budget
from hwflow.types import IntType
from tests.schedule.graphs import Builder, dataflow
from tests.schedule.test_simulated import PART, check

WHOLE = Budget(PART.lut, PART.ff, PART.dsp, PART.bram)


def dense_graph(sizes: tuple[int, ...] = (5, 7, 4, 3), bits: int = 4, seed: int = 0) -> Graph:
    """Dense layers and requantizers in turn, the last one without."""
    build = Builder(np.random.default_rng(seed))
    element = IntType(bits, False)
    value = build.input(sizes[:1], element)
    for size in sizes[1:]:
        value = build.dense(value, size, IntType(4, True))
        if size is not sizes[-1]:
            value = build.requantize(value, element)
    build.output(value)
    return build.done()


def chains(plan: Plan) -> list[list[str]]:
    """The operators of each chain."""
    return [
        [member.node.op for member in node.attributes.members]
        for node in plan.graph.nodes if isinstance(node.attributes, ChainAttributes)
    ]


@pytest.mark.parametrize("clock", [None, 125.0, 60.0])
def test_a_frame_a_cycle(clock: float | None) -> None:
    """One chain up to the narrowest stream, whatever the registers between adders; the rest by itself."""
    part = replace(PART, clock_mhz=clock)
    scheduled = check(dense_graph(), 0, 1, 1, part=part)
    assert scheduled.initiation_interval == 1
    assert chains(scheduled.plan) == [["frame_sync", "mvu", "requantize", "mvu", "requantize"]]
    assert [n.op for n in scheduled.graph.nodes] == ["chain", "mvu"]
    plan, members = scheduled.plan, scheduled.graph.nodes[0].attributes.members
    wired = [plan.folding(member.node).multiplier == "wires" for member in members]
    assert wired == [False, False, False, False, False] if clock != 60.0 else [False, False, True, False, True]


@pytest.mark.parametrize("seed", range(3))
def test_fewer_frames(seed: int) -> None:
    """Requantizers behind cores that take several cycles are no chains."""
    scheduled = check(dense_graph(seed=seed), seed, 4, 1)
    assert scheduled.initiation_interval > 1


def test_a_chain_ends_where_its_stream_is_narrowest() -> None:
    """Behind it another one may begin."""
    wide = schedule(dataflow(dense_graph((8, 2, 9, 9, 3, 8), 2)), PART, WHOLE, 1)
    assert chains(wide.plan) == [["frame_sync", "mvu", "requantize"], ["neurons", "neurons", "mvu", "requantize"]]


def test_joined_once_is_joined() -> None:
    plan = schedule(dataflow(dense_graph()), PART, WHOLE, 1).plan
    before = list(plan.graph.nodes)
    join_chains(plan, PART)
    assert plan.graph.nodes == before


def test_a_chain_is_counted_by_its_cores_and_one_queue() -> None:
    scheduled = schedule(dataflow(dense_graph()), PART, WHOLE, 1)
    (node,) = [n for n in scheduled.graph.nodes if n.op == "chain"]
    cores = [member.node for member in node.attributes.members]
    assert set(scheduled.parts) == {*scheduled.graph.nodes, *cores}
    assert scheduled.resources == sum(scheduled.parts.values(), Resources())
    assert scheduled.plan[node].depth >= max(scheduled.plan.timing(node).latency) + 1, "else it could not keep pace"
    assert all(scheduled.plan[core].depths == (0,) for core in cores)
    apart = sum(hw.ff for hw in (scheduled.plan.resources(core, find_board("ulx3s_85f").part) for core in cores))
    assert apart == sum(scheduled.parts[core].ff for core in cores)


def test_a_chain_is_built_of_what_the_plan_has_for_its_cores() -> None:
    plan = schedule(dataflow(dense_graph()), PART, WHOLE, 1).plan
    (node,) = [n for n in plan.graph.nodes if n.op == "chain"]
    cores = [member.node for member in node.attributes.members]
    changed = plan[cores[1]] = replace(plan[cores[1]], folding=replace(plan.folding(cores[1]), in_block=True))
    decision = plan[node]
    assert isinstance(decision, ChainDecision) and decision.members == tuple(plan[core] for core in cores)
    assert decision.members[1] == changed
