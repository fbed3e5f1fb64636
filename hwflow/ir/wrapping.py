"""Wraparound of integer types: ONNX's operators on integer tensors compute modulo a power of two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hwflow.types import Interval, IntType

IntArray = npt.NDArray[np.int64]


def wrapped(values: IntArray, element: IntType) -> IntArray:
    """Return ``values`` modulo ``2**element.bits``, in the type's range. They may already have wrapped at 64 bits."""
    if element.bits == 64:  # numpy's own wraparound
        return values
    return ((values - element.min) & ((1 << element.bits) - 1)) + element.min


def wrapped_interval(interval: Interval, element: IntType) -> Interval:
    """Return an interval that contains every integer of ``interval`` after wrapping: ``interval`` shifted where all of
    it wraps equally often, else the type's."""
    span = 1 << element.bits
    turns = (interval.lo - element.min) // span
    if turns != (interval.hi - element.min) // span:
        return element.interval
    return Interval(interval.lo - turns * span, interval.hi - turns * span)
