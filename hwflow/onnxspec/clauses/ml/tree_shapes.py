"""The shapes of an ensemble's trees as arrays: roots, circles, shared children.

Linear in the nodes, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

_NARROW = 256  # nodes of a level below which numpy costs more than a loop


def group_starts(sorted_keys: Indices) -> Indices:
    """Return where each run of equal keys begins."""
    starts: Indices = np.flatnonzero(np.concatenate(([True], sorted_keys[1:] != sorted_keys[:-1])))
    return starts


@dataclass(frozen=True)
class Forest:
    """``children``: by node the indices of its children, -1 for none (two columns). ``entries``: nodes that are visited
    even if they are children: the roots that an operator names."""

    children: Indices
    entries: Indices | None = None

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
        """The nodes on a circle, and those below one."""
        unsorted: NDArray[np.bool_] = self._peeled(np.flatnonzero(self.orphans)) > 0
        return unsorted

    def _peeled(self, level: Indices) -> Indices:
        """Remove nodes without parents until none is left, a level at once while levels are wide, else node by node.
        Return the parents that each node then has."""
        left = self.parents.copy()
        while len(level) >= _NARROW:
            level = self._below(level, left)
        pending: list[int] = level.tolist()
        if pending:
            counts: list[int] = left.tolist()
            true, false = self.children[:, 0].tolist(), self.children[:, 1].tolist()
            while pending:
                node = pending.pop()
                first, second = true[node], false[node]
                if first >= 0:
                    counts[first] -= 1
                    if not counts[first]:
                        pending.append(first)
                if second >= 0 and second != first:
                    counts[second] -= 1
                    if not counts[second]:
                        pending.append(second)
            left = np.array(counts, np.int64)
        return left

    def _below(self, level: Indices, left: Indices) -> Indices:
        """Remove the edges from the nodes of a level; return the nodes that have no parents any more."""
        rows = self.children[level]
        rows[rows[:, 0] == rows[:, 1], 1] = -1
        below = rows[rows >= 0]
        np.subtract.at(left, below, 1)
        free: Indices = np.unique(below[left[below] == 0])
        return free

    def circles(self, most: int) -> Iterator[list[int]]:
        """Yield the first ``most`` circles, each from its lowest node on, and an empty one if there are more."""
        places = np.flatnonzero(self.unsorted)
        if not len(places):
            return
        parent = self._parent_among(self.unsorted)
        far = parent[places]  # far enough up from every node lies a circle
        up = parent.copy()
        for _ in range(len(places).bit_length()):
            up[places] = up[up[places]]
            far = up[places]
        on_circle = np.unique(far)
        seen: set[int] = set()
        number = 0
        for first in on_circle.tolist():
            if first in seen:
                continue
            number += 1
            if number > most:
                yield []
                return
            around = [first]
            node = int(parent[first])
            while node != first:
                around.append(node)
                node = int(parent[node])
            seen.update(around)
            yield [first, *around[:0:-1]]

    def _parent_among(self, among: NDArray[np.bool_]) -> Indices:
        """Return by node one of its parents, of those in ``among`` where there is one; -1 for none."""
        parents, children = self.edges
        inside = among[parents]
        parent = np.full(self.count, -1, np.int64)
        parent[children] = parents
        parent[children[inside]] = parents[inside]
        return parent

    def reached(self) -> NDArray[np.bool_]:
        """Return the nodes that ``entries`` lead to."""
        assert self.entries is not None  # only asked where an operator names roots
        there = np.zeros(self.count, np.bool_)
        level = np.unique(self.entries)
        there[level] = True
        while len(level) >= _NARROW:
            rows = self.children[level]
            below = rows[rows >= 0]
            level = np.unique(below[~there[below]])
            there[level] = True
        pending: list[int] = level.tolist()
        if pending:
            known = bytearray(there.tobytes())
            true, false = self.children[:, 0].tolist(), self.children[:, 1].tolist()
            while pending:
                node = pending.pop()
                for child in (true[node], false[node]):
                    if child >= 0 and not known[child]:
                        known[child] = 1
                        pending.append(child)
            there = np.frombuffer(bytes(known), np.bool_)
        return there

    def homes(self, roots: Sequence[int]) -> Callable[[int], int | None]:
        """Return what finds, for a node, the first of ``roots`` from which its parents lead to it, by its number in
        the list; None if there is none."""
        parent = self._parent_among(np.zeros(self.count, np.bool_))
        number = {root: place for place, root in reversed(list(enumerate(roots)))}

        def home(node: int) -> int | None:
            seen = set()
            while node >= 0 and node not in seen:
                if node in number:
                    return number[node]
                seen.add(node)
                node = int(parent[node])
            return None

        return home


def around(circle: Sequence[int]) -> str:
    """Format the ids of a circle's nodes for a message, without its middle if it is long."""
    ids = [str(node) for node in (*circle, circle[0])]
    return " -> ".join(ids if len(ids) <= 8 else [*ids[:4], "...", *ids[-3:]])

