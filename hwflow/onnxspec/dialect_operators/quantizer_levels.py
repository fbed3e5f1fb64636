"""The levels of quantizing operators: quotients in float64, and the integers they are rounded to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper  # noqa: F401  # registers the element types below 8 bits

AnyArray = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

RELATIVE = 2.0**-36
"""The relative error of every quotient: integers, their sums and float32 scales are exact in float64; roundings come
from at most a dozen products, quotients and elementary functions (each within 8 units of 2**-53), and in softmax from a
sum of at most 2**16 positive terms."""

MOST_TERMS = 1 << 16
"""The greatest number of terms of a softmax."""


@dataclass(frozen=True)
class Levels:
    """``quotient`` is rounded half to even, ``zero_point`` added, and the sum saturated to the range of ``dtype``:
    ONNX's QuantizeLinear, for all operators of this package whose result is an integer tensor."""

    quotient: Floats
    zero_point: AnyArray
    dtype: np.dtype[Any]

    def integers(self, quotient: Floats | None = None) -> npt.NDArray[np.int64]:
        """Return the levels of ``quotient``, by default of the operator's own."""
        low, high = integer_range(self.dtype)
        rounded = np.rint(self.quotient if quotient is None else quotient) + self.zero_point.astype(np.float64)
        result: npt.NDArray[np.int64] = np.clip(rounded, low, high).astype(np.int64)
        return result

    def array(self) -> AnyArray:
        """Return the operator's result."""
        return self.integers().astype(self.dtype)


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the minimum and maximum of an integer type, including ml_dtypes types below 8 bits."""
    name = dtype.name
    bits, signed = int(name.split("int")[1]), not name.startswith("u")
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def centred(q: AnyArray, zero_point: AnyArray | None) -> Floats:
    """Return q - zero point, exactly; ``zero_point`` broadcasts (None: 0)."""
    difference: Floats = q.astype(np.float64)
    return difference if zero_point is None else difference - scalar(zero_point).astype(np.float64)


def scalar(array: AnyArray) -> AnyArray:
    """Drop the axes of a parameter of one element: exporters write both [] and [1]."""
    return array.reshape(()) if array.size == 1 else array


def along(array: AnyArray, axis: int, rank: int) -> AnyArray:
    """Reshape a parameter of one element, one per index of ``axis``, or ``rank`` axes to broadcast over a tensor of
    that rank."""
    if array.size == 1:
        return array.reshape(())
    if array.ndim == rank > 1:
        return array
    shape = [1] * rank
    shape[axis] = -1
    return array.reshape(shape)


def requantized(real: Floats, scale: AnyArray, zero_point: AnyArray | None, dtype: np.dtype[Any]) -> Levels:
    """Return the levels of ``real``; without a zero point their type is ``dtype``. Scale and zero point broadcast."""
    zero = np.zeros((), dtype) if zero_point is None else scalar(zero_point)
    return Levels(real / scalar(scale).astype(np.float64), zero, zero.dtype)
