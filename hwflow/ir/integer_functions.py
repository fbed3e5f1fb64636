"""Elementwise functions of integer tensors: interval and value of the exact result.

:mod:`hwflow.ir.wrapping` wraps the result to an ONNX type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.types import Interval

IntArray = npt.NDArray[np.int64]


class Function(ABC):
    """A function of ``operands`` integers."""

    operands: int

    @abstractmethod
    def interval(self, ranges: Sequence[Interval]) -> Interval:
        """Return an interval that contains every result for operands within ``ranges``."""

    @abstractmethod
    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        """Return the results, modulo 2**64."""

    def used_bits(self, operand: int, result: int) -> int:
        """Return how many of an operand's bits the lowest ``result`` bits depend on."""
        return operand

    def zero_bits(self, constants: Sequence[Any]) -> int:
        """Return the trailing bits that are 0 in every result; ``constants``: the operands' values where they are
        known."""
        return 0


def _all_ones(value: int) -> int:
    """Return the greatest number of the same width."""
    return (1 << max(value, 0).bit_length()) - 1


def _and(a: Interval, b: Interval) -> Interval:
    if a.lo < 0 and b.lo < 0:
        return Interval(-_all_ones(-min(a.lo, b.lo) - 1) - 1, max(a.hi, b.hi, 0))
    return Interval(0, min(r.hi for r in (a, b) if r.lo >= 0))


def _bitwise(a: Interval, b: Interval) -> Interval:
    """Return the interval of Or and Xor: as wide as the wider operand."""
    most = max(_all_ones(v) for r in (a, b) for v in (r.hi, -r.lo - 1))
    return Interval(-most - 1 if min(a.lo, b.lo) < 0 else 0, most)


def _decided(always: bool, never: bool) -> Interval:
    return Interval(int(always), int(not never))


_INTERVALS: Mapping[str, Callable[..., Interval]] = {
    "add": lambda a, b: Interval(a.lo + b.lo, a.hi + b.hi),
    "and": _and,
    "equal": lambda a, b: _decided(a.lo == a.hi == b.lo == b.hi, a.hi < b.lo or b.hi < a.lo),
    "greater": lambda a, b: _decided(a.lo > b.hi, a.hi <= b.lo),
    "greater_or_equal": lambda a, b: _decided(a.lo >= b.hi, a.hi < b.lo),
    "less": lambda a, b: _decided(a.hi < b.lo, a.lo >= b.hi),
    "less_or_equal": lambda a, b: _decided(a.hi <= b.lo, a.lo > b.hi),
    "not": lambda a: Interval(-a.hi - 1, -a.lo - 1),
    "not_equal": lambda a, b: _decided(a.hi < b.lo or b.hi < a.lo, a.lo == a.hi == b.lo == b.hi),
    "or": _bitwise,
    "sub": lambda a, b: Interval(a.lo - b.hi, a.hi - b.lo),
    "where": lambda condition, a, b: a if condition.lo else b if not condition.hi else a.hull(b),
    "wrap": lambda a: a,
    "xor": _bitwise,
}

_MEANINGS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "and": np.bitwise_and,
    "equal": np.equal,
    "greater": np.greater,
    "greater_or_equal": np.greater_equal,
    "less": np.less,
    "less_or_equal": np.less_equal,
    "not": np.bitwise_not,
    "not_equal": np.not_equal,
    "or": np.bitwise_or,
    "sub": np.subtract,
    "where": lambda condition, a, b: np.where(condition != 0, a, b),
    "wrap": lambda a: a,
    "xor": np.bitwise_xor,
}

_OPERANDS = {"not": 1, "wrap": 1, "where": 3}
_MODULAR = frozenset({"add", "and", "not", "or", "sub", "wrap", "xor"})


@dataclass(frozen=True)
class Simple(Function):
    """A function of a single pipeline stage, see :class:`hdl_lib.arithmetic.lane_functions.Expression`."""

    name: str

    @property
    def operands(self) -> int:  # type: ignore[override]  # a class constant elsewhere
        return _OPERANDS.get(self.name, 2)

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        return _INTERVALS[self.name](*ranges)

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        return np.asarray(_MEANINGS[self.name](*arrays), dtype=np.int64)

    def used_bits(self, operand: int, result: int) -> int:
        return min(operand, result) if self.name in _MODULAR else operand


@dataclass(frozen=True)
class Extreme(Function):
    """The minimum of two operands, or with ``greatest`` their maximum."""

    greatest: bool
    operands = 2

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        choose = max if self.greatest else min
        return Interval(choose(r.lo for r in ranges), choose(r.hi for r in ranges))

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        return (np.maximum if self.greatest else np.minimum)(*arrays)


