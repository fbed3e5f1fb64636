"""Cases of digit recurrences: quotients and roots, rounded to odd."""

from __future__ import annotations

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.ir.graph import IntArray, Node
from hwflow.types import Interval, IntType, TensorType
from tests.cores.cases.case_parts import I8, U8, stream
from tests.cores.harness import Case, Frames


def _within(pixels: int, channels: int, low: int, high: int) -> TensorType:
    interval = Interval(low, high)
    return TensorType((pixels, channels), IntType.holding(interval), interval)


def _foldings(source: TensorType, rounds: tuple[int, ...]) -> tuple[Folding, ...]:
    """One lane with so many cycles per beat, and several with one."""
    lanes = (2, source.shape[1])
    return (*(Folding(1, 1, rounds=each) for each in rounds), *(Folding(n, n) for n in dict.fromkeys(lanes)))


def _ends_of_quotients(node: Node) -> Frames:
    """The ends of the dividend over the least divisor."""
    a, b = (value.typed for value in node.inputs)
    ends = np.array([a.interval.lo, a.interval.hi, 0, min(a.interval.hi, 1)], dtype=np.int64)
    frames = np.broadcast_to(ends.reshape(-1, 1, 1), (4, *a.shape))
    return [frames, np.full_like(frames, b.interval.lo)]


def _quotient(
    name: str, a: TensorType, b: TensorType, fraction: int, bits: int, rounds: tuple[int, ...]
) -> Case:
    attributes = {"fraction": fraction, "bits": bits}
    return Case(name, "quotient", attributes, a, _foldings(a, rounds), _ends_of_quotients, (b,))


QUOTIENT = [
    _quotient("fractions", stream(3, 3, U8), _within(3, 3, 255, 1000), 9, 10, (2, 5, 10)),
    _quotient("of_either_sign", stream(2, 3, I8), _within(2, 3, 3, 20), 6, 12, (1, 4, 12)),
    _quotient("whole", _within(3, 2, 0, 4095), _within(3, 2, 1, 15), 0, 12, (3, 7, 12)),
    _quotient("below_one", _within(3, 2, -20, 20), _within(3, 2, 500, 700), 12, 8, (1, 3, 8)),
    _quotient("long", _within(1, 3, 0, (1 << 34) - 1), _within(1, 3, 1 << 34, 1 << 40), 32, 33, (1, 11, 33)),
    _quotient("of_a_signed_type", stream(2, 2, U8), TensorType((2, 2), I8, Interval(1, 9)), 3, 11, (1, 11)),
]


def _ends_of_roots(node: Node) -> IntArray:
    a = node.inputs[0].typed
    ends = np.array([a.interval.lo, a.interval.hi], dtype=np.int64)
    return np.broadcast_to(ends.reshape(-1, 1, 1), (2, *a.shape))


def _root(name: str, a: TensorType, fraction: int, addend: int, rounds: tuple[int, ...]) -> Case:
    attributes = {"fraction": fraction, "addend": addend}
    return Case(name, "root", attributes, a, _foldings(a, rounds), _ends_of_roots)


ROOT = [
    _root("squares", stream(5, 3, U8), 0, 0, (1, 2, 4)),
    _root("fractions", _within(3, 2, 0, 4095), 5, 0, (1, 3, 11)),
    _root("with_an_addend", stream(3, 3, U8), 4, 12345, (1, 4, 9)),
    _root("from_below_zero", _within(3, 2, -3, 40), 2, 48, (1, 5)),
    _root("long", _within(1, 2, 0, (1 << 30) - 1), 14, 1 << 33, (1, 15, 30)),
]
