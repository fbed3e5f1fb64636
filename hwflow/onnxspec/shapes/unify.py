"""Dimension variables: which are equal to each other, and what sizes they have.

A variable means one size in the whole model (IR.md, "Static tensor shapes"), so everything that is known about any of
them goes into one union-find (R. E. Tarjan, Efficiency of a good but not linear set union algorithm, 1975).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bound:
    """``variable`` is ``size``, as ``place`` says. ``variable`` is None where the place itself has that size."""

    variable: str | None
    size: int
    place: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """``place`` makes two equal that have different sizes; ``first`` was known before."""

    first: Bound
    second: Bound
    place: str


class Unifier:
    """Sizes and equalities of dimension variables, with the places that they come from."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._bound: dict[str, Bound] = {}  # of the roots
        self._undo: list[Callable[[], object]] | None = None  # what takes back the changes of :meth:`trial`

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Everything added in the body is forgotten behind it. Trials nest."""
        before, self._undo = self._undo, []
        try:
            yield
        finally:
            for undo in reversed(self._undo):
                undo()
            self._undo = before

    def _put(self, table: dict[str, T], key: str, value: T) -> None:
        if self._undo is not None:
            self._undo.append(partial(table.__setitem__, key, table[key]) if key in table else partial(table.pop, key))
        table[key] = value

    def root(self, variable: str) -> str:
        """The variable that stands for all that are equal to this one."""
        parent = self._parent
        if variable not in parent:
            self._put(parent, variable, variable)
            return variable
        root = variable
        while (above := parent[root]) != root:
            root = above
        while (above := parent[variable]) != root:
            self._put(parent, variable, root)
            variable = above
        return root

    def add_equal(self, a: str | int, b: str | int, place: str) -> Conflict | None:
        """``place`` says that ``a`` equals ``b``, each a variable or a size. A conflict changes nothing: the size that
        was known first stays."""
        if isinstance(a, int) and isinstance(b, int):
            return None if a == b else Conflict(Bound(None, a, place), Bound(None, b, place), place)
        if isinstance(a, int):
            a, b = b, a
        assert isinstance(a, str)  # two integers are dealt with above
        root = self.root(a)
        known = self._bound.get(root)
        if isinstance(b, int):
            if known is None:
                self._put(self._bound, root, Bound(a, b, place))
                return None
            return None if known.size == b else Conflict(known, Bound(a, b, place), place)
        other = self.root(b)
        if other == root:
            return None
        second = self._bound.get(other)
        if known is not None and second is not None and known.size != second.size:
            return Conflict(known, second, place)
        self._put(self._parent, other, root)
        if known is None and second is not None:
            self._put(self._bound, root, second)
        return None

    def bound(self, variable: str) -> Bound | None:
        """The size of a variable with the place that says so, None if it is not known."""
        return self._bound.get(self.root(variable))

    def size(self, variable: str) -> int | None:
        """The size of a variable, None if it is not known."""
        bound = self._bound.get(self.root(variable)) if variable in self._parent else None
        return None if bound is None else bound.size

    def sizes(self) -> dict[str, int]:
        """All variables whose size is known."""
        return {variable: size for variable in list(self._parent) if (size := self.size(variable)) is not None}
