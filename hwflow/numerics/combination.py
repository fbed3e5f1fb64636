"""Two chains of functions of the same number, combined: ``x * sigmoid(x)``, say."""

from __future__ import annotations

from dataclasses import dataclass

from hwflow.numerics.float_interval import FloatIntervals
from hwflow.numerics.function import Elementwise, enclose, floats
from hwflow.numerics.interval import Interval

OPERATIONS = ("add", "sub", "mul", "div", "min", "max")


@dataclass(frozen=True)
class Combination(Elementwise):
    """``left(x) op right(x)`` with ``op`` one of OPERATIONS; an empty chain is x itself."""

    op: str
    left: tuple[Elementwise, ...]
    right: tuple[Elementwise, ...]

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:
            raise ValueError(f"operation of a Combination must be one of {', '.join(OPERATIONS)}, not {self.op}")

    def enclose(self, x: Interval, bits: int) -> Interval:
        a, b = enclose(self.left, x, bits), enclose(self.right, x, bits)
        match self.op:
            case "add":
                return a + b
            case "sub":
                return a + -b
            case "mul":
                return a * b
            case "div":
                return a * b.reciprocal()
            case "min":
                return a.minimum(b)
            case _:
                return a.maximum(b)

    def floats(self, x: FloatIntervals) -> FloatIntervals:
        a, b = floats(self.left, x), floats(self.right, x)
        match self.op:
            case "add":
                return a.sum(b)
            case "sub":
                return a.sum(b.negated())
            case "mul":
                return a.product(b)
            case "div":
                return a.product(b.reciprocal())
            case "min":
                return a.minimum(b)
            case _:
                return a.maximum(b)
