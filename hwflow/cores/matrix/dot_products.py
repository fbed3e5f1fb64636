"""Dot products of a vector with rows of constant weights: the sum of products or, ``binary``, the count of equal bits.

Binary weights and inputs are 0 and 1. ``x == w`` counts as ``(2 * w - 1) * x + (1 - w)``, so that the count of a row is
a sum of products with weights of -1 and 1 plus the number of its zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hwflow.cores.logical.image_windows import Clipping, WindowGeometry
from hwflow.cores.operator import exact_matmul
from hwflow.errors import InternalError
from hwflow.ir.graph import Attributes, IntArray, Node
from hwflow.ir.node_attributes import HeldSums
from hwflow.numerics.accumulator_bounds import bounds
from hwflow.types import Interval, IntType


@dataclass(frozen=True, eq=False)
class WeightAttributes(Attributes):
    """Of a core with constant ``weights``, int64; ``held``: room for other ones."""

    weights: IntArray
    held: HeldSums | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class MvuAttributes(WeightAttributes):
    """``weights`` [M, K], or [sets, M, K], which consecutive vectors take in turn; ``pixels_per_vector``:
    consecutive pixels of the input stream that form a vector; ``binary``: weights and inputs are 0 and 1, and the
    result counts equal ones. ``windows``: those that the vectors are, if padding adds nothing; if ``clipping`` says so,
    without the pixels outside the image. ``rounds``: weights are [rounds * sets, M, K], and frames take the sets of a
    round in turns."""

    op = "mvu"
    pixels_per_vector: int
    binary: bool = False
    windows: WindowGeometry | None = None
    clipping: Clipping = Clipping.NONE
    rounds: int = 1

    @property
    def clipped(self) -> WindowGeometry | None:
        """Return the windows, if they come clipped."""
        return self.windows if self.clipping == Clipping.CLIPPED else None


def sets_of(weights: IntArray) -> list[IntArray]:
    """Return the matrices [M, K] that vectors take in turn."""
    return [weights] if weights.ndim == 2 else list(weights)


def ends_of(weights: IntArray) -> tuple[int, int]:
    """Return the least and the greatest weight, including the zeros of surplus lanes."""
    return min(0, int(weights.min())), max(0, int(weights.max()))


def weight_range(node: Node[WeightAttributes]) -> tuple[int, int]:
    """Return :func:`ends_of` of a node, computed once."""
    return node.once(_weight_range)


def _weight_range(node: Node[WeightAttributes]) -> tuple[int, int]:
    held = node.attributes.held
    if held is not None:
        kind = IntType(held.weight_bits, True)
        return kind.min, kind.max
    return ends_of(node.attributes.weights)


def weight_type(node: Node[WeightAttributes]) -> IntType:
    """Return the narrowest type of a node's weights, including the zeros of surplus lanes."""
    return node.once(_weight_type)


def _weight_type(node: Node[WeightAttributes]) -> IntType:
    return IntType.holding(Interval(*weight_range(node)))


def row_intervals(weights: IntArray, ranges: Sequence[Interval], *, binary: bool) -> tuple[Interval, ...]:
    """Return the exact interval of each row of ``weights`` [M, K] over inputs within K ``ranges``: both ends are
    attained.

    Raises :class:`InternalError` if ``binary`` and a weight or an input may be other than 0 and 1.
    """
    return group_intervals(weights, [ranges], 1, binary=binary)


def group_intervals(
    weights: IntArray, ranges: Sequence[Sequence[Interval]], repeat: int, *, binary: bool
) -> tuple[Interval, ...]:
    """Return :func:`row_intervals` of groups of equally many consecutive rows, each with inputs of its own: ``ranges``
    are those of each group, each for ``repeat`` adjacent inputs."""
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
    """Multiply x [..., K] to [..., M], exactly."""
    factors, zeros = _as_products(weights, binary)
    values = exact_matmul(x, factors)
    return values + zeros if binary else values


def _as_products(weights: IntArray, binary: bool) -> tuple[IntArray, IntArray]:
    """Return the weights and addends [M] of the rows as sums of products."""
    if not binary:
        return weights, np.zeros(len(weights), dtype=np.int64)
    return 2 * weights - 1, (1 - weights).sum(axis=1)


def _check_bits(what: str, least: int, greatest: int) -> None:
    if least < 0 or greatest > 1:
        raise InternalError.of(
            "binary-operands", "binary product", f"{what} must be 0 and 1, not within {Interval(least, greatest)}",
            "report this as a defect of hwflow",
        )
