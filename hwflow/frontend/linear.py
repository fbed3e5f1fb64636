"""Convolutions and matrix products of quantized reals by constant weights: exact sums, no rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from hwflow.frontend.context import Lowering, exact_constant, finite, plain_reals, reals, refuse
from hwflow.frontend.views import Constant, Fractions, QuantizedConstant, Reals, View, compact, fractions
from hwflow.frontend.window import window_attributes
from hwflow.ir.graph import IntArray
from hwflow.numerics.elementwise import Affine
from hwflow.onnxspec.model import OnnxNode


def _weights(state: Lowering, node: OnnxNode, index: int, axis: int) -> tuple[IntArray, Fractions]:
    """Integer weights with the zero point taken off, and a positive scale for each index of output axis ``axis``."""
    view = state.view(node.inputs[index])
    name = node.inputs[index]
    if isinstance(view, Constant):
        raise refuse(
            node, "quantized-weights",
            f"weights '{name}' must be quantized (integers behind a DequantizeLinear), not float",
            "quantize the weights too",
        )
    if not isinstance(view, QuantizedConstant):
        raise refuse(
            node, "constant-weights", f"weights '{name}' must be constant, not computed at run time",
            "make them an initializer",
        )
    for values in (view.scale, view.zero_point):
        if values.size > 1 and any(size > 1 and a != axis for a, size in enumerate(values.shape)):
            raise refuse(
                node, "weight-scale-axis",
                f"weights '{name}' must have one scale, or one for each index of output axis {axis}, "
                "not along another axis",
                "quantize the weights per tensor or per output channel",
            )
    zero_point = np.array([int(z) for z in view.zero_point.reshape(-1)], dtype=np.int64).reshape(view.zero_point.shape)
    integers = view.integers - zero_point
    scale: Fractions = np.broadcast_to(view.scale.reshape(-1), (view.integers.shape[axis],)).copy()
    for channel in range(len(scale)):
        if scale[channel] == 0:  # every weight of the channel means 0
            scale[channel] = Fraction(1)
            integers = integers.copy()
            np.moveaxis(integers, axis, 0)[channel] = 0
    return integers, scale


def _bias(state: Lowering, node: OnnxNode, index: int, count: int) -> Fractions:
    """The bias as exact reals, one an output; zeros where the node has none."""
    if len(node.inputs) <= index or not node.inputs[index]:
        return fractions(np.zeros(count, dtype=np.int64))
    real = exact_constant(state, node, index, "bias")
    if real.size not in (1, count) or real.shape[-1:] not in ((), (real.size,)):
        raise refuse(
            node, "bias-shape",
            f"bias '{node.inputs[index]}' must have one element an output ({count}), not shape {list(real.shape)}",
            "give one bias for each output",
        )
    bias: Fractions = np.broadcast_to(real.reshape(-1), (count,))
    return bias


def _sums(view: Reals, weights: IntArray, scale: Fractions, bias: Fractions) -> tuple[Fractions, Fractions]:
    """Scale and zero point of the accumulators: sum(w * q) means scale * (sum - zero_point), the bias included."""
    x_scale, x_zero = view.scale.reshape(-1)[0], view.zero_point.reshape(-1)[0]
    out_scale = scale * x_scale
    totals = fractions(weights.reshape(len(weights), -1).sum(axis=1))
    return out_scale, totals * x_zero - bias / out_scale


def _nonzero_scale(node: OnnxNode, view: Reals, name: str) -> None:
    if any(s == 0 for s in view.scale.reshape(-1)):
        raise refuse(
            node, "scale-range", f"the scale of '{name}' must be greater than 0, not 0", "calibrate the model again"
        )


def conv(state: Lowering, node: OnnxNode) -> View:
    """Conv, two-dimensional, one group."""
    view = plain_reals(state, node, 0)
    _nonzero_scale(node, view, node.inputs[0])
    if len(view.shape) != 3:
        raise refuse(
            node, "conv-rank",
            f"input '{node.inputs[0]}' must be an image (frames, channels, height, width), "
            f"not of {len(view.shape) + 1} axes",
            "reshape 1-D data to an image of width 1",
        )
    if node.attributes.get("group", 1) != 1:
        raise refuse(
            node, "conv-group", f"group must be 1, not {node.attributes['group']}",
            "grouped convolutions are not supported yet",
        )
    weights, scale = _weights(state, node, 1, 0)
    if weights.shape[1] != view.shape[0]:
        raise refuse(
            node, "conv-channels",
            f"weights '{node.inputs[1]}' must have the input's {view.shape[0]} channels on axis 1, "
            f"not {weights.shape[1]}",
            "correct the weights' shape",
        )
    bias = _bias(state, node, 2, len(weights))
    shape = state.frame_shape(node.outputs[0])
    attributes: dict[str, Any] = window_attributes(node, view.shape[1:], weights.shape[2:], shape[1:])
    del attributes["kernel"]
    attributes |= {"weights": weights, "pad_value": int(view.zero_point.reshape(-1)[0])}
    value = state.add("conv2d", node, [view.value], attributes)
    out_scale, zero_point = _sums(view, weights, scale, bias)
    return Reals(value, shape, out_scale.reshape(-1, 1, 1), zero_point.reshape(-1, 1, 1))


def _dense(state: Lowering, node: OnnxNode, weights: IntArray, scale: Fractions, bias: Fractions) -> View:
    view = plain_reals(state, node, 0)
    _nonzero_scale(node, view, node.inputs[0])
    value = state.add("dense", node, [view.value], {"weights": np.ascontiguousarray(weights)})
    out_scale, zero_point = _sums(view, weights, scale, bias)
    shape = state.frame_shape(node.outputs[0])
    broad = (1,) * (len(shape) - 1) + (-1,)
    return Reals(value, shape, out_scale.reshape(broad), zero_point.reshape(broad))


def gemm(state: Lowering, node: OnnxNode) -> View:
    """Gemm: alpha * A * B' + beta * C with constant B and C."""
    if node.attributes.get("transA", 0):
        raise refuse(node, "gemm-trans-a", "transA must be 0, not 1", "transpose the first operand in the model")
    transposed = bool(node.attributes.get("transB", 0))
    weights, scale = _weights(state, node, 1, 0 if transposed else 1)
    if not transposed:
        weights = weights.T
    alpha, beta = finite(node, "alpha", 1.0), finite(node, "beta", 1.0)
    if alpha == 0:
        raise refuse(node, "gemm-alpha", "alpha must not be 0", "remove the product")
    if alpha < 0:
        weights = -weights
    return _dense(state, node, weights, scale * abs(alpha), _bias(state, node, 2, len(weights)) * beta)


