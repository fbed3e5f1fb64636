"""Dot products of a vector with rows of constant weights: the sum of products or, ``binary``, the count of equal bits.

Binary weights and inputs are 0 and 1. ``x == w`` counts as ``(2 * w - 1) * x + (1 - w)``, so that the count of a row is
a sum of products with weights of -1 and 1 plus the number of its zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hwflow.cores.operator import exact_matmul
from hwflow.errors import Finding, InternalError
from hwflow.ir.graph import Attributes, IntArray, Node
from hwflow.numerics.accumulator_bounds import bounds
from hwflow.types import Interval, IntType


@dataclass(frozen=True, eq=False)
class MvuAttributes(Attributes):
    """``weights`` int64 [M, K], or [sets, M, K] of which vectors take one after the other in turns;
    ``pixels_per_vector``: a vector is that many consecutive pixels of the input stream; ``binary``: weights and inputs
    are 0 and 1, and what is summed is 1 where they are equal, else 0."""

    weights: IntArray
    pixels_per_vector: int
    binary: bool = False


class HasWeights(Protocol):
    """Attributes with a matrix."""

    @property
    def weights(self) -> IntArray: ...


def sets_of(weights: IntArray) -> list[IntArray]:
    """The matrices [M, K] that vectors take in turns."""
    return [weights] if weights.ndim == 2 else list(weights)


def ends_of(weights: IntArray) -> tuple[int, int]:
    """The least and the greatest weight, the zeros of surplus lanes among them."""
    return min(0, int(weights.min())), max(0, int(weights.max()))


def weight_range(node: Node[HasWeights]) -> tuple[int, int]:
    """The same of a node, which is asked for each folding."""
    return node.once(_weight_range)


def _weight_range(node: Node[HasWeights]) -> tuple[int, int]:
    return ends_of(node.attributes.weights)


def weight_type(node: Node[HasWeights]) -> IntType:
    """The narrowest type that holds them."""
    return node.once(_weight_type)


def _weight_type(node: Node[HasWeights]) -> IntType:
    return IntType.holding(Interval(*weight_range(node)))


def row_intervals(weights: IntArray, ranges: Sequence[Interval], *, binary: bool) -> tuple[Interval, ...]:
    """The exact interval of each row of ``weights`` [M, K] over inputs within K ``ranges``: both ends are attained.

    Raises :class:`InternalError` if ``binary`` and a weight or an input may be other than 0 and 1.
    """
    return group_intervals(weights, [ranges], 1, binary=binary)


def group_intervals(
    weights: IntArray, ranges: Sequence[Sequence[Interval]], repeat: int, *, binary: bool
) -> tuple[Interval, ...]:
    """The same for groups of as many rows each, one after the other, whose inputs lie within ranges of their own:
    ``ranges`` are those of each group, and each of them is that of ``repeat`` inputs side by side."""
    low, high = np.array([[r.lo for r in own] for own in ranges]), np.array([[r.hi for r in own] for own in ranges])
    if binary:
        _check_bits("weights", int(weights.min(initial=0)), int(weights.max(initial=0)))
        _check_bits("inputs", int(low.min()), int(high.max()))
    factors, zeros = _as_products(weights, binary)
    low, high = (np.repeat(ends, repeat, axis=1) for ends in (low, high))
    if len(ranges) > 1:
        low, high = (np.repeat(ends, len(weights) // len(ranges), axis=0) for ends in (low, high))
    else:
        low, high = low[0], high[0]
    least, greatest = bounds(factors, low, high)
    return tuple([Interval(a + z, b + z) for a, b, z in zip(least, greatest, zeros.tolist(), strict=True)])


def row_values(weights: IntArray, x: IntArray, *, binary: bool) -> IntArray:
    """x [..., K] to [..., M], exactly."""
    factors, zeros = _as_products(weights, binary)
    values = exact_matmul(x, factors)
    return values + zeros if binary else values


def _as_products(weights: IntArray, binary: bool) -> tuple[IntArray, IntArray]:
    """Weights and addends [M] of the sum of products that the rows are."""
    if not binary:
        return weights, np.zeros(len(weights), dtype=np.int64)
    return 2 * weights - 1, (1 - weights).sum(axis=1)


def _check_bits(what: str, least: int, greatest: int) -> None:
    if least < 0 or greatest > 1:
        raise InternalError(
            Finding(
                "binary-operands", "binary product", f"{what} must be 0 and 1, not within {Interval(least, greatest)}",
                "report it as a defect of hwflow",
            )
        )
