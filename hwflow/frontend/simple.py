"""Operators that change no sum: pools, monotone functions, shapes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hwflow.frontend.context import Lowering, constant, reals, refuse
from hwflow.frontend.views import Constant, Fractions, Integers, Reals, Refused, View
from hwflow.frontend.window import window_attributes
from hwflow.numerics.elementwise import Clip, Relu
from hwflow.numerics.stages import QuantizerStage
from hwflow.onnxspec.model import OnnxNode

_WIDEST = 1 << 40  # an identity stage that saturates nothing


def identity(state: Lowering, node: OnnxNode) -> View:
    """Identity: the same view."""
    return state.view(node.inputs[0])


def relu(state: Lowering, node: OnnxNode) -> View:
    """Relu of reals: decided by the next quantizer's thresholds."""
    if isinstance(state.view(node.inputs[0]), Refused):
        return Refused()
    view = reals(state, node, 0)
    return Reals(view.value, view.shape, view.scale, view.zero_point, (*view.functions, Relu()))


def clip(state: Lowering, node: OnnxNode) -> View:
    """Clip of reals (a function before the next quantizer) or of integers (narrow ranges of QCDQ models)."""
    view = state.view(node.inputs[0])
    if isinstance(view, Refused):
        return view
    bounds: list[Fraction | None] = []
    for index, name in ((1, "min"), (2, "max")):
        if len(node.inputs) > index and node.inputs[index]:
            bounds.append(Fraction(constant(state, node, index, name).array.reshape(-1)[0].item()))
        elif name in node.attributes:  # operator sets before 11
            bounds.append(Fraction(float(node.attributes[name])))  # type: ignore[arg-type]
        else:
            bounds.append(None)
    low, high = bounds
    if low is not None and high is not None and low > high:
        raise refuse(node, "clip-bounds", f"min must be at most max, not {float(low)} > {float(high)}", "swap the bounds")
    if isinstance(view, Integers):
        least, most = (-_WIDEST if low is None else int(low)), (_WIDEST if high is None else int(high))
        stage = QuantizerStage(Fraction(1), Fraction(0), (Clip(Fraction(least), Fraction(most)),), Fraction(1), 0, view.low, view.high)
        value = state.add("requantize", node, [view.value], {"axis": 0, "stages": ((stage,),)})
        return Integers(value, view.shape, view.low, view.high)
    if isinstance(view, Constant):
        return Constant(np.clip(view.array, None if low is None else int(low), None if high is None else int(high)))
    view = reals(state, node, 0)
    least_real = Fraction(-(1 << 200)) if low is None else low
    most_real = Fraction(1 << 200) if high is None else high
    return Reals(view.value, view.shape, view.scale, view.zero_point, (*view.functions, Clip(least_real, most_real)))


def max_pool(state: Lowering, node: OnnxNode) -> View:
    """MaxPool: commutes with every function that does not decrease, so it works on the integers."""
    view = state.view(node.inputs[0])
    if isinstance(view, Refused):
        return view
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
        for values in (view.scale, view.zero_point):
            if values.size > 1 and any(size > 1 for size in values.shape[1:]):
                raise refuse(
                    node, "pool-scale", "the pool's input must have one scale a channel, not one a pixel", "quantize before the pool"
                )
    if len(view.shape) != 3:
        raise refuse(
            node, "pool-rank", f"input '{node.inputs[0]}' must be an image (frames, channels, height, width), not of {len(view.shape) + 1} axes",
            "reshape 1-D data to an image of width 1",
        )
    if len(node.outputs) > 1 and node.outputs[1]:
        raise refuse(node, "pool-indices", "the output 'Indices' must be absent, not used", "remove it")
    attributes = window_attributes(node, view.shape[1:], node.attributes["kernel_shape"])  # type: ignore[arg-type]
    for axis in range(2):
        span = (attributes["kernel"][axis] - 1) * attributes["dilations"][axis] + 1
        if max(attributes["pads"][axis], attributes["pads"][axis + 2]) >= span:
            raise refuse(
                node, "pool-pads", f"pads must be smaller than the kernel ({span}), not {attributes['pads']}: a window would hold nothing",
                "reduce the pads",
            )
    value = state.add("max_pool2d", node, [view.value], attributes)
    shape = state.frame_shape(node.outputs[0])
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    return Reals(value, shape, view.scale, view.zero_point, view.functions)


def reshape(state: Lowering, node: OnnxNode) -> View:
    """Reshape, Flatten, Squeeze, Unsqueeze: a new shape of each frame; the frame axis must stay in front."""
    view = state.view(node.inputs[0])
    if isinstance(view, Refused):
        return view
    target = state.model.values[node.outputs[0]].shape
    if isinstance(view, Constant):
        return Constant(view.array.reshape(target))
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    shape = target[1:]
    elements = int(np.prod(view.shape, dtype=np.int64))
    if not target or target[0] != 1 or int(np.prod(shape, dtype=np.int64)) != elements:
        raise refuse(
            node, "frame-axis", f"the result must keep the frame axis in front, not have shape {list(target)}",
            "reshape to (frames, ...)",
        )
    if not shape:
        shape = (1,)
    value = state.add("reshape", node, [view.value], {"shape": shape})
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    scale, zero_point = (_reshaped(v, view.shape, shape) for v in (view.scale, view.zero_point))
    return Reals(value, shape, scale, zero_point, view.functions)


def _reshaped(values: Fractions, source: tuple[int, ...], target: tuple[int, ...]) -> Fractions:
    if values.size == 1:
        return values.reshape(())
    full: Fractions = np.broadcast_to(values, source).reshape(target)
    for axis in range(len(target)):  # keep only the axes along which something differs
        first = full.take([0], axis=axis)
        if (full == first).all():
            full = first
    return full


def transpose(state: Lowering, node: OnnxNode) -> View:
    """Transpose that leaves the frame axis in front."""
    view = state.view(node.inputs[0])
    if isinstance(view, Refused):
        return view
    rank = len(state.model.values[node.inputs[0]].shape)
    given = node.attributes.get("perm", ())
    perm = tuple(int(a) for a in given) if isinstance(given, tuple) and given else tuple(reversed(range(rank)))  # type: ignore[arg-type]
    if isinstance(view, Constant):
        return Constant(view.array.transpose(perm))
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    if perm[0] != 0:
        raise refuse(node, "frame-axis", f"perm must leave the frame axis 0 in front, not be {list(perm)}", "transpose within a frame")
    axes = tuple(a - 1 for a in perm[1:])
    value = state.add("transpose", node, [view.value], {"perm": axes})
    shape = tuple(view.shape[a] for a in axes)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    scale, zero_point = (v if v.size == 1 else v.transpose(axes) for v in (view.scale, view.zero_point))
    return Reals(value, shape, scale, zero_point, view.functions)
