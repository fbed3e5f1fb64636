"""Up-sets of the real line, and nested sequences of them.

The preimage of ``{y >= v}`` or ``{y > v}`` under a non-decreasing function is again such a set, or everything, or
nothing. Pulling the bounds of a quantizer's levels back through a chain of functions gives its exact thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import ClassVar


@dataclass(frozen=True)
class Bound:
    """``{x >= value}``, or ``{x > value}`` if ``strict``; with value None everything, or nothing if ``strict``."""

    value: Fraction | None
    strict: bool = False

    ALL: ClassVar[Bound]
    NONE: ClassVar[Bound]

    def __contains__(self, x: Fraction | int) -> bool:
        if self.value is None:
            return not self.strict
        return x > self.value if self.strict else x >= self.value


Bound.ALL = Bound(None, False)
Bound.NONE = Bound(None, True)


@dataclass(frozen=True)
class Ladder:
    """Bounds that are nested, each a subset of the one before: ``always`` times everything, then the finite ones
    ``numerators[k] / denominator`` (strict where ``strict[k]``), then ``never`` times nothing.

    One common denominator (positive, the fractions not reduced) makes a pull-back a few integer operations a level.
    """

    always: int
    numerators: tuple[int, ...]
    strict: tuple[bool, ...]
    denominator: int
    never: int

    @classmethod
    def of(cls, bounds: Iterable[Bound]) -> Ladder:
        """From bounds in order; they must be nested."""
        listed = list(bounds)
        finite = [(b.value, b.strict) for b in listed if b.value is not None]
        denominator = lcm(*(v.denominator for v, _ in finite))
        return cls(
            always=sum(b == Bound.ALL for b in listed),
            numerators=tuple(v.numerator * (denominator // v.denominator) for v, _ in finite),
            strict=tuple(s for _, s in finite),
            denominator=denominator,
            never=sum(b == Bound.NONE for b in listed),
        )

    def bounds(self) -> list[Bound]:
        """The bounds in order."""
        finite = [
            Bound(Fraction(n, self.denominator), s) for n, s in zip(self.numerators, self.strict, strict=True)
        ]
        return [Bound.ALL] * self.always + finite + [Bound.NONE] * self.never

    def map(self, preimage: Callable[[Bound], Bound]) -> Ladder:
        """Replace each finite bound by its preimage under one non-decreasing function."""
        finite = Ladder(0, self.numerators, self.strict, self.denominator, 0).bounds()
        pulled = Ladder.of(preimage(b) for b in finite)
        return Ladder(
            self.always + pulled.always, pulled.numerators, pulled.strict, pulled.denominator, self.never + pulled.never
        )

    def holding(self, x: Fraction | int) -> int:
        """How many of the bounds contain ``x``."""
        x = Fraction(x)
        left, right = x.numerator * self.denominator, x.denominator
        return self.always + sum(
            left > n * right or (left == n * right and not s) for n, s in zip(self.numerators, self.strict, strict=True)
        )
