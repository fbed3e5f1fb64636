"""One axis of a Resize: the weights by which each element of the result averages elements of the operand.

Everything is an exact rational: a float32 scale, and a ratio of sizes. ONNX operator Resize 19; where its text leaves a
choice, ONNX's test data decide, as in :mod:`hwflow.onnxspec.reference.resize_matrices`, an independent implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm

import numpy as np

from hwflow.ir.graph import IntArray

HALF = Fraction(1, 2)
NEAREST, LINEAR, CUBIC = "nearest", "linear", "cubic"
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
WHOLE = (Fraction(0), Fraction(1))
CROP = "tf_crop_and_resize"
_ALWAYS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", CROP)


def transformations(version: int) -> tuple[str, ...]:
    """Return the coordinate transformations of Resize in an operator set from 11 on; the first is the default."""
    if version < 13:
        return (*_ALWAYS, "tf_half_pixel_for_nn")
    return _ALWAYS if version < 19 else (*_ALWAYS, "half_pixel_symmetric")


@dataclass(frozen=True)
class Interpolation:
    """A node's settings for all axes: ``mode``, ``transformation`` (of coordinates) and ``rounding`` (of nearest; None:
    down, and up along an axis that shrinks) by ONNX's names; ``cubic_a``, ``antialias``, ``exclude_outside`` as in the
    attributes."""

    mode: str
    transformation: str = "half_pixel"
    rounding: str | None = ROUNDINGS[0]
    cubic_a: Fraction = Fraction(-3, 4)
    antialias: bool = False
    exclude_outside: bool = False


@dataclass(frozen=True)
class AxisResize:
    """``size`` elements along ``axis`` (of the whole tensor) become ``output``, by ``scale``; ``roi``: start, end."""

    axis: int
    size: int
    output: int
    scale: Fraction
    roi: tuple[Fraction, Fraction] = WHOLE

    @property
    def is_identity(self) -> bool:
        return self.scale == 1 and self.output == self.size and self.roi == WHOLE

    def coordinates(self, transformation: str) -> list[Fraction]:
        """Return the operand coordinate of each element of the result, an affine function of its index."""
        length, last = self.scale * self.size, self.size - 1
        slope, offset = 1 / self.scale, Fraction(0)
        centred = slope / 2 - HALF
        match transformation:
            case "half_pixel":
                offset = centred
            case "half_pixel_symmetric":
                offset = centred + Fraction(self.size, 2) * (1 - self.output / length)
            case "pytorch_half_pixel":
                slope, offset = (slope, centred) if length > 1 else (Fraction(0), Fraction(0))
            case "tf_half_pixel_for_nn":
                offset = slope / 2
            case "align_corners":
                slope = last / (length - 1) if length != 1 else Fraction(0)
            case "tf_crop_and_resize":
                start, end = self.roi
                slope = (end - start) * last / (length - 1) if length > 1 else Fraction(0)
                offset = start * last if length > 1 else (start + end) * last / 2
            case _:
                assert transformation == "asymmetric", transformation
        return [slope * place + offset for place in range(self.output)]

    def outside(self, how: Interpolation) -> list[bool]:
        """Tell which elements of the result have the extrapolation value."""
        if how.transformation != CROP:
            return [False] * self.output
        return [not 0 <= at <= self.size - 1 for at in self.coordinates(CROP)]

    def nearest(self, how: Interpolation) -> list[int]:
        """Return the index of the element that each one of the result copies; it may lie beyond the operand's ends."""
        found = []
        rounding = how.rounding or ("floor" if self.scale >= 1 else "ceil")
        for at in self.coordinates(how.transformation):
            below = floor(at)
            match rounding:
                case "floor":
                    found.append(below)
                case "ceil":
                    found.append(ceil(at))
                case "round_prefer_floor":
                    found.append(below + (at - below > HALF))
                case _:
                    found.append(below + (at - below >= HALF))
        return found

    def mean(self, how: Interpolation) -> list[Mapping[int, Fraction]]:
        """Return the nonzero weights of each element of the result, by index, normalized to 1; {} where that is
        impossible."""
        stretch = max(Fraction(1), 1 / self.scale) if how.antialias else Fraction(1)
        reach = 2 if how.mode == CUBIC else 1
        found: list[Mapping[int, Fraction]] = []
        for at in self.coordinates(how.transformation):
            weights: dict[int, Fraction] = {}
            for place in range(ceil(at - reach * stretch), floor(at + reach * stretch) + 1):
                inside = min(max(place, 0), self.size - 1)
                if place == inside or not how.exclude_outside:
                    weights[inside] = weights.get(inside, Fraction(0)) + _weight(how, abs(place - at) / stretch)
            total = sum(weights.values(), Fraction(0))
            found.append({place: w / total for place, w in weights.items() if w} if total else {})
        return found


def _weight(how: Interpolation, distance: Fraction) -> Fraction:
    """Return the weight of an element at a distance: a triangle, or the cubic convolution of R. G. Keys, "Cubic
    convolution interpolation for digital image processing", 1981, equation 4."""
    if how.mode == LINEAR:
        return max(Fraction(0), 1 - distance)
    square, cube, a = distance**2, distance**3, how.cubic_a
    if distance <= 1:
        return (a + 2) * cube - (a + 3) * square + 1
    return a * (cube - 5 * square + 8 * distance - 4) if distance < 2 else Fraction(0)


@dataclass(frozen=True)
class Windows:
    """Weighted sums of neighbours: element k of the result is the sum of ``weights[k]`` times the elements from
    ``starts[k]`` on, divided by ``divisor``, the sum of each row of weights. All rows have equal length."""

    starts: IntArray
    weights: IntArray
    divisor: int

    @property
    def width(self) -> int:
        """The number of elements in a sum."""
        return int(self.weights.shape[1])


MAX_DIVISOR_BITS = 40
"""The greatest width of the weights' common denominator over all axes: beyond, multipliers would be too long."""


def windows(means: list[Mapping[int, Fraction]], size: int) -> Windows | None:
    """Convert the ``means`` over an axis of ``size`` elements to integers; None if the common denominator is too
    large."""
    divisor = 1
    for denominator in {w.denominator for mean in means for w in mean.values()}:
        divisor = lcm(divisor, denominator)
        if divisor.bit_length() > MAX_DIVISOR_BITS:
            return None
    width = max(max(mean) - min(mean) + 1 for mean in means)
    starts = np.array([min(min(mean), size - width) for mean in means], dtype=np.int64)
    weights = np.zeros((len(means), width), dtype=np.int64)
    for row, mean in enumerate(means):
        for place, weight in mean.items():
            weights[row, place - starts[row]] = int(weight * divisor)
    return Windows(starts, weights, divisor)
