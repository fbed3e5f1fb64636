"""Cases of rows of exponentials over their sum: quantizers of few digits and of many, exponentials of zero, equal
elements, a row of two, pixels of a frame one after the other."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np

from hwflow.cores.operator import Folding
from hwflow.cores.streams.softmax_row import SoftmaxRowAttributes, search_of
from hwflow.ir.graph import IntArray, Node
from hwflow.ir.node_attributes import QuotientAttributes
from hwflow.numerics.requantizers.stages import QuantizerStage, chain
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case


def softmax_attributes(
    source: TensorType, scale: float, bits: int, fraction: int, out_scale: Fraction, zero_point: int, result: IntType
) -> SoftmaxRowAttributes:
    """Of an input with this scale, exponentials of ``bits`` below the point, and the quantizer of a model."""
    most = source.interval.hi - source.interval.lo
    table = np.array([round(exp(-scale * distance) * 2**bits) for distance in range(most + 1)])
    stage = QuantizerStage(
        Fraction(1, 2 << fraction), Fraction(1, 4), (), out_scale, Fraction(zero_point), result.min, result.max
    )
    steps = chain((stage,), 0, (4 << fraction) - 1)
    kept = Interval(*steps.reach(0, 2 << fraction))
    type_ = TensorType(source.shape, result, kept)
    assert search_of(fraction, steps) is not None
    return SoftmaxRowAttributes(table, QuotientAttributes(fraction, fraction + 1), steps, type_)


def _case(
    name: str, rows: int, size: int, interval: tuple[int, int], scale: float, bits: int, fraction: int,
    out_scale: Fraction, zero_point: int, result: IntType,
) -> Case:
    source = TensorType((rows, size), IntType.holding(Interval(*interval)), Interval(*interval))
    attributes = softmax_attributes(source, scale, bits, fraction, out_scale, zero_point, result)
    values = {field: getattr(attributes, field) for field in ("table", "quotient", "steps", "result")}
    return Case(name, "softmax_row", values, source, (Folding(1, 1),), _ends)


def _ends(node: Node) -> IntArray:
    """Frames of one element far above all others, in each place, and frames of equal ones."""
    source = node.inputs[0].typed
    rows, size = source.shape
    low, high = source.interval.lo, source.interval.hi
    frames = np.where(np.eye(size, dtype=bool)[:, np.newaxis], high, low) + np.zeros((1, rows, 1), dtype=np.int64)
    return np.concatenate([frames, np.full((1, rows, size), low), np.full((1, rows, size), high)])


I8, U8, U4 = IntType(8, True), IntType(8, False), IntType(4, False)

SOFTMAX_ROW = [
    _case("keywords", 1, 12, (-128, 127), 0.144, 37, 33, Fraction(1, 256), -128, I8),
    _case("unsigned", 1, 5, (-128, 127), 0.1, 36, 33, Fraction(1, 255), 0, U8),
    _case("rows", 3, 4, (0, 63), 0.25, 20, 16, Fraction(1, 100), 3, U8),
    _case("pair", 2, 2, (-8, 7), 0.5, 8, 12, Fraction(1, 16), 0, U4),
    _case("coarse", 1, 7, (-20, 30), 0.3, 16, 12, Fraction(3, 10), 1, U4),
    _case("many", 1, 60, (-128, 127), 0.05, 30, 33, Fraction(1, 256), -128, I8),
]
