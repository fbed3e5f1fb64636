"""The QOperator dialect of ai.onnx: quantized operators as dequantize, operate, quantize.

Rounding precedes the zero point, as in QuantizeLinear.
"""

from __future__ import annotations

import numpy as np

from hwflow.display import show
from hwflow.frontend.context import Lowering, constant, given, refuse
from hwflow.frontend.views import Constant, Integers, QuantizedConstant, Reals, View, as_array, fractions
from hwflow.ir.graph import Fractions
from hwflow.onnxspec.resolving.resolved_model import OnnxNode
from hwflow.operators.linear.linear import convolution
from hwflow.operators.linear.matmul import multiplied
from hwflow.operators.quantizers.qdq import dequantized, element, parameters, quantized, spread
from hwflow.operators.quantizers.quantizers import Quantization, require_divisor, without_frame_axis

Operand = Reals | QuantizedConstant


def operand(
    state: Lowering, node: OnnxNode, index: int, scale_index: int, zero_index: int, axis: int = 0
) -> Operand:
    """Return quantized input ``index`` as reals; several scales lie along ``axis`` of the tensor."""
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
    """Return an input as by :func:`operand`, which must be computed at run time."""
    real = operand(state, node, index, scale_index, zero_index, axis)
    if isinstance(real, QuantizedConstant):
        raise refuse(
            node, "stream-operand", f"input {show(node.inputs[index])} must be computed at run time, not a constant",
            "fold the node, or swap the operands",
        )
    return real


def fixed(
    state: Lowering, node: OnnxNode, index: int, scale_index: int, zero_index: int, axis: int
) -> QuantizedConstant:
    """Return an input as by :func:`operand`, which must be constant."""
    real = operand(state, node, index, scale_index, zero_index, axis)
    if isinstance(real, Reals):
        raise refuse(
            node, "constant-weights", f"weights {show(node.inputs[index])} must be constant, not computed at run time",
            "make them an initializer, or leave the node to the host, before the first or after the last quantizer",
        )
    return real


def requantized(
    state: Lowering, node: OnnxNode, view: Reals, scale_index: int, zero_index: int, axis: int = 1
) -> View:
    """Requantize ``view`` by the node's output parameters; several scales lie along ``axis``."""
    output = node.outputs[0]
    scale, zero_point = parameters(state, node, output, scale_index, zero_index, axis)
    type_ = element(state, node, output)
    require_divisor(node, scale)
    q = Quantization(scale, zero_point, type_.min, type_.max).of_frame()
    return quantized(state, node, view, q, type_)


