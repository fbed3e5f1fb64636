"""Windows over any number of spatial axes, by operators on images: pools axis by axis, convolutions of one axis on
images of width 1, those of three and more by gathering each window into a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product as every_combination
from math import prod

import numpy as np

from hwflow.frontend.context import Lowering
from hwflow.ir.graph import Attributes, IntArray, Value
from hwflow.ir.node_attributes import (
    Conv2dAttributes,
    DenseAttributes,
    MaxPool2dAttributes,
    ReindexAttributes,
    ReshapeAttributes,
    SumPool2dAttributes,
    TransposeAttributes,
    Window,
)
from hwflow.onnxspec.resolving.resolved_model import OnnxNode


def output_size(image: tuple[int, ...], window: Window) -> tuple[int, ...]:
    """Return the window positions along each axis (ONNX operator Conv, output shape with explicit pads)."""
    axes = len(image)
    spans = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True)]
    return tuple(
        (image[a] + window.pads[a] + window.pads[a + axes] - spans[a]) // window.strides[a] + 1
        for a in range(axes)
    )


def max_pool(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], window: Window, *, least: bool,
    origin: str | None = None,
) -> Value:
    """Return maxima, or minima, of ``value`` (channels, spatial axes)."""
    return _pool(
        state, node, value, shape, window, lambda over, taps: MaxPool2dAttributes(over, least), (), origin
    )


def sum_pool(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], window: Window, before: tuple[str, ...], *,
    origin: str, pad_value: int,
) -> Value:
    """Return sums of ``value`` (channels, spatial axes), padded with ``pad_value``."""
    return _pool(
        state, node, value, shape, window, lambda over, taps: SumPool2dAttributes(over, pad_value * taps), before,
        origin,
    )


def _pool(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], window: Window,
    attributes: Callable[[Window, int], Attributes], before: tuple[str, ...], origin: str | None,
) -> Value:
    """Add a pool over the last two axes, then over each of the others: maxima of maxima are maxima, sums of sums are
    sums. ``attributes``: returns those for a window over values of so many elements each."""
    if len(shape) == 3:
        return state.add(node, [value], attributes(window, 1), before, origin=origin)
    sizes, count = list(shape[1:]), len(shape) - 1
    results = output_size(shape[1:], window)
    stages: list[tuple[int, ...]] = [(count - 2, count - 1)] if count > 1 else []
    stages += [(axis,) for axis in reversed(range(max(1, count - 2)))]
    taps = 1
    for stage in stages:
        first = stage[0]
        image = (shape[0] * prod(sizes[:first]), sizes[first], prod(sizes[first + 1 :]))
        value = state.add(node, [value], ReshapeAttributes(image), origin="")
        value = state.add(node, [value], attributes(_over(window, stage), taps), before, origin="")
        for axis in stage:
            sizes[axis] = results[axis]
            taps *= window.kernel[axis]
    return state.add(node, [value], ReshapeAttributes((shape[0], *sizes)), origin=origin)


def _over(window: Window, axes: tuple[int, ...]) -> Window:
    """Return the window over one or two of its axes; on an image's other axis it is 1 wide."""
    count, lone = len(window.kernel), len(axes) == 1
    kernel, strides, dilations = (
        tuple(values[axis] for axis in axes) + (1,) * lone
        for values in (window.kernel, window.strides, window.dilations)
    )
    pads = [tuple(window.pads[axis + side] for axis in axes) + (0,) * lone for side in (0, count)]
    return Window(kernel, strides, pads[0] + pads[1], dilations)


