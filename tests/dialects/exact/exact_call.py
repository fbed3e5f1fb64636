"""What the operators of the exact evaluation work on: a node's inputs as arrays of ints, Fractions and Reals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isinf
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Call:
    """A node with its inputs (None where left out) and their ONNX element types."""

    attributes: Mapping[str, Any]
    inputs: list[Array | None]
    kinds: list[int | None]
    opset: int

    def has(self, position: int) -> bool:
        return position < len(self.inputs) and self.inputs[position] is not None

    def input(self, position: int) -> Array:
        array = self.inputs[position]
        assert array is not None
        return array

    def optional(self, position: int) -> Array | None:
        return self.inputs[position] if position < len(self.inputs) else None

    def scalar(self, position: int) -> Any:
        """The only element."""
        (value,) = self.input(position).reshape(-1)
        return value

    def kind(self, position: int) -> int:
        kind = self.kinds[position]
        assert kind is not None
        return kind

    def text(self, name: str, default: str) -> str:
        value = self.attributes.get(name, default.encode())
        return str(value.decode() if isinstance(value, bytes) else value)

    def real(self, name: str, default: float) -> Fraction:
        """An attribute of type float: a float32 like its default."""
        return Fraction(float(np.float32(self.attributes.get(name, default))))


@dataclass(frozen=True)
class Integers:
    """The result of an operator that makes integers of an ONNX element type."""

    array: Array
    kind: int


Operator = Callable[[Call], Array | Integers]


def plain(function: Callable[..., Array]) -> Operator:
    """An operator that takes its attributes and its inputs."""
    return lambda call: function(call.attributes, *call.inputs)


def _fraction(value: Any) -> float | Fraction:
    return float(value) if isinf(value) else Fraction(float(value))


def objects(values: Any) -> Array:
    """Fractions for floats (infinities stay), ints for integers."""
    array = np.asarray(values)
    is_integer = array.dtype.kind in "iub" or str(array.dtype).lstrip("u").startswith("int")
    convert: Callable[[Any], Any] = int if is_integer else _fraction
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = convert(array[index])
    return result


def array_of(values: Any) -> Array:
    """An object array, also of what arithmetic on a 0-dimensional one gives."""
    result = np.empty(np.shape(values), dtype=object)
    result[...] = values
    return result


def each(function: Callable[..., Any], *arrays: Array) -> Array:
    """``function`` of the elements of the arrays, broadcast together."""
    spread = np.broadcast_arrays(*arrays)
    result = np.empty(spread[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(a[index] for a in spread))
    return result


def along(parameter: Array, axis: int, rank: int) -> Array:
    """One parameter for a tensor, or one for each index of ``axis``: shaped to broadcast over ``rank`` dimensions."""
    if parameter.size == 1:
        return parameter.reshape(())
    shape = [1] * rank
    shape[axis] = parameter.size
    return parameter.reshape(shape)


def bounds_of(kind: int) -> tuple[int, int]:
    name = TensorProto.DataType.Name(kind).lower()
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def saturated(level: int, kind: int) -> int:
    low, high = bounds_of(kind)
    return max(low, min(high, level))
