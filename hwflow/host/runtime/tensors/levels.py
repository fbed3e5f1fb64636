"""The integers that a tensor's real numbers stand for, and back: scale * (integer - zero point), in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..host_design import HostTensor
from ..host_errors import USAGE, HostError, HostFinding, shown

Array = npt.NDArray[Any]
_FLOATS = {"float64": 52, "float32": 23, "float16": 10}  # bits of the fraction
_INTEGERS = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}
_TABLE = 1 << 16  # integers of a range whose reals are computed once and for all


def numpy_type(type_: str) -> np.dtype[Any]:
    """Return numpy's type for an ONNX element type: float32 for the floats that it lacks, int8 and uint8 for the
    integers below 8 bits, objects for texts."""
    if type_ == "string":
        return np.dtype(object)
    if type_ in _INTEGERS:
        return np.dtype(_INTEGERS[type_])
    return np.dtype(np.float32 if "float" in type_ and type_ not in _FLOATS else type_)


class Levels:
    """Conversion of one tensor that passes between host and design."""

    def __init__(self, tensor: HostTensor) -> None:
        self.tensor = tensor
        self._scale = [Fraction(text) for text in tensor.scale]
        self._zero_point = [Fraction(text) for text in tensor.zero_point]
        low, high = tensor.range
        self._tables = [self._reals(n, np.arange(low, high + 1)) for n in range(len(self._scale))] if (
            tensor.affine and (high - low) * len(self._scale) < _TABLE
        ) else []

    def integers(self, array: Array) -> Array:
        """Return the integers of ``array``, [frames, *shape]. Raises :class:`HostError` for what is none of them."""
        tensor = self.tensor
        if tensor.keys:
            return _keys(array)
        if not tensor.affine:
            self._require(array, (array >= tensor.range[0]) & (array <= tensor.range[1]))
            return array
        shape = (1,) * (len(tensor.shape) - len(tensor.broadcast)) + tensor.broadcast
        scale, zero_point = (
            np.array([_float(v) for v in values]).reshape(shape) for values in (self._scale, self._zero_point)
        )
        with np.errstate(all="ignore"):  # infinite reals are none
            quotient = array.astype(np.float64) / scale + zero_point
            levels = np.rint(quotient)
            # a few roundings of the real, of the quotient's size, in the reals' own type
            allowed = 2.0 ** (3 - _FLOATS.get(array.dtype.name, 7)) * (np.abs(quotient) + np.abs(zero_point))
            right = np.abs(quotient - levels) <= np.minimum(0.25, allowed)
        right &= (levels >= tensor.range[0]) & (levels <= tensor.range[1])
        self._require(array, right)
        result: Array = levels.astype(np.int64)
        return result

    def _require(self, array: Array, right: npt.NDArray[np.bool_]) -> None:
        if right.all():
            return
        frame, *place = (int(i) for i in np.argwhere(~right)[0])
        low, high = self.tensor.range
        what = f"integers from {low} to {high}"
        if self.tensor.affine:
            what += f", as {self.tensor.scale[0]} * (integer - {self.tensor.zero_point[0]})"
        message = f"must hold {what}, not {array[(frame, *place)]} in frame {frame}, index {place}"
        finding = HostFinding("input-range", f"value {shown(self.tensor.name)}", message, "give such frames")
        raise HostError(finding, exit_code=USAGE)

    def tensor_of(self, integers: Array) -> Array:
        """Return the tensor of ``integers``, [frames, *shape]: each the nearest number of its type to the exact one."""
        type_ = numpy_type(self.tensor.type)
        array = integers.reshape(len(integers), *self.tensor.shape)
        if not self.tensor.affine:
            return array.astype(type_)
        shape = (1,) * (len(self.tensor.shape) - len(self.tensor.broadcast)) + self.tensor.broadcast
        which = np.broadcast_to(np.arange(len(self._scale)).reshape(shape), array.shape[1:])
        result = np.empty(array.shape)
        low, high = self.tensor.range
        inside = bool(self._tables) and array.size > 0 and array.min() >= low and array.max() <= high
        for n in range(len(self._scale)):
            place = (slice(None), which == n)
            if inside:
                result[place] = self._tables[n][array[place].astype(np.int64) - low]
            else:
                distinct, index = np.unique(array[place], return_inverse=True)
                result[place] = self._reals(n, distinct)[index.reshape(array[place].shape)]
        with np.errstate(over="ignore"):
            return result.astype(type_)

    def _reals(self, n: int, integers: Array) -> npt.NDArray[np.float64]:
        scale, zero_point = self._scale[n], self._zero_point[n]
        return np.array([_float(scale * (int(q) - zero_point)) for q in integers], dtype=np.float64)


def _keys(array: Array) -> npt.NDArray[np.int64]:
    """Return the keys of floats, integers in their order: bit patterns with the sign folded in, one above infinity for
    every NaN. An int64 is its own key, within 62 bits."""
    if array.dtype == np.int64:
        return np.clip(array, -(1 << 62), 1 << 62)
    bits = 8 * array.dtype.itemsize
    pattern = array.view(f"int{bits}").astype(np.int64)
    magnitude = pattern & ((1 << (bits - 1)) - 1)
    infinity = int(np.array(np.inf, array.dtype).view(f"int{bits}"))
    return np.where(np.isnan(array), infinity + 1, np.where(pattern < 0, -magnitude, magnitude))


def _float(value: Fraction) -> float:
    """Return the nearest float, infinite beyond them."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