def matmul(state: Lowering, node: OnnxNode) -> View:
    """MatMul with a constant matrix on the right."""
    if len(state.model.values[node.inputs[0]].shape) < 2:
        raise refuse(
            node, "frame-axis",
            f"input '{node.inputs[0]}' must have axes besides the frame axis, which must not be summed over",
            "reshape to (frames, ...)",
        )
    right = state.view(node.inputs[1])
    if isinstance(right, QuantizedConstant) and right.integers.ndim != 2:
        raise refuse(
            node, "matmul-rank", f"weights '{node.inputs[1]}' must be a matrix, not of {right.integers.ndim} axes",
            "use one matrix for all frames",
        )
    weights, scale = _weights(state, node, 1, 1)
    weights = weights.T
    return _dense(state, node, weights, scale, fractions(np.zeros(len(weights), dtype=np.int64)))


def add(state: Lowering, node: OnnxNode) -> View:
    """Add of a constant (a bias): no hardware, it moves the zero point or the function behind it."""
    views = [state.view(name) for name in node.inputs]
    constants = [i for i, v in enumerate(views) if isinstance(v, Constant | QuantizedConstant)]
    if not constants:
        raise refuse(
            node, "add-constant", "one operand must be a constant, not both computed at run time",
            "sums of two streams are not supported yet",
        )
    index = 1 - constants[0]
    view = reals(state, node, index)
    real = exact_constant(state, node, constants[0], "the constant")
    addend = compact(_frame_constant(node, real, view.shape, state.frame_shape(node.outputs[0])))
    nodes = (*view.nodes, node.name)
    if view.functions:
        if addend.size > 1:
            kind = type(view.functions[-1]).__name__
            raise refuse(
                node, "add-constant", f"a constant behind {kind} must be the same for all elements, not vary",
                "quantize before the addition",
            )
        functions = (*view.functions, Affine(Fraction(1), addend.reshape(-1)[0]))
        return Reals(view.value, view.shape, view.scale, view.zero_point, functions, nodes)
    _nonzero_scale(node, view, node.inputs[index])
    scale, zero_point = _aligned(view.scale, view.zero_point - addend / view.scale)
    return Reals(view.value, view.shape, scale, zero_point, nodes=nodes)


def _frame_constant(node: OnnxNode, real: Fractions, shape: tuple[int, ...], result: tuple[int, ...]) -> Fractions:
    """A constant that is added to every frame, with the frame's rank; the sum must keep the frame's ``shape``."""
    rank = len(shape)
    if result != shape:
        raise refuse(
            node, "add-constant",
            f"the constant must broadcast to one frame {list(shape)}, not have shape {list(real.shape)}",
            "use a bias of one element a channel",
        )
    # What is longer than the frame has axes of length 1 there, or the sum would not keep its shape.
    return real.reshape(real.shape[-rank:] if real.ndim > rank else (1,) * (rank - real.ndim) + real.shape)


def _aligned(scale: Fractions, zero_point: Fractions) -> tuple[Fractions, Fractions]:
    """Scale and zero point with the same shape where either varies."""
    if zero_point.size == 1 and scale.size == 1:
        return scale.reshape(()), zero_point.reshape(())
    return np.broadcast_to(scale, zero_point.shape) if scale.size > 1 else scale.reshape(()), zero_point
