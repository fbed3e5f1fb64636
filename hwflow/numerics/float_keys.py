"""Keys of floats: integers in the order of the floats.

IEEE 754 numbers of one sign are ordered as their bit patterns are (IEEE 754-2019, section 5.10), so a pattern with its
sign folded in is an integer in the order of all numbers. Both zeros have the key 0, the infinities those next to the
largest numbers, and every NaN has one key, the greatest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

KEY_BITS: Mapping[str, int] = {"float16": 16, "float32": 32, "float64": 64, "int64": 64}
"""Bits of the keys of an ONNX element type. An int64 is its own key, but beyond :data:`FARTHEST`, which takes the place
of all that are farther."""

FARTHEST = 1 << 62


def key_range(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest key of a type, those of minus infinity and of NaN."""
    if dtype == "int64":
        return -FARTHEST, FARTHEST
    largest = int(keys_of(np.array([np.inf], dtype))[0])
    return -largest, largest + 1


def keys_of(array: npt.NDArray[Any]) -> IntArray:
    """Return the keys of floats of 16, 32 or 64 bits, or of int64."""
    if array.dtype == np.int64:
        near: IntArray = np.clip(array, -FARTHEST, FARTHEST)
        return near
    bits = 8 * array.dtype.itemsize
    pattern = array.view(f"int{bits}").astype(np.int64)
    magnitude = pattern & ((1 << (bits - 1)) - 1)
    keys = np.where(pattern < 0, -magnitude, magnitude)
    infinity = int(np.array(np.inf, array.dtype).view(f"int{bits}"))
    result: IntArray = np.where(np.isnan(array), infinity + 1, keys)
    return result


def floats_of(keys: IntArray, dtype: str) -> npt.NDArray[Any]:
    """Return the numbers of keys."""
    if dtype == "int64":
        return keys
    bits = KEY_BITS[dtype]
    sign = (keys < 0).astype(f"uint{bits}") << np.array(bits - 1, f"uint{bits}")
    numbers: npt.NDArray[Any] = (np.abs(keys).astype(f"uint{bits}") | sign).view(dtype)
    return numbers


def first_keys(bounds: npt.NDArray[np.float64], strict: npt.NDArray[np.bool_], dtype: str) -> IntArray:
    """Return the least key whose number is at least the bound, or greater where ``strict``: one above the last number's
    if there is none. Bounds must be numbers or infinities, of int64 less than :data:`FARTHEST`, or infinities."""
    if dtype == "int64":
        near = np.clip(bounds, -float(FARTHEST), float(FARTHEST))
        whole = np.where(strict, np.floor(near), np.ceil(near)).astype(np.int64)
        keys: IntArray = whole + (strict & (bounds > -np.inf)) + (bounds == np.inf)
        return keys
    with np.errstate(over="ignore"):
        nearest = bounds.astype(dtype)
    there = nearest.astype(np.float64)
    return keys_of(nearest) + np.where(strict, there <= bounds, there < bounds)
