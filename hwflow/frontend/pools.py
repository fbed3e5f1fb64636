"""Pools: maxima work on the integers, averages are exact sums with another scale."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from hwflow.frontend.context import Lowering, constant, given, integer, made, reals, refuse
from hwflow.frontend.lattice import plain, whole_zero_point
from hwflow.frontend.views import Anchor, Integers, Reals, View, as_array, uniform
from hwflow.frontend.window import holds_padding_only, window_attributes
from hwflow.numerics.stages import StepStage
from hwflow.numerics.step_function import StepFunction
from hwflow.onnxspec.model import OnnxNode


def max_pool(state: Lowering, node: OnnxNode) -> View:
    """MaxPool: commutes with every function that does not decrease, so it works on the integers."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    require_image(node, view.shape)
    if len(node.outputs) > 1 and node.outputs[1]:
        raise refuse(node, "pool-indices", "the output 'Indices' must be absent, not used", "remove it")
    kernel = node.attributes["kernel_shape"]
    assert isinstance(kernel, tuple)
    shape = state.frame_shape(node.outputs[0])
    attributes = window_attributes(node, view.shape[1:], [int(k) for k in kernel], shape[1:])
    if holds_padding_only(view.shape[1:], attributes):
        raise refuse(
            node, "pool-pads",
            f"every window must hold a pixel, not padding alone as with pads {list(attributes['pads'])}",
            "reduce the pads",
        )
    if isinstance(view, Integers):
        value = state.add("max_pool2d", node, [view.value], attributes)
        return Integers(value, shape, view.low, view.high)
    view = _rising(state, node, view)
    if any(size > 1 for v in (view.scale, view.zero_point, *view.functions) for size in v.shape[1:]):
        raise refuse(
            node, "pool-scale", "the pool's input must have one scale and zero point a channel, not one a pixel",
            "quantize before the pool",
        )
    value = state.add("max_pool2d", node, [view.value], attributes)
    if view.functions:
        return replace(view, value=value, shape=shape, after=(*view.after, node.name))
    anchor = Anchor(node.outputs[0], value, view.scale, view.zero_point)
    return replace(view, value=value, shape=shape, anchor=anchor, after=())


def _rising(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """``view`` as a function of its integers that does not decrease: others are tabulated."""
    if not all(f is None or f.rising for step in view.functions for f in step.reshape(-1)):
        view = plain(state, node, view)
    if any(s < 0 for s in view.scale.reshape(-1)):
        if view.low is None or view.high is None:
            raise refuse(
                node, "pool-direction", "the pool's input must not be negated after a sum", "quantize before the pool"
            )
        table = [-q for q in range(view.low, view.high + 1)]
        if uniform(as_array(view.scale < 0)) is None:
            raise refuse(
                node, "pool-direction", "scales of the pool's input must have one sign, not both",
                "quantize before the pool",
            )
        stage = StepStage(StepFunction.of_table(view.low, table))
        value = state.add("requantize", node, [view.value], {"axis": 0, "stages": ((stage,),)}, (), origin="")
        view = replace(
            view, value=value, scale=as_array(-view.scale), zero_point=as_array(-view.zero_point), low=-view.high,
            high=-view.low,
        )
    return view


def average_pool(state: Lowering, node: OnnxNode) -> View:
    """AveragePool: the exact sum over each window, with the scale divided by the number of its elements."""
    return averaged(state, node, reals(state, node, 0))


def averaged(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """The average pool ``node`` of ``view``."""
    require_image(node, view.shape)
    kernel = node.attributes["kernel_shape"]
    assert isinstance(kernel, tuple)
    shape = state.frame_shape(node.outputs[0])
    attributes = window_attributes(node, view.shape[1:], [int(k) for k in kernel], shape[1:])
    pads = attributes["pads"]
    # With ceil_mode the last windows may reach beyond the node's own pads: what is added there never counts.
    own = node.attributes.get("pads") or (0, 0, 0, 0) if node.attributes.get("auto_pad", "NOTSET") == "NOTSET" else pads
    if any(pads) and (integer(node, "count_include_pad") == 0 or own != pads):
        raise refuse(
            node, "pool-count",
            f"every window must average the same number of elements, not fewer where it meets the pads {list(pads)}",
            "set count_include_pad to 1, or leave the padding out",
        )
    return _window_sum(state, node, view, attributes, shape)


def _window_sum(
    state: Lowering, node: OnnxNode, view: Reals, attributes: dict[str, Any], shape: tuple[int, ...]
) -> Reals:
    view = plain(state, node, view)
    if any(attributes["pads"]):
        view = whole_zero_point(state, node, view)
    if any(size > 1 for v in (view.scale, view.zero_point) for size in v.shape[1:]):
        raise refuse(
            node, "pool-scale", "the pool's input must have one scale and zero point a channel, not one a pixel",
            "quantize before the pool",
        )
    zero = uniform(view.zero_point)
    if any(attributes["pads"]) and zero is None:
        raise refuse(
            node, "padded-zero-point",
            "the pool's input must have one zero point where it is padded, not one a channel",
            "quantize per tensor before the pool",
        )
    attributes["pad_value"] = int(zero) if zero is not None and zero.denominator == 1 else 0
    count = prod(attributes["kernel"])
    value = state.add("sum_pool2d", node, [view.value], attributes, view.nodes, origin=state.real_origin(node))
    return made(value, shape, as_array(view.scale / count), as_array(view.zero_point * count), node)


def global_average_pool(state: Lowering, node: OnnxNode) -> View:
    """GlobalAveragePool: one window that holds the image."""
    return globally_averaged(state, node, reals(state, node, 0))


def globally_averaged(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """The average of each channel of ``view``."""
    require_image(node, view.shape)
    attributes: dict[str, Any] = {
        "kernel": view.shape[1:], "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)
    }
    return _window_sum(state, node, view, attributes, (view.shape[0], 1, 1))


def reduce_mean(state: Lowering, node: OnnxNode) -> View:
    """ReduceMean over height and width: a global pool, and another shape without keepdims."""
    view = reals(state, node, 0)
    rank = len(view.shape) + 1
    axes = node.attributes.get("axes", ())
    if given(node, 1):
        axes = tuple(int(a) for a in constant(state, node, 1, "axes").array.reshape(-1))
    assert isinstance(axes, tuple)
    if len(view.shape) != 3 or {int(a) % rank for a in axes} != {2, 3}:
        raise refuse(
            node, "mean-axes",
            f"the mean must be over height and width of an image (axes 2 and 3), not over axes {list(axes)} of "
            f"{rank}",
            "use GlobalAveragePool",
        )
    mean = globally_averaged(state, node, view)
    shape = state.frame_shape(node.outputs[0])
    if shape == mean.shape:
        return mean
    value = state.add("reshape", node, [mean.value], {"shape": shape})
    scale, zero_point = (v.reshape(() if v.size == 1 else shape) for v in (mean.scale, mean.zero_point))
    return made(value, shape, scale, zero_point, node)


def require_image(node: OnnxNode, shape: tuple[int, ...]) -> None:
    """Refuse what has not two spatial axes."""
    if len(shape) != 3:
        raise refuse(
            node, "pool-rank",
            f"input '{node.inputs[0]}' must be an image (frames, channels, height, width), "
            f"not of {len(shape) + 1} axes",
            "reshape 1-D data to an image of width 1",
        )


