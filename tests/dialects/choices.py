"""Where the generators of models take their decisions from: Hypothesis, which shrinks them, or a seeded generator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

T = TypeVar("T")


class Choices(ABC):
    """Decisions. The first of several possibilities is the simplest."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, one_in: int) -> bool:
        """True once in about ``one_in`` times."""
        return self.integer(0, one_in - 1) == one_in - 1

    def generator(self) -> np.random.Generator:
        """For arrays, whose elements are not worth a decision each."""
        return np.random.default_rng(self.integer(0, 9999))


class Drawn(Choices):
    """Of a Hypothesis strategy."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))


class Seeded(Choices):
    """Of a seed: as fast as it can be, for thousands of models."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))
