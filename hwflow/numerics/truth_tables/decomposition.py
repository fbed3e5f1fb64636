"""Find small networks of look-up tables of four inputs for functions of few bits.

Functional decomposition (R. L. Ashenhurst, "The decomposition of switching functions", 1957; J. P. Roth and R. M. Karp,
"Minimization over Boolean graphs", 1962): the values of some of a function's bits choose one of its *columns*, a
function of the other bits. If there are fewer columns than values, fewer bits say which column it is; each of them is a
table of the bits that choose, and what is left is a function of fewer bits. A neuron has few columns, since many inputs
have the same partial sum. Where this saves nothing, the function is split into two by one of its bits (Shannon's
expansion).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hwflow.numerics.truth_tables.luts import LUT_INPUTS, Builder, IntArray, LutNetwork, TooLarge

MOST_BITS = 12  # of a function's inputs

# Two columns are taken for equal if they have the same sum of products with these numbers, modulo 2 ** 64. Whether
# columns are equal decides the effort only: those that are made into tables are compared.
_NOISE: npt.NDArray[np.uint64] = np.random.default_rng(1).integers(0, 1 << 64, 1 << MOST_BITS, dtype=np.uint64)


class BitFunction(NamedTuple):
    """A function of bits: ``values`` [2 ** len(signals)], not negative and below 2 ** ``bits``; the first signal is the
    lowest bit of their index."""

    signals: list[int]
    values: IntArray
    bits: int


def lut_network(inputs: int, functions: Sequence[BitFunction], most: int) -> LutNetwork | None:
    """Return a network for ``functions`` of signals among ``inputs``, each of at most :data:`MOST_BITS`; None if it
    would take more than ``most`` tables. Outputs are the functions' bits, lowest first. Takes some tenths of a second
    for each function at most."""
    builder = Builder(inputs, most)
    outputs: list[int] = []
    try:
        for function in functions:
            outputs += _smaller(builder, function)
    except TooLarge:
        return None
    return LutNetwork(inputs, tuple(builder.luts), tuple(outputs))


def _smaller(builder: Builder, function: BitFunction) -> list[int]:
    """Build all bits together or each by itself, whichever takes fewer tables."""
    before, most = len(builder.luts), builder.most
    together = _build(builder, function)
    if function.bits == 1:
        return together
    kept = builder.luts[before:]
    builder.forget(before)
    try:
        builder.most = before + len(kept) - 1
        return _apart(builder, function)
    except TooLarge:
        builder.forget(before)
        builder.most = most
        return _build(builder, function)
    finally:
        builder.most = most


def _apart(builder: Builder, function: BitFunction) -> list[int]:
    signals, values, bits = function
    return [_build(builder, BitFunction(signals, values >> bit & 1, 1))[0] for bit in range(bits)]


def _build(builder: Builder, function: BitFunction) -> list[int]:
    """Return the signals of the function's bits."""
    signals, values, bits = function = _without_idle(function)
    if len(signals) <= LUT_INPUTS:
        return [builder.lut(signals, (values >> bit & 1).tolist()) for bit in range(bits)]
    bound = _best_bound(len(signals), values)
    if bound is not None:
        return _build(builder, _decomposed(builder, function, bound))
    if bits > 1:
        return _apart(builder, function)
    place = _splitting(function)
    rest = signals[:place] + signals[place + 1 :]
    halves = [_build(builder, BitFunction(rest, half, 1))[0] for half in _halves(values, place)]
    return [builder.lut([*halves, signals[place]], [0, 1, 0, 1, 0, 0, 1, 1])]


def _halves(values: IntArray, place: int) -> tuple[IntArray, IntArray]:
    """Return the values where the signal at ``place`` is 0, and where it is 1."""
    parts = values.reshape(-1, 2, 1 << place)
    return parts[:, 0].reshape(-1), parts[:, 1].reshape(-1)


def _without_idle(function: BitFunction) -> BitFunction:
    """Leave out the signals that do not matter."""
    kept, values = list(function.signals), function.values
    for place in reversed(range(len(kept))):
        zero, one = _halves(values, place)
        if np.array_equal(zero, one):
            del kept[place]
            values = zero
    return BitFunction(kept, values, function.bits)


class _Bound(NamedTuple):
    """The places of the signals that choose a column, and the number of different columns."""

    places: tuple[int, ...]
    columns: int

    @property
    def code_bits(self) -> int:
        """Return the bits that say which column it is."""
        return (self.columns - 1).bit_length()


def _axes(bits: int, places: Sequence[int]) -> tuple[int, ...]:
    """Return the order of axes that brings those of ``places`` to the front; the last axis is place 0."""
    others = [place for place in range(bits) if place not in places]
    return tuple(bits - 1 - place for place in [*reversed(places), *reversed(others)])


@cache
def _candidates(bits: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return every set of two to four places, with its axes."""
    sets = [places for size in range(LUT_INPUTS, 1, -1) for places in combinations(range(bits), size)]
    return [(places, _axes(bits, places)) for places in sets]


def _best_bound(bits: int, values: IntArray) -> _Bound | None:
    """Return the signals that take the fewest tables for each signal saved; None if none saves one."""
    cube = values.astype(np.uint64).reshape((2,) * bits)
    best, least = None, (float("inf"), 0)
    for places, axes in _candidates(bits):
        rows = cube.transpose(axes).reshape(1 << len(places), -1)
        bound = _Bound(places, len(set((rows @ _NOISE[: rows.shape[1]]).tolist())))
        saved = len(places) - bound.code_bits
        if saved > 0 and (score := (bound.code_bits / saved, bound.columns)) < least:
            best, least = bound, score
    return best


def _decomposed(builder: Builder, function: BitFunction, bound: _Bound) -> BitFunction:
    """Add the tables that say which column it is, and return what is left."""
    signals, places = function.signals, bound.places
    cube = function.values.reshape((2,) * len(signals))
    rows = cube.transpose(_axes(len(signals), places)).reshape(1 << len(places), -1)
    columns, which = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(columns.sum(axis=1), kind="stable")  # as partial sums are: columns that are alike are neighbours
    code, columns = np.argsort(order)[which.reshape(-1)], columns[order]
    bits = (len(columns) - 1).bit_length()
    columns = columns[np.minimum(np.arange(1 << bits), len(columns) - 1)]  # codes that do not occur: any would do
    chosen = [signals[place] for place in places]
    made = [builder.lut(chosen, (code >> bit & 1).tolist()) for bit in range(bits)]
    others = [signal for place, signal in enumerate(signals) if place not in places]
    return BitFunction(others + made, columns.reshape(-1), function.bits)


def _splitting(function: BitFunction) -> int:
    """Return the place of the signal whose halves differ most."""
    def difference(place: int) -> int:
        zero, one = _halves(function.values, place)
        return int(np.count_nonzero(zero != one))

    return max(range(len(function.signals)), key=difference)
