"""What an ONNX value is to the front end while it lowers a model: integers, reals carried by integers, or constants."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.numerics.elementwise import Elementwise


def fractions(values: Any) -> Fractions:
    """Floats or integers as exact Fractions, shape kept (a float32 is a rational number)."""
    array = np.asarray(values)
    if array.size < _MANY or array.dtype.kind not in "biuf":
        flat = [Fraction(v) for v in array.reshape(-1).tolist()]
        result = np.empty(len(flat), dtype=object)
        result[:] = flat
    else:  # large constants repeat few values
        distinct, places = np.unique(array, return_inverse=True)
        made = np.empty(len(distinct), dtype=object)
        made[:] = [Fraction(v) for v in distinct.tolist()]
        result = made[places.reshape(-1)]
    return result.reshape(array.shape)


_MANY = 1 << 12  # elements


@dataclass(frozen=True)
class Constant:
    """A tensor known now, as the model holds it (float or integer)."""

    array: npt.NDArray[Any]


@dataclass(frozen=True)
class QuantizedConstant:
    """A constant real tensor given by integers: real = scale * (integers - zero_point); both broadcast over it."""

    integers: IntArray
    scale: Fractions
    zero_point: Fractions

    def real(self) -> Fractions:
        """The reals, exactly."""
        product = self.scale * (fractions(self.integers) - self.zero_point)
        result: Fractions = np.asarray(product, dtype=object)  # of a scalar, the product is no array
        return result


@dataclass(frozen=True)
class Integers:
    """A quantized ONNX tensor in hardware. ``low``/``high``: range of its ONNX type. ``shape``: of one frame."""

    value: Value
    shape: tuple[int, ...]
    low: int
    high: int


@dataclass(frozen=True)
class Reals:
    """A real ONNX tensor carried by integers: functions(scale * (value - zero_point)); scale and zero point broadcast
    over the frame's shape, the functions apply in order, element by element. ``nodes``: the ONNX nodes that are in them
    and in nothing else, so that whatever decides the next integers does their work."""

    value: Value
    shape: tuple[int, ...]
    scale: Fractions
    zero_point: Fractions
    functions: tuple[Elementwise, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostInput:
    """A float tensor before any quantizer, which the host holds: a graph input, or what ``nodes`` make of some."""

    name: str
    shape: tuple[int, ...]
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """The result of a node that was refused: whatever reads it is refused too.

    ``stand_in``: what the result would have been like, so that a node that works on it can be looked at for faults of
    its own; None where that cannot be said.
    """

    stand_in: HostInput | Integers | Reals | None = None


View = Constant | QuantizedConstant | Integers | Reals | HostInput | Refused


def compact(values: Fractions) -> Fractions:
    """The same to broadcast, with length 1 along every axis along which nothing differs."""
    for axis in range(values.ndim):
        first = values.take([0], axis=axis)
        if (values == first).all():
            values = first
    return values


def uniform(values: Fractions) -> Fraction | None:
    """The one value of an array whose elements are all equal, else None."""
    flat = values.reshape(-1)
    first: Fraction = flat[0]
    return first if all(v == first for v in flat) else None
