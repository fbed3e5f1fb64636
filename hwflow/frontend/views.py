"""What an ONNX value is to the front end while it lowers a model: integers, reals carried by integers, or constants."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import IntArray, Value
from hwflow.numerics.elementwise import Elementwise

Fractions = npt.NDArray[np.object_]  # of Fraction, broadcastable to the shape it belongs to


def fractions(values: Any) -> Fractions:
    """Floats or integers as exact Fractions, shape kept (a float32 is a rational number)."""
    array = np.asarray(values)
    flat = [Fraction(v) for v in array.reshape(-1).tolist()]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(array.shape)


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
        result: Fractions = self.scale * (fractions(self.integers) - self.zero_point)
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
    over the frame's shape, the functions apply in order, element by element."""

    value: Value
    shape: tuple[int, ...]
    scale: Fractions
    zero_point: Fractions
    functions: tuple[Elementwise, ...] = ()


@dataclass(frozen=True)
class HostInput:
    """A float graph input before any quantizer: the host still holds it."""

    name: str
    shape: tuple[int, ...]
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """The result of a node that was refused: whatever reads it is looked at for its own faults only."""


View = Constant | QuantizedConstant | Integers | Reals | HostInput | Refused


def uniform(values: Fractions) -> Fraction | None:
    """The one value of an array whose elements are all equal, else None."""
    flat = values.reshape(-1)
    first: Fraction = flat[0]
    return first if all(v == first for v in flat) else None
