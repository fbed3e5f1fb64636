"""ConvTranspose by its specification, for evaluators that get it wrong."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]


def conv_transpose(x: AnyArray, weights: AnyArray, bias: AnyArray | None, attributes: Mapping[str, Any]) -> AnyArray:
    """Compute ConvTranspose: scatter each input element times the weights (ONNX operator ConvTranspose 11).

    ``x`` [frames, C, spatial], ``weights`` [C, M / group, kernel], ``bias`` [M]; ``attributes`` as the node has them.
    Sums are of x's type.
    """
    axes, groups = x.ndim - 2, int(attributes.get("group", 1))
    kernel = weights.shape[2:]
    strides, dilations = (tuple(attributes.get(n) or (1,) * axes) for n in ("strides", "dilations"))
    room = tuple(attributes.get("output_padding") or (0,) * axes)
    reach = [strides[a] * (x.shape[2 + a] - 1) + room[a] + (kernel[a] - 1) * dilations[a] + 1 for a in range(axes)]
    starts, sizes = _cut(x.shape[2:], reach, strides, attributes)
    whole = np.zeros((len(x), groups * weights.shape[1], *reach), dtype=x.dtype)
    grouped = x.reshape(len(x), groups, -1, *x.shape[2:])
    of_taps = weights.reshape(groups, -1, weights.shape[1], prod(kernel))
    for tap in product(*(range(k) for k in kernel)):
        at_tap: AnyArray = of_taps[:, :, :, np.ravel_multi_index(tap, kernel)]
        terms = np.einsum("fgc...,gcm->fgm...", grouped, at_tap)
        place = tuple(
            slice(t * d, t * d + s * (n - 1) + 1, s)
            for t, d, s, n in zip(tap, dilations, strides, x.shape[2:], strict=True)
        )
        whole[(slice(None), slice(None), *place)] += terms.reshape(len(x), -1, *x.shape[2:])
    beyond = [max(0, start + size - r) for start, size, r in zip(starts, sizes, reach, strict=True)]
    pads = [(0, 0), (0, 0), *((0, more) for more in beyond)]
    picks = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    result = np.pad(whole, pads)[(slice(None), slice(None), *picks)]
    return result if bias is None else result + bias.reshape(-1, *(1,) * axes)


def _cut(
    image: tuple[int, ...], reach: list[int], strides: tuple[int, ...], attributes: Mapping[str, Any]
) -> tuple[list[int], list[int]]:
    """Return the offset of the result within the scattered extent, and its size."""
    axes = len(image)
    auto_pad = attributes.get("auto_pad", "NOTSET")
    pads = list(attributes.get("pads") or (0,) * 2 * axes)
    sizes = list(attributes.get("output_shape") or ())
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not sizes:
        sizes = [image[a] * strides[a] for a in range(axes)]
    if not sizes:
        return pads[:axes], [reach[a] - pads[a] - pads[a + axes] for a in range(axes)]
    totals = [max(0, reach[a] - sizes[a]) for a in range(axes)]
    return [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in totals], sizes
