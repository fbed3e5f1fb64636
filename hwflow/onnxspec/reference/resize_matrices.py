"""Resize and Upsample by their specification, as one matrix per axis, for evaluators that get them wrong.

Coordinates are exact rationals of the model's float32 numbers, so that ties between neighbours are exact; products are
float64. Where the text of the specification leaves a choice, ONNX's own test data for the operator decide:

- ``length_resized`` is the target length before it is rounded down, a fraction where scales are given
  (``resize_downsample_scales_linear_align_corners``).
- Before operator set 11 coordinates are those of "asymmetric"; nearest takes the element below, the one above where the
  axis shrinks (test data of ONNX 1.5: ``resize_downsample_nearest``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper

AnyArray = npt.NDArray[Any]

HALF = Fraction(1, 2)
FIRST_MODES = 11
"""The operator set that introduced coordinate transformation modes; the evaluator lacks earlier versions."""


@dataclass(frozen=True)
class Line:
    """One resized axis: ``size`` elements become ``output``; ``scale`` and the region of interest (``start``, ``end``)
    as in the node."""

    axis: int
    size: int
    output: int
    scale: Fraction
    start: Fraction = Fraction(0)
    end: Fraction = Fraction(1)

    @property
    def length(self) -> Fraction:
        """The target length, before it is rounded."""
        return self.scale * self.size

    @property
    def stays(self) -> bool:
        """Whether the axis is left as it is."""
        return self.scale == 1 and self.output == self.size and self.start == 0 and self.end == 1


def lines(
    shape: Sequence[int], attributes: Mapping[str, Any], roi: AnyArray | None, scales: AnyArray | None,
    sizes: AnyArray | None,
) -> list[Line]:
    """Return a Line per axis that the node names. ``roi``, ``scales``, ``sizes``: the inputs; None or empty if
    absent."""
    rank = len(shape)
    axes = [int(a) % rank for a in attributes.get("axes") or range(rank)]
    starts, ends = [Fraction(0)] * len(axes), [Fraction(1)] * len(axes)
    if roi is not None and roi.size:
        exact = [Fraction(float(v)) for v in roi.reshape(-1)]
        starts, ends = exact[: len(axes)], exact[len(axes) :]
    if sizes is not None and sizes.size:
        ratios = [Fraction(int(size), shape[axis]) for size, axis in zip(sizes.reshape(-1), axes, strict=True)]
        outputs = [int(size) for size in sizes.reshape(-1)]
        policy = attributes.get("keep_aspect_ratio_policy") or "stretch"
        if policy != "stretch":
            ratios = [(min if policy == "not_larger" else max)(ratios)] * len(axes)
            outputs = [floor(ratios[0] * shape[axis] + HALF) for axis in axes]
    else:
        assert scales is not None, "shape inference needs scales or sizes"
        ratios = [Fraction(float(v)) for v in np.asarray(scales).reshape(-1)]
        outputs = [floor(ratio * shape[axis]) for ratio, axis in zip(ratios, axes, strict=True)]
    return [
        Line(axis, shape[axis], output, ratio, start, end)
        for axis, output, ratio, start, end in zip(axes, outputs, ratios, starts, ends, strict=True)
    ]


def coordinate(line: Line, mode: str, place: int) -> Fraction:
    """Return ``x_original`` of element ``place`` of the result (operator Resize 19, coordinate_transformation_mode; 11
    for tf_half_pixel_for_nn)."""
    centre = (place + HALF) / line.scale
    last = line.size - 1
    if mode == "asymmetric":
        return place / line.scale
    if mode == "align_corners":
        return place * last / (line.length - 1) if line.length != 1 else Fraction(0)
    if mode == "tf_crop_and_resize":
        if line.length <= 1:
            return HALF * (line.start + line.end) * last
        return line.start * last + place * (line.end - line.start) * last / (line.length - 1)
    if mode == "tf_half_pixel_for_nn":
        return centre
    if mode == "pytorch_half_pixel" and line.length <= 1:
        return Fraction(0)
    if mode == "half_pixel_symmetric":
        return Fraction(line.size, 2) * (1 - line.output / line.length) + centre - HALF
    return centre - HALF


def resize(
    x: AnyArray, attributes: Mapping[str, Any], version: int, roi: AnyArray | None, scales: AnyArray | None,
    sizes: AnyArray | None = None,
) -> AnyArray:
    """Compute Resize of operator set ``version``, or Upsample (7 to 9). Means of integers are rounded, ties to even,
    and saturate, like the evaluator's."""
    fill = float(attributes.get("extrapolation_value") or 0)
    result = x.astype(np.float64)
    for line in lines(x.shape, attributes, roi, scales, sizes):
        if not line.stays:
            result = _along(result, line.axis, matrix(line, attributes, version), outside(line, attributes), fill)
    if x.dtype == np.bool_:
        return result.astype(np.bool_)
    cast: AnyArray = numpy_helper.saturate_cast(result, x.dtype)
    return cast


