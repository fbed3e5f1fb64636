"""Exact non-decreasing functions of the reals that may stand between a quantized value and the next quantizer.

Each knows its value at a rational number and the exact preimage of a :class:`~hwflow.numerics.bound.Bound`, flat parts
included. A new function implements ``__call__`` and ``pull`` (``ladder.map`` turns a preimage of one bound into that).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, gcd

from hwflow.numerics.bound import Bound, Ladder
from hwflow.numerics.rounding import Quantizer, Rounding


class Elementwise(ABC):
    """A non-decreasing function; subclasses are frozen dataclasses (hashable, comparable)."""

    @abstractmethod
    def __call__(self, x: Fraction) -> Fraction:
        """The value at ``x``."""

    @abstractmethod
    def pull(self, ladder: Ladder) -> Ladder:
        """The preimages of all bounds of ``ladder``, in order."""

    def preimage(self, bound: Bound) -> Bound:
        """``{x : self(x) in bound}``."""
        return self.pull(Ladder.of([bound])).bounds()[0]


@dataclass(frozen=True)
class Affine(Elementwise):
    """``multiplier * x + addend`` with ``multiplier >= 0`` (0: a constant, as a BatchNormalization may have)."""

    multiplier: Fraction
    addend: Fraction

    def __post_init__(self) -> None:
        if self.multiplier < 0:
            raise ValueError(f"multiplier of an Affine must not be negative, not {self.multiplier}")

    def __call__(self, x: Fraction) -> Fraction:
        return self.multiplier * x + self.addend

    def pull(self, ladder: Ladder) -> Ladder:
        m, a = Fraction(self.multiplier), Fraction(self.addend)
        if m == 0:
            inside = ladder.holding(a)
            return Ladder(inside, (), (), 1, ladder.always + len(ladder.numerators) + ladder.never - inside)
        # n/d >= m*x + a  <=>  (n/d - a) / m, over one denominator again
        factor = a.denominator * m.denominator
        offset = -a.numerator * ladder.denominator * m.denominator
        denominator = ladder.denominator * a.denominator * m.numerator
        g = gcd(factor, offset, denominator)
        factor, offset, denominator = factor // g, offset // g, denominator // g
        numerators = tuple([n * factor + offset for n in ladder.numerators])
        return Ladder(ladder.always, numerators, ladder.strict, denominator, ladder.never)


@dataclass(frozen=True)
class Clip(Elementwise):
    """``min(max(x, low), high)``, as ONNX defines Clip (``low > high`` gives ``high`` everywhere); None: no limit."""

    low: Fraction | None
    high: Fraction | None

    def __call__(self, x: Fraction) -> Fraction:
        if self.low is not None:
            x = max(x, self.low)
        return x if self.high is None else min(x, self.high)

    def pull(self, ladder: Ladder) -> Ladder:
        first, last = 0, len(ladder.numerators)
        if self.high is not None:  # bounds that do not contain high are never reached
            last = _first_without(ladder, Fraction(self.high))
        if self.low is not None:  # of the rest, those that contain low always hold
            first = min(_first_without(ladder, Fraction(self.low)), last)
        dropped = len(ladder.numerators) - last
        return Ladder(
            ladder.always + first, ladder.numerators[first:last], ladder.strict[first:last], ladder.denominator,
            ladder.never + dropped,
        )


def _first_without(ladder: Ladder, x: Fraction) -> int:
    """Index among the finite bounds of the first that does not contain ``x`` (they are nested: a bisection)."""
    left, right = x.numerator * ladder.denominator, x.denominator

    def excludes(k: int) -> bool:
        n = ladder.numerators[k] * right
        return n > left or (n == left and ladder.strict[k])

    return bisect_left(range(len(ladder.numerators)), True, key=excludes)


@dataclass(frozen=True)
class Relu(Elementwise):
    """``max(x, 0)``."""

    def __call__(self, x: Fraction) -> Fraction:
        return max(x, Fraction(0))

    def pull(self, ladder: Ladder) -> Ladder:
        return _RELU.pull(ladder)


_RELU = Clip(Fraction(0), None)


@dataclass(frozen=True)
class QuantizeDequantize(Elementwise):
    """Quantize, then dequantize with the same parameters: a staircase of the reals (see ``Quantizer``)."""

    scale: Fraction
    zero_point: Fraction | int
    low: int
    high: int
    rounding: Rounding = Rounding.ROUND
    zero_point_inside: bool = False
    quantizer: Quantizer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        quantizer = Quantizer(
            self.scale, self.zero_point, self.low, self.high, self.rounding, self.zero_point_inside
        )
        object.__setattr__(self, "quantizer", quantizer)

    def __call__(self, x: Fraction) -> Fraction:
        return self.quantizer.dequantize(self.quantizer(x))

    def pull(self, ladder: Ladder) -> Ladder:
        return ladder.map(self._preimage)

    def _preimage(self, bound: Bound) -> Bound:
        assert bound.value is not None
        position = bound.value / self.scale + self.zero_point
        level = floor(position) + 1 if bound.strict else ceil(position)  # the least level inside the bound
        if level <= self.low:
            return Bound.ALL
        if level > self.high:
            return Bound.NONE
        return Bound(*self.quantizer.bound(level))


@dataclass(frozen=True)
class LeakyRelu(Elementwise):
    alpha: Fraction

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")


@dataclass(frozen=True)
class HardSigmoid(Elementwise):
    alpha: Fraction
    beta: Fraction

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")


@dataclass(frozen=True)
class Abs(Elementwise):
    pass

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")


@dataclass(frozen=True)
class Sign(Elementwise):
    pass

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")


@dataclass(frozen=True)
class Reciprocal(Elementwise):
    pass

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")


@dataclass(frozen=True)
class Round(Elementwise):
    rounding: Fraction

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")

@dataclass(frozen=True)
class Steps(Elementwise):
    thresholds: Fraction

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")

@dataclass(frozen=True)
class Combination(Elementwise):
    op: Fraction
    left: Fraction
    right: Fraction

    def __call__(self, x: Fraction) -> Fraction:
        raise ValueError("stub")

    def pull(self, ladder: Ladder) -> Ladder:
        raise ValueError("stub")
