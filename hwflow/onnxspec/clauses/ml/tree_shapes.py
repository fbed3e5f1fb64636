"""The shapes of an ensemble's trees as arrays: roots, cycles, shared children.

Linear in the nodes, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

_WIDE = 64  # nodes of a level from which on numpy costs less than a loop


def _entries(array: NDArray[Any]) -> Any:
    """Return the entries of a contiguous array, which a loop reads and writes much faster there."""
    return memoryview(array)  # type: ignore[arg-type]  # an array is a buffer


def group_starts(sorted_keys: Indices) -> Indices:
    """Return where each run of equal keys begins."""
    starts: Indices = np.flatnonzero(np.concatenate(([True], sorted_keys[1:] != sorted_keys[:-1])))
    return starts


@dataclass(frozen=True)
class Forest:
    """``children``: by node the indices of its children, -1 for none (two columns)."""

    children: Indices

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.children)

    @cached_property
    def edges(self) -> tuple[Indices, Indices]:
        """Parents and children, without the second edge of a node whose two children are the same."""
        true, false = self.children[:, 0], self.children[:, 1]
        first, second = np.flatnonzero(true >= 0), np.flatnonzero((false >= 0) & (false != true))
        return np.concatenate((first, second)), np.concatenate((true[first], false[second]))

    @cached_property
    def parents(self) -> Indices:
        """By node the number of nodes that it is a child of."""
        counts: Indices = np.bincount(self.edges[1], minlength=self.count).astype(np.int64)
        return counts

    @cached_property
    def orphans(self) -> NDArray[np.bool_]:
        """The nodes that are no node's child."""
        orphans: NDArray[np.bool_] = self.parents == 0
        return orphans

    @cached_property
    def unsorted(self) -> NDArray[np.bool_]:
        """The nodes on a cycle, and those below one."""
        unsorted: NDArray[np.bool_] = self._peeled(np.flatnonzero(self.orphans)) > 0
        return unsorted

    def _peeled(self, level: Indices) -> Indices:
        """Remove nodes without parents until none is left, level by level. Return the parents that each node then
        has."""
        left = self.parents.copy()
        counts, (true, false) = _entries(left), self._columns
        pending = level.tolist()
        while pending:
            if len(pending) >= _WIDE:
                pending = self._below(np.array(pending), left).tolist()
                continue
            below = []
            for node in pending:
                first, second = true[node], false[node]
                if first >= 0:
                    counts[first] -= 1
                    if not counts[first]:
                        below.append(first)
                if second >= 0 and second != first:
                    counts[second] -= 1
                    if not counts[second]:
                        below.append(second)
            pending = below
        return left

    @cached_property
    def _columns(self) -> tuple[Any, Any]:
        """The entries of the two columns of ``children``."""
        return _entries(self.children[:, 0].copy()), _entries(self.children[:, 1].copy())

    def _below(self, level: Indices, left: Indices) -> Indices:
        """Remove the edges from the nodes of a level; return the nodes that have no parents any more."""
        rows = self.children[level]
        rows[rows[:, 0] == rows[:, 1], 1] = -1
        below = rows[rows >= 0]
        np.subtract.at(left, below, 1)
        free: Indices = np.unique(below[left[below] == 0])
        return free

    def cycles(self, most: int) -> Iterator[list[int]]:
        """Yield the first ``most`` cycles, and an empty one if there are more."""
        places = np.flatnonzero(self.unsorted)
        if not len(places):
            return
        parent = _entries(self._parent_among(self.unsorted))
        walks = _entries(np.zeros(self.count, np.int64))  # by node the number of the walk that came along
        number = 0
        for walk, start in enumerate(places.tolist(), 1):
            node = start
            while not walks[node]:
                walks[node] = walk
                node = parent[node]
            if walks[node] != walk:
                continue
            number += 1
            if number > most:
                yield []
                return
            yield _around(node, parent)

    def _parent_among(self, among: NDArray[np.bool_]) -> Indices:
        """Return by node one of its parents, of those in ``among`` where there is one; -1 for none."""
        parents, children = self.edges
        inside = among[parents]
        parent = np.full(self.count, -1, np.int64)
        parent[children] = parents
        parent[children[inside]] = parents[inside]
        return parent

    def owners(self, roots: Indices) -> Indices:
        """Return by node the number in the list of one of the ``roots`` that lead to it, the nearest; -1 for none."""
        owner = np.full(self.count, -1, np.int64)
        owner[roots[::-1]] = np.arange(len(roots))[::-1]
        known, (true, false) = _entries(owner), self._columns
        pending = list(dict.fromkeys(roots.tolist()))
        while pending:
            if len(pending) >= _WIDE:
                rows = self.children[pending]
                level, column = np.nonzero(rows >= 0)
                found = rows[level, column]
                new = owner[found] < 0
                owner[found[new]] = owner[np.array(pending)[level[new]]]
                pending = np.unique(found[new]).tolist()
                continue
            below = []
            for node in pending:
                for child in (true[node], false[node]):
                    if child >= 0 and known[child] < 0:
                        known[child] = known[node]
                        below.append(child)
            pending = below
        return owner


def _around(node: int, parent: Any) -> list[int]:
    """Return the cycle that a node is on, downwards from its lowest node."""
    cycle = [node]
    above = parent[node]
    while above != node:
        cycle.append(above)
        above = parent[above]
    cycle.reverse()
    lowest = cycle.index(min(cycle))
    return cycle[lowest:] + cycle[:lowest]


def cycle_text(cycle: Sequence[int], name: Callable[[int], object]) -> str:
    """Format a cycle for a message, without its middle if it is long; ``name`` gives what a node is called."""
    shown = [*cycle, cycle[0]] if len(cycle) < 8 else [*cycle[:4], *cycle[-2:], cycle[0]]
    names = [str(name(node)) for node in shown]
    return " -> ".join(names if len(cycle) < 8 else [*names[:4], "...", *names[4:]])
