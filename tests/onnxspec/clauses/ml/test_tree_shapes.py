"""Roots, cycles and owners of random graphs, against what a search finds that follows the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from hwflow.onnxspec.clauses.ml import tree_shapes
from hwflow.onnxspec.clauses.ml.tree_shapes import Forest


def children_of(forest: Forest) -> list[set[int]]:
    return [{child for child in row if child >= 0} for row in forest.children.tolist()]


def reachable(children: list[set[int]], start: int) -> set[int]:
    """The nodes below a node; the node itself if it is on a cycle."""
    found: set[int] = set()
    pending = list(children[start])
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(children[node])
    return found


@pytest.mark.parametrize("wide", [1, 3, 1000])
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_shapes, "_WIDE", wide)  # levels by numpy, by loops, and by turns
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 30))
    children = rng.integers(-1, count, (count, 2))
    children[rng.random((count, 2)) < rng.choice([0.3, 0.6, 0.9])] = -1
    if seed % 2:  # without cycles
        children[children <= np.arange(count)[:, None]] = -1
    forest = Forest(children)
    below = children_of(forest)
    every = [reachable(below, node) for node in range(count)]
    on_cycle = {node for node in range(count) if node in every[node]}
    after = on_cycle.union(*(every[node] for node in on_cycle))
    assert set(np.flatnonzero(forest.unsorted).tolist()) == after
    parents = [sum(node in found for found in below) for node in range(count)]
    assert forest.parents.tolist() == parents
    cycles = list(forest.cycles(count))
    assert bool(cycles) == bool(on_cycle)
    for cycle in cycles:
        assert cycle[0] == min(cycle) and len(set(cycle)) == len(cycle)
        assert all(b in below[a] for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    roots = rng.integers(0, count, int(rng.integers(1, 4)))
    for node, owner in enumerate(forest.owners(roots).tolist()):
        leads = [number for number, root in enumerate(roots.tolist()) if node == root or node in every[root]]
        assert owner in leads if leads else owner == -1


def test_only_the_first_cycles_are_told() -> None:
    own = np.repeat(np.arange(9)[:, None], 2, axis=1)  # each node is its own child
    assert list(Forest(own).cycles(5)) == [[0], [1], [2], [3], [4], []]
    assert list(Forest(own).cycles(9)) == [[node] for node in range(9)]
