"""Integers of 2 to 16 bits, and the ONNX types that hold them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from hwflow.quantization.calibration import Range

LEAST_BITS, MOST_BITS = 2, 16

FIXED_POINT_BITS = 9
"""From here on scales of activations are powers of two: a sum of two streams is then rounded by a shift. By other
ratios, integers of 40 bits and 65,535 levels would be compared with thresholds, in more than 100 block RAMs. It costs
one bit at most."""

_LEAST_EXPONENT = -126  # of normal float32 numbers

_NAME = re.compile(r"(u?)int(\d+)")


@dataclass(frozen=True, order=True)
class IntegerKind:
    """Integers of so many ``bits``."""

    bits: int
    signed: bool = False

    @staticmethod
    def named(name: str) -> IntegerKind:
        """Return the kind with a name such as "uint5"."""
        match = _NAME.fullmatch(name)
        assert match is not None, "names are checked before"
        return IntegerKind(int(match[2]), not match[1])

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}int{self.bits}"

    @property
    def least(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def most(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def steps(self) -> int:
        """From the least to the greatest."""
        return (1 << self.bits) - 1

    @property
    def held_in(self) -> IntegerKind:
        """The least ONNX type that holds them, and that onnxruntime knows: of 4, 8 or 16 bits."""
        return IntegerKind(next(bits for bits in (4, 8, 16) if bits >= self.bits), self.signed)

    @property
    def element_type(self) -> int:
        """The ONNX element type that holds them."""
        return int(TensorProto.DataType.Value(str(self.held_in).upper()))

    def tensor(self, values: npt.NDArray[Any], name: str) -> onnx.TensorProto:
        """Return whole numbers as an ONNX tensor that holds them."""
        flat = values.reshape(-1).astype(np.int64).tolist()
        if self.held_in.bits > 4:
            dtype = np.dtype(str(self.held_in))
            return onnx.numpy_helper.from_array(values.astype(dtype), name)
        return onnx.helper.make_tensor(name, self.element_type, values.shape, flat)


@dataclass(frozen=True)
class Grid:
    """The reals ``scale * (integer - zero)`` of a quantized value; ``scale`` is a float32 number."""

    kind: IntegerKind
    scale: float
    zero: int

    @property
    def limits(self) -> Range:
        """The least and the greatest real."""
        return self.scale * (self.kind.least - self.zero), self.scale * (self.kind.most - self.zero)


def grid_of(range_: Range, kind: IntegerKind) -> Grid:
    """Return the grid that holds a range, and 0."""
    low, high = min(range_[0], 0.0), max(range_[1], 0.0)
    if kind.bits >= FIXED_POINT_BITS:
        exponent = math.ceil(math.log2((high - low) / kind.steps)) if high > low else 0
        return grid_with_scale(low, 2.0 ** max(exponent, _LEAST_EXPONENT), kind)
    step = (float(np.float32(high)) - float(np.float32(low))) / kind.steps
    if step < float(np.finfo(np.float32).tiny):
        return Grid(kind, 1.0, 0)
    return Grid(kind, float(np.float32(step)), round(kind.least - float(np.float32(low)) / step))


def grid_with_scale(low: float, scale: float, kind: IntegerKind) -> Grid:
    """Return the grid of a scale whose least integer is ``low``, or 0 if that is less."""
    exact = float(np.float32(scale))
    return Grid(kind, exact, min(max(round(kind.least - min(low, 0.0) / exact), kind.least), kind.most))
