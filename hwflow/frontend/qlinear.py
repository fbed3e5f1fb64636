"""The QOperator dialect of ai.onnx: quantized operators as what they are defined by, dequantize, operate, quantize.

Rounding comes before the zero point, as in QuantizeLinear.
"""

from __future__ import annotations

import numpy as np

from hwflow.frontend.context import Lowering, constant, given, refuse
from hwflow.frontend.linear import convolution, product, require_matrix
from hwflow.frontend.matmul import product_with
from hwflow.frontend.qdq import dequantized, element, parameters, quantized
from hwflow.frontend.quantizers import Quantization, require_positive, without_frame_axis
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, Reals, View, as_array, fractions
from hwflow.ir.graph import Fractions
from hwflow.onnxspec.model import OnnxNode

Operand = Reals | QuantizedConstant


def operand(
    state: Lowering, node: OnnxNode, index: int, scale_index: int, zero_index: int, axis: int = 0
) -> Operand:
    """Quantized input ``index`` as reals; several scales run along ``axis`` of the tensor."""
    name = node.inputs[index]
    view = state.view(name)
    scale, zero_point = parameters(state, node, name, scale_index, zero_index, axis)
    if isinstance(view, Constant):
        element(state, node, name)
        return QuantizedConstant(view.array.astype(np.int64), scale, zero_point)
    frame = without_frame_axis(scale), without_frame_axis(zero_point)
    return dequantized(_integers(state, node, index), *frame, name, (node.name,))


def stream(
    state: Lowering, node: OnnxNode, index: int, scale_index: int, zero_index: int, axis: int = 1
) -> Reals:
    """The same, of an input that must be computed at run time."""
    real = operand(state, node, index, scale_index, zero_index, axis)
    if isinstance(real, QuantizedConstant):
        raise refuse(
            node, "stream-operand", f"input '{node.inputs[index]}' must be computed at run time, not a constant",
            "fold the node, or swap the operands",
        )
    return real


def fixed(
    state: Lowering, node: OnnxNode, index: int, scale_index: int, zero_index: int, axis: int
) -> QuantizedConstant:
    """The same, of an input that must be constant."""
    real = operand(state, node, index, scale_index, zero_index, axis)
    if isinstance(real, Reals):
        raise refuse(
            node, "constant-weights", f"weights '{node.inputs[index]}' must be constant, not computed at run time",
            "make them an initializer",
        )
    return real


def requantized(state: Lowering, node: OnnxNode, view: Reals, scale_index: int, zero_index: int) -> View:
    """``view`` through the quantizer of the node's output."""
    output = node.outputs[0]
    scale, zero_point = parameters(state, node, output, scale_index, zero_index, 1)
    type_ = element(state, node, output)
    require_positive(node, scale)
    q = Quantization(scale, zero_point, type_.min, type_.max).of_frame()
    return quantized(state, node, view, q, type_)


def qlinear_conv(state: Lowering, node: OnnxNode) -> View:
    """QLinearConv, two-dimensional, one group; the bias is a multiple of the products' scale."""
    x = stream(state, node, 0, 1, 2)
    weights = fixed(state, node, 3, 4, 5, 0)
    bias: Fractions | None = None
    if given(node, 8):
        integers = constant(state, node, 8, "bias").array
        count = len(weights.integers)
        if integers.shape != (count,):
            raise refuse(
                node, "bias-shape",
                f"bias '{node.inputs[8]}' must have one element an output ({count}), not shape {list(integers.shape)}",
                "give one bias for each output",
            )
        if x.scale.size != 1:
            raise refuse(
                node, "scale-shape", f"scale '{node.inputs[1]}' must have one element where there is a bias, not "
                f"{x.scale.size}", "give one scale for the input",
            )
        bias = as_array(fractions(integers) * weights.scale.reshape(-1) * x.scale.reshape(-1))
    return requantized(state, node, convolution(state, node, x, weights, node.inputs[3], bias), 6, 7)


def qlinear_matmul(state: Lowering, node: OnnxNode) -> View:
    """QLinearMatMul with constant matrices on the right."""
    a = stream(state, node, 0, 1, 2)
    b = fixed(state, node, 3, 4, 5, 1)
    if b.integers.ndim > 2:
        return requantized(state, node, product_with(state, node, a, b, node.inputs[3]), 6, 7)
    require_matrix(state, node, node.inputs[0], node.inputs[3], b)
    return requantized(state, node, product(state, node, a, b, node.inputs[3], 1, None), 6, 7)


