"""Shift-and-add networks that multiply a vector by a constant matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class Adder(NamedTuple):
    """``(left << left_shift) + (right << right_shift)``, or the difference of the two if ``subtract``.

    ``left``, ``right``: indices of terms; None for ``left`` is zero. At least one of the shifts is 0. ``low`` and
    ``high``: the exact interval of the result.
    """

    left: int | None
    left_shift: int
    right: int
    right_shift: int
    subtract: bool
    low: int
    high: int

    @property
    def operands(self) -> tuple[int, ...]:
        """The indices of the added terms."""
        return (self.right,) if self.left is None else (self.left, self.right)


class Output(NamedTuple):
    """``term << shift``; a ``term`` of None is zero."""

    term: int | None
    shift: int


@dataclass(frozen=True)
class Network:
    """Terms ``0 .. len(inputs) - 1`` are the inputs, the next ones the adders, each a sum of terms before it.

    ``inputs``: the interval of each input. ``outputs``: one per row of the matrix.
    """

    inputs: tuple[tuple[int, int], ...]
    adders: tuple[Adder, ...]
    outputs: tuple[Output, ...]

    @cached_property
    def intervals(self) -> list[tuple[int, int]]:
        """The interval of every term."""
        return [*self.inputs, *((adder.low, adder.high) for adder in self.adders)]

    @cached_property
    def depths(self) -> list[int]:
        """Adders on the longest path from an input to each term, the term's own included."""
        depths = [0] * len(self.inputs)
        for adder in self.adders:
            depths.append(1 + max(depths[term] for term in adder.operands))
        return depths

    @property
    def depth(self) -> int:
        """Adders on the longest path to an output."""
        return max((self.depths[output.term] for output in self.outputs if output.term is not None), default=0)

    def carry_bits(self, adder: Adder) -> int:
        """Return the length of the carry chain of ``adder``: the result's bits without those that bypass it.

        An operand's bits below the other's shift bypass the chain, unless the operand is subtracted. A sum needs no
        chain where the lower operand is unsigned and ends below the other.
        """
        total = width_of(adder.low, adder.high)
        if adder.left is None or (adder.subtract and adder.left_shift > 0):
            return total
        shift = max(adder.left_shift, adder.right_shift)
        low, high = self.intervals[adder.right if adder.left_shift else adder.left]
        if low >= 0 and width_of(low, high) <= shift and not adder.subtract:
            return 0
        return max(0, total - shift)

    def evaluate(self, x: npt.ArrayLike) -> IntArray:
        """Multiply: map an array [..., inputs] to [..., outputs]."""
        vectors = np.asarray(x, dtype=np.int64)
        terms: list[IntArray] = [vectors[..., k] for k in range(len(self.inputs))]
        zero = np.zeros(vectors.shape[:-1], dtype=np.int64)
        for adder in self.adders:
            left = zero if adder.left is None else terms[adder.left] << adder.left_shift
            right = terms[adder.right] << adder.right_shift
            terms.append(left - right if adder.subtract else left + right)
        outputs = [zero if o.term is None else terms[o.term] << o.shift for o in self.outputs]
        return np.stack(outputs, axis=-1)


class Terms:
    """The terms of a network under construction, each with its input coefficients, interval, width and depth."""

    def __init__(self, inputs: Sequence[tuple[int, int]]) -> None:
        self.inputs = tuple(inputs)
        self.coefficients: list[dict[int, int]] = [{k: 1} for k in range(len(inputs))]
        self.low = [low for low, _ in inputs]
        self.high = [high for _, high in inputs]
        self.width = [width_of(low, high) for low, high in inputs]
        self.depth = [0] * len(inputs)
        self.adders: list[Adder] = []
        self.negating: dict[int, int] = {}  # see :mod:`hwflow.numerics.shift_add.row_sum`

    def add(self, left: int | None, left_shift: int, right: int, right_shift: int, *, subtract: bool) -> int:
        """Append an adder (see :class:`Adder`) and return its term."""
        known: dict[int, int] = {}
        if left is not None:
            known = {k: c << left_shift for k, c in self.coefficients[left].items()}
        sign = -1 if subtract else 1
        for k, c in self.coefficients[right].items():
            known[k] = known.get(k, 0) + sign * (c << right_shift)
        low = high = 0
        for k, c in known.items():
            least, greatest = self.inputs[k]
            low += c * (least if c > 0 else greatest)
            high += c * (greatest if c > 0 else least)
        term = len(self.coefficients)
        self.coefficients.append(known)
        self.low.append(low)
        self.high.append(high)
        self.width.append(width_of(low, high))
        self.depth.append(1 + max(self.depth[right], 0 if left is None else self.depth[left]))
        self.adders.append(Adder(left, left_shift, right, right_shift, subtract, low, high))
        return term


def width_of(low: int, high: int) -> int:
    """Return the width of the narrowest type that holds ``low .. high``, signed only if ``low`` is negative."""
    return max((~low).bit_length(), max(high, 0).bit_length()) + 1 if low < 0 else high.bit_length()


def digits_of(matrix: npt.NDArray[Any]) -> list[npt.NDArray[np.int8]]:
    """Return canonical signed digits: for each place, lowest first, the digits -1, 0, 1 of all numbers.

    No two neighbouring digits are both nonzero, and no signed-digit form has fewer nonzero ones (G. W. Reitwiesner,
    "Binary Arithmetic", 1960).
    """
    rest = np.array(matrix, dtype=np.int64)
    places = []
    while rest.any():
        digit = np.where(rest & 1, 2 - (rest & 3), 0)
        places.append(digit.astype(np.int8))
        rest = (rest - digit) >> 1
    return places