def qlinear_conv(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearConv; the bias is in units of the products' scale."""
    x = stream(state, node, 0, 1, 2)
    weights = fixed(state, node, 3, 4, 5, 0)
    bias: Fractions | None = None
    if given(node, 8):
        integers = constant(state, node, 8, "bias").array
        count = len(weights.integers)
        if integers.shape != (count,):
            raise refuse(
                node, "bias-shape",
                f"bias {show(node.inputs[8])} must have one element per output ({count}), not shape "
                f"{list(integers.shape)}",
                "give one bias per output",
            )
        if x.scale.size != 1:
            raise refuse(
                node, "scale-shape", f"scale {show(node.inputs[1])} must have one element where there is a bias, not "
                f"{x.scale.size}", "give one scale for the input",
            )
        bias = as_array(fractions(integers) * weights.scale.reshape(-1) * x.scale.reshape(-1))
    return requantized(state, node, convolution(state, node, x, weights, node.inputs[3], bias), 6, 7)


def qlinear_matmul(state: Lowering, node: OnnxNode) -> View:
    """Lower QLinearMatMul; one scale each, or scales per row of the left operand, per column
    of the right one, and per row of the result (for a vector per frame, per element)."""
    a, b = operand(state, node, 0, 1, 2, -2), operand(state, node, 3, 4, 5, -1)
    result = multiplied(state, node, a, b, (node.inputs[0], node.inputs[3]))
    return requantized(state, node, result, 6, 7, 1 if len(result.shape) == 1 else -2)


def _integers(state: Lowering, node: OnnxNode, index: int) -> Integers:
    view = state.view(node.inputs[index])
    if isinstance(view, Integers):
        return view
    raise refuse(
        node, "quantized-operand", f"input {show(node.inputs[index])} must be an integer tensor, not a real one",
        "put a QuantizeLinear before it",
    )


def _without_scale(state: Lowering, node: OnnxNode, index: int, zero_index: int, axis: int) -> Operand:
    """Return integers minus their zero point."""
    name = node.inputs[index]
    view = state.view(name)
    zero = constant(state, node, zero_index, "zero point").array if given(node, zero_index) else np.zeros((), np.int64)
    shape = state.model.values[name].shape
    zero_point = spread(node, "zero point", fractions(zero.astype(np.int64)), name, shape, axis)
    if isinstance(view, Constant):
        return QuantizedConstant(view.array.astype(np.int64), fractions(1), zero_point)
    return dequantized(
        _integers(state, node, index), fractions(1), without_frame_axis(zero_point), name, (node.name,)
    )


def conv_integer(state: Lowering, node: OnnxNode) -> View:
    """Lower ConvInteger: the sums themselves, an int32 tensor."""
    x, w = _without_scale(state, node, 0, 2, 1), _without_scale(state, node, 1, 3, 0)
    if isinstance(x, QuantizedConstant) or isinstance(w, Reals):
        raise refuse(
            node, "constant-weights",
            f"weights {show(node.inputs[1])} must be constant and input {show(node.inputs[0])} must not",
            "make them an initializer, or leave the node to the host, before the first or after the last quantizer",
        )
    sums = convolution(state, node, x, w, node.inputs[1], None)
    return _within_int32(node, sums, x, w, tuple(range(1, w.integers.ndim)))


def matmul_integer(state: Lowering, node: OnnxNode) -> View:
    """Lower MatMulInteger: the sums themselves, an int32 tensor."""
    a, b = _without_scale(state, node, 0, 2, -2), _without_scale(state, node, 1, 3, -1)
    sums = multiplied(state, node, a, b, (node.inputs[0], node.inputs[1]))
    if isinstance(a, Reals) and isinstance(b, QuantizedConstant):
        return _within_int32(node, sums, a, b, -2 if b.integers.ndim > 1 else 0)
    if isinstance(a, QuantizedConstant) and isinstance(b, Reals):
        return _within_int32(node, sums, b, a, -1)
    assert isinstance(a, Reals) and isinstance(b, Reals), "one operand is computed at run time"
    return _require_int32(node, sums, a.shape[-1] * _most(a) * _most(b))


def _within_int32(
    node: OnnxNode, sums: Reals, x: Reals, w: QuantizedConstant, axes: int | tuple[int, ...]
) -> Reals:
    """Refuse sums beyond int32, which ONNX leaves undefined. ``axes``: the summed axes of the weights."""
    zero_point = np.array([int(z) for z in w.zero_point.reshape(-1)], dtype=np.int64).reshape(w.zero_point.shape)
    return _require_int32(node, sums, _most(x) * int(np.abs(w.integers - zero_point).sum(axis=axes).max(initial=0)))


def _most(view: Reals) -> int:
    """Return the greatest magnitude of integers less their zero point."""
    assert view.low is not None and view.high is not None
    return max(abs(v - int(z)) for v in (view.low, view.high) for z in view.zero_point.reshape(-1))


def _require_int32(node: OnnxNode, sums: Reals, bound: int) -> Reals:
    """Refuse sums that may reach ``bound`` if that is beyond int32."""
    if bound >= 1 << 31:
        raise refuse(
            node, "int32-sums", f"sums must stay below 2**31 in magnitude, not reach {bound}", "sum fewer products"
        )
    return sums


def dynamic_quantize_linear(state: Lowering, node: OnnxNode) -> View:
    """Refuse DynamicQuantizeLinear: a frame's range is unknown until the whole frame is."""
    raise refuse(
        node, "static-range", "the range must be known when the model is compiled, not follow each input",
        "quantize statically, with QuantizeLinear and calibration data",
    )
