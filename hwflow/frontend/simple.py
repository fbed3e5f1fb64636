"""Operators that change no sum: pools, monotone functions, shapes."""

from __future__ import annotations

from fractions import Fraction
from math import inf, prod

import numpy as np

from hwflow.frontend.context import Lowering, constant, exact_constant, finite, reals, refuse
from hwflow.frontend.views import Constant, Fractions, Integers, QuantizedConstant, Reals, View, compact
from hwflow.frontend.window import holds_padding_only, window_attributes
from hwflow.numerics.elementwise import Clip, Elementwise, Relu
from hwflow.numerics.stages import QuantizerStage
from hwflow.numerics.staircase import MAX_LEVELS
from hwflow.onnxspec.model import OnnxNode


def identity(state: Lowering, node: OnnxNode) -> View:
    """Identity: the same view."""
    return state.view(node.inputs[0])


def relu(state: Lowering, node: OnnxNode) -> View:
    """Relu of reals: decided by the next quantizer's thresholds."""
    view = reals(state, node, 0)
    return _behind(node, view, Relu())


def _behind(node: OnnxNode, view: Reals, function: Elementwise) -> Reals:
    """The reals after one more function, the work of ``node``."""
    functions, nodes = (*view.functions, function), (*view.nodes, node.name)
    return Reals(view.value, view.shape, view.scale, view.zero_point, functions, nodes)


def clip(state: Lowering, node: OnnxNode) -> View:
    """Clip of reals (a function before the next quantizer) or of integers (narrow ranges of QCDQ models)."""
    view = state.view(node.inputs[0])
    low, high = _bound(state, node, 1, "min", -inf), _bound(state, node, 2, "max", inf)
    if isinstance(view, Integers):
        most = view.high if high is None else int(high)
        least = min(most, view.low if low is None else int(low))  # with min > max, everything becomes max
        if most - least >= MAX_LEVELS:
            raise refuse(
                node, "clip-levels", f"the bounds must leave at most {MAX_LEVELS} integers, not {most - least + 1}",
                "quantize with QuantizeLinear",
            )
        stage = QuantizerStage(Fraction(1), Fraction(0), (), Fraction(1), 0, least, most)
        value = state.add("requantize", node, [view.value], {"axis": 0, "stages": ((stage,),)})
        return Integers(value, view.shape, view.low, view.high)
    if isinstance(view, Constant):
        return Constant(np.clip(view.array, None if low is None else int(low), None if high is None else int(high)))
    view = reals(state, node, 0)
    return _behind(node, view, Clip(low, high))


def _bound(state: Lowering, node: OnnxNode, index: int, name: str, none: float) -> Fraction | None:
    """A bound of Clip; None if there is none, or if it is the infinity ``none``."""
    if len(node.inputs) > index and node.inputs[index]:
        array = constant(state, node, index, name).array
        if array.size == 1 and array.reshape(-1)[0] == none:
            return None
        value: Fraction = exact_constant(state, node, index, name).reshape(-1)[0]
        return value
    # operator sets before 11
    return None if node.attributes.get(name, none) == none else finite(node, name, none)


def max_pool(state: Lowering, node: OnnxNode) -> View:
    """MaxPool: commutes with every function that does not decrease, so it works on the integers."""
    view = state.view(node.inputs[0])
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    if len(view.shape) != 3:
        raise refuse(
            node, "pool-rank",
            f"input '{node.inputs[0]}' must be an image (frames, channels, height, width), "
            f"not of {len(view.shape) + 1} axes",
            "reshape 1-D data to an image of width 1",
        )
    if isinstance(view, Reals) and any(size > 1 for v in (view.scale, view.zero_point) for size in v.shape[1:]):
        raise refuse(
            node, "pool-scale", "the pool's input must have one scale and zero point a channel, not one a pixel",
            "quantize before the pool",
        )
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
    value = state.add("max_pool2d", node, [view.value], attributes)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    return Reals(value, shape, view.scale, view.zero_point, view.functions, view.nodes)


def reshape(state: Lowering, node: OnnxNode) -> View:
    """Reshape, Flatten, Squeeze, Unsqueeze: a new shape of each frame."""
    view = state.view(node.inputs[0])
    source_shape = state.model.values[node.inputs[0]].shape
    target = state.model.values[node.outputs[0]].shape
    if prod(source_shape) != prod(target):  # inference says nothing while the number of frames is open
        raise refuse(
            node, "reshape-size",
            f"the result must have as many elements as input '{node.inputs[0]}' has in one frame, "
            f"{prod(source_shape)}, not {prod(target)} {list(target)}",
            "correct the shape",
        )
    if isinstance(view, Constant):
        return Constant(view.array.reshape(target))
    if isinstance(view, QuantizedConstant):
        source = view.integers.shape
        scale, zero_point = (_reshaped(v, source, target) for v in (view.scale, view.zero_point))
        return QuantizedConstant(view.integers.reshape(target), scale, zero_point)
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    shape = state.frame_shape(node.outputs[0])
    value = state.add("reshape", node, [view.value], {"shape": shape})
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    scale, zero_point = (_reshaped(v, view.shape, shape) for v in (view.scale, view.zero_point))
    return Reals(value, shape, scale, zero_point, view.functions, view.nodes)


def _reshaped(values: Fractions, source: tuple[int, ...], target: tuple[int, ...]) -> Fractions:
    if values.size == 1:
        return values.reshape(())
    return compact(np.broadcast_to(values, source).reshape(target))


def transpose(state: Lowering, node: OnnxNode) -> View:
    """Transpose of constants, or one that leaves the frame axis in front."""
    view = state.view(node.inputs[0])
    rank = len(state.model.values[node.inputs[0]].shape)
    given = node.attributes.get("perm", ())
    assert isinstance(given, tuple)
    perm = tuple(int(a) for a in given) or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):  # onnx lets it pass
        raise refuse(
            node, "transpose-perm", f"perm must be a permutation of the {rank} axes, not {list(perm)}",
            "correct the attribute",
        )
    if isinstance(view, Constant):
        return Constant(view.array.transpose(perm))
    if isinstance(view, QuantizedConstant):
        scale, zero_point = (v if v.size == 1 else v.transpose(perm) for v in (view.scale, view.zero_point))
        return QuantizedConstant(view.integers.transpose(perm), scale, zero_point)
    if not isinstance(view, Integers):
        view = reals(state, node, 0)
    if perm[0] != 0:
        raise refuse(
            node, "frame-axis", f"perm must leave the frame axis 0 in front, not be {list(perm)}",
            "transpose within a frame",
        )
    axes = tuple(a - 1 for a in perm[1:]) or (0,)
    value = state.add("transpose", node, [view.value], {"perm": axes})
    shape = tuple(view.shape[a] for a in axes)
    if isinstance(view, Integers):
        return Integers(value, shape, view.low, view.high)
    scale, zero_point = (v if v.size == 1 else v.transpose(axes) for v in (view.scale, view.zero_point))
    return Reals(value, shape, scale, zero_point, view.functions, view.nodes)
