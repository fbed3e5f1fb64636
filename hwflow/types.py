"""What every IR value is: integers of a type, within an exact interval, in a shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hwflow.errors import InternalError


@dataclass(frozen=True)
class Interval:
    """The integers from ``lo`` to ``hi``, both included; derived by analysis, so usually narrower than a type."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise InternalError.of(
                "interval-ordered", "interval", f"lo must be at most hi, not {self.lo} > {self.hi}", "report it"
            )

    @classmethod
    def around(cls, numbers: Iterable[int]) -> Interval:
        """Return the least interval that holds all ``numbers``, at least one."""
        known = list(numbers)
        return cls(min(known), max(known))

    @classmethod
    def hull_of(cls, intervals: Iterable[Interval]) -> Interval:
        """Return the least interval that holds all ``intervals``, at least one."""
        return cls.around(end for interval in intervals for end in (interval.lo, interval.hi))

    def times(self, other: Interval) -> Interval:
        """Return the least interval that holds all products."""
        return Interval.around(a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi))

    def hull(self, other: Interval) -> Interval:
        """Return the least interval that holds both."""
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi))

    def plus(self, number: int) -> Interval:
        """Return the interval of the sums of its values and a number."""
        return Interval(self.lo + number, self.hi + number)

    def includes(self, value: int) -> bool:
        return self.lo <= value <= self.hi

    def __str__(self) -> str:
        return f"[{self.lo}, {self.hi}]"


@dataclass(frozen=True)
class IntType:
    """A hardware integer: ``bits`` >= 1, two's complement when ``signed``."""

    bits: int
    signed: bool

    @property
    def min(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def max(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def interval(self) -> Interval:
        return Interval(self.min, self.max)

    @classmethod
    def holding(cls, interval: Interval) -> IntType:
        """Return the narrowest type that holds ``interval``: unsigned when nothing is negative."""
        if interval.lo >= 0:
            return cls(max(1, interval.hi.bit_length()), False)
        return cls(max((-interval.lo - 1).bit_length(), max(0, interval.hi).bit_length()) + 1, True)

    def __str__(self) -> str:
        return f"{'i' if self.signed else 'u'}{self.bits}"


@dataclass(frozen=True)
class TensorType:
    """An integer tensor of one frame: ``shape`` without the frame dimension.

    Before the dataflow stage the shape is the ONNX one (channels first); from the dataflow stage on it is
    (pixels, channels), the order of the stream. ``channels`` holds an interval for each index of the axis
    ``channel_axis`` where the analysis knows more than the hull ``interval``; empty otherwise.
    """

    shape: tuple[int, ...]
    element: IntType
    interval: Interval
    channels: tuple[Interval, ...] = ()
    channel_axis: int = 0

    def channel_intervals(self, axis: int) -> tuple[Interval, ...]:
        """Return one interval for each index along ``axis``."""
        if self.channels and self.channel_axis % len(self.shape) == axis % len(self.shape):
            return self.channels
        return (self.interval,) * self.shape[axis]

    @classmethod
    def of(cls, shape: tuple[int, ...], channels: tuple[Interval, ...], channel_axis: int) -> TensorType:
        """Return a tensor whose intervals are known for each channel; the element is the narrowest type for all."""
        hull = channels[0]
        for interval in {id(interval): interval for interval in channels}.values():  # most are one object
            hull = hull.hull(interval)
        return cls(shape, IntType.holding(hull), hull, channels, channel_axis)

    def __str__(self) -> str:
        return f"{self.element}[{'x'.join(map(str, self.shape))}] in {self.interval}"
