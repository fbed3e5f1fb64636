"""Convolutions and pools in exact arithmetic: loops over windows, straight from the specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

from tests.dialects.exact.exact_call import Array

Rows = list[list[int]]


def windows(attributes: Mapping[str, Any], size: Sequence[int], kernel: Sequence[int]) -> list[Rows]:
    """For each axis and output position the input index of each tap; indices outside the image are padding."""
    rank = len(size)
    strides, dilations = (attributes.get(name) or [1] * rank for name in ("strides", "dilations"))
    pads = attributes.get("pads") or [0] * (2 * rank)
    auto = attributes.get("auto_pad", b"NOTSET").decode()
    axes = []
    for axis in range(rank):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        begin, end = pads[axis], pads[axis + rank]
        if auto == "VALID":
            begin = end = 0
        if auto.startswith("SAME"):
            count = ceil(Fraction(size[axis], strides[axis]))
            padding = max(0, (count - 1) * strides[axis] + reach - size[axis])
            begin = padding // 2 if auto == "SAME_UPPER" else padding - padding // 2
        else:
            exact = Fraction(size[axis] + begin + end - reach, strides[axis]) + 1
            count = floor(exact)
            if attributes.get("ceil_mode", 0) and auto == "NOTSET":
                count = ceil(exact)
                while (count - 1) * strides[axis] >= size[axis] + begin:  # starts in the padding at the end
                    count -= 1
        starts = [o * strides[axis] - begin for o in range(count)]
        axes.append([[start + k * dilations[axis] for k in range(kernel[axis])] for start in starts])
    return axes


def conv(attributes: Mapping[str, Any], x: Array, w: Array, bias: Array | None = None) -> Array:
    """Any number of spatial axes, any number of groups; padding is 0."""
    size, kernel = x.shape[2:], w.shape[2:]
    rows = windows(attributes, size, kernel)
    group = attributes.get("group", 1)
    outs, ins = w.shape[0] // group, w.shape[1]
    result = np.empty((x.shape[0], w.shape[0], *map(len, rows)), dtype=object)
    taps = list(np.ndindex(*kernel))
    for n, m, *place in np.ndindex(result.shape):
        total = Fraction(0) if bias is None else bias[m]
        first = m // outs * ins
        for tap in taps:
            where = tuple(rows[axis][place[axis]][k] for axis, k in enumerate(tap))
            if all(0 <= i < length for i, length in zip(where, size, strict=True)):
                for c in range(ins):
                    total = total + x[(n, first + c, *where)] * w[(m, c, *tap)]
        result[(n, m, *place)] = total
    return result


def max_pool(attributes: Mapping[str, Any], x: Array) -> Array:
    size = x.shape[2:]
    rows = windows(attributes, size, attributes["kernel_shape"])
    result = np.empty((*x.shape[:2], *map(len, rows)), dtype=object)
    for n, c, *place in np.ndindex(result.shape):
        where = product(*(rows[axis][i] for axis, i in enumerate(place)))
        result[(n, c, *place)] = max(x[(n, c, *i)] for i in where if _inside(i, size))
    return result


def average_pool(attributes: Mapping[str, Any], x: Array) -> Array:
    """Padding counts (as 0) with ``count_include_pad``; what lies beyond it, with ceil_mode, never does."""
    size, rank = x.shape[2:], x.ndim - 2
    rows = windows(attributes, size, attributes["kernel_shape"])
    pads = attributes.get("pads") or [0] * (2 * rank)
    same = attributes.get("auto_pad", b"NOTSET").decode().startswith("SAME")  # as much padding as the windows take
    result = np.empty((*x.shape[:2], *map(len, rows)), dtype=object)
    for n, c, *place in np.ndindex(result.shape):
        where = list(product(*(rows[axis][i] for axis, i in enumerate(place))))
        inside = [i for i in where if _inside(i, size)]
        count = len(inside)
        if attributes.get("count_include_pad", 0):
            counts = (same or all(i[a] < size[a] + pads[rank + a] for a in range(rank)) for i in where)
            count = sum(counts)
        result[(n, c, *place)] = sum((x[(n, c, *i)] for i in inside), Fraction(0)) * Fraction(1, count)
    return result


def global_average_pool(x: Array) -> Array:
    result = np.empty((*x.shape[:2], *[1] * (x.ndim - 2)), dtype=object)
    for n, c in np.ndindex(x.shape[:2]):
        pixels = x[n, c].reshape(-1).tolist()
        result[n, c] = sum(pixels, Fraction(0)) * Fraction(1, len(pixels))
    return result


def resize(attributes: Mapping[str, Any], x: Array, scales: Array) -> Array:
    """Resize with scales, half_pixel or asymmetric: nearest (round_prefer_floor) or linear, an axis at a time."""
    nearest = attributes.get("mode", b"nearest") == b"nearest"
    centred = attributes.get("coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
    half = Fraction(1, 2) if centred else Fraction(0)
    for axis, scale in enumerate(scales.tolist()):
        lines = np.moveaxis(x, axis, 0)
        result = []
        for place in range(floor(len(lines) * scale)):
            at = (place + half) / scale - half
            if nearest:
                result.append(lines[min(max(ceil(at - Fraction(1, 2)), 0), len(lines) - 1)])
                continue
            below, above = (lines[min(max(k, 0), len(lines) - 1)] for k in (floor(at), floor(at) + 1))
            result.append(below * (1 - (at - floor(at))) + above * (at - floor(at)))
        x = np.moveaxis(np.stack(result), 0, axis)
    return x


def _inside(index: Sequence[int], size: Sequence[int]) -> bool:
    return all(0 <= i < length for i, length in zip(index, size, strict=True))