def bound(
    errors: AnyArray, magnitudes: AnyArray, attributes: Mapping[str, Any], version: int, roi: AnyArray | None,
    scales: AnyArray | None, sizes: AnyArray | None,
) -> AnyArray:
    """Bound the error of :func:`resize` in float64, before rounding to the result's type, for an operand of
    ``magnitudes`` with ``errors``: each weight is off by some units of its coordinate's last place."""
    for line in lines(errors.shape, attributes, roi, scales, sizes):
        if line.stays:
            continue
        weights, holes = np.abs(matrix(line, attributes, version)), outside(line, attributes)
        off = (line.size + 2 * int((weights > 0).sum(axis=1).max()) + 8) * 2.0**-52
        near = weights + (weights > 0)
        near[:, 1:] += weights[:, :-1] > 0
        near[:, :-1] += weights[:, 1:] > 0
        errors = _along(errors, line.axis, weights, holes, 0.0) + off * _along(magnitudes, line.axis, near, holes, 0.0)
        magnitudes = _along(magnitudes, line.axis, weights, holes, 0.0)
    return errors


def _along(x: AnyArray, axis: int, weights: AnyArray, holes: AnyArray, fill: float) -> AnyArray:
    """Multiply ``axis`` of ``x`` by a matrix; put ``fill`` where ``holes`` is set."""
    moved: AnyArray = np.moveaxis(x, axis, -1) @ weights.T
    moved[..., holes] = fill
    return np.moveaxis(moved, -1, axis)


def outside(line: Line, attributes: Mapping[str, Any]) -> AnyArray:
    """Tell which elements of the result have the extrapolation value."""
    mode = attributes.get("coordinate_transformation_mode")
    if mode != "tf_crop_and_resize":
        return np.zeros(line.output, dtype=bool)
    places = [coordinate(line, mode, place) for place in range(line.output)]
    return np.array([at < 0 or at > line.size - 1 for at in places], dtype=bool)


def matrix(line: Line, attributes: Mapping[str, Any], version: int) -> AnyArray:
    """Return [output, size] float64: the weight of each element of the operand in each one of the result."""
    transformation = attributes.get("coordinate_transformation_mode") or "half_pixel"
    rounding = attributes.get("nearest_mode") or "round_prefer_floor"
    if version < FIRST_MODES:
        transformation, rounding = "asymmetric", "floor" if line.scale >= 1 else "ceil"
    mode = attributes.get("mode") or "nearest"
    reach, kernel = _kernel(mode, line.scale, attributes)
    rows = np.zeros((line.output, line.size))
    for place in range(line.output):
        at = coordinate(line, transformation, place)
        if mode == "nearest":
            rows[place, min(max(nearest(at, rounding), 0), line.size - 1)] = 1
            continue
        near = range(floor(at - reach) + 1, ceil(at + reach))
        weights = {index: kernel(index - at) for index in near}
        if attributes.get("exclude_outside"):
            weights = {index: weight for index, weight in weights.items() if 0 <= index < line.size}
        total = sum(weights.values())
        for index, weight in weights.items():
            rows[place, min(max(index, 0), line.size - 1)] += float(weight / total)
    return rows


def nearest(at: Fraction, rounding: str) -> int:
    """Return the element nearest to a coordinate."""
    if rounding == "floor":
        return floor(at)
    if rounding == "ceil":
        return ceil(at)
    return ceil(at - HALF) if rounding == "round_prefer_floor" else floor(at + HALF)


def _kernel(mode: str, scale: Fraction, attributes: Mapping[str, Any]) -> tuple[Fraction, Any]:
    """Return the reach of the interpolation, and the weight at a distance; stretched where antialiasing shrinks an
    axis."""
    stretch = 1 / scale if attributes.get("antialias") and scale < 1 else Fraction(1)
    if mode != "cubic":
        return stretch, lambda distance: max(Fraction(0), 1 - abs(distance) / stretch)
    given = attributes.get("cubic_coeff_a")
    a = Fraction(-3, 4) if given is None else Fraction(float(np.float32(given)))

    def cubic(distance: Fraction) -> Fraction:
        """Return the weight by R. G. Keys, "Cubic convolution interpolation for digital image processing", 1981,
        equation 4."""
        t = abs(distance) / stretch
        return ((a + 2) * t - (a + 3)) * t * t + 1 if t <= 1 else ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return 2 * stretch, cubic
