"""Quantized operators of the domain com.microsoft, as onnxruntime's quantizer writes them: dequantize, operate,
quantize.

Rounding comes before the zero point, as in QuantizeLinear (onnxruntime's own kernels of some round after it).
"""

from __future__ import annotations

from collections.abc import Mapping

from hwflow.frontend import qdq
from hwflow.frontend.arithmetic import affine, combined, product_of, sum_of
from hwflow.frontend.context import Handler, Lowering, behind, constant, finite, given, integer, over_frame, refuse
from hwflow.frontend.linear import product
from hwflow.frontend.pools import averaged, globally_averaged
from hwflow.frontend.qlinear import fixed, operand, requantized, stream
from hwflow.frontend.shapes import joined
from hwflow.frontend.views import QuantizedConstant, Reals, View, as_array, fractions
from hwflow.ir.graph import Fractions
from hwflow.numerics.elementwise import LeakyRelu
from hwflow.numerics.smooth import Sigmoid
from hwflow.onnxspec.model import OnnxNode


def _operands(state: Lowering, node: OnnxNode) -> tuple[Reals, Reals | Fractions]:
    """A stream, and the other stream or constant."""
    a, b = operand(state, node, 0, 1, 2), operand(state, node, 3, 4, 5)
    if isinstance(a, QuantizedConstant):
        a, b = b, a
    if isinstance(a, QuantizedConstant):
        raise refuse(node, "stream-operand", "one operand must be computed at run time", "fold the node")
    if isinstance(b, QuantizedConstant):
        return a, over_frame(state, node, "the constant operand", b.real(), a.shape)
    if a.shape != b.shape:
        raise refuse(
            node, "stream-shapes",
            f"two streams must have the same shape, not {list(a.shape)} and {list(b.shape)}",
            "broadcast constants only, or expand the smaller one before quantizing",
        )
    return a, b


def qlinear_add(state: Lowering, node: OnnxNode) -> View:
    """QLinearAdd of two streams or a constant."""
    a, b = _operands(state, node)
    if not isinstance(b, Reals):
        return requantized(state, node, affine(a, node, fractions(1), b), 6, 7)
    total = combined(node, "add", a, b) if a.value is b.value else sum_of(state, node, a, b)
    return requantized(state, node, total, 6, 7)


def qlinear_mul(state: Lowering, node: OnnxNode) -> View:
    """QLinearMul of two streams or a constant."""
    a, b = _operands(state, node)
    if not isinstance(b, Reals):
        return requantized(state, node, affine(a, node, b, fractions(0)), 6, 7)
    total = combined(node, "mul", a, b) if a.value is b.value else product_of(state, node, a, b)
    return requantized(state, node, total, 6, 7)


def qlinear_sigmoid(state: Lowering, node: OnnxNode) -> View:
    """QLinearSigmoid."""
    return requantized(state, node, behind(stream(state, node, 0, 1, 2), node, as_array(Sigmoid())), 3, 4)


def qlinear_leaky_relu(state: Lowering, node: OnnxNode) -> View:
    """QLinearLeakyRelu."""
    function = as_array(LeakyRelu(finite(node, "alpha", 0.01)))
    return requantized(state, node, behind(stream(state, node, 0, 1, 2), node, function), 3, 4)


def _channels_first(node: OnnxNode) -> None:
    if integer(node, "channels_last"):
        raise refuse(
            node, "channels-first", "channels_last must be 0, not 1", "put Transpose nodes around a channels-first pool"
        )


def qlinear_average_pool(state: Lowering, node: OnnxNode) -> View:
    """QLinearAveragePool, channels first."""
    _channels_first(node)
    return requantized(state, node, averaged(state, node, stream(state, node, 0, 1, 2)), 3, 4)


def qlinear_global_average_pool(state: Lowering, node: OnnxNode) -> View:
    """QLinearGlobalAveragePool, channels first."""
    _channels_first(node)
    return requantized(state, node, globally_averaged(state, node, stream(state, node, 0, 1, 2)), 3, 4)


def qlinear_concat(state: Lowering, node: OnnxNode) -> View:
    """QLinearConcat of streams: inputs are the result's scale and zero point, then tensor, scale, zero point each."""
    rank = len(state.model.values[node.outputs[0]].shape)
    axis = integer(node, "axis") % rank
    views = [stream(state, node, index, index + 1, index + 2) for index in range(2, len(node.inputs), 3)]
    whole = joined(state, node, views, axis - 1) if len(views) > 1 else views[0]
    return requantized(state, node, whole, 0, 1)


def qgemm(state: Lowering, node: OnnxNode) -> View:
    """QGemm with a constant matrix; without an output scale the result is real."""
    if integer(node, "transA"):
        raise refuse(node, "gemm-trans-a", "transA must be 0, not 1", "transpose the first operand in the model")
    axis = 0 if integer(node, "transB") else 1
    a, b = stream(state, node, 0, 1, 2), fixed(state, node, 3, 4, 5, axis)
    alpha = finite(node, "alpha", 1.0)
    if alpha == 0:
        raise refuse(node, "gemm-alpha", "alpha must not be 0", "remove the product")
    bias: Fractions | None = None
    if given(node, 6):
        units = b.scale.reshape(-1) * a.scale * alpha
        bias = as_array(fractions(constant(state, node, 6, "bias").array) * units)
    sums = product(state, node, a, b, node.inputs[3], axis, bias, alpha)
    return requantized(state, node, sums, 7, 8) if given(node, 7) else sums


HANDLERS: Mapping[str, Handler] = {
    "DequantizeLinear": qdq.dequantize_linear,
    "QGemm": qgemm,
    "QLinearAdd": qlinear_add,
    "QLinearAveragePool": qlinear_average_pool,
    "QLinearConcat": qlinear_concat,
    "QLinearGlobalAveragePool": qlinear_global_average_pool,
    "QLinearLeakyRelu": qlinear_leaky_relu,
    "QLinearMul": qlinear_mul,
    "QLinearSigmoid": qlinear_sigmoid,
    "QuantizeLinear": qdq.quantize_linear,
}
