"""Convolutions and matrix products of reals with constant weights: exact sums, no rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, exact_constant, finite, given, made, reals, refuse
from hwflow.frontend.views import (
    Reals,
    View,
    as_array,
    compact,
    fractions,
    uniform,
)
from hwflow.ir.graph import Fractions, IntArray, Value
from hwflow.ir.node_attributes import Conv2dAttributes, DenseAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.arithmetic import affine, sum_of
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point
from hwflow.operators.linear import spatial
from hwflow.operators.linear.weights import Weights, integer_weights
from hwflow.operators.linear.window import window_of
from hwflow.operators.moves.moves import broadcast

_HALF = Fraction(1, 2)


def conv(state: Lowering, node: OnnxNode) -> View:
    """Lower Conv, of any number of spatial axes."""
    view = reals(state, node, 0)
    weights = state.view(node.inputs[1])
    count = state.model.values[node.inputs[1]].shape[0]
    return convolution(state, node, view, weights, node.inputs[1], bias_of(state, node, 2, count))


def convolution(
    state: Lowering, node: OnnxNode, view: Reals, constant: View, name: str, bias: Fractions | None
) -> Reals:
    """Return the convolution of ``view`` with the weights ``constant`` (value ``name``) and a bias of one element or
    one per output."""
    groups = node.integer("group", 1)
    shape = state.model.values[name].shape
    out_shape = state.frame_shape(node.outputs[0])
    window = window_of(node, view.shape[1:], shape[2:], out_shape[1:])
    view = plain(state, node, view)
    if any(window.pads):
        view = whole_zero_point(state, node, view)
    if any(size > 1 for v in (view.scale, view.zero_point) for size in v.shape[1:]):
        raise refuse(
            node, "channel-scale", f"input {show(node.inputs[0])} must have one scale and zero point per channel, not "
            "one per pixel", "quantize before the convolution",
        )
    if any(window.pads) and uniform(view.zero_point) is None:  # all channels are padded with the same number: 0
        view = from_zero(state, node, view)
    zero = uniform(view.zero_point)
    scale = uniform(view.scale)
    per_channel = None if scale is not None else of_groups(view.scale, shape, groups)
    weights = integer_weights(node, constant, name, 0, per_channel)
    weights = upright(weights, scale, Fraction(1))
    scale = None if scale is None else abs(scale)
    channel_zero = view.zero_point if zero is not None else of_groups(view.zero_point, shape, groups)
    bits = zero == _HALF and (view.low, view.high) == (0, 1) and weights.are_signs
    binary = bits and not (groups > 1 and shape[1] == 1 and len(shape) < 5)
    # Padding then adds nothing, and hardware may leave it out.
    centred = (
        any(window.pads) and groups == 1 and len(view.shape) < 4 and not binary and zero == view.low
        and zero is not None and zero < 0 and (-int(zero)).bit_count() == 1
    )
    attributes = Conv2dAttributes(
        (weights.integers + 1) // 2 if binary else weights.integers, window.strides, window.pads, window.dilations,
        pad_value=int(zero) if not binary and zero is not None and zero.denominator == 1 else 0,
        groups=groups, binary=binary, centred=centred,
    )
    if centred:
        channel_zero = as_array(channel_zero - zero)
    value = spatial.convolution(state, node, view.value, view.shape, attributes, view.nodes)
    _remember_reach(state, value, view, attributes.weights, attributes.pad_value, centred=centred)
    out = meaning(node, weights, scale, channel_zero, binary, bias)
    out_scale, zero_point = (compact(v.reshape(-1, *(1,) * (len(shape) - 2))) for v in out)
    return made(value, out_shape, out_scale, zero_point, node)


def _remember_reach(
    state: Lowering, value: Value, view: Reals, weights: IntArray, pad_value: int = 0, *, centred: bool = False
) -> None:
    """Record the bound of the sums ``value`` of products with the integers of ``view``; ``centred``: less
    ``pad_value``."""
    if view.low is not None and view.high is not None:
        origin = pad_value if centred else 0
        greatest = max(abs(end - origin) for end in (view.low, view.high, pad_value))
        sums = np.abs(weights.reshape(len(weights), -1)).astype(object).sum(axis=1)
        state.reach[value] = greatest * int(max(sums))


def of_groups(values: Fractions, shape: tuple[int, ...], groups: int) -> Fractions:
    """Map ``values`` per input channel to weights of ``shape``: each output gets those of its group."""
    of_group = values.reshape(groups, 1, -1, *(1,) * (len(shape) - 2))
    repeated = np.broadcast_to(of_group, (groups, shape[0] // groups, *of_group.shape[2:]))
    return repeated.reshape(shape[0], *of_group.shape[2:]) if groups > 1 else of_group[0]


def upright(weights: Weights, scale: Fraction | None, factor: Fraction) -> Weights:
    """Return the weights times ``factor``, negated where ``scale`` (of the input, None where the weights include it) is
    negative: every output then has a positive scale, and rises with its accumulator."""
    signs = np.array([-1 if (s < 0) != ((scale or 1) * factor < 0) else 1 for s in weights.scale])
    integers = weights.integers * signs.reshape(-1, *(1,) * (weights.integers.ndim - 1))
    return Weights(integers, as_array(abs(weights.scale * factor)))


def meaning(
    node: OnnxNode, weights: Weights, scale: Fraction | None, zero: Fractions, binary: bool, bias: Fractions | None
) -> tuple[Fractions, Fractions]:
    """Return scale and zero point of the accumulators, one per output, of sum(w * (q - zero)) and the bias.

    ``scale``: of the input, None where the weights include it. For binary products the accumulator counts matches p:
    with x = 2 q - 1, the sum of w * x is 2 p - K.
    """
    count = len(weights.integers)
    out_scale = weights.scale if scale is None else as_array(weights.scale * scale)
    rows = weights.integers.reshape(count, -1)
    if binary:
        zero_point = fractions(np.full(count, rows.shape[1])) / 2
    elif zero.size == 1:
        zero_point = fractions(rows.sum(axis=1)) * zero.reshape(-1)[0]
    else:
        columns = np.broadcast_to(zero, weights.integers.shape).reshape(count, -1)
        zero_point = np.array(
            [
                sum((int(w) * z for w, z in zip(row, own, strict=True)), Fraction(0))
                for row, own in zip(rows, columns, strict=True)
            ]
        )
    if bias is None:
        return out_scale, as_array(zero_point)
    _require_scale(node, out_scale)
    return out_scale, as_array(zero_point - np.broadcast_to(bias.reshape(-1), (count,)) / out_scale)


def bias_of(state: Lowering, node: OnnxNode, index: int, count: int) -> Fractions | None:
    """Return the bias as exact reals, of one element or ``count``; None if the node has none."""
    if not given(node, index):
        return None
    real = exact_constant(state, node, index, "bias")
    if real.size not in (1, count) or real.shape[-1:] not in ((), (real.size,)):
        raise refuse(
            node, "bias-shape",
            f"bias {show(node.inputs[index])} must have one element per output ({count}), not shape {list(real.shape)}",
            "give one bias per output",
        )
    return real


def product(
    state: Lowering, node: OnnxNode, view: Reals, constant: View, name: str, axis: int, bias: Fractions | None,
    factor: Fraction = Fraction(1), *, last: bool = True,
) -> Reals:
    """Return factor * view @ weights + bias; ``axis``: the outputs' axis of the matrix ``constant`` (value ``name``);
    ``last``: the result is the node's."""
    view = plain(state, node, view)
    inputs, rank = view.shape[-1], len(view.shape)
    row_scale, row_zero = (np.broadcast_to(v, (1,) * rank) if v.ndim == 0 else v for v in (view.scale, view.zero_point))
    by_row = any(size > 1 for v in (row_scale, row_zero) for size in v.shape[:-1])
    if by_row and max(row_scale.shape[-1], row_zero.shape[-1]) > 1:
        raise refuse(
            node, "row-scale", f"input {show(node.inputs[0])} must have scales and zero points that are the same in "
            "each row or in each column, not ones that differ in both", "quantize per tensor before the matrix product",
        )
    scale = Fraction(1) if by_row else uniform(view.scale)
    per_input = None
    if scale is None:
        row = view.scale.reshape(-1)
        per_input = row.reshape(-1, 1) if axis == 1 else row.reshape(1, -1)
    weights = integer_weights(node, constant, name, axis, per_input)
    zero = uniform(view.zero_point)
    weights = upright(weights, scale, factor)
    binary = zero == _HALF and (view.low, view.high) == (0, 1) and weights.are_signs
    attributes = DenseAttributes((weights.integers + 1) // 2 if binary else weights.integers, binary)
    value = state.add(
        node, [view.value], attributes, view.nodes, origin=state.real_origin(node) if last else ""
    )
    _remember_reach(state, value, view, attributes.weights)
    shape = (*view.shape[:-1], len(weights.integers))
    if by_row:
        out_scale, zero_point = _of_rows(node, weights, row_scale, row_zero, bias)
        return made(value, shape, compact(out_scale), compact(zero_point), node)
    zeros = view.zero_point if zero is not None else np.broadcast_to(view.zero_point.reshape(-1), (inputs,))
    out = meaning(node, weights, None if scale is None else abs(scale), zeros, binary, bias)
    out_scale, zero_point = (compact(v).reshape(*(1,) * (rank - 1), -1) for v in out)
    return made(value, shape, out_scale, zero_point, node)


def _of_rows(
    node: OnnxNode, weights: Weights, scale: Fractions, zero: Fractions, bias: Fractions | None
) -> tuple[Fractions, Fractions]:
    """Return scale and zero point of the accumulators where the input's differ between rows.

    A row's scale is that of its results; its zero point is multiplied by the sum of the weights."""
    out_scale = as_array(scale * weights.scale)
    zero_point = as_array(zero * fractions(weights.integers.sum(axis=1)))
    if bias is None:
        return out_scale, zero_point
    _require_scale(node, out_scale)
    return out_scale, as_array(zero_point - bias.reshape(-1) / out_scale)


def _require_scale(node: OnnxNode, scale: Fractions) -> None:
    """Refuse a scale of 0 with a bias: the products alone are all 0."""
    if any(s == 0 for s in scale.reshape(-1)):
        raise refuse(
            node, "scale-range", f"the scale of {show(node.inputs[0])} must not be 0 where there is a bias",
            "calibrate the model again",
        )


def gemm(state: Lowering, node: OnnxNode) -> View:
    """Lower Gemm with a constant matrix, and a constant bias or a stream. (Products of two streams, whose rows are no
    frames, are rewritten as MatMul: see :mod:`hwflow.frontend.frames.matrix_products`.)"""
    if node.attributes.get("transA", 0) != 0:
        raise refuse(node, "gemm-trans-a", "transA must be 0, not 1", "transpose the first operand in the model")
    view = reals(state, node, 0)
    name = node.inputs[1]
    axis = 0 if node.attributes.get("transB", 0) else 1
    alpha, beta = finite(node, "alpha", 1.0), finite(node, "beta", 1.0)
    if alpha == 0:
        raise refuse(node, "gemm-alpha", "alpha must not be 0", "remove the product")
    if given(node, 2) and isinstance(state.view(node.inputs[2]), Reals):
        sums = product(state, node, view, state.view(name), name, axis, None, alpha, last=beta == 0)
        if beta == 0:
            return sums
        whole, target = (state.model.values[each].shape for each in (node.inputs[2], node.result))
        addend = broadcast(state, node, reals(state, node, 2), whole, target)
        return sum_of(state, node, sums, affine(addend, node, fractions(beta), fractions(0)))
    bias = bias_of(state, node, 2, state.model.values[name].shape[axis])
    if bias is not None:
        bias = as_array(bias * beta)
    return product(state, node, view, state.view(name), name, axis, bias, alpha)
