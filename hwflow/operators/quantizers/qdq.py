"""QuantizeLinear and DequantizeLinear (of ai.onnx, and the equivalent ones of com.microsoft)."""

from __future__ import annotations

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, constant, given, made, refuse
from hwflow.frontend.stream_types import INTEGER_TYPES
from hwflow.frontend.views import (
    Anchor,
    Constant,
    HostInput,
    Integers,
    Masked,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    fractions,
)
from hwflow.ir.graph import Fractions, Meaning, Value
from hwflow.ir.integer_functions import Simple
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.approximations.wide_roots import with_roots
from hwflow.operators.elementwise.alignment import step
from hwflow.operators.elementwise.arithmetic import affine
from hwflow.operators.norms.masked import greatest_masked, where_taken
from hwflow.operators.quantizers.quantizers import (
    Quantization,
    constant_levels,
    graph_input,
    requantize,
    require_divisor,
    say_scale,
    without_frame_axis,
)
from hwflow.types import IntType


def parameters(
    state: Lowering, node: OnnxNode, tensor: str, scale_index: int, zero_index: int, axis: int, block: int = 0
) -> tuple[Fractions, Fractions]:
    """Return scale and zero point of ``tensor`` from the node's inputs, shaped to broadcast over it.

    One scale, one per index of ``axis``, or one per ``block`` of indices of it.
    """
    scale = constant(state, node, scale_index, "scale").array
    zero_point = (
        constant(state, node, zero_index, "zero point").array
        if given(node, zero_index)
        else np.zeros(scale.shape, dtype=np.int64)
    )
    if zero_point.shape != scale.shape and (zero_point.size, scale.size) != (1, 1):  # exporters mix [] and [1]
        raise refuse(
            node, "zero-point-shape",
            f"zero point must have the scale's shape {list(scale.shape)}, not {list(zero_point.shape)}",
            "give both the same shape",
        )
    wrong = scale[~np.isfinite(scale)].reshape(-1)
    if wrong.size:
        raise refuse(node, "scale-range", f"scale must be finite, not {wrong[0]}", "calibrate the model again")
    if zero_point.dtype.kind == "f" and (zero_point != np.floor(zero_point)).any():
        raise refuse(node, "zero-point-type", "zero point must be an integer, not a fraction", "round it")
    exact = fractions(scale), fractions(zero_point.astype(np.int64))
    shape = state.model.values[tensor].shape
    if block and scale.size > 1:
        axis = _axis(node, tensor, shape, axis)
        return _blocks(node, tensor, exact[0], shape, axis, block), _blocks(node, tensor, exact[1], shape, axis, block)
    return (
        spread(node, "scale", exact[0], tensor, shape, axis), spread(node, "zero point", exact[1], tensor, shape, axis)
    )


def spread(
    node: OnnxNode, what: str, values: Fractions, tensor: str, shape: tuple[int, ...], axis: int
) -> Fractions:
    """Reshape ``values`` (``what`` in messages) to broadcast over ``tensor`` of ``shape``: one for all of it, one per
    index of ``axis``, or an array of its rank."""
    if values.size == 1:
        return values.reshape(())
    if values.ndim == len(shape) > 1:
        if all(own in (1, size) for own, size in zip(values.shape, shape, strict=True)):
            return values
        raise refuse(
            node, f"{what.replace(' ', '-')}-shape",
            f"{what} must broadcast over {show(tensor)} of shape {list(shape)}, not have shape {list(values.shape)}",
            "give one per tensor, or one per index of an axis",
        )
    axis = _axis(node, tensor, shape, axis)
    if values.shape != (shape[axis],):
        raise refuse(
            node, f"{what.replace(' ', '-')}-shape",
            f"{what} must have one element or {shape[axis]} (axis {axis} of {show(tensor)}), "
            f"not shape {list(values.shape)}",
            f"give one {what} per index of the axis",
        )
    return values.reshape([-1 if a == axis else 1 for a in range(len(shape))])


def _axis(node: OnnxNode, tensor: str, shape: tuple[int, ...], axis: int) -> int:
    if not -len(shape) <= axis < len(shape):
        raise refuse(
            node, "scale-axis", f"axis must be one of the {len(shape)} axes of {show(tensor)}, not {axis}",
            "correct the axis",
        )
    return axis % len(shape)


