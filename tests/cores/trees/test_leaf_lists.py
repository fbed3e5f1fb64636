"""The memories of units whose leaves are lists, read as the hardware reads them, against trees walked one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hwflow.cores.trees import leaf_lists
from hwflow.cores.trees.leaf_lists import ListForest, ListMemories
from hwflow.ir.graph import IntArray, Node, Value
from hwflow.ir.node_attributes import TreeEnsembleAttributes
from hwflow.types import Interval, TensorType
from tests.cores.random_trees import Grower, recursive

_REACH = (5, 1, 7, 3, 2, 6, 4)
_SLOTS, _UNITS = 5, 2


def _forest(grower: Grower) -> tuple[ListForest, TreeEnsembleAttributes]:
    ensemble = grower.ensemble()
    source = Value("x", TensorType.of((1, len(_REACH)), tuple(Interval(0, most) for most in _REACH), 1))
    return ListForest(Node("trees", [source], [], ensemble)), ensemble


def _fields(word: int, widths: Sequence[int]) -> list[int]:
    found = []
    for width in widths:
        found.append(word & ((1 << width) - 1))
        word >>= width
    return found


def _list(found: ListMemories[Sequence[int]], unit: int, at: int, step: int, sign: int) -> list[tuple[int, int]]:
    """Entries from ``at`` on, up or down, as long as targets ascend or descend. ``sign``: a value's sign bit, or 0."""
    entries: list[tuple[int, int]] = []
    while not entries or 0 <= at < len(found.entries[unit]):
        target, value = _fields(found.entries[unit][at], found.entry_bits)
        if entries and (target - entries[-1][0]) * step <= 0:
            return entries
        if found.dictionary:
            value = found.dictionary[unit][value]
        entries.append((target, (value ^ sign) - sign))
        at += step
        if target == 0 and step < 0:  # none is below, whatever the memory gives
            return entries
    raise AssertionError("a list goes on beyond its memory")


def _sums(forest: ListForest, targets: int, ranks: list[int]) -> tuple[list[int], int]:
    """What a row gives to each target, and the longest list."""
    groups = forest.groups(_UNITS, _SLOTS)
    found = forest.memories(groups, 1)
    sign = 1 << found.value_bits - 1 if forest.of_all.lo < 0 else 0
    sums, longest = [0] * targets, 0
    for unit in range(_UNITS):
        for place, rounds in enumerate(np.repeat(groups.rounds, _SLOTS)):
            nodes, lists = _fields(found.bases[unit][place], found.base_bits)
            at, leaf = 2 * nodes, None
            for _ in range(rounds):
                pair, ends, limit, beat, _, takes = _fields(found.nodes[unit][at], found.record.bits)
                missing = takes and ranks[beat] == forest.ensemble.missing_rank[beat]
                false = not (ranks[beat] < limit or missing)
                if ends:
                    leaf = lists + pair, false
                    break
                at = 2 * (nodes + pair) + false
            assert leaf is not None
            read = _list(found, unit, leaf[0] if leaf[1] else leaf[0] - 1, 1 if leaf[1] else -1, sign)
            rounds_behind = int(np.roll(groups.rounds, -1)[place // _SLOTS])
            longest = max(longest, len(read) - sum(value == 0 for _, value in read) - rounds_behind)
            for target, value in read:
                sums[target] += value
    return sums, longest


@pytest.mark.parametrize("kind", [
    {"targets": 3}, {"targets": 9}, {"targets": 17, "shared": True, "missing": True}, {"targets": 6, "whole": True},
    {"targets": 4, "distinct": 5, "bits": 30},
])
def test_memories_hold_what_trees_give(kind: dict[str, int]) -> None:
    grower = Grower(7, _REACH, **kind)  # type: ignore[arg-type]
    for depth in (3, 0, 5, 1, 4, 4, 2, 6, 3, 3, 0, 5):
        grower.tree(depth)
    forest, ensemble = _forest(grower)
    assert forest.has_dictionary(_UNITS) == ("distinct" in kind)
    for row in grower.ranks(40).reshape(-1, len(_REACH)):
        sums, beyond = _sums(forest, ensemble.targets, row.tolist())
        assert sums == recursive(ensemble, row)
        assert beyond <= 0


def test_lists_that_would_go_on_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    grower = Grower(3, _REACH, 9)
    for number in range(12):
        grower.tree(4, number % 9)
    forest, ensemble = _forest(grower)
    rows = grower.ranks(60).reshape(-1, len(_REACH))

    def wrong() -> int:
        return sum(_sums(forest, 9, row.tolist())[0] != recursive(ensemble, row) for row in rows)

    assert wrong() == 0
    laid_out = ListForest._laid_out

    def unstopped(self: ListForest, true: IntArray, false: IntArray, goes_on: IntArray) -> tuple[IntArray, IntArray]:
        return laid_out(self, true, false, np.zeros_like(goes_on))

    monkeypatch.setattr(leaf_lists.ListForest, "_laid_out", unstopped)
    assert wrong() > 0
