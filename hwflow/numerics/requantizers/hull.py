"""Which thresholds of a staircase bind the lines that separate its points: the vertices of convex hulls.

A multiply-add-shift equals a staircase if inequalities hold, each linear in the point ``(T_k, k)`` of a threshold: a
greatest value of ``a * k - m * T_k`` below a limit, or a least one above, with ``a > 0`` and ``m >= 0``. The greatest
is at a vertex of the points' upper hull, the least at one of their lower hull, whatever ``a`` and ``m``. Of the 65,535
thresholds of a 16-bit quantizer some dozens are vertices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

REDUCED_FROM = 1024
"""Thresholds: of fewer, all are taken. Arithmetic on them costs less than the search for vertices."""

MOST_ROUNDS = 64
"""A line's points need about as many as their number has bits. What is left after the last round is taken as it is."""

_SAFE = 1 << 62

Indices = npt.NDArray[np.intp]


def binding(thresholds: npt.NDArray[np.int64]) -> tuple[Indices, Indices]:
    """Return the indices of ``thresholds``, which are sorted, that have all vertices of the points' upper hull, and of
    their lower hull; rising, with the first and the last one in both.

    Even and odd indices have hulls of their own, so that a limit may depend on the parity, as ties that a shift rounds
    to even levels make it.
    """
    indices = np.arange(len(thresholds))
    if len(thresholds) < REDUCED_FROM:
        return indices, indices
    halves = [(thresholds[start::2], indices[start::2]) for start in (0, 1)]
    upper, lower = (
        np.sort(np.concatenate([places[vertices(x, places, above=above)] for x, places in halves]))
        for above in (True, False)
    )
    return upper, lower


def vertices(x: npt.NDArray[Any], y: npt.NDArray[Any], *, above: bool) -> Indices:
    """Return the indices of the points ``(x, y)`` that have all vertices of the upper (``above``) or the lower hull.

    ``x`` is sorted, ``y`` rises strictly. A point on or below the chord of its neighbours is no vertex of the upper
    hull, in whatever order such points are taken away.
    """
    left = np.arange(len(x))
    extent = (int(x[-1]) - int(x[0])) * (int(y[-1]) - int(y[0])) if len(x) else 0
    if 2 * extent >= _SAFE:
        x, y = x.astype(object), y.astype(object)
    for _ in range(MOST_ROUNDS):
        dx, dy = np.diff(x[left]), np.diff(y[left])
        turns = dx[:-1] * dy[1:] - dx[1:] * dy[:-1]
        kept = np.append(True, turns < 0 if above else turns > 0)
        kept = np.append(kept, True)[: len(left)].astype(bool)
        if kept.all():
            break
        left = left[kept]
    return left
