"""Exact bounds of dot products, and the width that holds an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def bounds(
    weights: npt.ArrayLike, lo: int | Sequence[int] | npt.NDArray[Any], hi: int | Sequence[int] | npt.NDArray[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the minimum and maximum of ``weights @ x`` over all integer ``x`` with ``lo <= x <= hi``, for each row.

    ``weights`` is [M, K], integers; ``lo`` and ``hi`` are scalars, [K], or [M, K] where each row has its own inputs.
    Both bounds are attained. Partial sums may leave the interval: an accumulator of the *result's* width is still
    exact, because two's complement wraps back.
    Raises ValueError if an interval is empty or ``weights`` does not have two axes.
    """
    w = _integers(weights)
    if w.ndim != 2:
        raise ValueError(f"weights must have two axes [M, K], not shape {list(w.shape)}")
    low, high = _integers(lo), _integers(hi)
    if np.any(low > high):
        raise ValueError("input intervals must not be empty, not lo > hi")
    largest = max(-int(min(low.min(initial=0), high.min(initial=0))), int(max(low.max(initial=0), high.max(initial=0))))
    heaviest = max(abs(int(w.min(initial=0))), abs(int(w.max(initial=0))))
    reach = largest * max(1, w.shape[1])
    if reach * heaviest >= _SAFE and reach < _SAFE >> 8:
        # Sums of bit slices of the weights fit 62 bits; Python integers are needed for one sum per row only.
        return _of_slices(w if heaviest < _SAFE else w.astype(object), low, high, (_SAFE // reach).bit_length() - 1)
    if reach * heaviest >= _SAFE or object in (w.dtype, low.dtype, high.dtype):
        w, low, high = w.astype(object), low.astype(object), high.astype(object)
    positive, negative = np.maximum(w, 0), np.minimum(w, 0)
    if max(low.ndim, high.ndim) > 1:
        least = (positive * low + negative * high).sum(axis=1)
        greatest = (positive * high + negative * low).sum(axis=1)
    else:
        low, high = np.broadcast_to(low, w.shape[1:]), np.broadcast_to(high, w.shape[1:])
        least = positive @ low + negative @ high
        greatest = positive @ high + negative @ low
    return tuple(least.tolist()), tuple(greatest.tolist())


_SAFE = 1 << 62  # sums below it fit int64


def _of_slices(
    w: npt.NDArray[Any], low: npt.NDArray[Any], high: npt.NDArray[Any], bits: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Compute :func:`bounds` as a sum over slices, ``bits`` wide, of the weights' magnitudes."""
    magnitudes, negative = np.abs(w), w < 0
    least, greatest = [0] * len(w), [0] * len(w)
    shift = 0
    while np.any(magnitudes):
        part = (magnitudes & ((1 << bits) - 1)).astype(np.int64)
        ends = bounds(np.where(negative, -part, part), low, high)
        least = [total + (int(v) << shift) for total, v in zip(least, ends[0], strict=True)]
        greatest = [total + (int(v) << shift) for total, v in zip(greatest, ends[1], strict=True)]
        magnitudes, shift = magnitudes >> bits, shift + bits
    return tuple(least), tuple(greatest)


def width_of(lo: int, hi: int) -> tuple[int, bool]:
    """Return (bits, signed) of the narrowest type that holds ``[lo, hi]``; unsigned unless ``lo`` is negative."""
    if lo > hi:
        raise ValueError(f"interval must not be empty, not [{lo}, {hi}]")
    if lo >= 0:
        return max(1, hi.bit_length()), False
    return 1 + max((-lo - 1).bit_length(), hi.bit_length() if hi > 0 else 0), True


def _integers(values: Any) -> npt.NDArray[Any]:
    """Convert to int64, or to Python ints in an object array where that would overflow. Raise ValueError for floats."""
    array = np.asarray(values)
    if array.dtype == object or array.dtype == np.uint64:
        return array.astype(object)
    if array.size and array.dtype.kind not in "iub":
        raise ValueError(f"values must be integers, not {array.dtype}")
    return array.astype(np.int64)
