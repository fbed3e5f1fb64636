"""Pools: maxima work on the integers, averages are exact sums with another scale."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm, prod

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, made, reals, refuse
from hwflow.frontend.views import Anchor, Integers, Reals, View, as_array, fractions, uniform
from hwflow.ir.graph import IntArray
from hwflow.ir.node_attributes import PixelProductAttributes, Window
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.keys import summable, times
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point
from hwflow.operators.linear import spatial
from hwflow.operators.linear.window import holds_padding_only, window_of
from hwflow.operators.norms.approximations import operand


def max_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower MaxPool to one of the integers: it commutes with every non-decreasing function."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    require_image(node, view.shape)
    if len(node.outputs) > 1 and node.outputs[1]:
        raise refuse(
            node, "pool-indices", "the output 'Indices' must be absent, not used",
            "leave the indices out, or the node to the host, before the first or after the last quantizer",
        )
    return pooled(state, node, view, state.frame_shape(node.outputs[0]))


def pooled(
    state: Lowering, node: OnnxNode, view: Integers | Reals, shape: tuple[int, ...], *, origin: str | None = None
) -> View:
    """Return the max pool ``node`` of ``view`` (channels first). ``shape``: of the result's frame; ``origin``: the ONNX
    value it represents, by default the node's result."""
    kernel = node.attributes["kernel_shape"]
    assert isinstance(kernel, tuple)
    window = window_of(node, view.shape[1:], [int(k) for k in kernel], shape[1:])
    if holds_padding_only(view.shape[1:], window):
        raise refuse(
            node, "pool-pads",
            f"every window must hold a pixel, not padding alone as with pads {list(window.pads)}",
            "reduce the pads",
        )
    return greatest(state, node, view, window, shape, origin=origin)


def greatest(
    state: Lowering, node: OnnxNode, view: Integers | Reals, window: Window, shape: tuple[int, ...], *,
    least: bool = False, origin: str | None = None,
) -> View:
    """Return maxima or minima over windows; ``origin`` as in :func:`pooled`."""
    if isinstance(view, Integers):
        value = spatial.max_pool(state, node, view.value, view.shape, window, least=least, origin=origin)
        return Integers(value, shape, view.low, view.high)
    view, falling = _monotone(state, node, view)
    if any(size > 1 for v in (view.scale, view.zero_point, *view.functions) for size in v.shape[1:]):
        raise refuse(
            node, "pool-scale", "the pool's input must have one scale and zero point per channel, not one per pixel",
            "quantize before the pool",
        )
    value = spatial.max_pool(state, node, view.value, view.shape, window, least=falling != least)
    if view.functions:
        return replace(view, value=value, shape=shape, after=(*view.after, node.name))
    anchor = Anchor(node.outputs[0], value, view.scale, view.zero_point)
    return replace(view, value=value, shape=shape, anchor=anchor, after=())


def _monotone(state: Lowering, node: OnnxNode, view: Reals) -> tuple[Reals, bool]:
    """Return ``view`` as a monotone function of its integers (others are tabulated), and whether it is non-increasing,
    so that the greatest real is that of the least integer."""
    if not all(f is None or f.rising for step in view.functions for f in step.reshape(-1)):
        view = plain(state, node, view)
    falling = uniform(as_array(view.scale < 0))
    if falling is None:
        raise refuse(
            node, "pool-direction", "scales of the pool's input must have one sign, not both",
            "quantize before the pool",
        )
    return view, bool(falling)


def average_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower AveragePool: the exact sum over each window, with the scale divided by the number of elements."""
    return averaged(state, node, reals(state, node, 0))


def averaged(state: Lowering, node: OnnxNode, view: Reals, shape: tuple[int, ...] | None = None) -> Reals:
    """Return the average pool ``node`` of ``view`` (channels first). ``shape``: of the result's frame, by default the
    node's."""
    require_image(node, view.shape)
    kernel = node.attributes["kernel_shape"]
    assert isinstance(kernel, tuple)
    shape = state.frame_shape(node.outputs[0]) if shape is None else shape
    window = window_of(node, view.shape[1:], [int(k) for k in kernel], shape[1:])
    pads, axes = window.pads, len(kernel)
    counted: tuple[int, ...] = (0,) * 2 * axes
    if node.integer("count_include_pad"):
        # With ceil_mode the last windows may exceed the node's own pads: the excess is never counted.
        explicit = node.attributes.get("auto_pad", "NOTSET") == "NOTSET"
        counted = (node.integers("pads") or counted) if explicit else pads
    if counted != pads:
        counts = _counts(view.shape[1:], window, counted)
        if counts.min() != counts.max() or counts.min() == 0:
            return _average_of_several_counts(state, node, view, window, shape, counts)
        result = window_sum(state, node, view, window, shape)
        share = Fraction(prod(window.kernel), int(counts.min()))
        if result.functions:
            return times(result, share)
        return made(result.value, shape, as_array(result.scale * share), result.zero_point, node)
    return window_sum(state, node, view, window, shape)


