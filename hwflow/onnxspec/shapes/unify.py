"""Unify dimension variables: equalities between them, and their sizes.

A variable has one size in the whole model (IR.md, "Static tensor shapes"), so all facts go into one union-find (R. E.
Tarjan, Efficiency of a good but not linear set union algorithm, 1975).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SizeBinding:
    """``variable`` has ``size``, according to ``place``. ``variable`` is None where the place itself has that size."""

    variable: str | None
    size: int
    place: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """``place`` equates two different sizes; ``first`` was known before."""

    first: SizeBinding
    second: SizeBinding
    place: str


class Unifier:
    """Sizes and equalities of dimension variables, with their origins."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._bound: dict[str, SizeBinding] = {}  # by root
        self._undo: list[Callable[[], object]] | None = None  # undoes the changes of :meth:`trial`

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undo everything added in the body afterwards. Trials nest."""
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
        """Return the representative of all variables equal to this one."""
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
        """Add the equality of ``a`` and ``b``, each a variable or a size, found at ``place``. A conflict changes
        nothing: the size known first stays."""
        if isinstance(a, int) and isinstance(b, int):
            return None if a == b else Conflict(SizeBinding(None, a, place), SizeBinding(None, b, place), place)
        if isinstance(a, int):
            a, b = b, a
        assert isinstance(a, str)  # two integers are handled above
        root = self.root(a)
        known = self._bound.get(root)
        if isinstance(b, int):
            if known is None:
                self._put(self._bound, root, SizeBinding(a, b, place))
                return None
            return None if known.size == b else Conflict(known, SizeBinding(a, b, place), place)
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

    def bound(self, variable: str) -> SizeBinding | None:
        """Return the size of a variable with its origin, None if unknown."""
        return self._bound.get(self.root(variable))

    def size(self, variable: str) -> int | None:
        """Return the size of a variable, None if unknown."""
        bound = self._bound.get(self.root(variable)) if variable in self._parent else None
        return None if bound is None else bound.size

    def sizes(self) -> dict[str, int]:
        """Return all variables of known size."""
        return {variable: size for variable in list(self._parent) if (size := self.size(variable)) is not None}