@dataclass(frozen=True)
class Magnitude(Function):
    """The operand's absolute value."""

    operands = 1

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        (x,) = ranges
        return Interval(max(x.lo, -x.hi, 0), max(-x.lo, x.hi))

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        return np.abs(arrays[0])


@dataclass(frozen=True)
class Multiplied(Function):
    """The product of two operands."""

    operands = 2

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        a, b = ranges
        return a.times(b)

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        return arrays[0] * arrays[1]


@dataclass(frozen=True)
class Times(Function):
    """The operand times a constant."""

    factor: int
    operands = 1

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        return ranges[0].times(Interval(self.factor, self.factor))

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        return arrays[0] * self.factor

    def used_bits(self, operand: int, result: int) -> int:
        return max(0, min(operand, result - self.zero_bits(())))

    def zero_bits(self, constants: Sequence[Any]) -> int:
        return max(0, (self.factor & -self.factor).bit_length() - 1)


@dataclass(frozen=True)
class Shifted(Function):
    """The first operand, of a type of ``bits`` bits, shifted by the second. A distance outside 0 .. ``bits`` - 1 gives
    0 to the left, and the sign (0 or -1) to the right."""

    left: bool
    bits: int
    operands = 2

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        x, distance = ranges
        nearest, farthest = max(distance.lo, 0), min(distance.hi, self.bits - 1)
        ends = []
        if nearest <= farthest:
            for by in (nearest, farthest):
                ends += [v << by if self.left else v >> by for v in (x.lo, x.hi)]
        if distance.lo < 0 or distance.hi >= self.bits:
            ends += [0] if self.left else [v >> self.bits for v in (x.lo, x.hi)]
        return Interval.around(ends)

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        x, distance = arrays
        outside = (distance < 0) | (distance >= self.bits)
        by = np.where(outside, 0, distance)
        return np.where(outside, 0, x << by) if self.left else np.where(outside, np.where(x < 0, -1, 0), x >> by)

    def zero_bits(self, constants: Sequence[Any]) -> int:
        distance = constants[1]
        return distance if self.left and isinstance(distance, int) else 0


class Division(Function):
    """Divides the first operand by the second; 0 where the divisor is 0."""

    operands = 2

    def interval(self, ranges: Sequence[Interval]) -> Interval:
        a, b = ranges
        divisors = {d for d in (b.lo, b.hi, -1, 1) if d and b.includes(d)}
        return self._range(a, b, divisors) if divisors else Interval(0, 0)

    def evaluate(self, arrays: Sequence[IntArray]) -> IntArray:
        a, b = arrays
        return np.where(b == 0, 0, self._divided(a, np.where(b == 0, 1, b)))

    @abstractmethod
    def _range(self, a: Interval, b: Interval, divisors: Collection[int]) -> Interval:
        """Return the interval of the results. ``divisors``: the extreme ones of ``b`` of each sign, not empty."""

    @abstractmethod
    def _divided(self, a: IntArray, divisor: IntArray) -> IntArray: ...


@dataclass(frozen=True)
class Quotient(Division):
    """Rounded towards zero."""

    def _range(self, a: Interval, b: Interval, divisors: Collection[int]) -> Interval:
        ends = [_quotient(x, d) for x in (a.lo, a.hi) for d in divisors] + ([0] if b.includes(0) else [])
        return Interval.around(ends)

    def _divided(self, a: IntArray, divisor: IntArray) -> IntArray:
        return (a - np.fmod(a, divisor)) // divisor


@dataclass(frozen=True)
class Remainder(Division):
    """With the sign of the dividend, as in C."""

    def _range(self, a: Interval, b: Interval, divisors: Collection[int]) -> Interval:
        most = max(abs(d) for d in divisors) - 1
        return Interval(max(min(a.lo, 0), -most), min(max(a.hi, 0), most))

    def _divided(self, a: IntArray, divisor: IntArray) -> IntArray:
        return np.fmod(a, divisor)


@dataclass(frozen=True)
class Modulus(Division):
    """With the sign of the divisor, as in Python."""

    def _range(self, a: Interval, b: Interval, divisors: Collection[int]) -> Interval:
        low, high = min(b.lo + 1, 0), max(b.hi - 1, 0)
        return Interval(max(low, a.lo) if a.hi <= 0 and b.hi <= 0 else low,
                        min(high, a.hi) if a.lo >= 0 and b.lo >= 0 else high)

    def _divided(self, a: IntArray, divisor: IntArray) -> IntArray:
        return np.mod(a, divisor)


def _quotient(a: int, b: int) -> int:
    """Divide, rounding towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MAXIMUM, MINIMUM = Extreme(True), Extreme(False)
