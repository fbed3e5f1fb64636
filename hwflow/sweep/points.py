"""The axes of a sweep, and the points that their values combine to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hwflow.api.request import UNTIL, Asked, Rate

SCHEDULE = "schedule"
"""The step that makes no files: exact cycles, predicted resources."""

STEPS = (SCHEDULE, *UNTIL)


@dataclass(frozen=True)
class Point:
    """One design: a value of each axis.

    ``fps``: frames per second, "link" or None, the fastest; ``clock_mhz``: None, the board's own; ``budget``: pairs as
    :func:`hwflow.compile` takes them, () for the default; ``bits`` and ``activations``: what
    :func:`hwflow.quantize` gets, None for a model that is compiled as it is; ``seed``: the one seed of place and
    route, None where the usual strategies are tried.
    """

    board: str
    fps: Rate = None
    clock_mhz: float | None = None
    budget: tuple[tuple[str, str], ...] = ()
    bits: int | None = None
    activations: str | None = None
    seed: int | None = None

    def table(self) -> dict[str, Any]:
        """Return the values as JSON has them."""
        return {
            "board": self.board, "fps": "max" if self.fps is None else self.fps, "clock_mhz": self.clock_mhz,
            "budget": dict(self.budget) or None, "bits": self.bits, "activations": self.activations, "seed": self.seed,
        }

    @property
    def design(self) -> Point:
        """The same without its seed."""
        return replace(self, seed=None)


@dataclass(frozen=True)
class Axes:
    """The values of each axis; a sweep has a point for each combination. ``seeds``: of place and route, 1 to this; 0:
    it is no axis."""

    boards: Sequence[str]
    fps: Sequence[Rate] = (None,)
    clocks: Sequence[float | None] = (None,)
    budgets: Sequence[Asked | None] = (None,)
    bits: Sequence[int | None] = (None,)
    activations: Sequence[str | None] = (None,)
    seeds: int = 0

    def points(self) -> list[Point]:
        """Return the combinations, each once; those with the same design, then the same model stand together."""
        budgets = [tuple(sorted((name, str(value)) for name, value in (b or {}).items())) for b in self.budgets]
        seeds = range(1, self.seeds + 1) if self.seeds else [None]
        every = product(self.bits, self.activations, self.boards, self.fps, self.clocks, budgets, seeds)
        points = (
            Point(board, fps, clock, budget, bits, activations, seed)
            for bits, activations, board, fps, clock, budget, seed in every
        )
        return list(dict.fromkeys(points))


def key_of(*tables: Mapping[str, Any]) -> str:
    """Return the digest of what decides a result, as JSON can hold it."""
    return hashlib.sha256(json.dumps(tables, sort_keys=True, default=str).encode()).hexdigest()[:24]