def convolution(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], attributes: Conv2dAttributes,
    before: tuple[str, ...], *, origin: str | None = None,
) -> Value:
    """Return the sums of a convolution of ``value`` (channels, spatial axes); ``attributes`` have one element per
    spatial axis."""
    origin = state.real_origin(node) if origin is None else origin
    weights, window = attributes.weights, attributes.window
    if len(shape) == 3:
        return state.add(node, [value], attributes, before, origin=origin)
    result = (len(weights), *output_size(shape[1:], window))
    if len(shape) == 2:  # an image of width 1
        value = state.add(node, [value], ReshapeAttributes((*shape, 1)), origin="")
        over = _over(window, (0,))
        image = replace(
            attributes, weights=weights[..., None], strides=over.strides, pads=over.pads, dilations=over.dilations
        )
        value = state.add(node, [value], image, before, origin="")
        return state.add(node, [value], ReshapeAttributes(result), origin=origin)
    groups = attributes.groups
    index = _windows(shape, window, groups)
    value = state.add(node, [value], ReindexAttributes(index, attributes.pad_value), origin="")
    rows = weights.reshape(groups, len(weights) // groups, -1)
    dense = DenseAttributes(rows if groups > 1 else rows[0], attributes.binary)
    value = state.add(node, [value], dense, before, origin="")
    value = state.add(node, [value], ReshapeAttributes((prod(result[1:]), result[0])), origin="")
    value = state.add(node, [value], TransposeAttributes((1, 0)), origin="")
    return state.add(node, [value], ReshapeAttributes(result), origin=origin)


def _windows(shape: tuple[int, ...], window: Window, groups: int) -> IntArray:
    """Return the flat index of each element of each window, -1 in the padding: [positions, groups, channels of a group
    * taps], without the second axis for one group."""
    channels, image = shape[0], shape[1:]
    axes, output = len(image), output_size(image, window)
    pads = [(0, 0), *((window.pads[a], window.pads[a + axes]) for a in range(axes))]
    padded = np.pad(np.arange(prod(shape)).reshape(shape), pads, constant_values=-1)
    taps = []
    for offsets in every_combination(*(range(k) for k in window.kernel)):
        picks = []
        for axis, offset in enumerate(offsets):
            start, stride = offset * window.dilations[axis], window.strides[axis]
            picks.append(slice(start, start + (output[axis] - 1) * stride + 1, stride))
        taps.append(padded[(slice(None), *picks)])
    elements = np.stack(taps, axis=-1).reshape(channels, prod(output), len(taps))  # channel, position, tap
    rows = elements.transpose(1, 0, 2).reshape(prod(output), groups, -1)
    return rows if groups > 1 else rows[:, 0]


def transposed_convolution(
    state: Lowering, node: OnnxNode, value: Value, shape: tuple[int, ...], weights: IntArray,
    output: tuple[int, ...], before: tuple[str, ...], *, strides: tuple[int, ...], dilations: tuple[int, ...],
    starts: tuple[int, ...], groups: int,
) -> Value:
    """Return the sums of a transposed convolution of ``value`` (channels, spatial axes; its zero point is 0) with
    results of spatial size ``output``. ``weights`` [M, C / groups, kernel]; ``starts``: pads before.

    Along an axis, result f = q * stride + r takes inputs q - j times the weights r + j * stride, so that the results of
    each phase r are a convolution with every stride-th weight, without products with the zeros of an upsampled input
    (W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016). The phases are computed as
    channels and then moved to their places.
    """
    weights = _stretched(weights, dilations)
    axes = len(output)
    kernel = tuple(-(-weights.shape[2 + a] // strides[a]) for a in range(axes))
    room = [(0, kernel[a] * strides[a] - weights.shape[2 + a]) for a in range(axes)]
    full = np.pad(weights, [(0, 0), (0, 0), *room])
    phases = []
    for offsets in every_combination(*(range(s) for s in strides)):
        every_stride = tuple(slice(r, None, s) for r, s in zip(offsets, strides, strict=True))
        flipped = full[(slice(None), slice(None), *every_stride)]
        phases.append(np.flip(flipped, axis=tuple(range(2, 2 + axes))))
    count = len(weights)
    together = np.stack(phases, axis=1)  # the phases of each output
    pads = tuple(k - 1 for k in kernel) * 2
    attributes = Conv2dAttributes(
        together.reshape(-1, *together.shape[2:]), (1,) * axes, pads, (1,) * axes, pad_value=0, groups=groups
    )
    sums = convolution(state, node, value, shape, attributes, before, origin="")
    lengths = output_size(shape[1:], attributes.window)
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
    placed = ReindexAttributes(np.where(hole, -1, index), 0)
    return state.add(node, [sums], placed, origin=state.real_origin(node))


def _stretched(weights: IntArray, dilations: tuple[int, ...]) -> IntArray:
    """Insert the zeros of dilations between the weights."""
    for axis, dilation in enumerate(dilations, start=2):
        shape = list(weights.shape)
        shape[axis] = (shape[axis] - 1) * dilation + 1
        wide = np.zeros(shape, dtype=np.int64)
        wide[(slice(None),) * axis + (slice(None, None, dilation),)] = weights
        weights = wide
    return weights
