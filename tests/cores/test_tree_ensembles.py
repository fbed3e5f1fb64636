"""Ensembles of trees: the golden model against a recursive one, intervals against every frame."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from hdl_lib.trees.parallel_trees import RankTest
from hwflow.boards import find_board
from hwflow.cores.registry import OPERATORS
from hwflow.cores.trees.decisions import Decisions
from hwflow.cores.trees.ensemble import Places
from hwflow.cores.trees.forest import Forest
from hwflow.ir.graph import Node, Value
from hwflow.ir.node_attributes import Aggregate, TreeEnsembleAttributes
from hwflow.types import Interval, IntType, TensorType
from hwflow.verify import golden
from tests.cores.one_operator import check_lowering
from tests.cores.random_trees import Grower, recursive
from tests.schedule.graphs import Builder

PART = find_board("ulx3s_85f").part
KINDS = [
    {"targets": 1},
    {"targets": 3},
    {"targets": 3, "whole": True, "missing": True},
    {"targets": 2, "aggregate": Aggregate.MIN, "missing": True},
    {"targets": 2, "aggregate": Aggregate.MAX, "shared": True},
    {"targets": 3, "shared": True, "missing": True},
]


def grown(seed: int, reach: tuple[int, ...] = (3, 1, 2), depths: tuple[int, ...] = (3, 0, 5, 1), **kind) -> Grower:
    grower = Grower(seed, reach, **kind)
    for depth in depths:
        grower.tree(depth)
    return grower


def source(ensemble: TreeEnsembleAttributes, *shape: int) -> TensorType:
    return TensorType(shape, IntType(8, False), Interval(0, 255))


def every_row(reach: tuple[int, ...]) -> np.ndarray:
    return np.array(list(itertools.product(*(range(r + 1) for r in reach))))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_evaluate_is_the_recursion(kind, seed) -> None:
    grower = grown(seed, **kind)
    ensemble, rows = grower.ensemble(), every_row(grower.reach)
    (result,) = OPERATORS["tree_ensemble"].evaluate(ensemble, [rows.reshape(2, 3, -1, 3)])
    assert result.shape == (2, 3, len(rows) // 6, ensemble.targets)
    assert result.reshape(-1, ensemble.targets).tolist() == [recursive(ensemble, row) for row in rows]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_intervals_hold_every_row(kind, seed) -> None:
    grower = grown(seed, **kind)
    ensemble, rows = grower.ensemble(), every_row(grower.reach)
    (type_,) = OPERATORS["tree_ensemble"].infer(ensemble, [source(ensemble, 2, 3)])
    results = np.array([recursive(ensemble, row) for row in rows])
    assert type_.shape == (2, ensemble.targets)
    for interval, found in zip(type_.channel_intervals(-1), results.T, strict=True):
        assert interval.lo <= found.min() and found.max() <= interval.hi


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_lowering(kind, turned: bool) -> None:
    """Rows in order, or features that lie one behind the other for all rows."""
    grower = grown(3, **kind)
    build = Builder(np.random.default_rng(0))
    shape = (3, 4) if turned else (4, 3)
    value = build.input(shape, IntType(2, False))
    value.type = replace(value.typed, interval=Interval(0, 1))
    if turned:
        value = build.node("transpose", value, perm=(1, 0))
    build.output(build.node("tree_ensemble", value, **grower.values()))
    frames = np.random.default_rng(1).integers(0, 2, (5, *shape))
    graph = build.done()
    (result,) = golden.evaluate(graph, {"x0": frames}).values()
    check_lowering(graph, frames, result)


def test_interval_by_hand() -> None:
    """Two trees of one test each on features of their own; a leaf names both targets, one none."""
    ensemble = TreeEnsembleAttributes(
        feature=np.array([0, 1]), limit=np.array([1, 1]), missing=np.zeros(2, dtype=bool),
        missing_rank=np.array([-1, -1]), true=np.array([~0, ~2]), false=np.array([~1, ~3]), roots=np.array([0, 1]),
        leaf_start=np.array([0, 2, 3, 4, 4]), leaf_target=np.array([0, 1, 0, 1]),
        leaf_value=np.array([5, -7, 9, 4]), targets=2,
    )
    (type_,) = OPERATORS["tree_ensemble"].infer(ensemble, [source(ensemble, 2)])
    assert type_.channels == (Interval(5, 9), Interval(-7, 4))
    (result,) = OPERATORS["tree_ensemble"].evaluate(ensemble, [np.array([[0, 0], [0, 1], [1, 0], [1, 1]])])
    assert result.tolist() == [[5, -3], [5, -7], [9, 4], [9, 0]]


def test_places_are_those_of_longest_ways() -> None:
    grower = grown(7, targets=1, shared=True, depths=(6, 4))
    ensemble, places = grower.ensemble(), Places.of(grower.ensemble())
    depth, tree = {}, {}

    def walk(at: int, level: int, number: int) -> None:
        depth[at], tree[at] = max(depth.get(at, 0), level), number
        if at >= 0:
            walk(int(ensemble.true[at]), level + 1, number)
            walk(int(ensemble.false[at]), level + 1, number)

    for number, root in enumerate(ensemble.roots):
        walk(int(root), 0, number)
    for at, level in depth.items():
        if at >= 0:
            assert places.node_tree[at] == tree[at]
        else:
            assert (places.leaf_depth[~at], places.leaf_tree[~at]) == (level, tree[at])


def test_a_million_nodes_take_a_moment() -> None:
    """Full trees of ten levels, made without a loop: node k of a tree has the children 2k + 1 and 2k + 2."""
    trees, size = 1000, 1023
    inner = np.arange(size)
    child = np.stack([2 * inner + 1, 2 * inner + 2])
    leaf = child >= size
    first = np.arange(trees)[:, np.newaxis] * size
    leaves = np.arange(trees)[:, np.newaxis] * (size + 1)
    true, false = (
        np.where(leaf[side], ~(leaves + child[side] - size), first + child[side]).reshape(-1) for side in (0, 1)
    )
    rng = np.random.default_rng(0)
    count = trees * (size + 1)
    ensemble = TreeEnsembleAttributes(
        feature=rng.integers(0, 50, trees * size), limit=rng.integers(1, 255, trees * size),
        missing=np.zeros(trees * size, dtype=bool), missing_rank=np.full(50, -1), true=true, false=false,
        roots=first[:, 0], leaf_start=np.arange(count + 1), leaf_target=np.zeros(count, dtype=np.int64),
        leaf_value=rng.integers(-1000, 1000, count), targets=1,
    )
    began = time.process_time()
    (type_,) = OPERATORS["tree_ensemble"].infer(ensemble, [source(ensemble, 50)])
    OPERATORS["tree_ensemble"].evaluate(ensemble, [rng.integers(0, 255, (20, 50))])
    assert type_.interval.lo < -900_000 and type_.interval.hi > 900_000
    assert time.process_time() - began < 10


def node_of(grower: Grower, rows: int = 1, reach: int | None = None) -> Node:
    """A node of the dataflow stage."""
    operator, ensemble = OPERATORS["tree_ensemble"], grower.ensemble()
    ranges = tuple(Interval(0, most if reach is None else reach) for most in grower.reach)
    typed = TensorType.of((rows, len(ranges)), ranges, 1)
    (result,) = operator.infer(ensemble, [typed])
    return Node("trees", [Value("x", typed)], [Value("y", result)], ensemble)


def test_units_take_turns_with_deep_trees() -> None:
    """Trees of depths 1 to 6 in two units of six slots: groups are of neighbours in depth, no tree is left out, and
    more units never take longer."""
    grower = grown(2, depths=(1, 2, 3, 4, 5, 6) * 5, targets=1, full=True)
    forest = node_of(grower).once(Forest)
    groups = forest.groups(2, 6, serial=False)
    assert groups.rounds.tolist() == [6, 4, 2] and groups.ends.tolist() == [False, False, True]
    assert sorted(groups.trees.reshape(-1).tolist()) == [-1] * 6 + list(range(30))
    offered = OPERATORS["tree_ensemble"].foldings(node_of(grower), PART)
    walked = [(folding.units, OPERATORS["tree_ensemble"].cycles(node_of(grower), folding)) for folding in offered]
    by_units = sorted(pair for pair in walked if pair[0])
    assert by_units[0] == (1, 6 * (6 + 5 + 4 + 3 + 2))
    cycles = [count for _, count in by_units]
    assert cycles == sorted(cycles, reverse=True) and walked[-1] == (0, 1)


def test_decisions_leave_out_what_makes_no_difference() -> None:
    """A test that always holds, one that never does, and one with the same behind both ends, by hand."""
    ensemble = TreeEnsembleAttributes(
        feature=np.array([0, 1, 0]), limit=np.array([2, 0, 1]), missing=np.zeros(3, dtype=bool),
        missing_rank=np.array([-1, -1]), true=np.array([1, ~0, ~1]), false=np.array([~3, 2, ~2]), roots=np.array([0]),
        leaf_start=np.arange(5), leaf_target=np.zeros(4, dtype=np.int64), leaf_value=np.array([7, 5, 5, 1]), targets=1,
    )
    typed = TensorType.of((1, 2), (Interval(0, 4), Interval(0, 4)), 1)
    decisions = Node("trees", [Value("x", typed)], [Value("y", typed)], ensemble).once(Decisions)
    assert decisions.tests == (RankTest(0, 2, None),) and decisions.trees is not None
    (tree,) = decisions.trees
    assert tree.levels == 1 and tree.values[0].tolist() == [1, 5]
