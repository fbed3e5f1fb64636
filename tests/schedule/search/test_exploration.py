"""What is computed of a node's foldings, and how often."""

from __future__ import annotations

import pytest

from hwflow.boards import find_board
from hwflow.schedule.search import exploration
from hwflow.schedule.search.bounds import Bounds
from hwflow.schedule.search.exploration import explore_foldings
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from tests.schedule.graphs import dataflow, random_graph

PART, OTHER = (find_board(name).part for name in ("ulx3s_85f", "icebreaker"))


def test_each_node_is_explored_once_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the bounds and by the search behind them."""
    explored: list[str] = []
    whole = exploration._explored

    def counted(job: exploration._Job) -> exploration.Explored:
        explored.append(job.node.name)
        return whole(job)

    monkeypatch.setattr(exploration, "_explored", counted)
    graph = dataflow(random_graph(1))
    Bounds(graph, PART)
    FoldingSearch(graph, PART, Budget(1 << 20, 1 << 20, 1 << 10, 1 << 10))
    assert sorted(explored) == sorted(node.name for node in graph.nodes)
    again, first = dataflow(random_graph(1)), explore_foldings(graph, OTHER, None)
    for found, expected in zip(first, explore_foldings(again, OTHER, None), strict=True):
        assert found.foldings == expected.foldings
        assert (found.needs == expected.needs).all() and (found.cycles == expected.cycles).all()