def _integers(state: Lowering, node: OnnxNode, index: int) -> Integers:
    view = state.view(node.inputs[index])
    if isinstance(view, Integers):
        return view
    raise refuse(
        node, "quantized-operand", f"input '{node.inputs[index]}' must be an integer tensor, not a real one",
        "put a QuantizeLinear before it",
    )


def _without_scale(state: Lowering, node: OnnxNode, index: int, zero_index: int, axis: int) -> Operand:
    """Integers minus their zero point."""
    name = node.inputs[index]
    view = state.view(name)
    zero = constant(state, node, zero_index, "zero point").array if given(node, zero_index) else np.zeros((), np.int64)
    zero_point = fractions(zero.astype(np.int64))
    if zero_point.size == 1:
        zero_point = zero_point.reshape(())
    else:
        rank = len(state.model.values[name].shape)
        if zero_point.shape != (state.model.values[name].shape[axis],):
            raise refuse(
                node, "zero-point-shape",
                f"zero point must have one element, or one for each index of axis {axis} of '{name}', not shape "
                f"{list(zero.shape)}",
                "correct the zero point",
            )
        zero_point = zero_point.reshape([-1 if a == axis % rank else 1 for a in range(rank)])
    if isinstance(view, Constant):
        return QuantizedConstant(view.array.astype(np.int64), fractions(1), zero_point)
    return dequantized(
        _integers(state, node, index), fractions(1), without_frame_axis(zero_point), name, (node.name,)
    )


def _weights_and_input(
    state: Lowering, node: OnnxNode, zero_indices: tuple[int, int], axis: int
) -> tuple[Reals, QuantizedConstant]:
    x = _without_scale(state, node, 0, zero_indices[0], 1)
    w = _without_scale(state, node, 1, zero_indices[1], axis)
    if isinstance(x, QuantizedConstant) or isinstance(w, Reals):
        raise refuse(
            node, "constant-weights",
            f"weights '{node.inputs[1]}' must be constant and input '{node.inputs[0]}' must not",
            "make the weights an initializer",
        )
    return x, w


def conv_integer(state: Lowering, node: OnnxNode) -> View:
    """ConvInteger: the sums themselves, an int32 tensor."""
    x, w = _weights_and_input(state, node, (2, 3), 0)
    return _within_int32(node, convolution(state, node, x, w, node.inputs[1], None), x, w, 0)


def matmul_integer(state: Lowering, node: OnnxNode) -> View:
    """MatMulInteger with a constant matrix on the right: the sums themselves, an int32 tensor."""
    x, w = _weights_and_input(state, node, (2, 3), 1)
    require_matrix(state, node, node.inputs[0], node.inputs[1], w)
    return _within_int32(node, product(state, node, x, w, node.inputs[1], 1, None), x, w, 1)


def _within_int32(node: OnnxNode, sums: Reals, x: Reals, w: QuantizedConstant, axis: int) -> Reals:
    """Sums that int32 holds: beyond, ONNX does not say what they are."""
    assert x.low is not None and x.high is not None
    most = max(abs(v - int(z)) for v in (x.low, x.high) for z in x.zero_point.reshape(-1))
    zero_point = np.array([int(z) for z in w.zero_point.reshape(-1)], dtype=np.int64).reshape(w.zero_point.shape)
    weights = np.moveaxis(np.abs(w.integers - zero_point), axis, 0)
    bound = most * int(weights.reshape(len(weights), -1).sum(axis=1).max(initial=0))
    if bound >= 1 << 31:
        raise refuse(
            node, "int32-sums", f"sums must stay below 2**31 in magnitude, not reach {bound}", "sum fewer products"
        )
    return sums


def dynamic_quantize_linear(state: Lowering, node: OnnxNode) -> View:
    """DynamicQuantizeLinear: the range of each frame is not known before the frame is."""
    raise refuse(
        node, "static-range", "the range must be known when the model is compiled, not follow each input",
        "quantize statically, with QuantizeLinear and calibration data",
    )


