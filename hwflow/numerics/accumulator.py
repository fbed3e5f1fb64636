"""Exact bounds of dot products, and the width that holds an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def bounds(
    weights: npt.ArrayLike, lo: int | Sequence[int] | npt.NDArray[Any], hi: int | Sequence[int] | npt.NDArray[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Least and greatest value of ``weights @ x`` over all integer ``x`` with ``lo <= x <= hi``, for each row.

    ``weights`` is [M, K], integers; ``lo`` and ``hi`` are scalars or [K]. Both ends are attained. Partial sums may
    leave the interval: an accumulator of the width of the *result* is still exact, two's complement wraps back.
    Raises ValueError if an interval is empty or ``weights`` has not two axes.
    """
    w = _integers(weights)
    if w.ndim != 2:
        raise ValueError(f"weights must have two axes [M, K], not shape {list(w.shape)}")
    low, high = _integers(lo), _integers(hi)
    if np.any(low > high):
        raise ValueError("input intervals must not be empty, not lo > hi")
    largest = max((abs(int(v)) for a in (low, high) for v in (a.min(initial=0), a.max(initial=0))), default=0)
    heaviest = max(abs(int(w.min(initial=0))), abs(int(w.max(initial=0))))
    if largest * heaviest * max(1, w.shape[1]) >= 1 << 62 or object in (w.dtype, low.dtype, high.dtype):
        w, low, high = w.astype(object), low.astype(object), high.astype(object)
    low, high = np.broadcast_to(low, w.shape[1:]), np.broadcast_to(high, w.shape[1:])
    positive, negative = np.maximum(w, 0), np.minimum(w, 0)
    least = positive @ low + negative @ high
    greatest = positive @ high + negative @ low
    return tuple(int(v) for v in least), tuple(int(v) for v in greatest)


def width_of(lo: int, hi: int) -> tuple[int, bool]:
    """Least (bits, signed) of an integer type that holds all of ``[lo, hi]``; unsigned unless ``lo`` is negative."""
    if lo > hi:
        raise ValueError(f"interval must not be empty, not [{lo}, {hi}]")
    if lo >= 0:
        return max(1, hi.bit_length()), False
    return 1 + max((-lo - 1).bit_length(), hi.bit_length() if hi > 0 else 0), True


def _integers(values: Any) -> npt.NDArray[Any]:
    """As int64, or as Python ints in an object array where that would overflow. Refuses floats."""
    array = np.asarray(values)
    if array.dtype == object or array.dtype == np.uint64:
        return array.astype(object)
    if array.size and array.dtype.kind not in "iub":
        raise ValueError(f"values must be integers, not {array.dtype}")
    return array.astype(np.int64)
