"""In which order the vectors and matrices of a product of two streams may come, for a core that holds the matrices.

Both are arrays of flat indices into a frame: ``vectors`` [batch, vectors, K], where the batch index says which matrix
each is multiplied by, and ``matrices`` [matrices, N, K], rows first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hdl_lib.matrices.stream_matrix import Along, MatrixRounds
from hwflow.ir.graph import IntArray


@dataclass(frozen=True)
class Arrangement:
    """``rounds`` of the core, with ``vectors`` and ``matrices`` as it wants their elements; ``places``: for each of the
    vectors in their order its place among [batch, vectors]. ``moved``: which of the two come in another order."""

    rounds: MatrixRounds
    vectors: IntArray
    matrices: IntArray
    places: IntArray
    moved: tuple[bool, bool]


@dataclass(frozen=True)
class _Turns:
    """``rounds`` and the matrices of each of them, [rounds, sets], in the order of their use."""

    rounds: MatrixRounds
    sets: IntArray


def arrangement(
    vectors: IntArray, matrices: IntArray, which: IntArray, orders: tuple[IntArray, IntArray]
) -> Arrangement:
    """Return what the core takes of streams that come in ``orders``, with the fewest of them rearranged. ``which``
    [batch]: the number of the matrix."""
    batch, count, inner = vectors.shape
    natural = np.arange(batch * count)
    if _turns(np.repeat(which, count), inner, matrices.shape[1]) is None:  # broadcast along scattered axes
        matrices, which = matrices[which], np.arange(batch)
    found: list[Arrangement] = []
    for places in (_places(vectors, orders[0]), natural):
        turns = None if places is None else _turns(which[places // count], inner, matrices.shape[1])
        if places is None or turns is None:
            continue
        wanted = vectors.reshape(-1, inner)[places].reshape(-1)
        moved = not np.array_equal(wanted, orders[0])
        offered = list(_matrix_orders(turns, matrices))
        suits = next((each for each in offered if np.array_equal(each[1], orders[1])), None)
        rounds, order = suits or offered[0]
        found.append(Arrangement(rounds, wanted, order, places, (moved, suits is None)))
    return min(found, key=lambda each: sum(each.moved))


def _places(vectors: IntArray, order: IntArray) -> IntArray | None:
    """Return the places of the vectors in a stream that comes in ``order``; None if it does not consist of them, each
    once."""
    inner = vectors.shape[2]
    rows = vectors.reshape(-1, inner)
    if rows.size != order.size:
        return None
    of_first = np.full(order.size, -1, dtype=np.int64)
    of_first[rows[:, 0]] = np.arange(len(rows))
    places = of_first[order.reshape(-1, inner)[:, 0]]
    if (places < 0).any() or not np.array_equal(rows[places], order.reshape(-1, inner)):
        return None
    return places


def _turns(which: IntArray, inner: int, outer: int) -> _Turns | None:
    """Return the rounds of vectors that take the matrices ``which``, as far as possible one matrix a round; None if
    they take them in no regular order."""
    changes = np.flatnonzero(which != which[0])
    repeat = int(changes[0]) if len(changes) else len(which)
    again = np.flatnonzero(which[repeat:] == which[0])
    if not len(again):  # each matrix is used in one run
        runs = which.reshape(-1, repeat) if len(which) % repeat == 0 else None
        if runs is None or (runs != runs[:, :1]).any() or len(np.unique(runs[:, 0])) < len(runs):
            return None
        return _Turns(MatrixRounds(inner, outer, repeat), runs[:, :1])
    period = repeat + int(again[0])
    pattern = which[:period]
    other = np.flatnonzero(~np.isin(which, pattern))
    vectors = int(other[0]) if len(other) else len(which)
    if period % repeat or vectors % period or len(which) % vectors:
        return None
    sets = which.reshape(-1, vectors // period, period // repeat, repeat)
    used = sets[:, 0, :, 0]
    if (sets != used[:, None, :, None]).any() or len(np.unique(used)) < used.size:
        return None
    return _Turns(MatrixRounds(inner, outer, vectors, period // repeat, repeat), used)


def _matrix_orders(turns: _Turns, matrices: IntArray) -> Iterator[tuple[MatrixRounds, IntArray]]:
    """Yield the orders in which the core takes the matrices, those that need less memory first."""
    joined = turns
    if len(turns.sets) > 1 and turns.sets.shape[1] == 1:  # held all at once, for streams that interleave them
        vectors = turns.rounds.vectors
        whole = replace(turns.rounds, vectors=len(turns.sets) * vectors, sets=len(turns.sets), repeat=vectors)
        joined = _Turns(whole, turns.sets.reshape(1, -1))
    for along in Along:
        yield replace(turns.rounds, along=along), _order(turns, matrices, along, interleaved=False)
    for along in Along:
        if joined.rounds.sets > 1:
            rounds = replace(joined.rounds, along=along, interleaved=True)
            yield rounds, _order(joined, matrices, along, interleaved=True)


def _order(turns: _Turns, matrices: IntArray, along: Along, *, interleaved: bool) -> IntArray:
    wanted = matrices[turns.sets]  # [rounds, sets, N, K]
    if along == Along.OUTER:
        wanted = wanted.swapaxes(2, 3)
    return (wanted.swapaxes(1, 2) if interleaved else wanted).reshape(-1)
