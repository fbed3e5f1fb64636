"""Windows over any number of spatial axes, as operators over images: pools axis by axis, convolutions of one axis over
images of width 1, of three and more by the elements under each window, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product as every_combination
from math import prod
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering
from hwflow.ir.graph import IntArray, Value
from hwflow.onnxspec.resolving.resolved_model import OnnxNode

Window = Mapping[str, Any]
"""``kernel``, ``strides``, ``dilations``, an element a spatial axis; ``pads``, all in front, then all behind."""


def output_size(image: tuple[int, ...], window: Window) -> tuple[int, ...]:
    """Window positions along each axis (ONNX operator Conv, output shape with explicit pads)."""
    axes = len(image)
    spans = [(k - 1) * d + 1 for k, d in zip(window["kernel"], window["dilations"], strict=True)]
    return tuple(
        (image[a] + window["pads"][a] + window["pads"][a + axes] - spans[a]) // window["strides"][a] + 1
        for a in range(axes)
    )


def pool(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], window: Window, op: str,
    before: tuple[str, ...] = (), *, origin: str | None = None, pad_value: int | None = None,
) -> Value:
    """``op`` ("max_pool2d" or "sum_pool2d", padded with ``pad_value``) of ``value`` (channels, spatial axes): over the
    last two axes, then over each of the others. Maxima of maxima are maxima, sums of sums are sums."""

    def extra(taps: int) -> dict[str, int]:
        return {} if pad_value is None else {"pad_value": pad_value * taps}

    if len(shape) == 3:
        return state.add(op, node, [value], {**window, **extra(1)}, before, origin=origin)
    sizes, count = list(shape[1:]), len(shape) - 1
    results = output_size(shape[1:], window)
    stages: list[tuple[int, ...]] = [(count - 2, count - 1)] if count > 1 else []
    stages += [(axis,) for axis in reversed(range(max(1, count - 2)))]
    taps = 1
    for stage in stages:
        first = stage[0]
        image = (sizes[first], prod(sizes[first + 1 :]))
        value = state.add("reshape", node, [value], {"shape": (shape[0] * prod(sizes[:first]), *image)}, origin="")
        value = state.add(op, node, [value], {**_over(window, stage), **extra(taps)}, before, origin="")
        for axis in stage:
            sizes[axis] = results[axis]
            taps *= window["kernel"][axis]
    return state.add("reshape", node, [value], {"shape": (shape[0], *sizes)}, origin=origin)


def _over(window: Window, axes: tuple[int, ...]) -> dict[str, Any]:
    """The window over one or two of its axes, of an image whose other axis it leaves alone."""
    count = len(window["kernel"])
    lone = len(axes) == 1
    result = {
        name: tuple(window[name][axis] for axis in axes) + (1,) * lone for name in ("kernel", "strides", "dilations")
    }
    pads = [tuple(window["pads"][axis + side] for axis in axes) + (0,) * lone for side in (0, count)]
    return {**result, "pads": pads[0] + pads[1]}


def convolution(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], attributes: Mapping[str, Any],
    before: tuple[str, ...], *, origin: str | None = None,
) -> Value:
    """The sums of a convolution of ``value`` (channels, spatial axes); ``attributes`` as
    :mod:`hwflow.cores.logical.conv2d` has them, with an element a spatial axis."""
    origin = state.real_origin(node) if origin is None else origin
    weights: IntArray = attributes["weights"]
    if len(shape) == 3:
        return state.add("conv2d", node, [value], dict(attributes), before, origin=origin)
    result = (len(weights), *output_size(shape[1:], {**attributes, "kernel": weights.shape[2:]}))
    if len(shape) == 2:  # an image of width 1
        value = state.add("reshape", node, [value], {"shape": (*shape, 1)}, origin="")
        over = _over({**attributes, "kernel": weights.shape[2:]}, (0,))
        del over["kernel"]
        value = state.add(
            "conv2d", node, [value], {**attributes, **over, "weights": weights[..., None]}, before, origin=""
        )
        return state.add("reshape", node, [value], {"shape": result}, origin=origin)
    groups = attributes.get("groups", 1)
    index = _windows(shape, {**attributes, "kernel": weights.shape[2:]}, groups)
    value = state.add("reindex", node, [value], {"index": index, "fill": attributes["pad_value"]}, origin="")
    rows = weights.reshape(groups, len(weights) // groups, -1)
    more = {"binary": True} if attributes.get("binary") else {}
    value = state.add("dense", node, [value], {"weights": rows if groups > 1 else rows[0], **more}, before, origin="")
    value = state.add("reshape", node, [value], {"shape": (prod(result[1:]), result[0])}, origin="")
    value = state.add("transpose", node, [value], {"perm": (1, 0)}, origin="")
    return state.add("reshape", node, [value], {"shape": result}, origin=origin)


def _windows(shape: tuple[int, ...], window: Window, groups: int) -> IntArray:
    """[positions, groups, channels of a group * taps] (without the second axis for one group): the flat index of each
    element under each window, -1 in the padding."""
    channels, image = shape[0], shape[1:]
    axes, output = len(image), output_size(image, window)
    pads = [(0, 0), *((window["pads"][a], window["pads"][a + axes]) for a in range(axes))]
    padded = np.pad(np.arange(prod(shape)).reshape(shape), pads, constant_values=-1)
    taps = []
    for offsets in every_combination(*(range(k) for k in window["kernel"])):
        picks = []
        for axis, offset in enumerate(offsets):
            start, stride = offset * window["dilations"][axis], window["strides"][axis]
            picks.append(slice(start, start + (output[axis] - 1) * stride + 1, stride))
        taps.append(padded[(slice(None), *picks)])
    elements = np.stack(taps, axis=-1).reshape(channels, prod(output), len(taps))  # channel, position, tap
    rows = elements.transpose(1, 0, 2).reshape(prod(output), groups, -1)
    return rows if groups > 1 else rows[:, 0]


def transposed_convolution(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], attributes: Mapping[str, Any],
    output: tuple[int, ...], before: tuple[str, ...],
) -> Value:
    """The sums of a transposed convolution of ``value`` (channels, spatial axes; its zero point is 0) with results of
    spatial size ``output``. ``attributes``: ``weights`` [M, C / groups, kernel], ``strides``, ``dilations``, ``starts``
    (pads in front) and ``groups``.

    Result f = q * stride + r of a line takes inputs q - j by the weights r + j * stride, so that the results of each
    phase r are a convolution by every stride-th weight: no product with the zeros that a stretched input would have (W.
    Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016). The phases are channels first,
    and move to their places behind.
    """
    strides, starts, groups = attributes["strides"], attributes["starts"], attributes["groups"]
    weights = _stretched(attributes["weights"], attributes["dilations"])
    axes = len(output)
    kernel = tuple(-(-weights.shape[2 + a] // strides[a]) for a in range(axes))
    room = [(0, kernel[a] * strides[a] - weights.shape[2 + a]) for a in range(axes)]
    full = np.pad(weights, [(0, 0), (0, 0), *room])
    phases = []
    for phase in every_combination(*(range(s) for s in strides)):
        every_stride = tuple(slice(r, None, s) for r, s in zip(phase, strides, strict=True))
        flipped = full[(slice(None), slice(None), *every_stride)]
        phases.append(np.flip(flipped, axis=tuple(range(2, 2 + axes))))
    count = len(weights)
    together = np.stack(phases, axis=1)  # of each output its phases
    pads = tuple(k - 1 for k in kernel) * 2
    window = {"strides": (1,) * axes, "pads": pads, "dilations": (1,) * axes}
    sums = convolution(
        state, node, value, shape,
        {**window, "weights": together.reshape(-1, *together.shape[2:]), "groups": groups, "pad_value": 0}, before,
        origin="",
    )
    lengths = output_size(shape[1:], {**window, "kernel": kernel})
    index = np.arange(count)
    hole = np.zeros((count,), dtype=bool)
    # Mixed-radix numbers: output, phases along each axis, positions along each axis.
    places = []
    for axis in range(axes):
        place, phase = np.divmod(np.arange(output[axis]) + starts[axis], strides[axis])
        places.append((place, phase))
    for axis, (_, phase) in enumerate(places):
        index = index[..., None] * strides[axis] + phase
    for axis, (place, _) in enumerate(places):
        around = place.reshape(-1, *(1,) * (axes - 1 - axis))
        index = index * lengths[axis] + around
        hole = hole[..., None] | (place >= lengths[axis])
    attributes = {"index": np.where(hole, -1, index), "fill": 0}
    return state.add("reindex", node, [sums], attributes, origin=state.real_origin(node))


def _stretched(weights: IntArray, dilations: tuple[int, ...]) -> IntArray:
    """The weights with the zeros that dilations put between them."""
    for axis, dilation in enumerate(dilations, start=2):
        shape = list(weights.shape)
        shape[axis] = (shape[axis] - 1) * dilation + 1
        wide = np.zeros(shape, dtype=np.int64)
        wide[(slice(None),) * axis + (slice(None, None, dilation),)] = weights
        weights = wide
    return weights
