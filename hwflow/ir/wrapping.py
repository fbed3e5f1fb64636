"""Integers of a type wrap around: what ONNX's operators on integer tensors do (as two's complement does in C)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hwflow.types import Interval, IntType

IntArray = npt.NDArray[np.int64]


def wrapped(values: IntArray, element: IntType) -> IntArray:
    """``values`` modulo ``2**element.bits``, in the type's range. They may have wrapped around at 64 bits before."""
    if element.bits == 64:  # as numpy's own do
        return values
    return ((values - element.min) & ((1 << element.bits) - 1)) + element.min


def wrapped_interval(interval: Interval, element: IntType) -> Interval:
    """The least interval that holds every integer of ``interval`` after wrapping: ``interval`` moved where all of it
    wraps around as often, else the type's."""
    span = 1 << element.bits
    turns = (interval.lo - element.min) // span
    if turns != (interval.hi - element.min) // span:
        return element.interval
    return Interval(interval.lo - turns * span, interval.hi - turns * span)
