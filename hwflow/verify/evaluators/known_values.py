"""ONNX values that golden integers represent: how they are fed to the evaluator, and read back.

An integer tensor is fed as it is. A real tensor made by a quantizer (QONNX) has a scale: its integers q are fed as
scale * (q - zero point), rounded to the tensor's type, and read back by their level, round(x / scale + zero point).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwflow.frontend.stream_types import COMPUTED_TYPES
from hwflow.ir.graph import Fractions, Graph, IntArray, Value
from hwflow.numerics.functions.nearest_float import nearest_floats
from hwflow.onnxspec.reading.numpy_tensors import native
from hwflow.onnxspec.reference.evaluation import AnyArray
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel

Floats = npt.NDArray[np.float64]

_DOUBLE = 2.0**-50
"""A few roundings of float64."""


@dataclass(frozen=True)
class Known:
    """ONNX value ``name``, represented by the integers of ``value``; ``shape``: of one frame in the model."""

    name: str
    value: Value
    shape: tuple[int, ...]
    dtype: str

    def feed(self, integers: IntArray) -> tuple[AnyArray, Floats | None]:
        """Return the evaluator's tensor, frames first, and its rounding error (None: exact)."""
        array = integers.reshape(len(integers), *self.shape)
        meaning = self.value.meaning
        if meaning is None:
            return native(array, self.dtype), None
        scale, zero_point = (self._spread(part) for part in (meaning.scale, meaning.zero_point))
        with np.errstate(over="ignore", invalid="ignore"):  # what its type cannot hold has no bound
            exact = scale * (array.astype(np.float64) - zero_point)
            rounded = native(exact, self.dtype)
            error = np.abs(rounded.astype(np.float64) - exact)
            if not (_short(meaning.scale) and _short(meaning.zero_point)):
                error = error + _DOUBLE * (np.abs(exact) + np.abs(scale * zero_point))
        return rounded, error if error.any() else None

    def levels(self, array: AnyArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the integers of an evaluator's tensor, in the shape of the golden ones, and which of its elements are
        none (reals off every level by more than a few roundings, or not finite)."""
        shape = (len(array), *self.value.typed.shape)
        meaning = self.value.meaning
        if meaning is None:
            return array.astype(np.int64).reshape(shape), np.zeros(shape, bool)
        scale, zero_point = (self._spread(part) for part in (meaning.scale, meaning.zero_point))
        with np.errstate(all="ignore"):
            quotient = array.astype(np.float64).reshape(len(array), *self.shape) / scale + zero_point
            levels = np.rint(quotient)
            unit = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 2.0**-7
            allowed = np.minimum(0.25, 4 * unit * (np.abs(quotient) + np.abs(zero_point) + 1))
            wrong = ~(np.abs(quotient - levels) <= allowed)
        return np.where(wrong, 0, levels).astype(np.int64).reshape(shape), wrong.reshape(shape)

    def level_size(self) -> Floats:
        """Return the size of a level in the ONNX tensor, for each element of a frame, in the shape of the golden
        integers."""
        meaning = self.value.meaning
        size = np.ones(()) if meaning is None else np.abs(self._spread(meaning.scale))
        return np.broadcast_to(size, self.shape).reshape(self.value.typed.shape)

    def _spread(self, part: Fractions) -> Floats:
        """Shape scale or zero point to broadcast over the model's shape of a frame."""
        floats = nearest_floats(part)
        logical = self.value.typed.shape
        if part.size == 1 or len(logical) == len(self.shape):
            return floats.reshape((1,) * (len(self.shape) - floats.ndim) + floats.shape)
        return np.broadcast_to(floats, logical).reshape(self.shape)


def known_values(graph: Graph, model: ResolvedModel) -> dict[str, Known]:
    """Return known values by ONNX name. Of several integer tensors on the way to one, the last represents it."""
    result: dict[str, Known] = {}
    for value in graph.values():
        info = model.values.get(value.origin)
        if info is not None and (value.meaning is not None or info.dtype in COMPUTED_TYPES):
            result[value.origin] = Known(value.origin, value, info.shape[1:], info.dtype)
    return result


def _short(values: Fractions) -> bool:
    """Tell whether these are floats so short that products with integers of 20 bits are exact in float64."""
    for v in values.reshape(-1):
        bits, power = v.numerator, v.denominator
        if power & (power - 1):
            return False
        while bits and bits % 2 == 0:
            bits //= 2
        if abs(bits).bit_length() > 32:
            return False
    return True
