"""Windows of convolutions and pools over an image, for the evaluator's operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]


def explicit_pads(attributes: Mapping[str, Any]) -> tuple[int, ...]:
    """Return attribute ``pads``; empty where it is absent or overridden by auto_pad."""
    return tuple(attributes.get("pads") or ()) if attributes.get("auto_pad") in (None, "", "NOTSET") else ()


def pads_are_same(attributes: Mapping[str, Any]) -> bool:
    return attributes.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER")


def _each(attributes: Mapping[str, Any], name: str, rank: int) -> tuple[int, ...]:
    return tuple(attributes.get(name) or (1,) * rank)


def same_totals(image: Sequence[int], kernel: Sequence[int], attributes: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sum of both pads for SAME along each axis; negative where a stride skips the image's end."""
    strides, dilations = (_each(attributes, name, len(image)) for name in ("strides", "dilations"))
    return tuple(
        (-(-length // s) - 1) * s + (k - 1) * d + 1 - length
        for length, k, s, d in zip(image, kernel, strides, dilations, strict=True)
    )


@dataclass(frozen=True)
class Windows:
    """The window positions of an operator along each spatial axis: ``sizes`` of the result, pads before and after."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    befores: tuple[int, ...]
    afters: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, image: Sequence[int], kernel: Sequence[int], attributes: Mapping[str, Any]) -> Windows:
        """Derive the windows from strides, dilations, pads, auto_pad and ceil_mode, as ONNX's MaxPool 22 and Conv 22
        define: with ceil_mode a window must start inside the image or the pads before it."""
        strides, dilations = (_each(attributes, name, len(image)) for name in ("strides", "dilations"))
        given = explicit_pads(attributes) or (0,) * (2 * len(kernel))
        totals = same_totals(image, kernel, attributes) if pads_are_same(attributes) else ()
        befores, afters, sizes = [], [], []
        for axis, length in enumerate(image):
            if totals:
                total = max(0, totals[axis])
                before = total // 2 if attributes["auto_pad"] == "SAME_UPPER" else total - total // 2
                befores.append(before)
                afters.append(total - before)
                sizes.append(-(-length // strides[axis]))
                continue
            before, after = given[axis], given[axis + len(kernel)]
            room = length + before + after - ((kernel[axis] - 1) * dilations[axis] + 1)
            size = room // strides[axis] + 1
            if attributes.get("ceil_mode") and room % strides[axis] and size * strides[axis] < length + before:
                size += 1
            befores.append(before)
            afters.append(after)
            sizes.append(size)
        parts = (image, kernel, strides, dilations, befores, afters, sizes)
        return cls(*(tuple(int(v) for v in part) for part in parts))

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
        """Yield for each tap of the kernel the part of the result whose windows have that tap inside the image, and the
        part of the image under it (equal in shape)."""
        for tap in np.ndindex(*self.kernel):
            target, source = [], []
            for axis, length in enumerate(self.image):
                offset = tap[axis] * self.dilations[axis] - self.befores[axis]
                stride = self.strides[axis]
                first = max(0, -(offset // stride))
                last = min(self.sizes[axis] - 1, (length - 1 - offset) // stride)
                target.append(slice(first, max(first, last + 1)))
                begin, span = offset + first * stride, (last - first) * stride + 1
                source.append(slice(begin, begin + span, stride) if last >= first else slice(0, 0))
            yield tap, tuple(target), tuple(source)

    def counts(self, pads: bool) -> AnyArray:
        """Count the elements of each window: of the image, and with ``pads`` of the pads too (never beyond them)."""
        result: AnyArray = np.ones((), np.int64)
        for axis, length in enumerate(self.image):
            starts = np.arange(self.sizes[axis])[:, None] * self.strides[axis] - self.befores[axis]
            places = starts + np.arange(self.kernel[axis]) * self.dilations[axis]
            low, high = (-self.befores[axis], length + self.afters[axis]) if pads else (0, length)
            result = np.multiply.outer(result, ((places >= low) & (places < high)).sum(axis=1))
        return result


def convolve(x: AnyArray, w: AnyArray, attributes: Mapping[str, Any]) -> AnyArray:
    """Convolve integers ``x`` [frames, C, ...] with ``w`` [M, C / group, ...] in float64, padded with 0: exact while no
    sum reaches 2**53."""
    group = int(attributes.get("group") or 1)
    windows = Windows.of(x.shape[2:], w.shape[2:], attributes)
    frames, channels, outputs = len(x), x.shape[1] // group, w.shape[0] // group
    parts = x.astype(np.float64).reshape(frames, group, channels, *x.shape[2:])
    weights = w.astype(np.float64).reshape(group, outputs, channels, *w.shape[2:])
    result = np.zeros((frames, group, outputs, *windows.sizes))
    every = (slice(None),) * 3
    for tap, target, source in windows.taps():
        image = parts[(*every, *source)]
        place: tuple[Any, ...] = (*every, *tap)
        sums = np.matmul(weights[place], image.reshape(frames, group, channels, -1))
        result[(*every, *target)] += sums.reshape(frames, group, outputs, *image.shape[3:])
    return result.reshape(frames, w.shape[0], *windows.sizes)


def window_maxima(x: AnyArray, windows: Windows) -> AnyArray:
    """Return the maximum of ``x`` [frames, C, ...] in each window, ignoring padding."""
    result = np.full((*x.shape[:2], *windows.sizes), np.iinfo(x.dtype).min, x.dtype)
    every = (slice(None),) * 2
    for _, target, source in windows.taps():
        result[(*every, *target)] = np.maximum(result[(*every, *target)], x[(*every, *source)])
    return result


def window_sums(x: AnyArray, windows: Windows) -> AnyArray:
    """Return the sum of ``x`` [frames, C, ...] over each window, ignoring padding."""
    result = np.zeros((*x.shape[:2], *windows.sizes), x.dtype)
    every = (slice(None),) * 2
    for _, target, source in windows.taps():
        result[(*every, *target)] += x[(*every, *source)]
    return result
