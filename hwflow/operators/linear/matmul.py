"""MatMul of any number of axes (numpy's matmul, as ONNX defines it), with a constant operand on either side or none."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, finite, made, reals, refuse
from hwflow.frontend.frames.fused_products import order_of
from hwflow.frontend.views import (
    Constant,
    QuantizedConstant,
    Reals,
    View,
    as_array,
    changed,
    compact,
    fractions,
    uniform,
)
from hwflow.ir.node_attributes import DenseAttributes, ReshapeAttributes, TransposeAttributes
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.elementwise.lattice import from_zero, plain, whole_zero_point
from hwflow.operators.linear.linear import meaning, product, upright
from hwflow.operators.linear.stream_products import product_of_streams
from hwflow.operators.linear.weights import integer_weights
from hwflow.operators.moves.moves import broadcast
from hwflow.operators.moves.reshapes import reshaped, transposed


def matmul(state: Lowering, node: OnnxNode) -> View:
    """Lower MatMul."""
    left, right = (state.view(name) for name in node.inputs)
    constant = [isinstance(view, Constant | QuantizedConstant) for view in (left, right)]
    for place in range(2):  # refuses operands that are not quantized
        if not constant[place] or all(constant):
            reals(state, node, place)
    return multiplied(state, node, left, right, (node.inputs[0], node.inputs[1]))


def fused_matmul(state: Lowering, node: OnnxNode) -> View:
    """Lower FusedMatMul: alpha times a product whose operands' axes are brought into another order first."""
    alpha = finite(node, "alpha", 1.0)
    if alpha == 0:
        raise refuse(node, "gemm-alpha", "alpha must not be 0", "remove the product")
    operands: list[View] = []
    for place, operand in enumerate("AB"):
        view: View = state.view(node.inputs[place])
        if not isinstance(view, Constant | QuantizedConstant):
            view = reals(state, node, place)
        order = order_of(node, operand, len(state.model.values[node.inputs[place]].shape))
        if isinstance(view, Reals):
            if order[0] != 0:
                raise refuse(
                    node, "frame-axis", f"the frame axis of {show(node.inputs[place])} must stay first, and not be "
                    "transposed", "transpose axes of a frame",
                )
            if order != sorted(order):
                view = transposed(state, node, view, tuple(axis - 1 for axis in order[1:]))
        else:
            view = changed(view, partial(np.transpose, axes=order))
        operands.append(view)
    result = multiplied(state, node, operands[0], operands[1], (node.inputs[0], node.inputs[1]))
    return made(result.value, result.shape, as_array(result.scale * alpha), result.zero_point, node)


def multiplied(state: Lowering, node: OnnxNode, left: View, right: View, names: tuple[str, str]) -> Reals:
    """Multiply two matrices, the values ``names``, which are reals, or one of them a constant."""
    if isinstance(left, Reals) and isinstance(right, Reals):
        axes = [len(state.model.values[name].shape) for name in names]
        if axes[0] != axes[1] or axes[0] < 3:
            raise refuse(
                node, "frame-axis",
                f"{show(names[0])} and {show(names[1])}, both computed at run time, must have the same number of axes, "
                f"those of matrices behind the frame axis, not {axes[0]} and {axes[1]}",
                "reshape both to (frames, ..., rows, columns)",
            )
        return product_of_streams(state, node, left, right, names)
    place = 0 if isinstance(right, Constant | QuantizedConstant) else 1
    view = (left, right)[place]
    if not isinstance(view, Reals):
        raise refuse(
            node, "stream-operand", f"one of {show(names[0])} and {show(names[1])} must be computed at run time, not "
            "both be constants", "compute the product when the model is exported",
        )
    if len(state.model.values[names[place]].shape) < 2 + place:
        raise refuse(
            node, "frame-axis",
            f"input {show(names[place])} must have axes besides the frame axis, which must not be summed over",
            "reshape to (frames, ...)",
        )
    if place == 0:
        return product_with(state, node, view, right, names[1])
    # A constant on the left is on the right of the transposed product.
    if len(state.model.values[names[0]].shape) < 2:
        left = changed(left, lambda array: array[None])
    turned = changed(left, lambda array: np.swapaxes(array, -1, -2))
    result = _turned(state, node, product_with(state, node, _turned(state, node, view), turned, names[0]))
    return _in_shape(state, node, result, state.frame_shape(node.result))


