"""The choice of layers whose weights lie outside: the least words of all that fit, found by trying all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from hwflow.api.compiler import dataflow
from hwflow.boards import find_board
from hwflow.loaded_model import load
from hwflow.passes.outside.fetch_weights import Known, fetch_weights
from hwflow.passes.outside.rows_outside import row_queues, rows_outside
from hwflow.schedule.search.exploration import explore_foldings
from hwflow.schedule.search.folding_search import Budget, FoldingSearch
from hwflow.schedule.weights_outside import _fewest_words, _Option, choices
from tests.flow.networks import dense_network
from tests.passes.outside.test_rows_outside import windows


@pytest.mark.parametrize("seed", range(12))
def test_the_fewest_words_of_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = [
        [_Option(group, int(size), int(words)) for group, (size, words) in enumerate(rng.integers(0, 12, (count, 2)))]
        for count in rng.integers(1, 5, 5)
    ]
    for room in (0, 5, 11, 20, 60):
        fitting = [each for each in product(*options) if sum(option.size for option in each) <= room]
        chosen = _fewest_words(options, room)
        if not fitting:
            assert chosen is None
            continue
        assert chosen is not None
        assert sum(option.size for option in chosen) <= room
        least = min(sum(option.words for option in each) for each in fitting)
        assert sum(option.words for option in chosen) == least


def test_choices_begin_with_the_fewest_words_that_fit(tmp_path: Path) -> None:
    """Each choice leaves more block RAM than the one before, and fetches no fewer words; the first one has foldings
    within the budget, of which block RAM is scarce."""
    graph = dataflow(load(dense_network(tmp_path / "model.onnx", (512, 280, 256, 16))).quantized)
    board = find_board("ulx3s_85f")
    assert board.memory is not None
    part, timing = replace(board.part, clock_mhz=100.0), board.memory.timing(Fraction(100_000_000))
    nodes = {node.name: node for node in graph.nodes}

    def words(groups: Mapping[str, int]) -> int:
        shapes = {name: nodes[name].attributes.weights.shape for name in groups}
        return sum(rows * -(-columns // 2) for rows, columns in shapes.values())

    first = {}
    for blocks in (24, 50, 104):
        budget = Budget(part.lut // 8, part.ff // 4, part.dsp, blocks)
        found = list(choices(graph, part, [budget], timing, fastest=True))
        assert found
        assert [words(groups) for groups in found] == sorted(words(groups) for groups in found)
        search = FoldingSearch(fetch_weights(graph, found[0], timing), part, budget)
        assert search.is_feasible()
        assert search.is_feasible(10 * search.intervals[0]) and not search.is_feasible(1)
        first[blocks] = words(found[0])
    assert first[24] > first[50] > first[104]


def test_what_is_known_of_layers_is_the_same_with_rows_outside(tmp_path: Path) -> None:
    """Layers that are fetched in other choices, and with a line buffer's rows outside, share what is computed once:
    each has the foldings, resources and cycles that it has by itself."""
    graph = windows(tmp_path, 1, "Conv", (6, 6), (3, 3), (1, 1), (1, 1, 1, 1))
    board = find_board("ulx3s_85f")
    assert board.memory is not None
    timing = board.memory.timing(Fraction(100_000_000))
    turned, _ = rows_outside(graph, list(row_queues(graph)))
    first, second = (node.name for node in graph.nodes if node.op == "mvu")
    known: Known = {}
    kinds = set()
    for group in (2, 1, 2):
        for streams in (graph, turned, graph):
            for groups in ({first: group}, {first: group, second: group}):
                shared, alone = (fetch_weights(streams, groups, timing, some) for some in (known, {}))
                for node, own in zip(shared.nodes, alone.nodes, strict=True):
                    assert (node.name, node.attributes.op) == (own.name, own.attributes.op)
                    kinds.add(node.op)
                explored = (explore_foldings(graph, board.part, None) for graph in (shared, alone))
                for found, wanted in zip(*explored, strict=True):
                    assert found.foldings == wanted.foldings
                    assert np.array_equal(found.needs, wanted.needs) and np.array_equal(found.cycles, wanted.cycles)
    assert {"fetched_row", "fetched_matrix", "sliding_window", "requantize", "rearrange"} <= kinds
    assert len(known) > 4
