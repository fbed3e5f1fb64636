"""What a plan must decide before anything is made of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwflow.boards import find_board
from hwflow.errors import InternalError
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import schedule
from hwflow.schedule.search.folding_search import Budget
from tests.attributes import attributes_of
from tests.schedule.graphs import dataflow, random_graph

PART = find_board("ulx3s_85f").part


def scheduled() -> Plan:
    return schedule(dataflow(random_graph(1)), PART, Budget(PART.lut, PART.ff, PART.dsp, PART.bram)).plan


def test_a_plan_has_a_folding_and_depths_for_every_node_and_the_graph_has_neither() -> None:
    plan = scheduled()
    plan.check()
    assert plan.decisions.keys() == set(plan.parts)
    assert all(min(plan[node].depths) >= 1 for node in plan.graph.nodes)
    assert not any(plan[node].provisional for node in plan.graph.nodes)
    decided = {"folding", "depths", "rows", "styles", "interval"}
    assert all(decided.isdisjoint(vars(n.attributes)) for n in plan.graph.nodes)


def test_what_is_open_is_found() -> None:
    plan = scheduled()
    first, second, *_ = plan.graph.nodes
    del plan.decisions[first]
    plan[second] = replace(plan[second], depths=())
    with pytest.raises(InternalError) as raised:
        plan.check()
    assert [(f.rule, f.where) for f in raised.value.findings] == [
        ("scheduled-nodes", f"node {first.name!r}"), ("scheduled-nodes", f"node {second.name!r}")
    ]
    assert all(f.message.startswith("every node must have a folding and a depth for each queue; found: ")
               for f in raised.value.findings)


def test_the_graph_of_a_plan_must_be_legal() -> None:
    plan = scheduled()
    plan.graph.nodes[0].attributes = attributes_of("reshape", shape=(1,))  # which is of the quantized stage
    with pytest.raises(InternalError, match="every node's operator must be legal at this stage"):
        plan.check()