def _counts(image: tuple[int, ...], window: Window, counted: tuple[int, ...]) -> IntArray:
    """Return the number of elements that each window's average counts: pixels, and the pads ``counted``."""
    per_axis = []
    axes = len(image)
    for axis, size in enumerate(image):
        kernel, stride, dilation = (each[axis] for each in (window.kernel, window.strides, window.dilations))
        positions = (size + window.pads[axis] + window.pads[axis + axes] - (kernel - 1) * dilation - 1) // stride
        start = np.arange(positions + 1) * stride - window.pads[axis]
        taps = start[:, None] + np.arange(kernel) * dilation
        per_axis.append(((taps >= -counted[axis]) & (taps < size + counted[axis + axes])).sum(axis=1))
    counts = np.ones((), dtype=np.int64)
    for along in per_axis:
        counts = counts[..., None] * along
    return np.asarray(counts, dtype=np.int64)


def _average_of_several_counts(
    state: Lowering, node: OnnxNode, view: Reals, window: Window, shape: tuple[int, ...], counts: IntArray
) -> Reals:
    """Average where the number of elements depends on the position: scale each sum to the numbers' least common
    multiple."""
    if (counts == 0).any():
        raise refuse(
            node, "pool-pads",
            f"every window must hold a pixel, not padding alone as with pads {list(window.pads)}", "reduce the pads",
        )
    common = lcm(*counts.reshape(-1).tolist())
    keyed = summable(state, node, view, common, padded=True)
    view = keyed or from_zero(state, node, whole_zero_point(state, node, plain(state, node, view)))
    sums = sums_of_window(state, node, view, window, shape, origin="")
    value = state.add(
        node, [sums.value], PixelProductAttributes(common // counts),
        origin=state.real_origin(node) if keyed is None else "",
    )
    # The elements have no zero point; a sum is in units of the reciprocal of its number of elements.
    if keyed is not None:
        return times(replace(sums, value=value, functions=keyed.functions), Fraction(1, common))
    return made(value, shape, as_array(sums.scale * prod(window.kernel) / common), fractions(0), node)


def window_sum(
    state: Lowering, node: OnnxNode, view: Reals, window: Window, shape: tuple[int, ...], *,
    origin: str | None = None,
) -> Reals:
    """Return the average over all elements of a window; ``origin``: the ONNX value of the integers, by default the
    node's result."""
    keyed = summable(state, node, view, prod(window.kernel), padded=any(window.pads))
    return sums_of_window(state, node, keyed or operand(state, node, view), window, shape, origin)


def sums_of_window(
    state: Lowering, node: OnnxNode, view: Reals, window: Window, shape: tuple[int, ...],
    origin: str | None = None,
) -> Reals:
    """Return window sums of elements without functions, or of keys."""
    if any(window.pads):
        view = whole_zero_point(state, node, view)
    if any(size > 1 for v in (view.scale, view.zero_point, *view.functions) for size in v.shape[1:]):
        raise refuse(
            node, "pool-scale", "the pool's input must have one scale and zero point per channel, not one per pixel",
            "quantize before the pool",
        )
    if any(window.pads) and uniform(view.zero_point) is None:  # all channels are padded with the same number: 0
        view = from_zero(state, node, view)
    zero = uniform(view.zero_point)
    count = prod(window.kernel)
    if view.functions:
        origin = ""  # no ONNX value has keys
    value = spatial.sum_pool(
        state, node, view.value, view.shape, window, view.nodes,
        origin=state.real_origin(node) if origin is None else origin,
        pad_value=int(zero) if zero is not None and zero.denominator == 1 else 0,
    )
    if view.functions:
        sums = replace(view, value=value, shape=shape, zero_point=as_array(view.zero_point * count), nodes=())
        return times(replace(sums, after=(*view.after, node.name)), Fraction(1, count))
    return made(value, shape, as_array(view.scale / count), as_array(view.zero_point * count), node)


def global_average_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower GlobalAveragePool: one window covers the image."""
    return globally_averaged(state, node, reals(state, node, 0))


def globally_averaged(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Return the average of each channel of ``view``."""
    require_image(node, view.shape)
    return window_sum(state, node, view, whole(view.shape), (view.shape[0], *(1,) * (len(view.shape) - 1)))


def whole(shape: tuple[int, ...]) -> Window:
    """Return the window of the whole image."""
    axes = len(shape) - 1
    return Window(shape[1:], (1,) * axes, (0,) * (2 * axes), (1,) * axes)


def global_max_pool(state: Lowering, node: OnnxNode) -> View:
    """Lower GlobalMaxPool: the maximum of each channel."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    require_image(node, view.shape)
    return greatest(state, node, view, whole(view.shape), (view.shape[0], *(1,) * (len(view.shape) - 1)))


def require_image(node: OnnxNode, shape: tuple[int, ...]) -> None:
    """Refuse an input without spatial axes."""
    if len(shape) < 2:
        raise refuse(
            node, "pool-rank",
            f"input {show(node.inputs[0])} must have frames, channels and spatial axes, not {len(shape) + 1} axes",
            "reshape it to (frames, channels, ...)",
        )