def _blocks(
    node: OnnxNode, tensor: str, values: Fractions, shape: tuple[int, ...], axis: int, block: int
) -> Fractions:
    """Repeat one parameter per block (QuantizeLinear 21) for every element of it; the last block may be shorter."""
    expected = list(shape)
    expected[axis] = -(-shape[axis] // block) if block > 0 else -1
    if list(values.shape) != expected:
        raise refuse(
            node, "scale-shape",
            f"scale must have one element per block of {block} along axis {axis} of {show(tensor)}, shape "
            f"{expected}, not {list(values.shape)}",
            "correct block_size or the scale",
        )
    return values.repeat(block, axis=axis).take(range(shape[axis]), axis=axis)


def element(state: Lowering, node: OnnxNode, name: str) -> IntType:
    """Return the integer type of an ONNX value."""
    dtype = state.model.values[name].dtype
    if dtype not in INTEGER_TYPES:
        known = ", ".join(INTEGER_TYPES)
        raise refuse(
            node, "integer-type", f"{show(name)} must be of an integer type ({known}), not {dtype}",
            "use another quantized type",
        )
    return INTEGER_TYPES[dtype]


def dequantized(
    view: Integers, scale: Fractions, zero_point: Fractions, tensor: str, after: tuple[str, ...]
) -> Reals:
    """Return the reals of the integer tensor ``tensor`` (parameters of a frame); ``after``: the dequantizing node."""
    anchor = Anchor(tensor, view.value, fractions(1), fractions(0))
    return Reals(view.value, view.shape, scale, zero_point, anchor, after=after, low=view.low, high=view.high)


def dequantize_linear(state: Lowering, node: OnnxNode) -> View:
    """Lower DequantizeLinear, real = scale * (integer - zero point), without hardware: it defines the integers'
    meaning."""
    view = state.view(node.inputs[0])
    scale, zero_point = parameters(
        state, node, node.inputs[0], 1, 2, node.integer("axis", 1), node.integer("block_size")
    )
    if isinstance(view, Constant):
        element(state, node, node.inputs[0])
        return QuantizedConstant(view.array.astype(np.int64), scale, zero_point)
    if isinstance(view, Reals) and state.model.values[node.inputs[0]].dtype in INTEGER_TYPES:
        return rescaled(node, view, scale, zero_point)
    if not isinstance(view, Integers):
        raise refuse(
            node, "quantized-operand", f"input {show(node.inputs[0])} must be an integer tensor, not a real one",
            "put a QuantizeLinear before it",
        )
    frame = without_frame_axis(scale), without_frame_axis(zero_point)
    for port in state.inputs:
        if port.value is view.value and port.value.origin in state.model.inputs:  # the port's meaning is defined here
            say_scale(port, *frame)
    state.levels.setdefault(node.inputs[0], Meaning(*frame))
    return dequantized(view, frame[0], frame[1], node.inputs[0], (node.name,))


def rescaled(node: OnnxNode, view: Reals, scale: Fractions, zero_point: Fractions) -> Reals:
    """Dequantize sums (ConvInteger and the like), whose values differ from the hardware's integers."""
    frame_scale, frame_zero = without_frame_axis(scale), without_frame_axis(zero_point)
    return affine(view, node, frame_scale, as_array(-frame_scale * frame_zero))


def quantize_linear(state: Lowering, node: OnnxNode) -> View:
    """Lower QuantizeLinear, saturate(round_half_even(real / scale) + zero point): a step function of the integers that
    represent the reals."""
    scale, zero_point = parameters(
        state, node, node.inputs[0], 1, 2, node.integer("axis", 1), node.integer("block_size")
    )
    type_ = element(state, node, node.outputs[0])
    require_divisor(node, scale)
    q = Quantization(scale, zero_point, type_.min, type_.max)
    view = state.view(node.inputs[0])
    if isinstance(view, Constant | QuantizedConstant):
        return Constant(constant_levels(state, node, q))
    q = q.of_frame()
    if isinstance(view, HostInput):
        integers = graph_input(state, view.name, node.outputs[0], type_)
        say_scale(state.inputs[-1], q.scale, q.zero_point)
        return integers
    if isinstance(view, Integers):  # int32 without a scale
        view = made(view.value, view.shape, fractions(1), fractions(0), node)
    if isinstance(view, Masked):
        return _masked(state, node, view, q, type_)
    assert isinstance(view, Reals)
    return quantized(state, node, view, q, type_)


def _masked(state: Lowering, node: OnnxNode, view: Masked, q: Quantization, type_: IntType) -> Integers:
    """Quantize reals of which a mask has made some so small that they get the least level."""
    if any(s < 0 for s in q.scale.reshape(-1)):
        raise refuse(node, "scale-range", "scale must be positive behind a mask", "calibrate the model again")
    most = greatest_masked(state, view)
    if most is not None and most > min(as_array(q.scale * (type_.min - q.zero_point)).reshape(-1)):
        raise refuse(
            node, "masked-range", "masked elements must be below the quantizer's least level, not above it",
            "mask them by minus infinity",
        )
    others = Integers(requantize(state, node, view.reals, q, origin=""), view.reals.shape, type_.min, type_.max)
    marks = where_taken(state, node, view)
    chosen = step(state, node, Simple("where"), [marks, type_.min, others])
    state.levels[node.outputs[0]] = Meaning(q.scale, q.zero_point)
    return Integers(chosen.value, view.reals.shape, type_.min, type_.max)


def quantized(state: Lowering, node: OnnxNode, view: Reals, q: Quantization, type_: IntType) -> Integers:
    """Quantize reals to an integer ONNX type in hardware."""
    view = with_roots(state, node, view, type_.max - type_.min + 1)
    value: Value = requantize(state, node, view, q)
    state.levels[node.outputs[0]] = Meaning(q.scale, q.zero_point)
    return Integers(value, view.shape, type_.min, type_.max)