def product_with(state: Lowering, node: OnnxNode, view: Reals, weights: View, name: str) -> Reals:
    """Return view @ weights; ``weights`` is a constant with any number of axes."""
    assert isinstance(weights, Constant | QuantizedConstant), "one operand is constant"
    shape = (weights.array if isinstance(weights, Constant) else weights.integers).shape
    if len(shape) == 1:  # a vector: remove the axis of its only column
        column = changed(weights, lambda array: array[:, None])
        result = product(state, node, view, column, name, 1, None)
        return _in_shape(state, node, result, result.shape[:-1])
    if len(shape) == 2 or prod(shape[:-2]) == 1:
        matrix = changed(weights, lambda array: array.reshape(shape[-2:]))
        return product(state, node, view, matrix, name, 1, None)
    return _batched(state, node, view, weights, name, shape)


def _batched(
    state: Lowering, node: OnnxNode, view: Reals, weights: View, name: str, shape: tuple[int, ...]
) -> Reals:
    """Multiply by a matrix per index of the batch axes; rows take the matrices in turn."""
    batch = np.broadcast_shapes((1, *view.shape[:-2]), shape[:-2])
    if batch[0] != 1 or len(view.shape) < 2:
        raise refuse(
            node, "frame-axis", f"the result must keep the frame axis first, not have axes {list(batch)} there",
            "use one batch of matrices for all frames",
        )
    batch = batch[1:]
    count, (rows, inputs), outputs = prod(batch), view.shape[-2:], shape[-1]
    # Without a zero point, whose contribution would depend on the matrix and the column.
    view = from_zero(state, node, whole_zero_point(state, node, plain(state, node, view)))
    view = broadcast(state, node, view, (1, *view.shape), (1, *batch, rows, inputs))
    scale, row_scale = uniform(view.scale), fractions(1)
    if scale is None:
        if view.scale.shape[-1] > 1:
            raise refuse(
                node, "row-scale",
                f"input {show(node.inputs[0])} must have one scale per row, not per column, before a batch of matrices",
                "quantize per tensor before the matrix product",
            )
        scale, row_scale = Fraction(1), view.scale  # a row's scale is that of its results

    def rows_of_outputs(array: Any) -> Any:
        """Transpose and flatten [batch, K, M] to [batch * M, K]."""
        axes = len(batch) + 2
        short = array.reshape(array.shape[-axes:])  # drops the frame axis, of length 1
        wide = np.broadcast_to(short, (*batch, inputs, outputs)).reshape(count, inputs, outputs)
        return wide.transpose(0, 2, 1).reshape(count * outputs, inputs)

    matrix = upright(
        integer_weights(node, changed(weights, rows_of_outputs), name, 0), scale, Fraction(1)
    )
    value = state.add(node, [view.value], ReshapeAttributes((count, rows, inputs)), origin="")
    value = state.add(node, [value], TransposeAttributes((1, 0, 2)), origin="")
    sets = matrix.integers.reshape(count, outputs, inputs)
    value = state.add(node, [value], DenseAttributes(sets), view.nodes, origin="")
    value = state.add(node, [value], TransposeAttributes((1, 0, 2)), origin="")
    result = (*batch, rows, outputs)
    value = state.add(node, [value], ReshapeAttributes(result), origin=state.real_origin(node))
    out = meaning(node, matrix, abs(scale), fractions(0), False, None)
    out_scale, zero_point = (v.reshape(*batch, 1, outputs) for v in out)
    return made(value, result, compact(as_array(out_scale * row_scale)), compact(zero_point), node)


def _turned(state: Lowering, node: OnnxNode, view: Reals) -> Reals:
    """Swap the last two axes of ``view``."""
    axes = len(view.shape)
    return transposed(state, node, view, (*range(axes - 2), axes - 1, axes - 2))


def _in_shape(state: Lowering, node: OnnxNode, view: Reals, shape: tuple[int, ...]) -> Reals:
    """Reshape to the node's result."""
    result = reshaped(state, node, view, shape or (1,), origin=state.real_origin(node))
    return made(result.value, result.shape, result.scale, result.zero_point, node)
