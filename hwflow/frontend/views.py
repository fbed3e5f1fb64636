"""The front end's views of ONNX values: integers, reals represented by integers, constants, or values of the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import gcd
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.numerics.functions.function import Elementwise

Functions = npt.NDArray[np.object_]  # of Elementwise, or None for the identity; broadcastable to a frame's shape


def fractions(values: Any) -> Fractions:
    """Convert floats or integers to exact Fractions, keeping the shape (a float32 is a rational number)."""
    array = np.asarray(values)
    if array.size < _MANY or array.dtype.kind not in "biuf":
        flat = [Fraction(v) for v in array.reshape(-1).tolist()]
        result = np.empty(len(flat), dtype=object)
        result[:] = flat
    else:  # large constants have few distinct values
        distinct, places = np.unique(array, return_inverse=True)
        made = np.empty(len(distinct), dtype=object)
        made[:] = [Fraction(v) for v in distinct.tolist()]
        result = made[places.reshape(-1)]
    return result.reshape(array.shape)


_MANY = 1 << 12  # elements


@dataclass(frozen=True)
class Constant:
    """A tensor known at compile time, as in the model (float or integer)."""

    array: npt.NDArray[Any]


@dataclass(frozen=True)
class QuantizedConstant:
    """A constant real tensor given by integers: real = scale * (integers - zero_point); both broadcast over it."""

    integers: IntArray
    scale: Fractions
    zero_point: Fractions

    def real(self) -> Fractions:
        """Return the reals, exactly."""
        return as_array(self.scale * (fractions(self.integers) - self.zero_point))


@dataclass(frozen=True)
class Integers:
    """A quantized ONNX tensor in hardware. ``low``/``high``: range of its ONNX type. ``shape``: of one frame."""

    value: Value
    shape: tuple[int, ...]
    low: int
    high: int


@dataclass(frozen=True)
class Anchor:
    """The last ONNX value whose integers a real tensor has: ``name`` is an integer tensor, or a real one that ``value``
    represents by ``scale`` and ``zero_point``."""

    name: str
    value: Value
    scale: Fractions
    zero_point: Fractions


@dataclass(frozen=True)
class Reals:
    """A real ONNX tensor represented by integers: functions(scale * (value - zero_point)).

    ``scale`` (of any sign, or 0), ``zero_point`` and each of the functions broadcast over the frame's shape; the
    functions apply in order, element by element. ``low``/``high``: the range of ``value`` where the front end knows it
    (None for sums). From ``anchor`` and the ONNX nodes since then (``after``) the host could continue; ``nodes`` are
    those whose work the next quantizer does.
    """

    value: Value
    shape: tuple[int, ...]
    scale: Fractions
    zero_point: Fractions
    anchor: Anchor
    functions: tuple[Functions, ...] = ()
    nodes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None


def as_reals(view: Integers, name: str) -> Reals:
    """Return the integers of the ONNX value ``name`` as the reals that they are."""
    one, zero = fractions(1), fractions(0)
    return Reals(
        view.value, view.shape, one, zero, Anchor(name, view.value, one, zero), low=view.low, high=view.high
    )


@dataclass(frozen=True)
class Sum:
    """The terms of a hardware value that is a sum: two streams without functions, the one of the longer integers first.

    ``scale`` and ``zero_point``: the meaning of its integers when it was created; None where they are keys
    (:mod:`hwflow.operators.elementwise.keys`).
    """

    streams: tuple[Reals, Reals]
    scale: Fractions | None
    zero_point: Fractions | None


@dataclass(frozen=True)
class HostInput:
    """A float tensor before any quantizer, held by the host: a graph input, or a result of ``nodes``."""

    name: str
    shape: tuple[int, ...]
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostOutput:
    """A tensor after the last quantizer, computed by the host."""

    name: str
    shape: tuple[int, ...]


class Source(Enum):
    """Where a refused node's result would be computed. ``EITHER``: its operator, or one before it, is unknown and may
    be a quantizer."""

    STREAM = "stream"
    HOST = "host"
    EITHER = "either"


@dataclass(frozen=True)
class Refused:
    """The result of a refused node: every reader is refused too.

    ``stand_in``: a guess of the result, so that its readers can be checked for faults of their own; None where no guess
    is possible. ``source``: where it would be computed, which readers need even without a stand-in; None for constants.
    """

    stand_in: HostInput | Integers | Reals | None = None
    source: Source | None = None


@dataclass(frozen=True)
class Masked:
    """A real tensor of which a mask has made elements minus infinity (``far``: None), or numbers that are at most
    ``far``, far below all others (:mod:`hwflow.operators.norms.masked`).

    ``reals``, without functions, represents the others. Masked are the integers below ``least`` (where scales are
    negative: above it), by more than any two of the others differ.
    """

    reals: Reals
    least: int
    far: Fraction | None = None


View = Constant | QuantizedConstant | Integers | Reals | Masked | HostInput | HostOutput | Refused


def as_array(values: Any) -> Fractions:
    """Convert the result of arithmetic on object arrays, which for scalars is no array, to an object array."""
    if isinstance(values, np.ndarray):
        return values
    result = np.empty((), dtype=object)
    result[()] = values
    return result


def elementwise(make: Callable[..., Elementwise | None], *parameters: Fractions) -> Functions:
    """Return an array of functions, one per element of the broadcast parameters; equal parameters share one."""
    made: dict[tuple[Fraction, ...], Elementwise | None] = {}

    def one(*key: Fraction) -> Elementwise | None:
        if key not in made:
            made[key] = make(*key)
        return made[key]

    return as_array(np.frompyfunc(one, len(parameters), 1)(*parameters))


def compact(values: Fractions) -> Fractions:
    """Reduce every axis along which all values are equal to length 1."""
    for axis in range(values.ndim):
        first = values.take([0], axis=axis)
        if (values == first).all():
            values = first
    return values


def rearranged(values: Fractions, shape: tuple[int, ...], change: Callable[[Any], Any]) -> Fractions:
    """Apply ``change``, which moves the elements of a tensor of ``shape``, to values that broadcast over it; return
    them compact."""
    if values.size == 1:
        return values.reshape(())
    return compact(change(np.broadcast_to(values, shape)))


Moved = TypeVar("Moved", bound=Integers | Reals)


def relocated(view: Moved, value: Value, shape: tuple[int, ...], change: Callable[[Any], Any]) -> Moved:
    """Return ``view`` with its elements moved by ``change`` to a frame of ``shape``, which ``value`` holds."""
    if isinstance(view, Reals):
        parameters = (view.scale, view.zero_point, *view.functions)
        scale, zero_point, *functions = (rearranged(v, view.shape, change) for v in parameters)
        view = replace(view, scale=scale, zero_point=zero_point, functions=tuple(functions))
    return replace(view, value=value, shape=shape)


def changed(view: View, change: Callable[[Any], Any]) -> View:
    """Apply ``change``, which moves the elements of an array, to a constant; other views stay as they are."""
    if isinstance(view, Constant):
        return Constant(change(view.array))
    if isinstance(view, QuantizedConstant):
        shape = view.integers.shape
        scale, zero_point = (rearranged(v, shape, change) for v in (view.scale, view.zero_point))
        return QuantizedConstant(change(view.integers), scale, zero_point)
    return view


def uniform(values: Fractions) -> Fraction | None:
    """Return the value of an array whose elements are all equal, else None."""
    flat = values.reshape(-1)
    first: Fraction = flat[0]
    return first if all(v == first for v in flat) else None


def varying_axes(*arrays: npt.NDArray[np.object_]) -> set[int]:
    """Return the axes along which one of the arrays has more than one element."""
    return {axis for values in arrays for axis, size in enumerate(values.shape) if size > 1}


def fraction_gcd(a: Fraction, b: Fraction) -> Fraction:
    """Return the greatest rational of which both are integer multiples."""
    return Fraction(gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
